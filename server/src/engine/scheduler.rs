//! Which tokens are decoded next, in which sequence: admit, run, preempt, finish. It knows no tensor, so it is tested without a
//! model.
//!
//! A job is one prompt with some samples. The prompt is computed once, in a sequence of its own; each sample starts as a copy of it
//! that shares its cells. After the job the prompt's sequence stays as a cached prefix until its cells are needed. A person's jobs go before
//! rollouts, which wait meanwhile and are started anew only if their cells are needed. One adapter is set at a
//! time, so jobs run together only with those of the same adapter.

use std::collections::VecDeque;
use std::path::PathBuf;

use crate::model::Priority;

/// Prefixes that are kept at most.
const CACHED: usize = 8;

/// A job's number.
pub(super) type JobId = u64;

/// What to do to the sequences of the context, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Copy the first `length` positions of a sequence to an empty one.
    Copy { from: i32, to: i32, length: usize },
    /// Empty a sequence.
    Clear(i32),
}

/// One token of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub token: i32,
    pub position: usize,
    pub sequence: i32,
    /// Whose logits are wanted after it.
    pub wants: Option<Wants>,
}

/// Who wants logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    /// A job whose prompt ends here.
    Prompt(JobId),
    /// A sample.
    Sample(JobId, usize),
}

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub id: JobId,
    pub priority: Priority,
    pub adapter: Option<PathBuf>,
    /// Jobs with equal keys may share prefixes.
    pub key: String,
    pub prompt: Vec<i32>,
    pub samples: usize,
    pub max_tokens: usize,
}

#[derive(Debug)]
struct Running {
    sample: usize,
    sequence: i32,
    position: usize,
    next: i32,
}

#[derive(Debug)]
struct Job {
    spec: Spec,
    /// Sequence of the prompt, once admitted.
    prefix: Option<i32>,
    /// Positions of the prompt that are computed.
    computed: usize,
    cached: usize,
    waiting: VecDeque<usize>,
    running: Vec<Running>,
}

#[derive(Debug)]
struct Prefix {
    sequence: i32,
    tokens: Vec<i32>,
    adapter: Option<PathBuf>,
    key: String,
}

/// All jobs and sequences.
#[derive(Debug)]
pub(super) struct Scheduler {
    cells: usize,
    /// A sequence of a hybrid model cannot be cut, so only whole prefixes are reused.
    hybrid: bool,
    free: Vec<i32>,
    jobs: Vec<Job>,
    /// Least recently used first.
    prefixes: Vec<Prefix>,
}

impl Job {
    /// Cells that it may come to use.
    fn reserved(&self) -> usize {
        if self.prefix.is_none() {
            return 0;
        }
        self.spec.prompt.len() + self.running.len() * self.spec.max_tokens
    }

    fn is_prefilled(&self) -> bool {
        self.prefix.is_some() && self.computed == self.spec.prompt.len()
    }
}

impl Scheduler {
    /// For a context of `cells` cells and `sequences` sequences.
    pub fn new(cells: usize, sequences: i32, hybrid: bool) -> Self {
        Self { cells, hybrid, free: (0..sequences).rev().collect(), jobs: Vec::new(), prefixes: Vec::new() }
    }

