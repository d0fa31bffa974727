//! The whole path of one request: snapshot → tests on the pristine tree → strategies → a verified patch.
//! The command line and the language server both call [`fix`] and [`run_tests`]; neither edits files here.

mod context;
mod diagnostic;
mod failing;
mod issue;
mod select;
mod session;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use tasks::grade::{self, EditPolicy, Grading, TestChange, Verdict};
use tasks::patch::Patch;
use tasks::runner::{Outcome as TestOutcome, Project, Selection, TestId, TestRun};
use tasks::sandbox::Output;
use tasks::snapshot::{Buffers, Snapshot};
use tokio_util::sync::CancellationToken;

pub use self::context::Context;
use self::session::Session;
use crate::agent::{self, Attempt, Problem, Progress, Tools};
use crate::config::Config;
use crate::model::Model;

/// What to fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Every test that fails now.
    AllFailing,
    /// These tests.
    Tests(Vec<TestId>),
    /// What a tool reports at a place (1-based line, path relative to the repository).
    Diagnostic {
        /// File.
        path: PathBuf,
        /// Line.
        line: u32,
        /// What the tool says.
        message: String,
    },
    /// An issue in words.
    Issue(String),
}

/// One request of a person.
#[derive(Clone, Debug)]
pub struct Request {
    /// The repository, any directory.
    pub repo: PathBuf,
    /// Unsaved buffers, which win over the disk.
    pub buffers: Buffers,
    /// What to fix.
    pub target: Target,
    /// What may be edited; `None` means as configured.
    pub policy: Option<EditPolicy>,
    /// Answers that `repair` samples; `None` means as configured.
    pub samples: Option<usize>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With a verified patch.
    Fixed,
    /// Tried, not solved.
    NotFixed,
    /// No failing test.
    NothingToFix,
}

/// The object that `fix --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// How it ended.
    pub outcome: Outcome,
    /// The target tests before and after.
    pub tests: Vec<TestChange>,
    /// Tests that passed before and do not with the best patch tried.
    pub regressions: Vec<TestId>,
    /// Unified diff, empty unless fixed.
    pub patch: String,
    /// Strategy that solved it, or the last one tried.
    pub strategy: Option<&'static str>,
    /// Answers sampled.
    pub samples: usize,
    /// Tokens read.
    pub prompt_tokens: u64,
    /// Tokens sampled.
    pub generated_tokens: u64,
    /// Wall-clock time.
    pub seconds: f64,
    /// Model name.
    pub model: String,
    /// LoRA generation, `None` for the base model.
    pub generation: Option<u32>,
    /// Why it was not solved, or what else the person should know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A finished request.
#[derive(Clone, Debug)]
pub struct Finished {
    /// For people and scripts.
    pub report: Report,
    /// The verified patch (paths relative to the snapshot's root); empty unless fixed.
    pub patch: Patch,
    /// The tree that the patch applies to.
    pub snapshot: Snapshot,
}

/// Why a request could not be tried (exit code 2), one sentence and the next step, or that it was cancelled.
#[derive(Debug, thiserror::Error)]
pub enum FixError {
    /// Usage, configuration or environment.
    #[error("{0}")]
    Environment(String),
    /// The repository is not trusted, so nothing in it is run.
    #[error("{0} is not trusted, so none of its tests are run; trust it in the editor or pass --trust")]
    Untrusted(PathBuf),
    /// Cancelled by the person.
    #[error("cancelled")]
    Cancelled,
}

/// Receives progress; called from any thread, must not block.
pub type OnProgress<'a> = &'a (dyn Fn(Progress) + Send + Sync);

/// Tries `request` to its end. Never writes to the user's tree.
///
/// # Errors
/// If it could not be tried, or was cancelled.
pub async fn fix(
    context: &Arc<Context>,
    request: Request,
    progress: OnProgress<'_>,
    cancel: &CancellationToken,
) -> Result<Finished, FixError> {
    let work = async {
        progress(Progress::new("reading the repository", Some(0.0)));
        let session = Session::open(context, &request.repo, &request.buffers).await?;
        let job = Job::new(context, session, &request, progress, cancel).await?;
        match &request.target {
            Target::AllFailing => job.fix_failing(&[]).await,
            Target::Tests(tests) => job.fix_failing(tests).await,
            Target::Diagnostic { path, line, message } => job.fix_diagnostic(path, *line, message).await,
            Target::Issue(text) => job.fix_issue(text).await,
        }
    };
    tokio::select! {
        biased;
        result = work => result,
        () = cancel.cancelled() => Err(FixError::Cancelled),
    }
}

/// Runs tests of a repository as the person sees it; one run per project that was selected.
///
/// # Errors
/// If they could not be run, or were cancelled.
pub async fn run_tests(
    context: &Arc<Context>,
    repo: &Path,
    buffers: &Buffers,
    selection: &Selection,
    progress: OnProgress<'_>,
    cancel: &CancellationToken,
) -> Result<Vec<(Project, TestRun)>, FixError> {
    let session = Session::open(context, repo, buffers).await?;
    let mut runs = Vec::new();
    for project in &session.projects {
        let selection = match selection {
            Selection::All => Selection::All,
            Selection::Tests(wanted) => {
                progress(Progress::new(format!("listing tests of {}", named(project)), None));
                let listed = session.list(project, cancel).await?;
                let found: Vec<TestId> =
                    wanted.iter().flat_map(|id| select::matching(&id.0, listed.iter())).collect();
                if found.is_empty() {
                    continue;
                }
                Selection::Tests(found)
            }
        };
        progress(Progress::new(format!("running tests of {}", named(project)), None));
        runs.push((project.clone(), session.run(project, &selection, cancel).await?));
    }
    Ok(runs)
}

