//! What the agent talks to: one trait, two implementations (the engine process; any OpenAI-compatible
//! endpoint).

pub mod answer;
pub mod download;
pub mod gguf;
pub mod openai;
pub mod registry;
pub mod template;

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions.
    System,
    /// The task.
    User,
    /// The model.
    Assistant,
    /// A tool's answer.
    Tool,
}

/// One message of a chat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who.
    pub role: Role,
    /// What.
    pub content: String,
    /// The model's thinking, where the template keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Calls the assistant made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// For [`Role::Tool`]: the call it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A plain message.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            reasoning_content: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
        }
    }
}

/// A tool offered to the model, in OpenAI's function form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// Name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON schema of its parameters.
    pub parameters: serde_json::Value,
}

/// A call that the model made. Arguments that could not be parsed are an empty object, as in the harness that FrogNano was trained in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Id that the answer names.
    pub id: String,
    /// Tool name.
    pub name: String,
    /// Arguments, a JSON object.
    pub arguments: serde_json::Value,
}

/// How one sequence is sampled. Temperature 0 is greedy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// Temperature.
    pub temperature: f32,
    /// Nucleus.
    pub top_p: f32,
    /// Candidates (0: all).
    pub top_k: u32,
    /// Minimum relative probability.
    pub min_p: f32,
    /// Repetition penalty (1: none).
    pub repetition_penalty: f32,
    /// Seed.
    #[serde(default)]
    pub seed: u64,
}

impl Sampling {
    /// Always the most probable token.
    pub const GREEDY: Self =
        Self { temperature: 0.0, top_p: 1.0, top_k: 0, min_p: 0.0, repetition_penalty: 1.0, seed: 0 };
}

/// A person's request goes before a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Training.
    Rollout,
    /// A person waits.
    Person,
}

/// What to generate: one sequence per entry of `samples`, all from the same prompt (computed once).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The chat.
    pub messages: Vec<Message>,
    /// Tools offered.
    pub tools: Vec<Tool>,
    /// Whether the model may think first, where its template knows that.
    pub thinking: bool,
    /// Text that the assistant's answer starts with.
    pub prefill: String,
    /// One sequence each.
    pub samples: Vec<Sampling>,
    /// Most tokens per sequence.
    pub max_tokens: u32,
    /// Strings that end a sequence (not part of the text).
    pub stop: Vec<String>,
    /// GBNF grammar of the answer.
    pub grammar: Option<String>,
    /// LoRA adapter file (a generation) with its scale; `None` is the base model.
    pub adapter: Option<PathBuf>,
    /// Who waits.
    pub priority: Priority,
    /// Requests of the same repository share cached prefixes.
    pub cache_key: String,
}

/// A token that the policy sampled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Token {
    /// Vocabulary id.
    pub id: i32,
    /// Natural logarithm of its probability under the model (temperature 1, before truncation).
    pub logprob: f32,
}

/// Why a sequence ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// End-of-turn token or stop string.
    Stop,
    /// Token limit or context window.
    Length,
    /// It called tools.
    ToolCalls,
}

/// One finished sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sequence {
    /// The answer without thinking and tool calls; starts with the request's prefill.
    pub text: String,
    /// Thinking.
    pub reasoning: String,
    /// Tool calls.
    pub tool_calls: Vec<ToolCall>,
    /// What was sampled; empty where the endpoint does not say.
    pub tokens: Vec<Token>,
    /// How many were sampled, also where the endpoint does not name them.
    pub generated_tokens: u32,
    /// Why it ended.
    pub finish: Finish,
}

/// What happens while generating.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The model is being loaded (0 to 1).
    Loading(f32),
    /// Waiting behind this many requests.
    Queued(usize),
    /// Prompt tokens done and in all.
    Prompt {
        /// Done.
        done: u32,
        /// In all.
        total: u32,
    },
    /// New text of a sequence.
    Text {
        /// Index in `samples`.
        index: usize,
        /// The new piece.
        text: String,
    },
    /// A sequence has ended (its test can start while others go on).
    Finished {
        /// Index in `samples`.
        index: usize,
        /// The sequence.
        sequence: Sequence,
    },
    /// Something the person should know, such as a restart of the engine.
    Notice(String),
}

/// A whole answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Response {
    /// In the order of `samples`.
    pub sequences: Vec<Sequence>,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// How many of them came from the prefix cache.
    pub cached_tokens: u32,
    /// Tokens sampled, over all sequences.
    pub generated_tokens: u32,
    /// Time it took.
    pub elapsed: Duration,
}

/// Why there is no answer. Each message is one sentence and the next step.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Cancelled by the caller.
    #[error("cancelled")]
    Cancelled,
    /// The prompt does not fit.
    #[error("the prompt of {tokens} tokens does not fit the window of {window}")]
    TooLong {
        /// Its length.
        tokens: u32,
        /// The limit.
        window: u32,
    },
    /// Model file missing, broken or unknown.
    #[error("{0}")]
    Unusable(String),
    /// Not enough memory.
    #[error("{0}")]
    Memory(String),
    /// The engine died (twice) or the endpoint is unreachable.
    #[error("{0}")]
    Unavailable(String),
    /// The request is wrong (grammar, template).
    #[error("{0}")]
    Request(String),
}

/// What is known of a model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Registry name or path.
    pub name: String,
    /// Tokens that fit.
    pub window: u32,
    /// Whether `leaf` makes sense (registry).
    pub agentic: bool,
    /// Defaults for sampling.
    pub sampling: Sampling,
    /// Whether the model thinks by default.
    pub thinking: bool,
    /// Whether code leaves the machine.
    pub remote: bool,
}

/// A language model.
#[async_trait]
pub trait Model: Send + Sync {
    /// What is known of it; answers at once, without loading.
    fn info(&self) -> &ModelInfo;

    /// Generates; events on the way go to `events` (dropped when the receiver is gone).
    async fn generate(
        &self,
        request: Request,
        events: mpsc::Sender<Event>,
        cancel: CancellationToken,
    ) -> Result<Response, ModelError>;
}
