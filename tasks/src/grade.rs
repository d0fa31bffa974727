//! The verdict: a pristine tree, the allowed part of a patch, pristine tests and configuration, a
//! separate run. A test id that vanished is a failure.

use std::path::Path;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::patch::Patch;
use crate::runner::{Outcome, Project, RunError, TestId, TestRun};
use crate::sandbox::Sandbox;
use crate::snapshot::{Snapshot, SnapshotError};
use crate::workspace::Pool;

/// What a patch may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EditPolicy {
    /// Source code.
    pub code: bool,
    /// Test files.
    pub tests: bool,
    /// Configuration and lock files.
    pub configuration: bool,
}

impl Default for EditPolicy {
    fn default() -> Self {
        Self { code: true, tests: false, configuration: false }
    }
}

/// The kind of a file, by path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Source code.
    Code,
    /// A test, fixture or conftest.
    Test,
    /// Test, build or package configuration, lock files.
    Configuration,
    /// Executed later by other tools (git, editor, CI, build.rs, ...): marked and asked separately.
    AutoExecuted,
}

/// The kind of `path` (relative to the repository).
pub fn kind(path: &Path) -> FileKind {
    let _ = path;
    unimplemented!()
}

/// One target test before and after.
#[derive(Clone, Debug, Serialize)]
pub struct TestChange {
    /// The test.
    pub id: TestId,
    /// Outcome on the unpatched tree.
    pub before: Outcome,
    /// Outcome with the patch.
    pub after: Outcome,
}

/// What grading found. Pure data.
#[derive(Clone, Debug)]
pub struct Verdict {
    patch: Patch,
    /// The target tests.
    pub tests: Vec<TestChange>,
    /// Tests that passed before and do not now.
    pub regressions: Vec<TestId>,
    /// Why the patch was not even run (forbidden path, syntax error, suspicious), if so.
    pub rejected: Option<String>,
    /// The failing targets' output, for the next try.
    pub feedback: String,
}

/// A patch that [`grade`] found good; nothing else makes one.
#[derive(Clone, Debug)]
pub struct VerifiedPatch(Patch);

impl VerifiedPatch {
    /// The patch.
    pub fn patch(&self) -> &Patch {
        &self.0
    }
}

impl Verdict {
    /// The verified patch, if every target passes and nothing regressed.
    pub fn verified(&self) -> Option<VerifiedPatch> {
        let good = self.rejected.is_none()
            && !self.patch.is_empty()
            && !self.tests.is_empty()
            && self.tests.iter().all(|test| test.after == Outcome::Passed)
            && self.regressions.is_empty();
        good.then(|| VerifiedPatch(self.patch.clone()))
    }
}

/// Why grading could not be done.
#[derive(Debug, thiserror::Error)]
pub enum GradeError {
    /// The run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The tree.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

/// What grading needs: where to run and what was true before.
#[derive(Clone, Copy, Debug)]
pub struct Grading<'a> {
    /// Runs commands.
    pub sandbox: &'a Sandbox,
    /// Gives workspaces.
    pub pool: &'a Pool,
    /// The pristine tree.
    pub snapshot: &'a Snapshot,
    /// How its tests run.
    pub project: &'a Project,
    /// All results on the pristine tree.
    pub baseline: &'a TestRun,
    /// What may be edited.
    pub policy: EditPolicy,
}

/// The verdict on `patch`: the targets first, and only if they all pass, everything.
///
/// # Errors
/// If the tests could not be run at all.
pub async fn grade(
    grading: Grading<'_>,
    patch: &Patch,
    targets: &[TestId],
    cancel: &CancellationToken,
) -> Result<Verdict, GradeError> {
    let _ = (grading, patch, targets, cancel);
    unimplemented!()
}
