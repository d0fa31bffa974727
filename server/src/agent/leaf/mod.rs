//! `leaf`: the multi-turn agent with the five tools and limits that FrogNano was trained with (arXiv 2609.07925). It works in a
//! workspace of its own; what it changed there is graded like any other patch. Near the window's end the model
//! summarizes its work and goes on from system prompt, task and summary.

mod bash;
mod files;
mod tools;

use std::time::{Duration, Instant};

use async_trait::async_trait;
use tasks::grade::{self, EditPolicy, FileKind, Grading, Verdict};
use tasks::patch::Patch;
use tasks::workspace::Workspace;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::tools::Toolbox;
use super::{AgentError, Attempt, Problem, Progress, Rollout, Strategy, Tools, told};
use crate::model::{
    Event, Finish, Message, ModelError, Priority, Request, Response, Role, Sampling, Sequence,
};

const SYSTEM: &str = "You are a software engineering agent working in a repository that is checked out on this machine. \
                      Use the tools to look around, to edit files and to run commands. Solve the task, check your work \
                      where that is practical, and finish with a short answer without a tool call.";

const SUMMARIZE: &str = "The conversation is about to be cut. Write down, for yourself, what you have found out, which files \
                         you have changed and how, what you have tried, and what is left to do. Do not call a tool.";

/// Share of the window after which the work so far is summarized.
const COMPACT_AT: f32 = 0.7;

/// Bounds of one episode.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Turns of the model.
    pub turns: u32,
    /// Tokens of one turn.
    pub turn_tokens: u32,
    /// Tokens sampled over all turns.
    pub tokens: u64,
    /// Wall-clock time.
    pub wall: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self { turns: 100, turn_tokens: 8_192, tokens: 100_000, wall: Duration::from_secs(3_000) }
    }
}

/// The strategy.
#[derive(Debug, Default)]
pub struct Leaf {
    budget: Budget,
}

#[async_trait]
impl Strategy for Leaf {
    fn name(&self) -> &'static str {
        "leaf"
    }

    async fn attempt(
        &self,
        problem: &Problem,
        tools: &Tools,
        progress: &(dyn Fn(Progress) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Attempt, AgentError> {
        let workspace = acquire(problem, tools).await?;
        let mut episode = Episode {
            problem,
            tools,
            budget: self.budget,
            progress,
            cancel,
            toolbox: Toolbox {
                workspace: &workspace,
                project: &problem.project,
                sandbox: &tools.sandbox,
                cancel,
            },
            messages: opening(problem),
            rollout: Rollout { tokens: Vec::new(), text: String::new(), verdict: None },
            attempt: Attempt { strategy: self.name(), ..Attempt::default() },
        };
        episode.run().await?;
        let (mut rollout, mut attempt) = (episode.rollout, episode.attempt);
        let patch =
            allowed(workspace.changes(&problem.snapshot).map_err(grade::GradeError::from)?, problem.policy);
        drop(workspace);
        if !patch.is_empty() {
            progress(Progress::new("testing the agent's change", Some(0.95)));
            rollout.verdict = Some(verdict(problem, tools, &patch, cancel).await?);
        }
        attempt.rollouts.push(rollout);
        Ok(attempt)
    }
}

async fn acquire(problem: &Problem, tools: &Tools) -> Result<Workspace, AgentError> {
    let (pool, snapshot) = (tools.pool.clone(), problem.snapshot.clone());
    let acquired = tokio::task::spawn_blocking(move || pool.acquire(&snapshot)).await;
    match acquired {
        Ok(workspace) => Ok(workspace.map_err(grade::GradeError::from)?),
        Err(_) => Err(AgentError::Cancelled),
    }
}

async fn verdict(
    problem: &Problem,
    tools: &Tools,
    patch: &Patch,
    cancel: &CancellationToken,
) -> Result<Verdict, AgentError> {
    let grading = Grading {
        sandbox: &tools.sandbox,
        pool: &tools.pool,
        snapshot: &problem.snapshot,
        project: &problem.project,
        baseline: &problem.baseline,
        policy: problem.policy,
    };
    Ok(grade::grade(grading, patch, &problem.targets, cancel).await?)
}

/// The part of `patch` that may come back; scratch files and changed tests stay behind.
fn allowed(mut patch: Patch, policy: EditPolicy) -> Patch {
    patch.files.retain(|path, _| match grade::kind(path) {
        FileKind::Code => policy.code,
        FileKind::Test => policy.tests,
        FileKind::Configuration | FileKind::AutoExecuted => policy.configuration,
    });
    patch
}

fn opening(problem: &Problem) -> Vec<Message> {
    let targets = problem.targets.iter().map(|id| format!("- {id}\n")).collect::<String>();
    let task = format!(
        "{}\n\nThe repository is at {}. These tests must pass afterwards, and no other may break:\n{targets}",
        problem.statement.trim(),
        problem.snapshot.root().join(&problem.project.dir).display(),
    );
    vec![Message::new(Role::System, SYSTEM), Message::new(Role::User, task)]
}

/// One run of the model with its tools.
struct Episode<'a> {
    problem: &'a Problem,
    tools: &'a Tools,
    budget: Budget,
    progress: &'a (dyn Fn(Progress) + Send + Sync),
    cancel: &'a CancellationToken,
    toolbox: Toolbox<'a>,
    messages: Vec<Message>,
    rollout: Rollout,
    attempt: Attempt,
}

