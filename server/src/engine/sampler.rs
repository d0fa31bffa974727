//! Choosing the next token from the logits of the whole vocabulary. Pure.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::model::{Sampling, Token};

/// Tokens whose probability is below that of the best by this factor (as a power of e, after the temperature) are not drawn: all of
/// them together have less than a thousandth.
const NEGLIGIBLE: f32 = 20.0;

/// The random numbers and the history of one sequence.
#[derive(Debug)]
pub(super) struct Sampler {
    sampling: Sampling,
    random: StdRng,
    history: Vec<i32>,
}

/// Candidates, best first.
pub(super) type Candidates = Vec<(i32, f32)>;

impl Sampler {
    pub fn new(sampling: Sampling) -> Self {
        Self { sampling, random: StdRng::seed_from_u64(sampling.seed), history: Vec::new() }
    }

    /// Draws from `logits` those tokens for which `allowed` holds. `allowed` is asked about the drawn token first, as a grammar
    /// costs more for all tokens than the model itself.
    pub fn sample(&mut self, logits: &[f32], mut allowed: impl FnMut(i32) -> bool) -> Option<Token> {
        let normalizer = log_sum_exp(logits);
        let mut candidates = self.candidates(logits);
        while !candidates.is_empty() {
            let index = self.draw(&candidates);
            let (id, _) = candidates[index];
            if allowed(id) {
                self.history.push(id);
                return Some(Token { id, logprob: logits[id as usize] - normalizer });
            }
            candidates.remove(index);
        }
        // Nothing likely is allowed: the best of all that is.
        let mut rest: Candidates = logits.iter().enumerate().map(|(id, &logit)| (id as i32, logit)).collect();
        rest.sort_unstable_by(|a, b| b.1.total_cmp(&a.1));
        let (id, logit) = rest.into_iter().find(|&(id, _)| allowed(id))?;
        self.history.push(id);
        Some(Token { id, logprob: logit - normalizer })
    }

    /// What may be drawn, best first: penalized, cut by temperature, `top_k`.
    fn candidates(&self, logits: &[f32]) -> Candidates {
        let Sampling { temperature, top_k, repetition_penalty, .. } = self.sampling;
        let penalized;
        let logits = if repetition_penalty == 1.0 {
            logits
        } else {
            penalized = self.penalize(logits, repetition_penalty);
            &penalized
        };
        let best = maximum(logits);
        let floor = best - NEGLIGIBLE * temperature;
        let mut found: Candidates = logits
            .iter()
            .enumerate()
            .filter(|&(_, &logit)| logit >= floor)
            .map(|(id, &logit)| (id as i32, logit))
            .collect();
        found.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        if top_k > 0 {
            found.truncate(top_k as usize);
        }
        found
    }

    /// As in CTRL (arXiv 1909.05858): logits of tokens that occurred are divided by the penalty, negative ones multiplied.
    fn penalize(&self, logits: &[f32], penalty: f32) -> Vec<f32> {
        let mut logits = logits.to_vec();
        let mut seen = self.history.clone();
        seen.sort_unstable();
        seen.dedup();
        for id in seen {
            let logit = &mut logits[id as usize];
            *logit = if *logit > 0.0 { *logit / penalty } else { *logit * penalty };
        }
        logits
    }

    /// Index of the drawn candidate.
    fn draw(&mut self, candidates: &Candidates) -> usize {
        let Sampling { temperature, top_p, min_p, .. } = self.sampling;
        if temperature <= 0.0 {
            return 0;
        }
        let best = candidates[0].1;
        let weights: Vec<f32> = candidates
            .iter()
            .map(|&(_, logit)| ((logit - best) / temperature).exp())
            .take_while(|&weight| weight >= min_p)
            .collect();
        let total: f32 = weights.iter().sum();
        // The nucleus: the fewest whose probability reaches top_p.
        let (mut mass, mut count) = (0.0, 0);
        while count < weights.len() && (count == 0 || mass < top_p * total) {
            mass += weights[count];
            count += 1;
        }
        let mut point = self.random.random::<f32>() * mass;
        for (index, weight) in weights[..count].iter().enumerate() {
            point -= weight;
            if point < 0.0 {
                return index;
            }
        }
        count - 1
    }
}

fn maximum(logits: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = logits.chunks_exact(LANES);
    let rest = chunks.remainder().iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for chunk in chunks {
        for (lane, &logit) in lanes.iter_mut().zip(chunk) {
            *lane = if logit > *lane { logit } else { *lane };
        }
    }
    lanes.into_iter().fold(rest, f32::max)
}

