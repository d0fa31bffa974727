//! Blocks of old text and the new text for it, with the marks that models have seen most.

use super::{Piece, indented, line_indentation, with_line_ends_of};

pub(super) const SEARCH: &str = "<<<<<<< SEARCH";
const DIVIDER: &str = "=======";
const REPLACE: &str = ">>>>>>> REPLACE";

/// The request.
pub(super) fn ask(name: &str) -> String {
    format!(
        "Correct the {name} with one or more blocks of this form:\n\
         ```\n{SEARCH}\nlines as they are now\n{DIVIDER}\nthe same lines, corrected\n{REPLACE}\n```"
    )
}

/// The file with all blocks of `answer`, or `None` if it has none, or one whose old text is not in `piece`.
pub(super) fn apply(source: &str, piece: &Piece, answer: &str) -> Option<String> {
    let old = source.get(piece.range.clone())?.replace("\r\n", "\n");
    let margin = line_indentation(source, piece.range.start);
    let mut lines: Vec<String> = format!("{margin}{old}").split('\n').map(str::to_owned).collect();
    let mut found = false;
    for block in answer.split(SEARCH).skip(1) {
        let (search, rest) = block.split_once(&format!("\n{DIVIDER}"))?;
        let replacement = rest.split(REPLACE).next().unwrap_or(rest);
        let search: Vec<&str> = search.trim_matches('\n').lines().collect();
        let at = position(&lines, &search)?;
        let old_margin = &lines[at][..lines[at].len() - lines[at].trim_start().len()];
        let text = indented(replacement.trim_matches('\n').trim_end(), old_margin, source);
        let new: Vec<String> = match text.is_empty() {
            true => Vec::new(),
            false => format!("{old_margin}{text}").split('\n').map(str::to_owned).collect(),
        };
        lines.splice(at..at + search.len(), new);
        found = true;
    }
    let text = lines.join("\n");
    found.then(|| with_line_ends_of(source, piece, text.strip_prefix(margin).unwrap_or(&text)))
}

/// Where `search` is in `lines`, whatever the indentation.
fn position(lines: &[String], search: &[&str]) -> Option<usize> {
    if search.is_empty() {
        return None;
    }
    let same =
        |window: &[String]| window.iter().zip(search).all(|(line, wanted)| line.trim() == wanted.trim());
    lines.windows(search.len()).position(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str =
        "class A:\n    def f(self, n):\n        if n:\n            n += 1\n        return n - 1\n";

    fn piece(source: &str) -> Piece {
        let start = source.find("def").unwrap();
        Piece { function: Some("f".into()), range: start..source.trim_end().len() }
    }

    fn block(old: &str, new: &str) -> String {
        format!("{SEARCH}\n{old}\n{DIVIDER}\n{new}\n{REPLACE}\n")
    }

    #[test]
    fn a_block_is_found_and_indented_as_the_file_is() {
        let answer = block("if n:\n    n += 1", "if n > 1:\n    n += 2");
        let expected = SOURCE.replace("if n:", "if n > 1:").replace("+= 1", "+= 2");
        assert_eq!(apply(SOURCE, &piece(SOURCE), &answer).unwrap(), expected);
    }

    #[test]
    fn several_blocks_and_removed_lines() {
        let answer = block("if n:\n    n += 1", "") + &block("return n - 1", "return n - 2");
        let expected = "class A:\n    def f(self, n):\n        return n - 2\n";
        assert_eq!(apply(SOURCE, &piece(SOURCE), &answer).unwrap(), expected);
    }

    #[test]
    fn the_first_line_and_windows_line_ends_stay_whole() {
        let source = SOURCE.replace('\n', "\r\n");
        let answer = block("def f(self, n):", "def f(self, n=0):");
        assert_eq!(apply(&source, &piece(&source), &answer).unwrap(), source.replace("n):", "n=0):"));
    }

    #[test]
    fn text_that_is_not_there_is_none() {
        assert_eq!(apply(SOURCE, &piece(SOURCE), &block("return n", "return 0")), None);
        assert_eq!(apply(SOURCE, &piece(SOURCE), "return n - 2\n"), None);
    }
}
