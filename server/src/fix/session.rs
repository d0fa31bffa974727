//! A repository opened for one request: trusted, snapshotted, its projects and toolchains found.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tasks::runner::{self, Outcome, Project, RunError, Selection, TestId, TestRun};
use tasks::sandbox::{Output, Sandbox};
use tasks::snapshot::{Buffers, Snapshot, SnapshotError};
use tasks::workspace::Pool;
use tokio_util::sync::CancellationToken;

use super::{Context, FixError};
use crate::config::{self, REPOSITORY_FILE, RepositoryConfig};

/// Rounds that step around hanging tests to learn the results of the others.
const HANG_ROUNDS: usize = 3;

/// A repository opened for one request.
pub(super) struct Session {
    pub sandbox: Arc<Sandbox>,
    pub pool: Pool,
    pub snapshot: Snapshot,
    pub projects: Vec<Project>,
    pub config: RepositoryConfig,
}

impl Session {
    /// # Errors
    /// If the repository is missing, untrusted, or has no tests that we can run.
    pub async fn open(context: &Context, repo: &Path, buffers: &Buffers) -> Result<Self, FixError> {
        let root = directory(repo)?;
        if !context.trusted(&root) {
            return Err(FixError::Untrusted(root));
        }
        let sandbox = context.sandbox().await?;
        let pool = context.pool()?;
        let (snapshot, config, projects) = survey(context, root, buffers).await?;
        Ok(Self { sandbox, pool, snapshot, projects, config })
    }

    /// All results of `project` on `snapshot`; where a test hangs, the others are run without it.
    pub async fn baseline(
        &self,
        snapshot: &Snapshot,
        project: &Project,
        cancel: &CancellationToken,
    ) -> Result<TestRun, FixError> {
        let workspace = self.workspace(snapshot).await?;
        let mut run = runner::run(&self.sandbox, &workspace, project, &Selection::All, cancel).await?;
        for _ in 0..HANG_ROUNDS {
            if run.complete {
                break;
            }
            let listed = runner::list(&self.sandbox, &workspace, project, cancel).await?;
            let unknown = |id: &TestId| run.results.get(id).is_none_or(|it| it.outcome == Outcome::Missing);
            let rest: Vec<TestId> = listed.into_iter().filter(unknown).collect();
            if rest.is_empty() {
                break;
            }
            let next =
                runner::run(&self.sandbox, &workspace, project, &Selection::Tests(rest), cancel).await?;
            run.complete = next.complete;
            run.results.extend(next.results);
            run.elapsed += next.elapsed;
        }
        Ok(run)
    }

    /// Those of `tests` that fail again on the unchanged tree; the others are flaky.
    pub async fn failing_again(
        &self,
        snapshot: &Snapshot,
        project: &Project,
        tests: Vec<TestId>,
        cancel: &CancellationToken,
    ) -> Result<(Vec<TestId>, Vec<TestId>), FixError> {
        let workspace = self.workspace(snapshot).await?;
        let selection = Selection::Tests(tests.clone());
        let run = runner::run(&self.sandbox, &workspace, project, &selection, cancel).await?;
        let passed = |id: &TestId| run.results.get(id).is_some_and(|it| it.outcome == Outcome::Passed);
        Ok(tests.into_iter().partition(|id| !passed(id)))
    }

    /// All test ids of `project`.
    pub async fn list(&self, project: &Project, cancel: &CancellationToken) -> Result<Vec<TestId>, FixError> {
        let workspace = self.workspace(&self.snapshot).await?;
        Ok(runner::list(&self.sandbox, &workspace, project, cancel).await?)
    }

    /// One run of `selection` on what the person sees.
    pub async fn run(
        &self,
        project: &Project,
        selection: &Selection,
        cancel: &CancellationToken,
    ) -> Result<TestRun, FixError> {
        let workspace = self.workspace(&self.snapshot).await?;
        Ok(runner::run(&self.sandbox, &workspace, project, selection, cancel).await?)
    }

    /// Runs `argv` in a workspace of what the person sees, as the agent's commands are run.
    pub async fn command(&self, argv: Vec<OsString>, cancel: &CancellationToken) -> Result<Output, FixError> {
        let workspace = self.workspace(&self.snapshot).await?;
        let Some(project) = self.projects.first() else {
            return Err(FixError::Environment("no tests found".into()));
        };
        let command = runner::command(&workspace, project, argv);
        Ok(self.sandbox.run(&command, cancel).await.map_err(RunError::from)?)
    }

    async fn workspace(&self, snapshot: &Snapshot) -> Result<tasks::workspace::Workspace, FixError> {
        let (pool, snapshot) = (self.pool.clone(), snapshot.clone());
        Ok(blocking(move || pool.acquire(&snapshot)).await??)
    }
}

/// What the person sees under `root`, the repository's own configuration, and its projects. Runs nothing of it.
pub(super) async fn survey(
    context: &Context,
    root: PathBuf,
    buffers: &Buffers,
) -> Result<(Snapshot, RepositoryConfig, Vec<Project>), FixError> {
    let (buffers, store) = (buffers.clone(), context.home.store());
    let snapshot = blocking(move || Snapshot::capture(&root, &buffers, &store)).await??;
    let config = repository_config(&snapshot)?;
    let (tree, tests) = (snapshot.clone(), config.tests.clone());
    let projects = blocking(move || runner::detect(&tree, &tests)).await?;
    if projects.is_empty() {
        return Err(FixError::Environment(format!(
            "no tests found in {} (pytest, unittest, cargo, go, vitest, jest and node are known); \
             if there are some, name their framework under [tests] in {REPOSITORY_FILE}",
            snapshot.root().display()
        )));
    }
    Ok((snapshot, config, projects))
}

/// The canonical path of `repo`, which must be a directory that can be read.
pub(super) fn directory(repo: &Path) -> Result<PathBuf, FixError> {
    let problem =
        |what: String| Err(FixError::Environment(format!("{what}; give a directory with --repo DIR")));
    match repo.canonicalize() {
        Ok(root) if root.is_dir() => Ok(root),
        Ok(root) => problem(format!("{} is not a directory", root.display())),
        Err(error) => problem(format!("{}: {error}", repo.display())),
    }
}

fn repository_config(snapshot: &Snapshot) -> Result<RepositoryConfig, FixError> {
    let name = Path::new(REPOSITORY_FILE);
    if !snapshot.entries().contains_key(name) {
        return Ok(RepositoryConfig::default());
    }
    let bytes = snapshot.read(name)?;
    config::parse(&snapshot.root().join(name), &String::from_utf8_lossy(&bytes))
        .map_err(FixError::Environment)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, FixError> {
    let joined = tokio::task::spawn_blocking(work).await;
    joined.map_err(|error| FixError::Environment(format!("internal error ({error}); see the log")))
}

impl From<SnapshotError> for FixError {
    fn from(error: SnapshotError) -> Self {
        Self::Environment(error.to_string())
    }
}

impl From<RunError> for FixError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Cancelled => Self::Cancelled,
            other => Self::Environment(other.to_string()),
        }
    }
}
