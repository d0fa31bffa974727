//! One adapter per test framework: detect, list, run some or all, per-test results.
//!
//! Results come from a reporter of ours inside the framework (pytest, unittest, vitest, jest, node) or from its
//! machine-readable output (cargo, nextest, go), never from an exit code alone. Ids are relative to the repository, so
//! that two projects of one repository never share one.
//!
//! A file or package that cannot be loaded or compiled is reported under its own name (`tests/test_a.py`,
//! `./pkg`, [`BUILD`]) as [`Outcome::Error`]. Such an id can be selected like a test: it passes when everything in
//! it is loaded and passes.

mod cargo;
mod command;
mod detect;
mod go;
mod javascript;
mod libtest;
mod nextest;
mod python;
mod report;
mod toolchain;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::sandbox::{Bind, Exit, Sandbox, SandboxError};
use crate::syntax::Language;
use crate::workspace::Workspace;

pub use self::command::command;
pub use self::detect::detect;

/// A test's name as its framework spells it (`tests/test_a.py::test_b[x]`, `binary::module::test`,
/// `./pkg::TestA/sub`, `file.test.ts > suite > test`), with paths relative to the repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TestId(pub String);

impl fmt::Display for TestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Id of the build as a whole, where a failure of it belongs to no file or package.
pub const BUILD: &str = "(build)";

/// The frameworks with an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Framework {
    /// pytest.
    Pytest,
    /// Python's unittest.
    Unittest,
    /// cargo test.
    Cargo,
    /// cargo nextest.
    Nextest,
    /// go test.
    Go,
    /// vitest.
    Vitest,
    /// jest.
    Jest,
    /// node --test.
    Node,
}

/// The toolchain a project is run with, found on the host and the same inside the sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// For `doctor`: what was found and where (`python 3.11.7 at /x/.venv/bin/python`).
    pub description: String,
    /// The program that starts the tests (an interpreter, `cargo`, `go`, `node`).
    pub program: PathBuf,
    /// Variables the tests need.
    pub env: BTreeMap<String, OsString>,
    /// What lies outside of the workspace (toolchains, dependencies) and is bound read-only.
    pub read_only: Vec<Bind>,
}

/// A directory with tests and how they are run.
#[derive(Clone, Debug)]
pub struct Project {
    /// Relative to the snapshot's root; empty for the root itself.
    pub dir: PathBuf,
    /// The framework.
    pub framework: Framework,
    /// The toolchain.
    pub environment: Environment,
    /// Arguments added to the framework's own command, from `.tadpole.toml`.
    pub extra_args: Vec<String>,
    /// Limit of one run.
    pub timeout: Duration,
}

/// The `[tests]` part of `.tadpole.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TestConfig {
    /// Framework to use instead of the detected one.
    pub framework: Option<Framework>,
    /// Directory of the project, relative to the repository.
    pub dir: Option<PathBuf>,
    /// Interpreter or tool to use.
    pub program: Option<PathBuf>,
    /// Further arguments.
    pub args: Vec<String>,
    /// Variables.
    pub env: BTreeMap<String, String>,
    /// Seconds for one run.
    pub timeout_seconds: Option<u64>,
}

/// Which tests to run.
#[derive(Clone, Debug)]
pub enum Selection {
    /// All of them.
    All,
    /// These.
    Tests(Vec<TestId>),
}

/// How one test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Passed.
    Passed,
    /// Its assertion failed.
    Failed,
    /// It could not be run to its end (error in set-up, collection, crash).
    Error,
    /// Skipped.
    Skipped,
    /// Not reported: never counted as passed.
    Missing,
}

/// One test's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestResult {
    /// How it ended.
    pub outcome: Outcome,
    /// The failure's text: assertion, traceback.
    pub message: String,
    /// Where it failed: file relative to the snapshot's root, 1-based line.
    pub location: Option<(PathBuf, u32)>,
}

/// What one run of tests gave.
#[derive(Clone, Debug)]
pub struct TestRun {
    /// Result of every test that was reported.
    pub results: BTreeMap<TestId, TestResult>,
    /// The compiler's or collector's message where tests could not be built or collected.
    pub build_failure: Option<String>,
    /// Whether the run came to its own end. Otherwise (time limit, crash) tests may be missing from the results.
    pub complete: bool,
    /// How the process ended.
    pub exit: Exit,
    /// Output of the run, for people and for the model.
    pub output: String,
    /// Time it took.
    pub elapsed: Duration,
}

/// Why tests could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The sandbox.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// Cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The tool is missing or unusable; the message says what to do.
    #[error("{0}")]
    Environment(String),
}

/// All test ids of a project. For JavaScript they are read from the sources, as its frameworks list by running.
///
/// # Errors
/// If the tool cannot be run.
pub async fn list(
    sandbox: &Sandbox,
    workspace: &Workspace,
    project: &Project,
    cancel: &CancellationToken,
) -> Result<Vec<TestId>, RunError> {
    let run = Run { sandbox, workspace, project, cancel };
    match project.framework {
        Framework::Pytest | Framework::Unittest => python::list(&run).await,
        Framework::Cargo => cargo::list(&run).await,
        Framework::Nextest => nextest::list(&run).await,
        Framework::Go => go::list(&run).await,
        Framework::Vitest | Framework::Jest | Framework::Node => Ok(javascript::list(&run)),
    }
}

/// Runs tests in a workspace and reads each one's result. A selected test that was not reported is
/// [`Outcome::Missing`] in the results.
///
/// # Errors
/// If the tool cannot be run.
pub async fn run(
    sandbox: &Sandbox,
    workspace: &Workspace,
    project: &Project,
    selection: &Selection,
    cancel: &CancellationToken,
) -> Result<TestRun, RunError> {
    let run = Run { sandbox, workspace, project, cancel };
    let mut done = match project.framework {
        Framework::Pytest | Framework::Unittest => python::run(&run, selection).await,
        Framework::Cargo => cargo::run(&run, selection).await,
        Framework::Nextest => nextest::run(&run, selection).await,
        Framework::Go => go::run(&run, selection).await,
        Framework::Vitest | Framework::Jest | Framework::Node => javascript::run(&run, selection).await,
    }?;
    if let Selection::Tests(wanted) = selection {
        for id in wanted {
            report::complete(&mut done, id);
        }
    }
    Ok(done)
}

/// Whether a file is a test by its name and place, for any framework.
pub fn is_test_file(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match Language::of(path) {
        Some(Language::Python) => detect::is_python_test(&name),
        Some(Language::Go) => name.ends_with("_test.go"),
        Some(Language::Rust) => name == "tests.rs" || text.starts_with("tests/") || text.contains("/tests/"),
        Some(_) => detect::is_javascript_test(&text),
        None => false,
    }
}

/// What every adapter works with.
#[derive(Clone, Copy)]
struct Run<'a> {
    sandbox: &'a Sandbox,
    workspace: &'a Workspace,
    project: &'a Project,
    cancel: &'a CancellationToken,
}
