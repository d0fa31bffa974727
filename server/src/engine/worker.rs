//! The thread that decodes: takes requests, follows the scheduler, samples, and tells how it goes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use tokio::sync::mpsc::UnboundedSender;

use super::llama::{self, Adapters};
use super::protocol::Answer;
use super::sampler::Sampler;
use super::scheduler::{Action, JobId, Scheduler, Slot, Spec, Wants};
use super::text::Text;
use crate::model::answer;
use crate::model::template::Template;
use crate::model::{Event, Finish, ModelError, Request, Response, Sequence, Token};

/// How long one chunk of a prompt should take: a cancel is seen between chunks.
const CHUNK_TIME: Duration = Duration::from_millis(250);

/// Tokens of the first chunk, before the speed is known, and bounds of later ones.
const CHUNK: (usize, usize, usize) = (16, 32, 512);

/// One request on its way in.
pub(super) struct Incoming {
    pub request: Request,
    pub answers: UnboundedSender<Answer>,
    pub cancelled: Arc<AtomicBool>,
}

/// What the worker needs to know before it starts.
pub(super) struct Options {
    pub path: PathBuf,
    pub kernels: PathBuf,
    pub window: u32,
    pub idle: Duration,
}

/// A job with everything that the scheduler does not know.
struct Job {
    request: Request,
    answers: UnboundedSender<Answer>,
    cancelled: Arc<AtomicBool>,
    prompt_tokens: u32,
    cached_tokens: u32,
    thinking_open: bool,
    /// Logits after the prompt, as long as samples may start from them.
    logits: Vec<f32>,
    samples: Vec<Option<Sample>>,
    finished: Vec<Option<Sequence>>,
    generated: u32,
    started: Instant,
}

/// A sample that is being written.
struct Sample {
    sampler: Sampler,
    grammar: Option<LlamaSampler>,
    text: Text,
    tokens: Vec<Token>,
}

/// Loads the model and serves `incoming` until idle or closed. `loading` is told 0 to 1.
pub(super) fn run(
    options: &Options,
    incoming: &Receiver<Incoming>,
    loading: impl Fn(f32) + 'static,
    ready: impl FnOnce(),
) -> Result<(), ModelError> {
    let backend = llama::backend(&options.kernels)?;
    let model = llama::load(&backend, &options.path, loading)?;
    let window = options.window.min(model.n_ctx_train().max(1));
    let context = llama::context(&backend, &model, window)?;
    let vocab = model.vocab();
    let source = model
        .meta_val_str("tokenizer.chat_template")
        .map_err(|error| ModelError::Unusable(format!("the model has no chat template ({error})")))?;
    let template =
        Template::new(&source, &llama::special(&model, vocab.bos()), &llama::special(&model, vocab.eos()))?;
    let hybrid = model.is_hybrid() || model.is_recurrent();
    let scheduler = Scheduler::new(window as usize, llama::SEQUENCES as i32, hybrid);
    ready();
    let mut worker = Worker {
        model: &model,
        context,
        template,
        scheduler,
        adapters: Adapters::default(),
        jobs: HashMap::new(),
        next_id: 0,
        window,
        chunk: CHUNK.0,
    };
    worker.serve(incoming, options.idle);
    Ok(())
}

struct Worker<'a> {
    model: &'a LlamaModel,
    context: LlamaContext<'a>,
    template: Template,
    scheduler: Scheduler,
    adapters: Adapters,
    jobs: HashMap<JobId, Job>,
    next_id: JobId,
    window: u32,
    chunk: usize,
}

