//! cargo's own test runner. Building is a step of its own, so that a build failure is never taken for a test's.
//! Ids are `package::test`, for an integration test `package::file::test`, for a binary
//! `package::bin/name::test`, as nextest names them. Doctests are not run.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::command::{self, argv};
use super::report::{self, Event};
use super::{Outcome, Run, RunError, Selection, TestId, TestRun, libtest};
use crate::sandbox::{Exit, Output};

/// The least time that a build gets, as a first one builds all dependencies.
const BUILD_TIME: Duration = Duration::from_secs(600);

/// A built test binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Binary {
    /// File name of the executable.
    pub file: String,
    /// Its id.
    pub id: String,
    /// Arguments of `cargo test` that choose it alone.
    pub choose: Vec<String>,
}

/// A build that went well, or the run that tells of its failure.
pub(super) enum Built {
    /// The test binaries.
    Binaries(Vec<Binary>),
    /// A build failure.
    Failed(TestRun),
}

pub(super) async fn list(run: &Run<'_>) -> Result<Vec<TestId>, RunError> {
    let Built::Binaries(binaries) = build(run).await? else { return Ok(Vec::new()) };
    let output = cargo_test(run, &[], &["--list"], run.project.timeout).await?;
    let mut found = Vec::new();
    let mut current = None;
    for line in report::text(&output).lines() {
        if let Some(path) = line.trim_start().strip_prefix("Running ").and_then(|it| it.strip_suffix(')')) {
            current = path.rsplit_once('(').and_then(|(_, path)| id_of(&binaries, path));
        } else if let (Some(binary), Some(name)) = (&current, line.strip_suffix(": test")) {
            found.push(TestId(format!("{binary}::{name}")));
        }
    }
    Ok(found)
}

pub(super) async fn run(run: &Run<'_>, selection: &Selection) -> Result<TestRun, RunError> {
    let started = Instant::now();
    let binaries = match build(run).await? {
        Built::Binaries(binaries) => binaries,
        Built::Failed(failed) => return Ok(failed),
    };
    let mut done = TestRun {
        results: BTreeMap::new(),
        build_failure: None,
        complete: true,
        exit: Exit::Code(0),
        output: String::new(),
        elapsed: Duration::ZERO,
    };
    let wanted = command::chosen(selection);
    match wanted {
        None => merge(run, &mut done, cargo_test(run, &[], &[], run.project.timeout).await?, &binaries),
        Some(ids) => {
            for (binary, names) in by_binary(&binaries, ids) {
                let mut harness = vec!["--exact"];
                harness.extend(names.iter().copied());
                let output = cargo_test(run, &binary.choose, &harness, run.project.timeout).await?;
                merge(run, &mut done, output, &binaries);
            }
        }
    }
    done.elapsed = started.elapsed();
    Ok(done)
}

fn merge(run: &Run<'_>, done: &mut TestRun, output: Output, binaries: &[Binary]) {
    let text = report::text(&output);
    let mut parsed = libtest::parse(&text, |path| id_of(binaries, path));
    for result in parsed.results.values_mut() {
        let place = libtest::panic_place(&result.message);
        result.location = place.and_then(|(file, line)| report::location(run, Some(file), Some(line)));
        if result.outcome == Outcome::Error {
            result.message = report::unfinished(&output.exit);
        }
    }
    done.results.extend(parsed.results);
    done.complete &= parsed.complete && output.exit != Exit::TimedOut;
    if output.exit != Exit::Code(0) {
        done.exit = output.exit;
    }
    done.output.push_str(&text);
}

/// The selected names by their binary.
fn by_binary<'a>(binaries: &'a [Binary], ids: &'a [TestId]) -> Vec<(&'a Binary, Vec<&'a str>)> {
    let name = |binary: &Binary, id: &'a TestId| id.0.strip_prefix(&binary.id)?.strip_prefix("::");
    // `pkg::file::test` may also be read as the test `file::test` of `pkg`; both are asked then.
    let names = |binary| ids.iter().filter_map(|id| name(binary, id)).collect::<Vec<_>>();
    binaries.iter().map(|binary| (binary, names(binary))).filter(|(_, names)| !names.is_empty()).collect()
}

fn id_of(binaries: &[Binary], path: &str) -> Option<String> {
    let file = Path::new(path).file_name()?.to_str()?;
    binaries.iter().find(|binary| binary.file == file).map(|binary| binary.id.clone())
}

