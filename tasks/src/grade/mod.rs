//! The verdict: a pristine tree, the allowed part of a patch, pristine tests and configuration, a
//! separate run. A test id that vanished is a failure.

mod guard;

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::patch::Patch;
use crate::runner::{self, Outcome, Project, RunError, Selection, TestId, TestRun};
use crate::sandbox::Sandbox;
use crate::snapshot::{Snapshot, SnapshotError};
use crate::workspace::{Pool, Workspace};

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
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let parts = || path.parent().into_iter().flat_map(Path::iter).map(|part| part.to_string_lossy());
    if AUTO_EXECUTED.matches(&name) || parts().any(|part| AUTO_EXECUTED_DIRECTORIES.contains(&&*part)) {
        return FileKind::AutoExecuted;
    }
    if CONFIGURATION.matches(&name) || parts().any(|part| part == ".cargo") {
        return FileKind::Configuration;
    }
    let is_test = runner::is_test_file(path) || parts().any(|part| TEST_DIRECTORIES.contains(&&*part));
    if is_test { FileKind::Test } else { FileKind::Code }
}

/// Names, and beginnings and ends of names.
struct Names {
    whole: &'static [&'static str],
    beginnings: &'static [&'static str],
    ends: &'static [&'static str],
}

impl Names {
    fn matches(&self, name: &str) -> bool {
        self.whole.contains(&name)
            || self.beginnings.iter().any(|it| name.starts_with(it))
            || self.ends.iter().any(|it| name.ends_with(it))
    }
}

const AUTO_EXECUTED: Names = Names {
    whole: &[
        "build.rs",
        "conftest.py",
        "sitecustomize.py",
        "usercustomize.py",
        "setup.py",
        "noxfile.py",
        "Makefile",
        "makefile",
        "GNUmakefile",
        "justfile",
        "Dockerfile",
        ".envrc",
        ".pre-commit-config.yaml",
        ".gitlab-ci.yml",
        ".gitattributes",
        ".gitmodules",
        ".gitconfig",
        "Jenkinsfile",
        ".exrc",
        ".nvim.lua",
        ".nvimrc",
    ],
    beginnings: &[],
    ends: &[".pth", ".bat", ".ps1"],
};

const AUTO_EXECUTED_DIRECTORIES: &[&str] = &[
    ".git",
    ".github",
    ".gitlab",
    ".circleci",
    ".husky",
    ".vscode",
    ".idea",
    ".devcontainer",
    ".zed",
    ".nvim",
];

const CONFIGURATION: Names = Names {
    whole: &[
        "Cargo.toml",
        "Cargo.lock",
        "pyproject.toml",
        "setup.cfg",
        "tox.ini",
        "pytest.ini",
        "Pipfile",
        "Pipfile.lock",
        "poetry.lock",
        "uv.lock",
        "pdm.lock",
        "package.json",
        "package-lock.json",
        "npm-shrinkwrap.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "pnpm-workspace.yaml",
        "bun.lock",
        "go.mod",
        "go.sum",
        "go.work",
        "go.work.sum",
        ".coveragerc",
        ".npmrc",
        ".yarnrc.yml",
        ".babelrc",
        ".tadpole.toml",
        "clippy.toml",
        "rustfmt.toml",
        ".gitignore",
        ".editorconfig",
    ],
    beginnings: &[
        "requirements",
        "rust-toolchain",
        "tsconfig",
        "jsconfig",
        "vitest.",
        "vite.config",
        "jest.",
        "babel.config",
        ".mocharc",
        ".eslintrc",
        "eslint.config",
        ".swcrc",
    ],
    ends: &[".lock"],
};