impl Worker<'_> {
    fn serve(&mut self, incoming: &Receiver<Incoming>, idle: Duration) {
        loop {
            if self.scheduler.is_empty() {
                match incoming.recv_timeout(idle) {
                    Ok(next) => self.accept(next),
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
                }
            }
            while let Ok(next) = incoming.try_recv() {
                self.accept(next);
            }
            self.drop_cancelled();
            if let Err(error) = self.step() {
                self.fail_all(&error);
            }
        }
    }

    fn accept(&mut self, incoming: Incoming) {
        let Incoming { request, answers, cancelled } = incoming;
        match self.prepare(&request) {
            Ok((spec, thinking_open)) => {
                let id = spec.id;
                let count = request.samples.len();
                let job = Job {
                    prompt_tokens: spec.prompt.len() as u32,
                    cached_tokens: 0,
                    thinking_open,
                    logits: Vec::new(),
                    samples: (0..count).map(|_| None).collect(),
                    finished: vec![None; count],
                    generated: 0,
                    started: Instant::now(),
                    request,
                    answers,
                    cancelled,
                };
                self.scheduler.submit(spec);
                job.tell(Event::Queued(self.scheduler.ahead(id)));
                self.jobs.insert(id, job);
            }
            // The client may have gone; then nobody wants the answer.
            Err(error) => drop(answers.send(Answer::Failed(error.into()))),
        }
    }

    fn prepare(&mut self, request: &Request) -> Result<(Spec, bool), ModelError> {
        if request.samples.is_empty() {
            return Err(ModelError::Request("a request needs at least one sample".into()));
        }
        if let Some(grammar) = &request.grammar {
            self.grammar(grammar)?;
        }
        let text =
            self.template.render(&request.messages, &request.tools, request.thinking, &request.prefill)?;
        let thinking_open = text.trim_end().ends_with("<think>");
        let prompt: Vec<i32> =
            self.model.vocab().tokenize(text.as_bytes(), false, true).iter().map(|it| it.0).collect();
        let tokens = prompt.len() as u32;
        if prompt.is_empty() {
            return Err(ModelError::Request("the prompt is empty".into()));
        }
        if tokens + 1 > self.window {
            return Err(ModelError::TooLong { tokens, window: self.window });
        }
        self.next_id += 1;
        let spec = Spec {
            id: self.next_id,
            priority: request.priority,
            adapter: request.adapter.clone(),
            key: request.cache_key.clone(),
            prompt,
            samples: request.samples.len(),
            max_tokens: request.max_tokens.clamp(1, self.window - tokens) as usize,
        };
        Ok((spec, thinking_open))
    }

    fn grammar(&self, source: &str) -> Result<LlamaSampler, ModelError> {
        LlamaSampler::grammar(self.model, source, "root")
            .map_err(|error| ModelError::Request(format!("the grammar cannot be read: {error}")))
    }

    fn drop_cancelled(&mut self) {
        let gone: Vec<JobId> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.cancelled.load(Ordering::Relaxed))
            .map(|(&id, _)| id)
            .collect();
        for id in gone {
            let actions = self.scheduler.cancel(id);
            self.apply(&actions);
            if let Some(job) = self.jobs.remove(&id) {
                drop(job.answers.send(Answer::Failed(ModelError::Cancelled.into())));
            }
        }
    }

    fn fail_all(&mut self, error: &ModelError) {
        tracing::error!(%error, "decoding failed");
        for (id, job) in std::mem::take(&mut self.jobs) {
            let actions = self.scheduler.cancel(id);
            self.apply(&actions);
            drop(job.answers.send(Answer::Failed(ModelError::Unavailable(error.to_string()).into())));
        }
        let actions = self.scheduler.forget_prefixes();
        self.apply(&actions);
        self.context.clear_kv_cache();
    }

    fn step(&mut self) -> Result<(), ModelError> {
        let wanted = self.scheduler.adapter();
        if let Err(error) = self.adapters.set(self.model, &mut self.context, wanted.as_deref()) {
            self.fail_adapter(wanted, error);
            return Ok(());
        }
        let (actions, started) = self.scheduler.admit();
        self.apply(&actions);
        for (id, index) in started {
            self.start(id, index)?;
        }
        let slots = self.scheduler.batch(self.chunk, llama::BATCH as usize);
        if slots.is_empty() {
            return Ok(());
        }
        let began = Instant::now();
        match self.decode(&slots) {
            Ok(()) => {}
            Err(ModelError::Memory(_)) => return self.make_room(&slots),
            Err(error) => return Err(error),
        }
        self.adapt_chunk(&slots, began.elapsed());
        self.scheduler.decoded(&slots);
        for (row, slot) in slots.iter().enumerate() {
            match slot.wants {
                Some(Wants::Prompt(id)) => {
                    let logits = self.context.get_logits_ith(row as i32).to_vec();
                    if let Some(job) = self.jobs.get_mut(&id) {
                        job.logits = logits;
                    }
                }
                Some(Wants::Sample(id, index)) => self.advance(id, index, Some(row)),
                None => {}
            }
        }
        self.tell_prompts(&slots);
        Ok(())
    }

    /// The unified cache was fuller than planned: cached prefixes go first, then the latest job starts anew.
    fn make_room(&mut self, slots: &[Slot]) -> Result<(), ModelError> {
        let actions = self.scheduler.forget_prefixes();
        if !actions.is_empty() {
            self.apply(&actions);
            return Ok(());
        }
        let last = slots.iter().filter_map(|slot| match slot.wants {
            Some(Wants::Prompt(id) | Wants::Sample(id, _)) => Some(id),
            None => None,
        });
        let Some(id) = last.max() else { return Err(ModelError::Memory("the cache is too small".into())) };
        if self.jobs.len() < 2 {
            return Err(ModelError::Memory(
                "the context is too small for this request; ask for fewer tokens".into(),
            ));
        }
        let actions = self.scheduler.restart(id);
        self.apply(&actions);
        if let Some(job) = self.jobs.get_mut(&id) {
            job.samples.iter_mut().for_each(|sample| *sample = None);
        }
        Ok(())
    }

    fn fail_adapter(&mut self, adapter: Option<PathBuf>, error: ModelError) {
        let mut error = Some(error);
        let ids: Vec<JobId> =
            self.jobs.iter().filter(|(_, job)| job.request.adapter == adapter).map(|(&id, _)| id).collect();
        for id in ids {
            let actions = self.scheduler.cancel(id);
            self.apply(&actions);
            if let Some(job) = self.jobs.remove(&id) {
                let error =
                    error.take().unwrap_or_else(|| ModelError::Request("the adapter cannot be used".into()));
                drop(job.answers.send(Answer::Failed(error.into())));
            }
        }
    }

    fn apply(&mut self, actions: &[Action]) {
        for action in actions {
            let done = match *action {
                Action::Copy { from, to, length } => {
                    // A hybrid model's state can only be copied whole, which is what the scheduler asks for then.
                    let end = if self.model.is_hybrid() || self.model.is_recurrent() {
                        None
                    } else {
                        Some(length as u32)
                    };
                    let start = end.map(|_| 0);
                    self.context.kv_cache_seq_cp(from, to, start, end)
                }
                Action::Clear(sequence) => self.context.kv_cache_seq_rm(sequence, None, None),
            };
            if let Err(error) = done {
                tracing::error!(%error, ?action, "the cache cannot be changed");
            }
        }
    }

    fn decode(&mut self, slots: &[Slot]) -> Result<(), ModelError> {
        let failed = |error: &dyn std::fmt::Display| {
            ModelError::Unavailable(format!("llama.cpp cannot decode: {error}"))
        };
        let mut batch = LlamaBatch::new(slots.len(), 1);
        for slot in slots {
            batch
                .add(LlamaToken(slot.token), slot.position as i32, &[slot.sequence], slot.wants.is_some())
                .map_err(|error| failed(&error))?;
        }
        self.context.decode(&mut batch).map_err(|error| match error {
            llama_cpp_2::DecodeError::NoKvCacheSlot => ModelError::Memory("the cache is full".into()),
            other => failed(&other),
        })
    }

    /// Chunks are as long as a cancel may wait.
    fn adapt_chunk(&mut self, slots: &[Slot], took: Duration) {
        let prompt = slots.iter().filter(|slot| !matches!(slot.wants, Some(Wants::Sample(..)))).count();
        if prompt < CHUNK.0 {
            return;
        }
        let fitting = prompt as f64 * CHUNK_TIME.as_secs_f64() / took.as_secs_f64().max(1e-6);
        // Half way to the new value: one slow step while tests run is no reason to crawl.
        self.chunk = ((self.chunk as f64 + fitting) / 2.0).clamp(CHUNK.1 as f64, CHUNK.2 as f64) as usize;
    }

    fn tell_prompts(&mut self, slots: &[Slot]) {
        for (&id, job) in &mut self.jobs {
            let (done, total, cached) = self.scheduler.prompt(id);
            job.cached_tokens = cached as u32;
            let moved = slots.iter().any(|slot| !matches!(slot.wants, Some(Wants::Sample(..)))) && done > 0;
            if moved && job.generated == 0 {
                job.tell(Event::Prompt { done: done as u32, total: total as u32 });
            }
        }
    }

    /// A sample starts: its first token comes from the logits of the prompt.
    fn start(&mut self, id: JobId, index: usize) -> Result<(), ModelError> {
        let Some(job) = self.jobs.get(&id) else { return Ok(()) };
        let grammar = job.request.grammar.as_deref().map(|source| self.grammar(source)).transpose()?;
        let sample = Sample {
            sampler: Sampler::new(job.request.samples[index]),
            grammar,
            text: Text::default(),
            tokens: Vec::new(),
        };
        if let Some(job) = self.jobs.get_mut(&id) {
            job.samples[index] = Some(sample);
        }
        self.advance(id, index, None);
        Ok(())
    }

    /// Samples the next token of a sample, from a row of the last batch or from its prompt's logits.
    fn advance(&mut self, id: JobId, index: usize, row: Option<usize>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Some(sample) = job.samples[index].as_mut() else { return };
        let logits = match row {
            Some(row) => self.context.get_logits_ith(row as i32),
            None => &job.logits,
        };
        let grammar = &mut sample.grammar;
        let token = sample.sampler.sample(logits, |id| grammar.as_mut().is_none_or(|it| allows(it, id)));
        let Some(token) = token else {
            self.end(id, index, Finish::Stop);
            return;
        };
        job.generated += 1;
        let vocab = self.model.vocab();
        if vocab.is_eog(LlamaToken(token.id)) {
            sample.tokens.push(token);
            self.end(id, index, Finish::Stop);
            return;
        }
        if let Some(grammar) = grammar {
            // The grammar allowed it just now, so taking it cannot fail.
            grammar.accept(LlamaToken(token.id));
        }
        sample.tokens.push(token);
        // Tool-call tags are special tokens in some vocabularies, and part of the answer.
        let bytes = vocab.token_to_piece(LlamaToken(token.id), true, None);
        let text = sample.text.push(&bytes, &job.request.stop);
        let (stopped, length) = (sample.text.is_stopped(), sample.tokens.len());
        if !text.is_empty() {
            job.tell(Event::Text { index, text });
        }
        let most = job.request.max_tokens.min(self.window - job.prompt_tokens) as usize;
        if stopped {
            self.end(id, index, Finish::Stop);
        } else if length >= most {
            self.end(id, index, Finish::Length);
        } else {
            self.scheduler.sampled(id, index, token.id);
        }
    }

    fn end(&mut self, id: JobId, index: usize, finish: Finish) {
        let (actions, last) = self.scheduler.finish(id, index);
        self.apply(&actions);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if let Some(sample) = job.samples[index].take() {
            let request = &job.request;
            let parsed = answer::parse(
                &sample.text.into_string(),
                &request.prefill,
                &request.tools,
                job.thinking_open,
            );
            let called = !parsed.tool_calls.is_empty() && finish == Finish::Stop;
            let sequence = Sequence {
                text: parsed.text,
                reasoning: parsed.reasoning,
                tool_calls: parsed.tool_calls,
                generated_tokens: u32::try_from(sample.tokens.len()).unwrap_or(u32::MAX),
                tokens: sample.tokens,
                finish: if called { Finish::ToolCalls } else { finish },
            };
            job.tell(Event::Finished { index, sequence: sequence.clone() });
            job.finished[index] = Some(sequence);
        }
        if last && let Some(job) = self.jobs.remove(&id) {
            let response = Response {
                sequences: job.finished.into_iter().flatten().collect(),
                prompt_tokens: job.prompt_tokens,
                cached_tokens: job.cached_tokens,
                generated_tokens: job.generated,
                elapsed: job.started.elapsed(),
            };
            drop(job.answers.send(Answer::Done(response)));
        }
    }
}

impl Job {
    fn tell(&self, event: Event) {
        // The client may have gone; the cancel flag says so.
        drop(self.answers.send(Answer::Event(event)));
    }
}

/// Whether a grammar allows a token next.
fn allows(grammar: &mut LlamaSampler, id: i32) -> bool {
    let mut one = LlamaTokenDataArray::new(vec![LlamaTokenData::new(LlamaToken(id), 0.0, 0.0)], false);
    grammar.apply(&mut one);
    one.data.first().is_some_and(|it| it.logit().is_finite())
}
