//! From what a model wrote for a piece of a file to the new file, in one of the formats that a model can be asked for.

mod function;
mod lines;
mod search_replace;

use std::ops::Range;

use serde::Deserialize;
use tasks::syntax::Language;

use super::prose;

/// The piece of a file that is to be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The function's name; `None` for lines that are no function.
    pub function: Option<String>,
    /// Bytes in the file; starts after the first line's indentation.
    pub range: Range<usize>,
}

/// How a model writes a change. Which one it gets right depends on its size (figures in the README).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EditFormat {
    /// The whole function again; the host finds out what changed.
    #[default]
    Function,
    /// Only the changed lines, each with its number in front.
    Lines,
    /// Blocks of old text and the new text for it.
    SearchReplace,
}

impl EditFormat {
    /// The request for the change of `piece`, which lies in `path`; `fence` names the language.
    pub fn ask(self, path: &str, source: &str, piece: &Piece, fence: &str) -> String {
        let (is, name) = match &piece.function {
            Some(name) => (format!("this function `{name}`"), format!("function `{name}`")),
            None => ("these lines".to_owned(), "lines".to_owned()),
        };
        let text = shown(source, piece);
        let text = if self == Self::Lines { lines::numbered(source, piece, &text) } else { text };
        let shown = format!("The bug is in {is} of {path}:\n```{fence}\n{text}\n```\n\n");
        shown
            + &match (self, &piece.function) {
                (Self::Function, Some(_)) => format!("Write the complete corrected {name}."),
                (Self::Function, None) => "Write these lines again, corrected.".to_owned(),
                (Self::Lines, _) => lines::ASK.to_owned(),
                (Self::SearchReplace, _) => search_replace::ask(&name),
            }
    }

    /// What the answer starts with.
    pub fn prefill(self, fence: &str) -> String {
        match self {
            Self::Function => format!("```{fence}\n"),
            Self::Lines => "```\n".to_owned(),
            Self::SearchReplace => format!("```\n{}\n", search_replace::SEARCH),
        }
    }

    /// The file with the change of `answer`, or `None` if it holds none that fits `piece`.
    pub fn apply(self, language: Language, source: &str, piece: &Piece, answer: &str) -> Option<String> {
        let code = prose::code_block(answer)?;
        match self {
            Self::Function => function::apply(language, source, piece, &code),
            Self::Lines => lines::apply(source, piece, &code),
            Self::SearchReplace => search_replace::apply(source, piece, &code),
        }
    }
}

/// The piece's text as it is shown: with its first line's indentation taken from all lines.
fn shown(source: &str, piece: &Piece) -> String {
    let margin = line_indentation(source, piece.range.start).len();
    let text = source.get(piece.range.clone()).unwrap_or_default().replace("\r\n", "\n");
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |text, line| {
        let own = line.len() - line.trim_start_matches([' ', '\t']).len();
        text + "\n" + line.get(margin.min(own)..).unwrap_or(line)
    })
}

/// The file with `text` in place of `piece`, in the file's own line ends.
fn with_line_ends_of(source: &str, piece: &Piece, text: &str) -> String {
    let (before, after) = (&source[..piece.range.start], &source[piece.range.end..]);
    let crlf = source[piece.range.clone()].contains("\r\n") || only_crlf(source);
    let text = if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
    [before, &text, after].concat()
}

fn only_crlf(source: &str) -> bool {
    let crlf = source.matches("\r\n").count();
    crlf > 0 && crlf == source.matches('\n').count()
}

fn line_indentation(source: &str, at: usize) -> &str {
    let start = source[..at].rfind('\n').map_or(0, |at| at + 1);
    let line = &source[start..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

fn uses_tabs(source: &str) -> bool {
    let indented = |with: char| source.lines().filter(|line| line.starts_with(with)).count();
    indented('\t') > indented(' ')
}

/// `text` moved to `indentation`, in tabs where `source` has them; the first line has none, as it follows what is in the file.
fn indented(text: &str, indentation: &str, source: &str) -> String {
    let own = text.lines().next().map_or(0, |line| line.len() - line.trim_start().len());
    let unit = if uses_tabs(source) { unit_of(text) } else { None };
    let mut result = String::new();
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            result.push('\n');
        }
        let body = line.trim_start_matches([' ', '\t']);
        if body.trim().is_empty() {
            continue;
        }
        let margin = &line[..line.len() - body.len()];
        let rest = margin.get(own..).unwrap_or_default();
        if number > 0 {
            result.push_str(indentation);
        }
        match unit {
            Some(unit) if rest.starts_with(' ') => {
                result.push_str(&"\t".repeat(rest.len() / unit));
                result.push_str(&" ".repeat(rest.len() % unit));
            }
            _ => result.push_str(rest),
        }
        result.push_str(body.trim_end());
    }
    result
}

/// Spaces of one level in a text that is indented by spaces.
fn unit_of(text: &str) -> Option<usize> {
    let widths = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.len() - line.trim_start_matches(' ').len());
    widths.filter(|width| *width > 0).min()
}