/// Natural logarithm of the sum of all exponentials.
fn log_sum_exp(logits: &[f32]) -> f32 {
    const LANES: usize = 16;
    let best = maximum(logits);
    let mut lanes = [0.0_f32; LANES];
    let chunks = logits.chunks_exact(LANES);
    let rest: f32 = chunks.remainder().iter().map(|&logit| exp(logit - best)).sum();
    for chunk in chunks {
        for (lane, &logit) in lanes.iter_mut().zip(chunk) {
            *lane += exp(logit - best);
        }
    }
    best + (lanes.into_iter().map(f64::from).sum::<f64>() + f64::from(rest)).ln() as f32
}

/// e to the power of `x` for `x` at most 0, to about 1e-7 relative: written so that the compiler vectorizes it, which it cannot do
/// with the library's own.
#[inline]
fn exp(x: f32) -> f32 {
    let x = (x * std::f32::consts::LOG2_E).max(-126.0);
    let whole = x.floor();
    let part = x - whole;
    // Minimax polynomial of 2^part on [0, 1).
    let mut value = 1.540_353e-4_f32;
    for coefficient in [1.333_355_8e-3, 9.618_129e-3, 5.550_411e-2, 2.402_265e-1, 6.931_472e-1, 1.0] {
        value = value * part + coefficient;
    }
    f32::from_bits((((whole as i32) + 127) << 23) as u32) * value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logits() -> Vec<f32> {
        (0..1000).map(|i| ((i * 7919) % 1000) as f32 / 100.0).collect()
    }

    #[test]
    fn the_logprob_is_that_of_the_whole_vocabulary_at_temperature_one() {
        let logits = logits();
        let exact = logits.iter().map(|&it| f64::from(it).exp()).sum::<f64>().ln();
        for temperature in [0.0, 0.3, 1.5] {
            let sampling = Sampling { temperature, top_k: 5, ..Sampling::GREEDY };
            let token = Sampler::new(sampling).sample(&logits, |_| true).map(|it| (it.id, it.logprob));
            let (id, logprob) = token.unwrap_or_default();
            assert!(
                (f64::from(logprob) - (f64::from(logits[id as usize]) - exact)).abs() < 1e-4,
                "{logprob}"
            );
        }
    }

    #[test]
    fn temperature_zero_takes_the_best_and_equal_seeds_agree() {
        let logits = logits();
        let best = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map(|it| it.0 as i32);
        assert_eq!(Sampler::new(Sampling::GREEDY).sample(&logits, |_| true).map(|it| it.id), best);
        let warm = Sampling { temperature: 1.0, seed: 7, ..Sampling::GREEDY };
        let draw = || -> Vec<_> {
            let mut sampler = Sampler::new(warm);
            (0..20).filter_map(|_| sampler.sample(&logits, |_| true).map(|it| it.id)).collect()
        };
        assert_eq!(draw(), draw());
    }

    #[test]
    fn frequencies_follow_the_distribution_and_the_nucleus_cuts_it() {
        let logits: Vec<f32> = [0.5_f32, 0.3, 0.2].iter().map(|it| it.ln()).collect();
        let count = |top_p: f32| {
            let mut sampler = Sampler::new(Sampling { temperature: 1.0, top_p, ..Sampling::GREEDY });
            let mut counts = [0; 3];
            for _ in 0..20_000 {
                counts[sampler.sample(&logits, |_| true).map_or(0, |it| it.id as usize)] += 1;
            }
            counts.map(|count| f64::from(count) / 20_000.0)
        };
        let all = count(1.0);
        assert!((all[0] - 0.5).abs() < 0.02 && (all[2] - 0.2).abs() < 0.02, "{all:?}");
        let nucleus = count(0.7);
        assert!((nucleus[0] - 0.625).abs() < 0.02 && nucleus[2] == 0.0, "{nucleus:?}");
    }

    #[test]
    fn what_is_not_allowed_is_not_drawn_and_the_penalty_avoids_repetition() {
        let logits = logits();
        let odd = Sampler::new(Sampling::GREEDY).sample(&logits, |id| id % 2 == 1).map(|it| it.id);
        assert!(odd.is_some_and(|id| id % 2 == 1));
        assert_eq!(Sampler::new(Sampling::GREEDY).sample(&logits, |_| false), None);
        let mut sampler = Sampler::new(Sampling { repetition_penalty: 2.0, ..Sampling::GREEDY });
        let first = sampler.sample(&logits, |_| true).map(|it| it.id);
        assert_ne!(sampler.sample(&logits, |_| true).map(|it| it.id), first);
    }
}
