//! cargo nextest, where it is installed. Its events are those of libtest in JSON; a profile of ours bounds one test.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Instant;

use serde::Deserialize;

use super::cargo::{self, Built};
use super::command::{self, argv};
use super::report;
use super::{Outcome, Run, RunError, Selection, TestId, TestResult, TestRun, libtest};
use crate::sandbox::{Exit, Output};

/// Share of a run's time that one test may take.
const ONE_TEST: f64 = 0.25;

pub(super) async fn list(run: &Run<'_>) -> Result<Vec<TestId>, RunError> {
    cargo::list(run).await
}

pub(super) async fn run(run: &Run<'_>, selection: &Selection) -> Result<TestRun, RunError> {
    let started = Instant::now();
    if let Built::Failed(failed) = cargo::build(run).await? {
        return Ok(failed);
    }
    let seconds = (run.project.timeout.as_secs_f64() * ONE_TEST).max(1.0).ceil();
    let profile = format!(
        "[profile.tadpole]\nslow-timeout = {{ period = \"{seconds}s\", terminate-after = 1 }}\nretries = 0\n"
    );
    let mut args =
        argv(["sh", "-c", "printf '%s' \"$TADPOLE_PROFILE\" > /tmp/nextest.toml && exec \"$@\"", "sh"]);
    args.extend(argv([run.project.environment.program.clone()]));
    args.extend(argv([
        "nextest",
        "run",
        "--offline",
        "--workspace",
        "--tests",
        "--no-fail-fast",
        "--no-tests=pass",
    ]));
    args.extend(argv(["--profile=tadpole", "--tool-config-file=tadpole:/tmp/nextest.toml"]));
    args.extend(argv(["--message-format=libtest-json-plus"]));
    args.extend(run.project.extra_args.iter().map(OsString::from));
    let wanted = command::chosen(selection);
    if let Some(ids) = wanted {
        args.extend(argv(["-E".to_owned(), expression(ids)]));
    }
    let env = [("NEXTEST_EXPERIMENTAL_LIBTEST_JSON", "1"), ("TADPOLE_PROFILE", &*profile)];
    let output = run.execute(args, &env, run.project.timeout).await?;
    let events = events(&output);
    let labels = Labels::new(&events);
    // A library and a program of one name are one to nextest; where their tests are, the binaries say themselves.
    let listed = if labels.ambiguous() { cargo::list(run).await? } else { Vec::new() };
    let (mut results, complete) = results(run, events, |name| labels.id(name, &listed), &output.exit);
    if results.is_empty() && !complete && output.exit != Exit::TimedOut {
        let text = report::text(&output);
        let line = text.lines().find(|line| line.contains("error")).unwrap_or("no output");
        return Err(RunError::Environment(format!("cargo nextest cannot run the tests: {line}")));
    }
    if let Some(ids) = wanted {
        // Namesakes, and tests that are announced but left out.
        results.retain(|id, _| ids.contains(id));
    }
    let complete = complete && output.exit != Exit::TimedOut;
    let text = report::text(&output);
    Ok(TestRun {
        results,
        build_failure: None,
        complete,
        exit: output.exit,
        output: text,
        elapsed: started.elapsed(),
    })
}

/// A filter that matches exactly these tests (and their namesakes, which do not count).
fn expression(ids: &[TestId]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for id in ids {
        // Every split may be the one between binary and test.
        names.extend(id.0.match_indices("::").map(|(at, _)| &id.0[at + 2..]));
    }
    names.sort_unstable();
    names.dedup();
    names.iter().map(|name| format!("test(={name})")).collect::<Vec<_>>().join(" + ")
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    event: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    stdout: Option<String>,
    /// Of a suite: the binary that its tests are in.
    #[serde(default)]
    nextest: Option<Binary>,
}

#[derive(Deserialize)]
struct Binary {
    #[serde(rename = "crate")]
    package: String,
    test_binary: String,
    kind: String,
}

impl Binary {
    /// What the ids of its tests begin with, as for cargo test.
    fn label(&self) -> String {
        match self.kind.as_str() {
            "test" => format!("{}::{}", self.package, self.test_binary),
            kind @ ("bin" | "example" | "bench") => format!("{}::{kind}/{}", self.package, self.test_binary),
            _ => self.package.clone(),
        }
    }
}

/// What the ids of each binary's tests begin with, by the name that nextest gives the binary.
struct Labels(BTreeMap<String, Vec<String>>);

impl Labels {
    fn new(events: &[Event]) -> Self {
        let mut labels: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for binary in events.iter().filter_map(|event| event.nextest.as_ref()) {
            let own = labels.entry(format!("{}::{}", binary.package, binary.test_binary)).or_default();
            let label = binary.label();
            if !own.contains(&label) {
                own.push(label);
            }
        }
        Self(labels)
    }

    fn ambiguous(&self) -> bool {
        self.0.values().any(|labels| labels.len() > 1)
    }

    /// The id of the test that nextest calls `binary$name`.
    fn id(&self, name: &str, listed: &[TestId]) -> TestId {
        let (binary, name) = name.split_once('$').unwrap_or(("", name));
        let labels = self.0.get(binary).map(Vec::as_slice).unwrap_or_default();
        let ids = labels.iter().map(|label| TestId(format!("{label}::{name}")));
        let unknown = || ids.clone().next().unwrap_or_else(|| TestId(format!("{binary}::{name}")));
        ids.clone().find(|id| listed.contains(id)).unwrap_or_else(unknown)
    }
}

fn events(output: &Output) -> Vec<Event> {
    let stdout = String::from_utf8_lossy(&output.stdout);
    stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn results(
    run: &Run<'_>,
    events: Vec<Event>,
    id: impl Fn(&str) -> TestId,
    exit: &Exit,
) -> (BTreeMap<TestId, TestResult>, bool) {
    let mut results = BTreeMap::new();
    let (mut suites, mut ended) = (0_u32, 0_u32);
    for event in events {
        match (event.kind.as_str(), event.event.as_str()) {
            ("suite", "started") => suites += 1,
            ("suite", _) => ended += 1,
            ("test", what) => {
                let outcome = match what {
                    "ok" => Outcome::Passed,
                    "failed" | "timeout" => Outcome::Failed,
                    "ignored" => Outcome::Skipped,
                    _ => Outcome::Error,
                };
                let message = match outcome {
                    Outcome::Error => report::unfinished(exit),
                    _ => event.stdout.unwrap_or_default(),
                };
                let place = libtest::panic_place(&message);
                let location = place.and_then(|(file, line)| report::location(run, Some(file), Some(line)));
                let result = TestResult { outcome, message: report::shortened(message), location };
                results.insert(id(&event.name), result);
            }
            _ => {}
        }
    }
    (results, suites > 0 && suites == ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reading_of_an_id_is_asked_for() {
        let ids = [TestId("shapes::all::whole".to_owned())];
        assert_eq!(expression(&ids), "test(=all::whole) + test(=whole)");
    }
}
