//! Measures of how comfortable a sheet is to read.

use std::collections::BTreeMap;

use crate::Cue;

/// Characters shown per second, or `None` for a cue without duration.
pub fn reading_speed(cue: &Cue) -> Option<f64> {
    let characters = cue.text.chars().filter(|c| *c != '\n').count();
    match cue.duration() {
        0 => None,
        millis => Some(characters as f64 * 1000.0 / millis as f64),
    }
}

/// The indexes of the cues that are faster than `limit` or have no duration.
pub fn too_fast(cues: &[Cue], limit: f64) -> Vec<usize> {
    cues.iter()
        .enumerate()
        .filter(|(_, cue)| reading_speed(cue).is_none_or(|speed| speed > limit))
        .map(|(index, _)| index)
        .collect()
}

/// How often each word occurs, without regard to case and punctuation.
pub fn word_counts(cues: &[Cue]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for cue in cues {
        for word in cue.text.split_whitespace() {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
            if !word.is_empty() {
                *counts.entry(word).or_insert(0) += 1;
            }
        }
    }
    counts
}

/// The longest time without a cue, in milliseconds, for cues sorted by start.
pub fn longest_silence(cues: &[Cue]) -> u64 {
    let mut longest = 0;
    let mut spoken_until = 0;
    for cue in cues {
        longest = longest.max(cue.start.millis().saturating_sub(spoken_until));
        spoken_until = spoken_until.max(cue.end.millis());
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_leaves_out_line_breaks() {
        assert_eq!(reading_speed(&Cue::new(0, 2_000, "abc\ndef")), Some(3.0));
        assert_eq!(reading_speed(&Cue::new(5, 5, "abc")), None);
    }

    #[test]
    fn cues_without_duration_are_too_fast() {
        let cues = [Cue::new(0, 1_000, "abc"), Cue::new(5, 5, "abc"), Cue::new(0, 500, "abc")];
        assert_eq!(too_fast(&cues, 3.0), [1, 2]);
    }

    #[test]
    fn words_are_counted_in_any_case() {
        let counts = word_counts(&[Cue::new(0, 1, "Well, well -"), Cue::new(1, 2, "all is well!")]);
        assert_eq!(counts.get("well"), Some(&3));
        assert_eq!(counts.len(), 3);
    }

    #[test]
    fn silence_counts_from_the_latest_end() {
        let cues = [Cue::new(100, 900, "a"), Cue::new(200, 300, "b"), Cue::new(1_000, 1_100, "c")];
        assert_eq!(longest_silence(&cues), 100);
    }
}
