//! What our reporters write, and how it becomes a [`TestRun`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{BUILD, Outcome, Run, TestId, TestResult, TestRun};
use crate::sandbox::{Exit, Output};

/// Longest message of one test, in bytes.
const MESSAGE: usize = 16 << 10;

/// One line of a reporter.
#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(super) enum Event {
    /// A test that will be run.
    Collected {
        /// Its id, relative to the project.
        id: String,
    },
    /// A test begins.
    Started {
        /// Its id.
        id: String,
    },
    /// A test has ended.
    Finished {
        /// Its id.
        id: String,
        /// How.
        outcome: Outcome,
        /// The failure.
        message: String,
        /// Where it failed.
        #[serde(default)]
        file: Option<String>,
        /// 1-based.
        #[serde(default)]
        line: Option<u32>,
    },
    /// A file, package or the whole that could not be loaded or compiled.
    Broken {
        /// Its id; empty for the whole.
        id: String,
        /// The failure.
        message: String,
        /// Where.
        #[serde(default)]
        file: Option<String>,
        /// 1-based.
        #[serde(default)]
        line: Option<u32>,
    },
    /// The framework has come to its own end.
    End,
}

/// The events in a reporter's file; a torn last line is left out.
pub(super) fn events(text: &str) -> Vec<Event> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The run that `events` tell of. `id` turns a framework's spelling into ours.
pub(super) fn test_run(
    run: &Run<'_>,
    events: Vec<Event>,
    output: &Output,
    id: impl Fn(&str) -> TestId,
) -> TestRun {
    let mut results = BTreeMap::new();
    let mut build_failure = None;
    let mut complete = false;
    for event in events {
        match event {
            Event::Collected { id: name } => {
                results.entry(id(&name)).or_insert_with(|| unreported(Outcome::Missing, ""));
            }
            Event::Started { id: name } => {
                let message = unfinished(&output.exit);
                results.insert(id(&name), unreported(Outcome::Error, &message));
            }
            Event::Finished { id: name, outcome, message, file, line } => {
                let location = location(run, file, line);
                results.insert(id(&name), TestResult { outcome, message: shortened(message), location });
            }
            Event::Broken { id: name, message, file, line } => {
                let location = location(run, file, line);
                let message = shortened(message);
                build_failure.get_or_insert_with(|| message.clone());
                let name = if name.is_empty() { TestId(BUILD.to_owned()) } else { id(&name) };
                results.insert(name, TestResult { outcome: Outcome::Error, message, location });
            }
            Event::End => complete = true,
        }
    }
    let complete = complete && output.exit != Exit::TimedOut;
    TestRun {
        results,
        build_failure,
        complete,
        exit: output.exit.clone(),
        output: text(output),
        elapsed: output.elapsed,
    }
}

/// Adds the result of a selected `wanted` that was not reported itself: of a file, package or build that of
/// everything in it, else [`Outcome::Missing`].
pub(super) fn complete(run: &mut TestRun, wanted: &TestId) {
    if run.results.contains_key(wanted) {
        return;
    }
    let within = |id: &TestId| {
        wanted.0 == BUILD
            || id
                .0
                .strip_prefix(&wanted.0)
                .is_some_and(|rest| rest.starts_with("::") || rest.starts_with(" > "))
    };
    let inside: Vec<&TestResult> =
        run.results.iter().filter(|(id, _)| within(id)).map(|(_, it)| it).collect();
    let bad = inside.iter().find(|it| !matches!(it.outcome, Outcome::Passed | Outcome::Skipped));
    let result = match bad {
        Some(bad) => TestResult { outcome: Outcome::Failed, ..(*bad).clone() },
        None if inside.iter().any(|it| it.outcome == Outcome::Passed) => unreported(Outcome::Passed, ""),
        None => unreported(Outcome::Missing, run.build_failure.as_deref().unwrap_or_default()),
    };
    run.results.insert(wanted.clone(), result);
}

/// A result without a place.
pub(super) fn unreported(outcome: Outcome, message: &str) -> TestResult {
    TestResult { outcome, message: message.to_owned(), location: None }
}

/// Why a test that was started has no result.
pub(super) fn unfinished(exit: &Exit) -> String {
    match exit {
        Exit::TimedOut => "the test did not end within the time limit of the run".to_owned(),
        Exit::Limit(limit) => {
            format!("the run was stopped at the limit of {limit} while this test was running")
        }
        Exit::Signal(signal) => {
            format!("the process was ended by signal {signal} while this test was running")
        }
        Exit::Code(code) => format!("the process ended with code {code} while this test was running"),
        Exit::Cancelled => "cancelled while this test was running".to_owned(),
    }
}

/// A place relative to the repository; `None` if it lies elsewhere.
pub(super) fn location(run: &Run<'_>, file: Option<String>, line: Option<u32>) -> Option<(PathBuf, u32)> {
    let (file, line) = (file?, line?);
    let file = Path::new(file.strip_prefix("file://").unwrap_or(&file));
    let relative = if file.is_absolute() {
        file.strip_prefix(run.workspace.mount()).ok()?.to_owned()
    } else {
        normal(&run.project.dir.join(file))?
    };
    Some((relative, line))
}

/// Removes `.` and `..` by name; `None` if it leads out.
fn normal(path: &Path) -> Option<PathBuf> {
    use std::path::Component;
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => result.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !result.pop() {
                    return None;
                }
            }
            _ => return None,
        }
    }
    Some(result)
}

/// Both streams as text.
pub(super) fn text(output: &Output) -> String {
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.stderr.is_empty() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    text
}

/// `message` with its middle cut out if it is too long.
pub(super) fn shortened(message: String) -> String {
    if message.len() <= MESSAGE {
        return message;
    }
    let head = floor(&message, MESSAGE / 2);
    let tail = floor(&message, message.len() - MESSAGE / 2);
    format!("{}\n[... {} bytes left out ...]\n{}", &message[..head], tail - head, &message[tail..])
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
