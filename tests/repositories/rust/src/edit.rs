//! Changes to whole sheets.

use crate::Cue;

/// Moves all cues by an offset in milliseconds and drops those that end at zero.
pub fn shift(cues: &[Cue], millis: i64) -> Vec<Cue> {
    cues.iter()
        .map(|cue| Cue {
            start: cue.start.offset(millis),
            end: cue.end.offset(millis),
            text: cue.text.clone(),
        })
        .filter(|cue| cue.end.millis() > 0)
        .collect()
}

/// Changes the speed of a sheet by the factor `numerator / denominator`.
pub fn stretch(cues: &[Cue], numerator: u64, denominator: u64) -> Vec<Cue> {
    let scale = |millis: u64| (millis * numerator + denominator / 2) / denominator;
    cues.iter()
        .map(|cue| Cue::new(scale(cue.start.millis()), scale(cue.end.millis()), &cue.text))
        .collect()
}

/// Joins neighbours that show the same text with a pause of at most `pause`.
pub fn join_repeats(cues: &[Cue], pause: u64) -> Vec<Cue> {
    let mut joined: Vec<Cue> = Vec::new();
    for cue in cues {
        match joined.last_mut() {
            Some(last)
                if last.text == cue.text
                    && cue.start.millis() <= last.end.millis() + pause =>
            {
                last.end = last.end.max(cue.end);
            }
            _ => joined.push(cue.clone()),
        }
    }
    joined
}

/// Sorts cues by start and ends each one before the next begins.
pub fn remove_overlaps(cues: &[Cue]) -> Vec<Cue> {
    let mut sorted = cues.to_vec();
    sorted.sort_by_key(|cue| (cue.start, cue.end));
    for index in 1..sorted.len() {
        let next = sorted[index].start;
        let previous = &mut sorted[index - 1];
        previous.end = previous.end.min(next);
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shift_moves_both_ends() {
        assert_eq!(shift(&[Cue::new(1_000, 2_000, "a")], 500), [Cue::new(1_500, 2_500, "a")]);
    }

    #[test]
    fn shift_drops_what_is_over() {
        let cues = [Cue::new(0, 1_000, "a"), Cue::new(1_000, 3_000, "b")];
        assert_eq!(shift(&cues, -1_500), [Cue::new(0, 1_500, "b")]);
    }

    #[test]
    fn stretch_rounds_to_the_nearest() {
        let cues = stretch(&[Cue::new(1_000, 2_000, "a")], 2, 3);
        assert_eq!(cues, [Cue::new(667, 1_333, "a")]);
    }

    #[test]
    fn join_repeats_allows_a_pause() {
        let cues = [Cue::new(0, 100, "a"), Cue::new(150, 200, "a"), Cue::new(251, 300, "a")];
        assert_eq!(join_repeats(&cues, 50), [Cue::new(0, 200, "a"), Cue::new(251, 300, "a")]);
    }

    #[test]
    fn join_repeats_keeps_the_later_end() {
        let cues = [Cue::new(0, 900, "a"), Cue::new(100, 200, "a"), Cue::new(200, 300, "b")];
        assert_eq!(join_repeats(&cues, 0), [Cue::new(0, 900, "a"), Cue::new(200, 300, "b")]);
    }

    #[test]
    fn overlaps_are_cut_at_the_next_start() {
        let cues = [Cue::new(500, 900, "b"), Cue::new(0, 700, "a"), Cue::new(950, 990, "c")];
        assert_eq!(
            remove_overlaps(&cues),
            [Cue::new(0, 500, "a"), Cue::new(500, 900, "b"), Cue::new(950, 990, "c")]
        );
    }

    #[test]
    fn overlaps_of_nothing() {
        assert!(remove_overlaps(&[]).is_empty());
    }
}
