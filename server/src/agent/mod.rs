//! The coding agent: strategies that turn a problem into attempts. It never edits the user's files.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tasks::grade::{EditPolicy, GradeError, Verdict};
use tasks::runner::{Project, TestId, TestRun};
use tasks::sandbox::Sandbox;
use tasks::snapshot::Snapshot;
use tasks::workspace::Pool;
use tokio_util::sync::CancellationToken;

use crate::model::{Model, ModelError, Token};

/// What is to be solved.
#[derive(Clone)]
pub struct Problem {
    /// What is asked, in words; for a failing test, its failure.
    pub statement: String,
    /// The pristine tree.
    pub snapshot: Snapshot,
    /// How its tests run.
    pub project: Project,
    /// All results on the pristine tree.
    pub baseline: Arc<TestRun>,
    /// Tests that must pass afterwards.
    pub targets: Vec<TestId>,
    /// Files that the user changed lately (relative), most suspect.
    pub recent: Vec<PathBuf>,
    /// What may be edited.
    pub policy: EditPolicy,
}

/// What a strategy works with.
#[derive(Clone)]
pub struct Tools {
    /// The policy.
    pub model: Arc<dyn Model>,
    /// LoRA adapter file of the current generation.
    pub adapter: Option<PathBuf>,
    /// Runs commands.
    pub sandbox: Arc<Sandbox>,
    /// Gives workspaces.
    pub pool: Pool,
    /// How many samples `repair` draws at most.
    pub samples: usize,
}

/// A step on the way, for people.
#[derive(Clone, Debug)]
pub struct Progress {
    /// One short line.
    pub message: String,
    /// 0 to 1 where known.
    pub fraction: Option<f32>,
}

/// One try: the sampled tokens and what became of them.
#[derive(Clone, Debug)]
pub struct Rollout {
    /// What was sampled.
    pub tokens: Vec<Token>,
    /// What the model wrote.
    pub text: String,
    /// Its verdict; `None` if it did not even make a patch.
    pub verdict: Option<Verdict>,
}

/// What a strategy achieved.
#[derive(Clone, Debug, Default)]
pub struct Attempt {
    /// Which strategy.
    pub strategy: &'static str,
    /// Every try, in order.
    pub rollouts: Vec<Rollout>,
    /// Tokens read.
    pub prompt_tokens: u64,
    /// Tokens sampled.
    pub generated_tokens: u64,
}

impl Attempt {
    /// The first verdict that is verified.
    pub fn solved(&self) -> Option<&Verdict> {
        self.rollouts
            .iter()
            .filter_map(|rollout| rollout.verdict.as_ref())
            .find(|verdict| verdict.verified().is_some())
    }
}

/// Why a strategy stopped early.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Grading.
    #[error(transparent)]
    Grade(#[from] GradeError),
    /// Cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// A way to solve a problem.
#[async_trait]
pub trait Strategy: Send + Sync {
    /// `repair` or `leaf`.
    fn name(&self) -> &'static str;

    /// Tries until solved, out of budget or cancelled.
    async fn attempt(
        &self,
        problem: &Problem,
        tools: &Tools,
        progress: &(dyn Fn(Progress) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Attempt, AgentError>;
}
