//! Only the changed lines, each with its number in front. Small models get the text right more often than the number, so the
//! number is a hint: a line is put in place of the one that it resembles most.

use similar::TextDiff;

use super::{Piece, line_indentation, with_line_ends_of};

pub(super) const ASK: &str =
    "Write only the lines that must change, corrected, each with its number: `NUMBER: new line`.";

/// The shown text of `piece` with the file's line numbers.
pub(super) fn numbered(source: &str, piece: &Piece, shown: &str) -> String {
    let first = first_line(source, piece);
    let lines: Vec<String> =
        shown.lines().enumerate().map(|(at, line)| format!("{}: {line}", first + at)).collect();
    lines.join("\n")
}

/// The file with the lines of `answer`, or `None` if it has none.
pub(super) fn apply(source: &str, piece: &Piece, answer: &str) -> Option<String> {
    let old = source.get(piece.range.clone())?.replace("\r\n", "\n");
    let first = first_line(source, piece);
    let mut lines: Vec<String> = old.split('\n').map(str::to_owned).collect();
    let margin = line_indentation(source, piece.range.start);
    // The first line's indentation lies before the piece.
    lines[0].insert_str(0, margin);
    let mut free: Vec<bool> = vec![true; lines.len()];
    for written in answer.lines() {
        let Some((number, text)) = written.split_once(':') else { continue };
        let Ok(number) = number.trim().parse::<usize>() else { continue };
        let text = text.strip_prefix(' ').unwrap_or(text);
        let at = place(&lines, &free, number.saturating_sub(first), text)?;
        let own = &lines[at][..lines[at].len() - lines[at].trim_start().len()];
        lines[at] = format!("{own}{}", text.trim());
        free[at] = false;
    }
    if free.iter().all(|it| *it) {
        return None;
    }
    let text = lines.join("\n");
    Some(with_line_ends_of(source, piece, text.strip_prefix(margin)?))
}

/// The line that `text` is for: the most similar one, of equals the one nearest to `number`.
fn place(lines: &[String], free: &[bool], number: usize, text: &str) -> Option<usize> {
    let likeness = |at: &usize| {
        let ratio = TextDiff::from_chars(lines[*at].trim(), text.trim()).ratio();
        // In thousandths, so that it can be ordered.
        ((ratio * 1_000.0) as u32, std::cmp::Reverse(at.abs_diff(number)))
    };
    let candidates = (0..lines.len()).filter(|at| free[*at] && !lines[*at].trim().is_empty());
    candidates.max_by_key(likeness)
}

/// 1-based.
fn first_line(source: &str, piece: &Piece) -> usize {
    1 + source[..piece.range.start].matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "X = 1\n\nclass A:\n    def f(self, n):\n        n += 1\n        return n - 1\n";

    fn piece() -> Piece {
        let start = SOURCE.find("def").unwrap();
        Piece { function: Some("f".into()), range: start..SOURCE.len() - 1 }
    }

    #[test]
    fn lines_are_numbered_as_in_the_file() {
        assert_eq!(
            numbered(SOURCE, &piece(), "def f(self, n):\n    n += 1"),
            "4: def f(self, n):\n5:     n += 1"
        );
    }

    #[test]
    fn a_line_takes_the_place_and_indentation_of_the_one_it_resembles() {
        let expected = SOURCE.replace("n - 1", "n - 2");
        assert_eq!(apply(SOURCE, &piece(), "6:     return n - 2\n").unwrap(), expected);
        assert_eq!(apply(SOURCE, &piece(), "4: return n - 2\n").unwrap(), expected);
    }

    #[test]
    fn the_first_line_and_windows_line_ends_stay_whole() {
        let source = SOURCE.replace('\n', "\r\n");
        let start = source.find("def").unwrap();
        let piece = Piece { function: Some("f".into()), range: start..source.len() - 2 };
        let expected = source.replace("(self, n)", "(self, n=0)");
        assert_eq!(apply(&source, &piece, "4: def f(self, n=0):\n").unwrap(), expected);
    }

    #[test]
    fn an_answer_without_numbers_is_none() {
        assert_eq!(apply(SOURCE, &piece(), "return n - 2\n"), None);
    }
}
