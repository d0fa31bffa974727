//! Self-training: graded rollouts in, a better LoRA generation out, or nothing.
//!
//! The trainer knows no llama.cpp: it asks an [`Actor`], a trait it owns and `server` implements, for
//! attempts of the current policy. It never runs without the user's opt-in for that repository.

use serde::{Deserialize, Serialize};
use tasks::runner::TestId;
use tasks::snapshot::Snapshot;
use tokio_util::sync::CancellationToken;

/// One attempt of the policy on a task: what it sampled and what that was worth.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rollout {
    /// Token ids of prompt and answer.
    pub tokens: Vec<i32>,
    /// Which of them the policy produced.
    pub sampled: Vec<bool>,
    /// Natural log-probability of each as sampled; 0 where not sampled.
    pub logprobs: Vec<f32>,
    /// 1 for a verified fix, 0 otherwise.
    pub reward: f32,
}

/// Makes rollouts of the current policy.
pub trait Actor {
    /// Why rollouts could not be made.
    type Error: std::error::Error + Send + Sync + 'static;

    /// `group` attempts at making `targets` pass in `snapshot`, each graded in its own sandboxed workspace.
    fn rollouts(
        &self,
        snapshot: &Snapshot,
        targets: &[TestId],
        group: usize,
        cancel: &CancellationToken,
    ) -> impl Future<Output = Result<Vec<Rollout>, Self::Error>> + Send;
}
