//! One adapter per test framework: detect, list, run some or all, per-test results.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::sandbox::{Exit, Sandbox, SandboxError};
use crate::snapshot::Snapshot;
use crate::workspace::Workspace;

/// A test's name as its framework spells it (`tests/test_a.py::test_b[x]`, `binary::module::test`,
/// `./pkg::TestA/sub`, `file.test.ts > suite > test`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TestId(pub String);

impl fmt::Display for TestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

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
    /// Directories outside the repository to bind read-only at their own path.
    pub read_only: Vec<PathBuf>,
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
#[derive(Clone, Debug, Serialize, Deserialize)]
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

/// The projects of a tree, most specific configuration first; empty when there are no tests.
pub fn detect(snapshot: &Snapshot, config: &TestConfig) -> Vec<Project> {
    let _ = (snapshot, config);
    unimplemented!()
}

/// All test ids of a project.
///
/// # Errors
/// If the tool cannot be run.
pub async fn list(
    sandbox: &Sandbox,
    workspace: &Workspace,
    project: &Project,
    cancel: &CancellationToken,
) -> Result<Vec<TestId>, RunError> {
    let _ = (sandbox, workspace, project, cancel);
    unimplemented!()
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
    let _ = (sandbox, workspace, project, selection, cancel);
    unimplemented!()
}