/// The projects of a repository and the toolchains found for them. Nothing of the repository is run, so it need
/// not be trusted.
///
/// # Errors
/// If the repository cannot be read or has no tests that we know.
pub async fn projects(context: &Context, repo: &Path, buffers: &Buffers) -> Result<Vec<Project>, FixError> {
    let root = session::directory(repo)?;
    Ok(session::survey(context, root, buffers).await?.2)
}

/// Runs one command in a workspace of `repo`, as the agent's commands are run.
///
/// # Errors
/// If it could not be run.
pub async fn run_command(
    context: &Context,
    repo: &Path,
    argv: Vec<OsString>,
    cancel: &CancellationToken,
) -> Result<Output, FixError> {
    let session = Session::open(context, repo, &Buffers::new()).await?;
    session.command(argv, cancel).await
}

/// One request under way.
struct Job<'a> {
    session: Session,
    model: Arc<dyn Model>,
    tools: Tools,
    policy: EditPolicy,
    progress: OnProgress<'a>,
    cancel: &'a CancellationToken,
    started: Instant,
}

/// What the attempts of a job cost so far.
#[derive(Default)]
struct Tally {
    strategy: Option<&'static str>,
    samples: usize,
    prompt_tokens: u64,
    generated_tokens: u64,
    regressions: Vec<TestId>,
}

impl Tally {
    fn add(&mut self, attempt: &Attempt) {
        self.strategy = Some(attempt.strategy);
        self.samples += attempt.rollouts.len();
        self.prompt_tokens += attempt.prompt_tokens;
        self.generated_tokens += attempt.generated_tokens;
        let verdicts = attempt.rollouts.iter().filter_map(|rollout| rollout.verdict.as_ref());
        self.regressions = attempt
            .solved()
            .or_else(|| verdicts.min_by_key(|verdict| (failed(verdict), verdict.regressions.len())))
            .map(|verdict| verdict.regressions.clone())
            .unwrap_or_default();
    }
}

fn failed(verdict: &Verdict) -> usize {
    verdict.tests.iter().filter(|test| test.after != TestOutcome::Passed).count()
}

fn named(project: &Project) -> String {
    match project.dir.to_string_lossy() {
        dir if dir.is_empty() => "the repository".to_owned(),
        dir => dir.into_owned(),
    }
}

impl<'a> Job<'a> {
    async fn new(
        context: &Context,
        session: Session,
        request: &Request,
        progress: OnProgress<'a>,
        cancel: &'a CancellationToken,
    ) -> Result<Self, FixError> {
        let model = context.model().await?;
        let edit = session.config.edit.or(context.config.edit);
        let policy = request.policy.or(edit.map(EditPolicy::from)).unwrap_or_default();
        let samples = request.samples.or(context.config.samples).unwrap_or(Config::SAMPLES).max(1);
        let tools = Tools {
            model: Arc::clone(&model),
            adapter: None,
            sandbox: Arc::clone(&session.sandbox),
            pool: session.pool.clone(),
            samples,
            edit_format: context.config.edit_format,
        };
        Ok(Self { session, model, tools, policy, progress, cancel, started: Instant::now() })
    }

    /// The first verified patch for `problem`, by the strategies that the model is good for, in order.
    async fn attempt(
        &self,
        problem: &Problem,
        tally: &mut Tally,
        progress: OnProgress<'_>,
    ) -> Result<Option<Patch>, FixError> {
        for strategy in agent::strategies(self.model.info()) {
            let attempt = strategy.attempt(problem, &self.tools, progress, self.cancel).await?;
            tally.add(&attempt);
            let verified = attempt.solved().and_then(Verdict::verified);
            if let Some(verified) = verified {
                return Ok(Some(verified.patch().clone()));
            }
        }
        Ok(None)
    }

    /// The verdict on everything together, against the tree that the person sees.
    async fn grade(
        &self,
        project: &Project,
        baseline: &TestRun,
        patch: &Patch,
        targets: &[TestId],
        policy: EditPolicy,
    ) -> Result<Verdict, FixError> {
        let grading = Grading {
            sandbox: &self.session.sandbox,
            pool: &self.session.pool,
            snapshot: &self.session.snapshot,
            project,
            baseline,
            policy,
        };
        Ok(grade::grade(grading, patch, targets, self.cancel).await?)
    }

    fn finished(
        &self,
        outcome: Outcome,
        tests: Vec<TestChange>,
        patch: Patch,
        tally: Tally,
        note: Option<String>,
    ) -> Finished {
        let report = Report {
            outcome,
            tests,
            regressions: tally.regressions,
            patch: patch.unified_diff(),
            strategy: tally.strategy,
            samples: tally.samples,
            prompt_tokens: tally.prompt_tokens,
            generated_tokens: tally.generated_tokens,
            seconds: self.started.elapsed().as_secs_f64(),
            model: self.model.info().name.clone(),
            generation: None,
            note,
        };
        Finished { report, patch, snapshot: self.session.snapshot.clone() }
    }
}

impl From<grade::GradeError> for FixError {
    fn from(error: grade::GradeError) -> Self {
        match error {
            grade::GradeError::Run(error) => error.into(),
            grade::GradeError::Snapshot(error) => error.into(),
        }
    }
}

impl From<agent::AgentError> for FixError {
    fn from(error: agent::AgentError) -> Self {
        match error {
            agent::AgentError::Model(error) => error.into(),
            agent::AgentError::Grade(error) => error.into(),
            agent::AgentError::Cancelled => Self::Cancelled,
        }
    }
}