/// `cargo test`, both streams in one, so that what a binary prints follows its name.
async fn cargo_test(
    run: &Run<'_>,
    choose: &[String],
    harness: &[&str],
    wall: Duration,
) -> Result<Output, RunError> {
    let mut args = argv(["sh", "-c", "exec \"$@\" 2>&1", "sh"]);
    args.extend(argv([run.project.environment.program.clone()]));
    args.extend(argv(["test", "--offline", "--no-fail-fast"]));
    if choose.is_empty() {
        args.extend(argv(["--workspace", "--tests"]));
    }
    args.extend(choose.iter().map(OsString::from));
    args.extend(run.project.extra_args.iter().map(OsString::from));
    args.push("--".into());
    args.extend(argv(harness.iter().copied()));
    run.execute(args, &[], wall).await
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    executable: Option<String>,
    #[serde(default)]
    package_id: String,
    #[serde(default)]
    target: Option<Target>,
    #[serde(default)]
    message: Option<Diagnostic>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

#[derive(Deserialize)]
struct Diagnostic {
    level: String,
    #[serde(default)]
    rendered: Option<String>,
    #[serde(default)]
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    line_start: u32,
    is_primary: bool,
}

/// Builds all test binaries.
pub(super) async fn build(run: &Run<'_>) -> Result<Built, RunError> {
    let mut args = argv([run.project.environment.program.clone()]);
    args.extend(argv(["test", "--offline", "--workspace", "--tests", "--no-run", "--message-format=json"]));
    args.extend(run.project.extra_args.iter().map(OsString::from));
    let wall = run.project.timeout.max(BUILD_TIME);
    let output = run.execute(args, &[], wall).await?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<Message> = stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if output.exit == Exit::Code(0) {
        return Ok(Built::Binaries(messages.iter().filter_map(binary).collect()));
    }
    let errors: Vec<&Diagnostic> =
        messages.iter().filter_map(|it| it.message.as_ref()).filter(|it| it.level == "error").collect();
    if errors.is_empty() && output.exit != Exit::TimedOut {
        return Err(unusable(&output));
    }
    let mut seen = BTreeSet::new();
    let mut text = String::new();
    for error in &errors {
        let rendered = error.rendered.as_deref().unwrap_or_default();
        if seen.insert(rendered) {
            text.push_str(rendered);
        }
    }
    if text.is_empty() {
        text = "the build did not end within the time limit".to_owned();
    }
    let span = errors.iter().flat_map(|it| &it.spans).find(|span| span.is_primary);
    let event = Event::Broken {
        id: String::new(),
        message: text,
        file: span.map(|it| it.file_name.clone()),
        line: span.map(|it| it.line_start),
    };
    let mut failed = report::test_run(run, vec![event, Event::End], &output, |id| TestId(id.to_owned()));
    failed.complete = true;
    Ok(Built::Failed(failed))
}

fn binary(message: &Message) -> Option<Binary> {
    let executable = message.executable.as_ref().filter(|_| message.reason == "compiler-artifact")?;
    let target = message.target.as_ref()?;
    let package = package(&message.package_id);
    let kind = target.kind.first().map(String::as_str).unwrap_or_default();
    let (id, mut choose) = match kind {
        "test" => (format!("{package}::{}", target.name), vec!["--test".to_owned(), target.name.clone()]),
        "bin" => (format!("{package}::bin/{}", target.name), vec!["--bin".to_owned(), target.name.clone()]),
        "example" | "bench" => {
            let flag = format!("--{kind}");
            (format!("{package}::{kind}/{}", target.name), vec![flag, target.name.clone()])
        }
        _ => (package.clone(), vec!["--lib".to_owned()]),
    };
    choose.extend(["--package".to_owned(), package]);
    let file = Path::new(executable).file_name()?.to_string_lossy().into_owned();
    Some(Binary { file, id, choose })
}

/// The name in a package id: `path+file:///w/shapes#0.1.0`, `path+file:///w#shapes@0.1.0`, `shapes 0.1.0 (…)`.
fn package(id: &str) -> String {
    if let Some((before, after)) = id.split_once('#') {
        return match after.split_once('@') {
            Some((name, _)) => name.to_owned(),
            None => before.rsplit('/').next().unwrap_or_default().to_owned(),
        };
    }
    id.split(' ').next().unwrap_or_default().to_owned()
}

fn unusable(output: &Output) -> RunError {
    let text = report::text(output);
    let line = text.lines().find(|line| line.starts_with("error")).or_else(|| text.lines().last());
    let hint = if text.contains("--offline") || text.contains("offline") {
        "; run `cargo fetch` in the repository, as nothing is downloaded inside the sandbox"
    } else {
        ""
    };
    RunError::Environment(format!("cargo cannot build the tests: {}{hint}", line.unwrap_or("no output")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_ids_of_old_and_new_cargo_give_the_name() {
        for id in [
            "path+file:///w/shapes#0.1.0",
            "path+file:///w/dir#shapes@0.1.0",
            "shapes 0.1.0 (path+file:///w)",
        ] {
            assert_eq!(package(id), "shapes");
        }
    }

    #[test]
    fn a_selected_test_is_asked_of_the_binary_that_may_hold_it() {
        let binary = |id: &str| Binary { file: id.to_owned(), id: id.to_owned(), choose: Vec::new() };
        let binaries = [binary("shapes"), binary("shapes::all"), binary("other")];
        let ids = [TestId("shapes::all::whole".to_owned())];
        let asked: Vec<_> =
            by_binary(&binaries, &ids).into_iter().map(|(it, names)| (&*it.id, names)).collect();
        assert_eq!(asked, [("shapes", vec!["all::whole"]), ("shapes::all", vec!["whole"])]);
    }
}
