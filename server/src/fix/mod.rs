//! The whole path of one request: snapshot → tests on the pristine tree → strategies → a verified patch.
//! The command line and the language server both call [`fix`] and [`run_tests`]; neither edits files here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tasks::grade::{EditPolicy, TestChange};
use tasks::patch::Patch;
use tasks::runner::{Project, Selection, TestId, TestRun};
use tasks::snapshot::{Buffers, Snapshot};
use tokio_util::sync::CancellationToken;

use crate::agent::Progress;

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
    /// What may be edited.
    pub policy: EditPolicy,
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
    let _ = (context, request, progress, cancel);
    unimplemented!()
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
    let _ = (context, repo, buffers, selection, progress, cancel);
    unimplemented!()
}

/// What requests of one process share: data directory, configuration, and the sandbox and model, which are
/// made on first use.
pub struct Context {
    _private: (),
}

impl Context {
    /// The context of this process.
    ///
    /// # Errors
    /// If the configuration cannot be read.
    pub fn new() -> Result<Self, FixError> {
        Ok(Self { _private: () })
    }

    /// Whether the person has trusted `repo` (or a directory above it).
    pub fn trusted(&self, repo: &Path) -> bool {
        let _ = repo;
        unimplemented!()
    }

    /// Remembers that the person trusts `repo`.
    ///
    /// # Errors
    /// If that cannot be stored.
    pub fn trust(&self, repo: &Path) -> Result<(), FixError> {
        let _ = repo;
        unimplemented!()
    }

    /// For `tadpole.status`: the model's name and whether it is loaded, in one line.
    pub fn model_status(&self) -> String {
        unimplemented!()
    }
}