impl Episode<'_> {
    async fn run(&mut self) -> Result<(), AgentError> {
        let started = Instant::now();
        for turn in 0..self.budget.turns {
            let spent =
                started.elapsed() > self.budget.wall || self.attempt.generated_tokens > self.budget.tokens;
            if spent {
                return Ok(());
            }
            (self.progress)(Progress::new(
                format!("the agent works: turn {}", turn + 1),
                Some(turn as f32 / self.budget.turns as f32),
            ));
            let response = match self.query(true).await {
                Ok(response) => response,
                Err(AgentError::Model(ModelError::TooLong { .. })) if self.messages.len() > 2 => {
                    self.drop_last_exchange();
                    self.compact().await?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let used = response.prompt_tokens + response.generated_tokens;
            let Some(sequence) = response.sequences.into_iter().next() else { return Ok(()) };
            let ended = self.take(sequence).await?;
            if ended {
                return Ok(());
            }
            if used as f32 > COMPACT_AT * self.tools.model.info().window as f32 {
                self.compact().await?;
            }
        }
        Ok(())
    }

    /// Appends the model's turn and the answers to its calls; whether the episode has ended.
    async fn take(&mut self, sequence: Sequence) -> Result<bool, AgentError> {
        self.rollout.tokens.extend(&sequence.tokens);
        self.rollout.text.push_str(&sequence.text);
        self.messages.push(Message {
            reasoning_content: (!sequence.reasoning.is_empty()).then(|| sequence.reasoning.clone()),
            tool_calls: sequence.tool_calls.clone(),
            ..Message::new(Role::Assistant, sequence.text)
        });
        if sequence.tool_calls.is_empty() {
            return Ok(sequence.finish != Finish::ToolCalls);
        }
        for call in &sequence.tool_calls {
            (self.progress)(Progress::new(format!("the agent uses {}", call.name), None));
            let observation = self.toolbox.call(call).await?;
            self.messages.push(Message {
                tool_call_id: Some(call.id.clone()),
                ..Message::new(Role::Tool, observation)
            });
        }
        Ok(false)
    }

    async fn query(&mut self, with_tools: bool) -> Result<Response, AgentError> {
        let info = self.tools.model.info();
        let seed = self.attempt.generated_tokens;
        let request = Request {
            messages: self.messages.clone(),
            tools: if with_tools { tools::offered() } else { Vec::new() },
            thinking: info.thinking && with_tools,
            prefill: String::new(),
            samples: vec![Sampling { seed, ..info.sampling }],
            max_tokens: self.budget.turn_tokens.min(info.window / 2),
            stop: Vec::new(),
            grammar: None,
            adapter: self.tools.adapter.clone(),
            priority: Priority::Person,
            cache_key: self.problem.snapshot.root().to_string_lossy().into_owned(),
        };
        let (events, mut received) = mpsc::channel::<Event>(256);
        let progress = self.progress;
        let pump = async {
            while let Some(event) = received.recv().await {
                if let Some(message) = told(&event) {
                    progress(Progress::new(message, None));
                }
            }
        };
        let (response, ()) =
            tokio::join!(self.tools.model.generate(request, events, self.cancel.clone()), pump);
        let response = response?;
        self.attempt.prompt_tokens += u64::from(response.prompt_tokens);
        self.attempt.generated_tokens += u64::from(response.generated_tokens);
        Ok(response)
    }

    /// The conversation again from system prompt, task and the model's own summary.
    async fn compact(&mut self) -> Result<(), AgentError> {
        (self.progress)(Progress::new("the agent sums up its work", None));
        self.messages.push(Message::new(Role::User, SUMMARIZE));
        let summary = match self.query(false).await {
            Ok(response) => response.sequences.into_iter().next().map(|it| it.text).unwrap_or_default(),
            Err(AgentError::Model(ModelError::TooLong { .. })) => String::new(),
            Err(error) => return Err(error),
        };
        let note = format!("Your own summary of the work so far:\n\n{}\n\nGo on from here.", summary.trim());
        self.messages.truncate(2);
        if let Some(task) = self.messages.last_mut() {
            task.content = format!("{}\n\n{note}", opening(self.problem)[1].content);
        }
        Ok(())
    }

    /// Removes the newest turn with its observations, which made the prompt too long.
    fn drop_last_exchange(&mut self) {
        let last = self.messages.iter().rposition(|message| message.role == Role::Assistant);
        self.messages.truncate(last.unwrap_or(2).max(2));
    }
}
