//! `repair`: many cheap samples and a strict judge. The model rewrites one suspect function at a time, the host finds out what
//! changed, and every new candidate is tested; the first that is verified ends it. Asked for the whole function,
//! small models mend several times more bugs than with any format of edits.

use std::collections::BTreeSet;

use async_trait::async_trait;
use tasks::grade::{self, Grading, Verdict};
use tasks::patch::Patch;
use tasks::syntax;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::localize::{self, FailingTest, Suspect};
use super::{AgentError, Attempt, Problem, Progress, Rollout, Strategy, Tools, prompt, told};
use crate::model::{Event, ModelError, Request, Sampling, Sequence};

/// Answers drawn for the suspects in one round, most suspect first.
const ROUND: [usize; 4] = [4, 2, 1, 1];

/// Answers drawn at most for each one that counts: unchanged and repeated ones are drawn again.
const REDRAWS: usize = 2;

/// Longest answer in tokens: a function's own length in bytes over this, and some more.
const BYTES_PER_TOKEN: usize = 2;

/// Temperature of further samples where the model's default is greedy.
const TEMPERATURE: f32 = 0.8;

/// The strategy.
#[derive(Debug)]
pub struct Repair;

#[async_trait]
impl Strategy for Repair {
    fn name(&self) -> &'static str {
        "repair"
    }

    async fn attempt(
        &self,
        problem: &Problem,
        tools: &Tools,
        progress: &(dyn Fn(Progress) + Send + Sync),
        cancel: &CancellationToken,
    ) -> Result<Attempt, AgentError> {
        let localized = problem.clone();
        let joined = tokio::task::spawn_blocking(move || localize::localize(&localized)).await;
        let (suspects, test) = joined.unwrap_or_default();
        let suspects = suspects.into_iter().take(ROUND.len()).map(Tried::new).collect();
        let mut repairing = Repairing {
            problem,
            tools,
            test,
            progress,
            cancel,
            suspects,
            attempt: Attempt { strategy: self.name(), ..Attempt::default() },
            counted: 0,
        };
        repairing.run().await?;
        Ok(repairing.attempt)
    }
}

/// A suspect and what was seen of it.
struct Tried {
    suspect: Suspect,
    /// Normalized functions that were tested, and the unchanged one.
    seen: BTreeSet<String>,
    /// Answers drawn.
    drawn: usize,
}

impl Tried {
    fn new(suspect: Suspect) -> Self {
        let unchanged = syntax::normalized(suspect.language, &suspect.source);
        Self { suspect, seen: BTreeSet::from([unchanged]), drawn: 0 }
    }
}

struct Repairing<'a> {
    problem: &'a Problem,
    tools: &'a Tools,
    test: FailingTest,
    progress: &'a (dyn Fn(Progress) + Send + Sync),
    cancel: &'a CancellationToken,
    suspects: Vec<Tried>,
    attempt: Attempt,
    /// Answers that were worth a test.
    counted: usize,
}