const TEST_DIRECTORIES: &[&str] = &[
    "tests",
    "test",
    "__tests__",
    "spec",
    "testdata",
    "fixtures",
    "__fixtures__",
    "__snapshots__",
    "__mocks__",
];

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
    let before = |id: &TestId| grading.baseline.results.get(id).map_or(Outcome::Missing, |it| it.outcome);
    let unchanged = |id: &TestId| TestChange { id: id.clone(), before: before(id), after: before(id) };
    let mut verdict = Verdict {
        patch: patch.clone(),
        tests: targets.iter().map(unchanged).collect(),
        regressions: Vec::new(),
        rejected: guard::objection(patch, grading.policy),
        feedback: String::new(),
    };
    if verdict.rejected.is_some() {
        return Ok(verdict);
    }
    let patched = grading.snapshot.with(patch)?;
    let workspace = acquire(grading.pool, patched).await?;
    let run = async |selection: Selection, timeout| {
        let project = Project { timeout, ..grading.project.clone() };
        runner::run(grading.sandbox, &workspace, &project, &selection, cancel).await
    };
    let first = run(Selection::Tests(targets.to_vec()), quick(&grading)).await?;
    verdict.take(&first);
    if verdict.tests.iter().any(|test| test.after != Outcome::Passed) {
        return Ok(verdict);
    }
    let whole = run(Selection::All, grading.project.timeout).await?;
    let passed_before = grading.baseline.results.iter().filter(|(_, it)| it.outcome == Outcome::Passed);
    let mut lost: Vec<TestId> =
        passed_before.map(|(id, _)| id).filter(|id| !passed(&whole, id)).cloned().collect();
    let mut failing: Vec<TestId> = targets.iter().filter(|id| !holds(&whole, id)).cloned().collect();
    lost.extend(failing.iter().filter(|id| !lost.contains(id)).cloned().collect::<Vec<_>>());
    if !lost.is_empty() {
        // A flaky test is not a regression.
        let again = run(Selection::Tests(lost.clone()), grading.project.timeout).await?;
        lost.retain(|id| !passed(&again, id));
        failing.retain(|id| !passed(&again, id));
        verdict.feedback = feedback(&again, &lost);
    }
    for test in &mut verdict.tests {
        if failing.contains(&test.id) {
            test.after = Outcome::Failed;
        }
    }
    lost.retain(|id| !targets.contains(id));
    verdict.regressions = lost;
    Ok(verdict)
}

/// The limit of a run of the targets alone: what was quick before and is slow now has no end.
fn quick(grading: &Grading<'_>) -> Duration {
    let expected = grading.baseline.elapsed * 5 + Duration::from_secs(10);
    grading.project.timeout.min(expected)
}

async fn acquire(pool: &Pool, snapshot: Snapshot) -> Result<Workspace, GradeError> {
    let pool = pool.clone();
    let acquired = tokio::task::spawn_blocking(move || pool.acquire(&snapshot)).await;
    acquired.map_err(|error| RunError::Environment(format!("internal error: {error}")))?.map_err(Into::into)
}

fn passed(run: &TestRun, id: &TestId) -> bool {
    run.results.get(id).is_some_and(|it| it.outcome == Outcome::Passed)
}

/// Whether a target that passed alone also passes among all; a file or package has no result of its own there.
fn holds(run: &TestRun, id: &TestId) -> bool {
    run.results.get(id).is_none_or(|it| it.outcome == Outcome::Passed) && run.complete
}

/// What the failing ones of `ids` say.
fn feedback(run: &TestRun, ids: &[TestId]) -> String {
    let failing = ids.iter().filter(|id| !passed(run, id)).filter_map(|id| Some((id, run.results.get(id)?)));
    failing.map(|(id, result)| format!("{id}\n{}\n", result.message.trim_end())).collect()
}

impl Verdict {
    fn take(&mut self, run: &TestRun) {
        for test in &mut self.tests {
            test.after = run.results.get(&test.id).map_or(Outcome::Missing, |it| it.outcome);
        }
        let ids: Vec<TestId> = self.tests.iter().map(|test| test.id.clone()).collect();
        self.feedback = feedback(run, &ids);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_file_is_read_from_its_path() {
        let is = |path: &str, expected| assert_eq!(kind(Path::new(path)), expected, "{path}");
        for code in ["src/lib.rs", "pkg/contest.py", "latest/a.go", "src/data.json", "lib/testing.ts"] {
            is(code, FileKind::Code);
        }
        for test in ["tests/a.rs", "pkg/a_test.go", "src/a.test.ts", "test_a.py", "tests/data/x.json"] {
            is(test, FileKind::Test);
        }
        for configuration in
            ["Cargo.toml", "web/package-lock.json", "requirements-dev.txt", "vitest.config.ts"]
        {
            is(configuration, FileKind::Configuration);
        }
        for executed in
            [".github/workflows/a.yml", "build.rs", "tests/conftest.py", ".vscode/settings.json", "Makefile"]
        {
            is(executed, FileKind::AutoExecuted);
        }
    }
}
