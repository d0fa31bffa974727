//! The coding agent: strategies that turn a problem into attempts. It never edits the user's files.

pub mod edit;
mod leaf;
mod localize;
mod prompt;
pub mod prose;
mod repair;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tasks::grade::{EditPolicy, GradeError, Verdict};
use tasks::runner::{Project, TestId, TestRun};
use tasks::sandbox::Sandbox;
use tasks::snapshot::Snapshot;
use tasks::workspace::Pool;
use tokio_util::sync::CancellationToken;

use self::edit::EditFormat;
use crate::model::{Event, Model, ModelError, ModelInfo, Token};

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
    /// The place that a person or a tool points at.
    pub focus: Option<Focus>,
}

/// A place in the snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Focus {
    /// File, relative to the root.
    pub path: PathBuf,
    /// 1-based.
    pub line: u32,
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
    /// How `repair` asks for a change.
    pub edit_format: EditFormat,
}

/// A step on the way, for people.
#[derive(Clone, Debug)]
pub struct Progress {
    /// One short line.
    pub message: String,
    /// 0 to 1 where known.
    pub fraction: Option<f32>,
}

impl Progress {
    /// A step.
    pub fn new(message: impl Into<String>, fraction: Option<f32>) -> Self {
        Self { message: message.into(), fraction }
    }
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

/// The strategies that `model` is good for, in the order they are tried: `repair` is cheap, `leaf` needs a model that can
/// use tools.
pub fn strategies(model: &ModelInfo) -> Vec<Box<dyn Strategy>> {
    let mut strategies: Vec<Box<dyn Strategy>> = vec![Box::new(repair::Repair)];
    if model.agentic {
        strategies.push(Box::new(leaf::Leaf::default()));
    }
    strategies
}

/// What of a model's events is worth telling a person.
fn told(event: &Event) -> Option<String> {
    match event {
        Event::Loading(part) => Some(format!("loading the model: {:.0} %", part * 100.0)),
        Event::Queued(0) => None,
        Event::Queued(ahead) => Some(format!("waiting for the model, {ahead} requests ahead")),
        Event::Notice(text) => Some(text.clone()),
        Event::Prompt { .. } | Event::Text { .. } | Event::Finished { .. } => None,
    }
}