    /// Takes a job in, behind those of its priority. Its prompt and one sample must fit into all cells.
    pub fn submit(&mut self, spec: Spec) {
        let waiting = (0..spec.samples).collect();
        self.jobs.push(Job { spec, prefix: None, computed: 0, cached: 0, waiting, running: Vec::new() });
        self.jobs.sort_by_key(|job| std::cmp::Reverse(job.spec.priority));
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Jobs before `id`.
    pub fn ahead(&self, id: JobId) -> usize {
        self.jobs.iter().take_while(|job| job.spec.id != id).count()
    }

    /// Computed and all positions of a job's prompt, and how many of them came from a cached prefix.
    pub fn prompt(&self, id: JobId) -> (usize, usize, usize) {
        self.job(id).map_or((0, 0, 0), |job| (job.computed, job.spec.prompt.len(), job.cached))
    }

    /// The adapter of the jobs that run now.
    pub fn adapter(&self) -> Option<PathBuf> {
        self.jobs.first().and_then(|job| job.spec.adapter.clone())
    }

    /// Admits what fits, and starts samples of computed prompts. The samples that were started want the logits of their prompt.
    pub fn admit(&mut self) -> (Vec<Action>, Vec<(JobId, usize)>) {
        let mut actions = Vec::new();
        let mut started = Vec::new();
        for index in self.active() {
            if self.jobs[index].prefix.is_none() {
                self.admit_job(index, &mut actions);
            }
            if self.jobs[index].is_prefilled() {
                self.start_samples(index, &mut actions, &mut started);
            }
        }
        (actions, started)
    }

    /// The next tokens: one of each running sample, then at most `chunk` of one prompt.
    pub fn batch(&mut self, chunk: usize, limit: usize) -> Vec<Slot> {
        let mut slots = Vec::new();
        let active = self.active();
        for &index in &active {
            let job = &self.jobs[index];
            for running in &job.running {
                let wants = Some(Wants::Sample(job.spec.id, running.sample));
                slots.push(Slot {
                    token: running.next,
                    position: running.position,
                    sequence: running.sequence,
                    wants,
                });
            }
        }
        slots.truncate(limit);
        let prefilling = active
            .iter()
            .find(|&&index| self.jobs[index].prefix.is_some() && !self.jobs[index].is_prefilled());
        if let Some(&index) = prefilling {
            let job = &self.jobs[index];
            let end = job.spec.prompt.len().min(job.computed + chunk.min(limit - slots.len()));
            for position in job.computed..end {
                let last = position + 1 == job.spec.prompt.len();
                slots.push(Slot {
                    token: job.spec.prompt[position],
                    position,
                    sequence: job.prefix.unwrap_or_default(),
                    wants: last.then_some(Wants::Prompt(job.spec.id)),
                });
            }
        }
        slots
    }

    /// `slots` have been decoded.
    pub fn decoded(&mut self, slots: &[Slot]) {
        for job in &mut self.jobs {
            let prefix = job.prefix;
            job.computed += slots.iter().filter(|slot| Some(slot.sequence) == prefix).count();
            for running in &mut job.running {
                running.position += slots.iter().filter(|slot| slot.sequence == running.sequence).count();
            }
        }
    }

    /// The token that a running sample goes on with.
    pub fn sampled(&mut self, id: JobId, sample: usize, token: i32) {
        let job = self.jobs.iter_mut().find(|job| job.spec.id == id);
        let running = job.and_then(|job| job.running.iter_mut().find(|it| it.sample == sample));
        if let Some(running) = running {
            running.next = token;
        }
    }

    /// A sample has ended; whether it was the job's last.
    pub fn finish(&mut self, id: JobId, sample: usize) -> (Vec<Action>, bool) {
        let mut actions = Vec::new();
        let Some(index) = self.jobs.iter().position(|job| job.spec.id == id) else { return (actions, true) };
        let job = &mut self.jobs[index];
        job.waiting.retain(|&it| it != sample);
        if let Some(at) = job.running.iter().position(|it| it.sample == sample) {
            let sequence = job.running.swap_remove(at).sequence;
            release(&mut self.free, sequence, &mut actions);
        }
        let job = &self.jobs[index];
        let done = job.waiting.is_empty() && job.running.is_empty();
        if done {
            self.remove(index, &mut actions);
        }
        (actions, done)
    }

    /// Forgets a job at once.
    pub fn cancel(&mut self, id: JobId) -> Vec<Action> {
        let mut actions = Vec::new();
        if let Some(index) = self.jobs.iter().position(|job| job.spec.id == id) {
            self.remove(index, &mut actions);
        }
        actions
    }

    /// Starts a job anew, as its cells are needed or lost.
    pub fn restart(&mut self, id: JobId) -> Vec<Action> {
        let mut actions = Vec::new();
        if let Some(index) = self.jobs.iter().position(|job| job.spec.id == id) {
            self.preempt(index, &mut actions);
        }
        actions
    }

    /// Gives up all cached prefixes.
    pub fn forget_prefixes(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        for prefix in std::mem::take(&mut self.prefixes) {
            release(&mut self.free, prefix.sequence, &mut actions);
        }
        actions
    }

    fn job(&self, id: JobId) -> Option<&Job> {
        self.jobs.iter().find(|job| job.spec.id == id)
    }

    /// Indices of the jobs that may run now: those of the first one's priority and adapter.
    fn active(&self) -> Vec<usize> {
        let Some(first) = self.jobs.first() else { return Vec::new() };
        let same =
            |job: &Job| job.spec.priority == first.spec.priority && job.spec.adapter == first.spec.adapter;
        (0..self.jobs.len()).filter(|&index| same(&self.jobs[index])).collect()
    }

    fn used(&self) -> usize {
        let jobs: usize = self.jobs.iter().map(Job::reserved).sum();
        jobs + self.prefixes.iter().map(|prefix| prefix.tokens.len()).sum::<usize>()
    }

    fn admit_job(&mut self, index: usize, actions: &mut Vec<Action>) {
        let needed = self.jobs[index].spec.prompt.len() + self.jobs[index].spec.max_tokens;
        let source = self.best_prefix(index);
        // The prefix that it starts from is given up last: once copied, its cells live on in the copy.
        while self.used() + needed > self.cells || self.free.len() < 2 {
            let spare = (0..self.prefixes.len())
                .find(|&at| Some(self.prefixes[at].sequence) != source.map(|it| it.0));
            let Some(at) = spare else { break };
            let prefix = self.prefixes.remove(at);
            release(&mut self.free, prefix.sequence, actions);
        }
        let mut copied = 0;
        let mut give_up = None;
        if let Some((sequence, length)) = source {
            copied = length;
            let at = self.prefixes.iter().position(|prefix| prefix.sequence == sequence);
            if self.used() + needed > self.cells || self.free.len() < 2 {
                give_up = at.map(|at| self.prefixes.remove(at).sequence);
            }
        }
        while self.used() + needed > self.cells || self.free.len() < 2 {
            let own = self.jobs[index].spec.priority;
            let victim = self.jobs.iter().rposition(|job| job.prefix.is_some() && job.spec.priority < own);
            let Some(victim) = victim else { break };
            self.preempt(victim, actions);
        }
        let fits = self.used() + needed <= self.cells && self.free.len() >= 2;
        if let (true, Some(to)) = (fits, self.free.pop()) {
            if let Some((from, _)) = source {
                actions.push(Action::Copy { from, to, length: copied });
            }
            let job = &mut self.jobs[index];
            (job.prefix, job.computed, job.cached) = (Some(to), copied, copied);
        }
        if let Some(sequence) = give_up {
            release(&mut self.free, sequence, actions);
        }
    }

    /// The cached prefix that shares most with a job's prompt, and how much. The last token is always computed, for its logits.
    fn best_prefix(&self, index: usize) -> Option<(i32, usize)> {
        let spec = &self.jobs[index].spec;
        let shared = |prefix: &Prefix| {
            let common = prefix.tokens.iter().zip(&spec.prompt).take_while(|(a, b)| a == b).count();
            let common = common.min(spec.prompt.len() - 1);
            if self.hybrid && common < prefix.tokens.len() { 0 } else { common }
        };
        let usable =
            self.prefixes.iter().filter(|prefix| prefix.key == spec.key && prefix.adapter == spec.adapter);
        let found = usable.map(|prefix| (prefix.sequence, shared(prefix))).max_by_key(|it| it.1);
        found.filter(|it| it.1 > 0)
    }

    fn start_samples(&mut self, index: usize, actions: &mut Vec<Action>, started: &mut Vec<(JobId, usize)>) {
        while let Some(&sample) = self.jobs[index].waiting.front() {
            while (self.used() + self.jobs[index].spec.max_tokens > self.cells || self.free.is_empty())
                && !self.prefixes.is_empty()
            {
                let prefix = self.prefixes.remove(0);
                release(&mut self.free, prefix.sequence, actions);
            }
            let fits = self.used() + self.jobs[index].spec.max_tokens <= self.cells;
            let (true, Some(sequence)) = (fits, self.free.pop()) else { break };
            let job = &mut self.jobs[index];
            job.waiting.pop_front();
            let length = job.spec.prompt.len();
            actions.push(Action::Copy { from: job.prefix.unwrap_or_default(), to: sequence, length });
            job.running.push(Running { sample, sequence, position: length, next: 0 });
            started.push((job.spec.id, sample));
        }
    }

    fn preempt(&mut self, index: usize, actions: &mut Vec<Action>) {
        let job = &mut self.jobs[index];
        let sequences = job.running.drain(..).map(|it| (it.sample, it.sequence)).collect::<Vec<_>>();
        for (sample, sequence) in sequences {
            job.waiting.push_back(sample);
            release(&mut self.free, sequence, actions);
        }
        let job = &mut self.jobs[index];
        job.computed = 0;
        if let Some(sequence) = job.prefix.take() {
            release(&mut self.free, sequence, actions);
        }
    }

    fn remove(&mut self, index: usize, actions: &mut Vec<Action>) {
        let job = self.jobs.remove(index);
        for running in job.running {
            release(&mut self.free, running.sequence, actions);
        }
        let Some(sequence) = job.prefix else { return };
        let Spec { prompt, adapter, key, .. } = job.spec;
        let tokens = prompt[..job.computed].to_vec();
        let known =
            self.prefixes.iter().any(|it| it.tokens == tokens && it.key == key && it.adapter == adapter);
        if tokens.is_empty() || known {
            release(&mut self.free, sequence, actions);
            return;
        }
        self.prefixes.push(Prefix { sequence, tokens, adapter, key });
        if self.prefixes.len() > CACHED {
            let oldest = self.prefixes.remove(0);
            release(&mut self.free, oldest.sequence, actions);
        }
    }
}

fn release(free: &mut Vec<i32>, sequence: i32, actions: &mut Vec<Action>) {
    actions.push(Action::Clear(sequence));
    free.push(sequence);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(id: JobId, priority: Priority, prompt: &[i32], samples: usize, max_tokens: usize) -> Spec {
        Spec { id, priority, adapter: None, key: "r".into(), prompt: prompt.to_vec(), samples, max_tokens }
    }

    /// Runs everything to its end, each sample for its whole length; the order in which samples ended.
    fn drain(scheduler: &mut Scheduler, lengths: usize) -> Vec<(JobId, usize)> {
        let mut ended = Vec::new();
        let mut produced = std::collections::HashMap::new();
        for _ in 0..10_000 {
            if scheduler.is_empty() {
                return ended;
            }
            let (_, started) = scheduler.admit();
            for key in started {
                produced.insert(key, 1);
                scheduler.sampled(key.0, key.1, 1);
            }
            let slots = scheduler.batch(4, 64);
            scheduler.decoded(&slots);
            for slot in slots {
                if let Some(Wants::Sample(id, sample)) = slot.wants {
                    let count = produced.entry((id, sample)).or_insert(0);
                    *count += 1;
                    if *count >= lengths {
                        scheduler.finish(id, sample);
                        ended.push((id, sample));
                    }
                }
            }
        }
        ended
    }

    #[test]
    fn a_prompt_is_computed_once_for_all_its_samples() {
        let mut scheduler = Scheduler::new(100, 8, false);
        scheduler.submit(spec(1, Priority::Person, &[5, 6, 7], 3, 4));
        scheduler.admit();
        let slots = scheduler.batch(64, 64);
        assert_eq!(slots.iter().map(|slot| slot.token).collect::<Vec<_>>(), [5, 6, 7]);
        assert_eq!(slots[2].wants, Some(Wants::Prompt(1)));
        scheduler.decoded(&slots);
        let (actions, started) = scheduler.admit();
        assert_eq!(started, [(1, 0), (1, 1), (1, 2)]);
        assert!(actions.iter().all(|it| matches!(it, Action::Copy { length: 3, .. })) && actions.len() == 3);
        let slots = scheduler.batch(64, 64);
        assert!(slots.len() == 3 && slots.iter().all(|slot| slot.position == 3));
    }

    #[test]
    fn a_shared_prefix_is_taken_from_the_cache_but_not_for_another_repository() {
        let mut scheduler = Scheduler::new(100, 8, false);
        scheduler.submit(spec(1, Priority::Person, &[1, 2, 3, 4], 1, 2));
        drain(&mut scheduler, 2);
        scheduler.submit(spec(2, Priority::Person, &[1, 2, 3, 9, 9], 1, 2));
        scheduler.admit();
        assert_eq!(scheduler.prompt(2), (3, 5, 3));
        scheduler.cancel(2);
        scheduler.submit(Spec { key: "other".into(), ..spec(3, Priority::Person, &[1, 2, 3, 9, 9], 1, 2) });
        scheduler.admit();
        assert_eq!(scheduler.prompt(3), (0, 5, 0));
    }

    #[test]
    fn a_hybrid_model_reuses_whole_prefixes_only() {
        let mut scheduler = Scheduler::new(100, 8, true);
        scheduler.submit(spec(1, Priority::Person, &[1, 2, 3], 1, 2));
        drain(&mut scheduler, 2);
        scheduler.submit(spec(2, Priority::Person, &[1, 2, 9, 9], 1, 2));
        scheduler.admit();
        assert_eq!(scheduler.prompt(2).2, 0);
        scheduler.submit(spec(3, Priority::Person, &[1, 2, 3, 9], 1, 2));
        scheduler.admit();
        assert_eq!(scheduler.prompt(3).2, 3);
    }

    #[test]
    fn a_person_goes_before_rollouts_which_go_on_afterwards() {
        let mut scheduler = Scheduler::new(1000, 16, false);
        scheduler.submit(spec(1, Priority::Rollout, &[1, 2], 2, 8));
        scheduler.admit();
        let slots = scheduler.batch(4, 64);
        scheduler.decoded(&slots);
        scheduler.admit();
        scheduler.submit(spec(2, Priority::Person, &[3, 4], 1, 8));
        assert_eq!((scheduler.ahead(2), scheduler.ahead(1)), (0, 1));
        let ended = drain(&mut scheduler, 3);
        assert_eq!(ended[0], (2, 0));
        assert_eq!(ended.len(), 3);
    }

    #[test]
    fn samples_that_do_not_fit_wait_and_rollouts_give_their_cells_to_a_person() {
        let mut scheduler = Scheduler::new(20, 16, false);
        scheduler.submit(spec(1, Priority::Rollout, &[1, 2, 3, 4], 4, 6));
        scheduler.admit();
        let slots = scheduler.batch(8, 64);
        scheduler.decoded(&slots);
        assert_eq!(scheduler.admit().1.len(), 2);
        scheduler.submit(spec(2, Priority::Person, &[7; 10], 1, 6));
        let ended = drain(&mut scheduler, 4);
        assert_eq!(ended[0], (2, 0));
        let mut all = ended;
        all.sort_unstable();
        assert_eq!(all, [(1, 0), (1, 1), (1, 2), (1, 3), (2, 0)]);
    }

    #[test]
    fn every_sequence_comes_back() {
        let mut scheduler = Scheduler::new(64, 8, false);
        for id in 0..20 {
            scheduler.submit(spec(id, Priority::Person, &[id as i32, 1, 2, 3], 3, 5));
            if id % 3 == 0 {
                scheduler.admit();
                scheduler.cancel(id);
            }
            drain(&mut scheduler, 2);
        }
        scheduler.forget_prefixes();
        scheduler.free.sort_unstable();
        assert_eq!(scheduler.free, (0..8).collect::<Vec<_>>());
    }
}