impl Repairing<'_> {
    async fn run(&mut self) -> Result<(), AgentError> {
        let most = self.tools.samples * REDRAWS;
        while self.counted < self.tools.samples && self.attempt.rollouts.len() < most {
            let before = self.attempt.rollouts.len();
            for (at, wanted) in ROUND.into_iter().enumerate().take(self.suspects.len()) {
                let left = (self.tools.samples - self.counted).min(most - self.attempt.rollouts.len());
                let count = wanted.min(left);
                if count == 0 {
                    break;
                }
                self.draw(at, count).await?;
                if self.attempt.solved().is_some() {
                    return Ok(());
                }
            }
            if self.attempt.rollouts.len() == before {
                break;
            }
        }
        Ok(())
    }

    /// Draws `count` answers for one suspect and tests each while the others are still written.
    async fn draw(&mut self, at: usize, count: usize) -> Result<(), AgentError> {
        let request = self.request(&self.suspects[at], count);
        self.suspects[at].drawn += count;
        let name = self.suspects[at].suspect.name.clone();
        self.say(format!("asking the model about {name}"));
        let (events, received) = mpsc::channel(256);
        let (finished, sequences) = mpsc::unbounded_channel();
        let stop = self.cancel.child_token();
        let generation = self.tools.model.generate(request, events, stop.clone());
        let progress = self.progress;
        let prompt = pump(received, finished, progress, &name);
        let judge = self.judge(at, sequences, &stop);
        let (response, prompt_tokens, judged) = tokio::join!(generation, prompt, judge);
        let judged = judged?;
        match response {
            Ok(response) => {
                self.attempt.prompt_tokens += u64::from(response.prompt_tokens);
                self.attempt.generated_tokens += u64::from(response.generated_tokens);
                Ok(())
            }
            // Stopped by ourselves, as the fault is mended.
            Err(ModelError::Cancelled) if self.attempt.solved().is_some() => {
                self.attempt.prompt_tokens += u64::from(prompt_tokens);
                self.attempt.generated_tokens += judged;
                Ok(())
            }
            Err(ModelError::TooLong { .. }) => {
                // Another, shorter suspect may still fit; this one counts as tried.
                self.attempt.rollouts.push(Rollout {
                    tokens: Vec::new(),
                    text: String::new(),
                    verdict: None,
                });
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn request(&self, tried: &Tried, count: usize) -> Request {
        let info = self.tools.model.info();
        let default = if info.sampling.temperature > 0.0 {
            info.sampling
        } else {
            Sampling { temperature: TEMPERATURE, ..info.sampling }
        };
        let samples = (0..count).map(|number| match tried.drawn + number {
            0 => Sampling::GREEDY,
            seed => Sampling { seed: seed as u64, ..default },
        });
        let length = tried.suspect.piece.range.len();
        let format = self.tools.edit_format;
        Request {
            messages: prompt::messages(self.problem, &self.test, &tried.suspect, format),
            tools: Vec::new(),
            thinking: false,
            prefill: format.prefill(prompt::fence(tried.suspect.language)),
            samples: samples.collect(),
            max_tokens: u32::try_from(length / BYTES_PER_TOKEN + 160).unwrap_or(u32::MAX),
            stop: vec!["\n```".to_owned()],
            grammar: None,
            adapter: self.tools.adapter.clone(),
            priority: crate::model::Priority::Person,
            cache_key: self.problem.snapshot.root().to_string_lossy().into_owned(),
        }
    }

    /// Tests answers as they come, up to the first verified one; the tokens of those that were taken.
    async fn judge(
        &mut self,
        at: usize,
        mut sequences: mpsc::UnboundedReceiver<Sequence>,
        stop: &CancellationToken,
    ) -> Result<u64, AgentError> {
        let mut tokens = 0;
        while let Some(sequence) = sequences.recv().await {
            tokens += u64::from(sequence.generated_tokens);
            let patch = self.candidate(at, &sequence.text);
            let verdict = match patch {
                Some(patch) => {
                    self.counted += 1;
                    let name = &self.suspects[at].suspect.name;
                    self.say(format!("testing answer {} ({name})", self.counted));
                    Some(self.grade(&patch).await.inspect_err(|_| stop.cancel())?)
                }
                None => None,
            };
            let solved = verdict.as_ref().is_some_and(|it| it.verified().is_some());
            self.attempt.rollouts.push(Rollout { tokens: sequence.tokens, text: sequence.text, verdict });
            if solved {
                stop.cancel();
                break;
            }
        }
        Ok(tokens)
    }

    /// The patch of an answer, unless it is no code, changes nothing, or was tested already.
    fn candidate(&mut self, at: usize, text: &str) -> Option<Patch> {
        let Tried { suspect, seen, .. } = &mut self.suspects[at];
        let format = self.tools.edit_format;
        let after = format.apply(suspect.language, &suspect.source, &suspect.piece, text)?;
        let new = seen.insert(syntax::normalized(suspect.language, &after));
        new.then(|| Patch::replace(&suspect.path, suspect.source.as_bytes(), after.as_bytes()))
    }

    async fn grade(&self, patch: &Patch) -> Result<Verdict, AgentError> {
        let grading = Grading {
            sandbox: &self.tools.sandbox,
            pool: &self.tools.pool,
            snapshot: &self.problem.snapshot,
            project: &self.problem.project,
            baseline: &self.problem.baseline,
            policy: self.problem.policy,
        };
        Ok(grade::grade(grading, patch, &self.problem.targets, self.cancel).await?)
    }

    fn say(&self, message: String) {
        let fraction = self.counted as f32 / self.tools.samples.max(1) as f32;
        (self.progress)(Progress::new(message, Some(fraction)));
    }
}

/// Passes finished sequences on and shows what happens before the first one; the prompt's length.
async fn pump(
    mut events: mpsc::Receiver<Event>,
    finished: mpsc::UnboundedSender<Sequence>,
    progress: &(dyn Fn(Progress) + Send + Sync),
    name: &str,
) -> u32 {
    let mut prompt = 0;
    while let Some(event) = events.recv().await {
        match event {
            Event::Finished { sequence, .. } => {
                // The judge has left when the fault is mended.
                let _ = finished.send(sequence);
            }
            Event::Prompt { done, total } => {
                if prompt == 0 && done < total {
                    progress(Progress::new(format!("the model reads {total} tokens about {name}"), None));
                }
                prompt = total;
            }
            other => {
                if let Some(message) = told(&other) {
                    progress(Progress::new(message, None));
                }
            }
        }
    }
    prompt
}
