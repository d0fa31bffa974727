//! The whole function written again: the right definition found in the answer, indented, with the file's own
//! line ends, and with the comments and documentation that were there before.

use similar::{DiffOp, TextDiff};
use tasks::syntax::{self, Language};

use super::{Piece, indented, line_indentation, with_line_ends_of};

/// The file with `answer` in place of `piece`, or `None` if the answer holds no such definition.
pub(super) fn apply(language: Language, source: &str, piece: &Piece, answer: &str) -> Option<String> {
    let old = source.get(piece.range.clone())?;
    let found = match &piece.function {
        Some(name) => definition(language, answer, name)?,
        None => answer.trim_end().to_owned(),
    };
    let old_lines = old.replace("\r\n", "\n");
    let indentation = line_indentation(source, piece.range.start);
    let new = indented(&found, indentation, source);
    let new = with_leading(language, &old_lines, new);
    let merged = keep_comments(language, &old_lines, &new);
    Some(with_line_ends_of(source, piece, &merged))
}

/// The text of the function called `name` in `answer`, from the start of its first line.
fn definition(language: Language, answer: &str, name: &str) -> Option<String> {
    let dedented = dedented(answer);
    [answer, &dedented].into_iter().find_map(|text| {
        let functions = syntax::functions(language, text);
        let found = functions.into_iter().find(|function| function.name == name)?;
        // From the line's start, so that the first line's indentation is known too.
        let start = text[..found.range.start].rfind('\n').map_or(0, |at| at + 1);
        Some(text[start..found.range.end].to_owned())
    })
}

fn dedented(text: &str) -> String {
    let margin = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .map_or(0, |line| line.len() - line.trim_start().len());
    let lines =
        text.lines().map(|line| line.get(margin.min(line.len() - line.trim_start().len())..).unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// `new` with the decorators, attributes and documentation before the definition in `old`, if it has none itself.
fn with_leading(language: Language, old: &str, new: String) -> String {
    let is_leading = |line: &str| {
        let line = line.trim_start();
        line.starts_with('@')
            || (language == Language::Rust && (line.starts_with("#[") || line.starts_with("///")))
    };
    if new.lines().next().is_some_and(is_leading) || !old.lines().next().is_some_and(is_leading) {
        return new;
    }
    let Some(begins) = old.lines().position(|line| definition_begins(language, line)) else { return new };
    let indentation =
        old.lines().nth(begins).map_or("", |line| &line[..line.len() - line.trim_start().len()]);
    let mut result: String = old.lines().take(begins).map(|line| format!("{line}\n")).collect();
    result.push_str(indentation);
    result.push_str(&new);
    result
}

fn definition_begins(language: Language, line: &str) -> bool {
    let line = line.trim_start();
    match language {
        Language::Python => line.starts_with("def ") || line.starts_with("async def "),
        Language::Rust => !line.starts_with('#') && !line.starts_with("//") && line.contains("fn "),
        _ => !line.starts_with('@'),
    }
}

/// `new`, but with comments and documentation of `old` that were only left out, and without comments that were only
/// added: models drop the one and add the other, and neither mends anything.
fn keep_comments(language: Language, old: &str, new: &str) -> String {
    let (old_prose, new_prose) = (syntax::prose_lines(language, old), syntax::prose_lines(language, new));
    let old_lines: Vec<&str> = old.split('\n').collect();
    let new_lines: Vec<&str> = new.split('\n').collect();
    let is_prose = |lines: &[&str], prose: &std::collections::BTreeSet<usize>, at: usize| {
        prose.contains(&at) || lines[at].trim().is_empty()
    };
    let mut result: Vec<&str> = Vec::new();
    for op in TextDiff::from_slices(&old_lines, &new_lines).ops() {
        match *op {
            DiffOp::Equal { old_index, len, .. } => result.extend(&old_lines[old_index..old_index + len]),
            DiffOp::Delete { old_index, old_len, .. } => {
                let range = old_index..old_index + old_len;
                if range.clone().all(|at| is_prose(&old_lines, &old_prose, at)) {
                    result.extend(&old_lines[range]);
                }
            }
            DiffOp::Insert { new_index, new_len, .. } => {
                result.extend(
                    (new_index..new_index + new_len)
                        .filter(|at| !new_prose.contains(at))
                        .map(|at| new_lines[at]),
                );
            }
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                let kept = (old_index..old_index + old_len).take_while(|at| old_prose.contains(at));
                result.extend(kept.map(|at| old_lines[at]));
                let documented = old_prose.contains(&old_index);
                let added = (new_index..new_index + new_len)
                    .filter(|at| !(new_prose.contains(at) && (documented || is_comment(new_lines[*at]))));
                result.extend(added.map(|at| new_lines[at]));
            }
        }
    }
    let joined = result.join("\n");
    // Only what still parses as well as the model's own text is better than it.
    if syntax::errors(language, &joined) <= syntax::errors(language, new) { joined } else { new.to_owned() }
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with('#') || line.starts_with("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(language: Language, source: &str, name: &str) -> Piece {
        let function = syntax::functions(language, source).into_iter().find(|it| it.name == name).unwrap();
        Piece { function: Some(name.to_owned()), range: function.range }
    }

    fn spliced(language: Language, source: &str, name: &str, answer: &str) -> Option<String> {
        apply(language, source, &piece(language, source, name), answer)
    }

    const CLASS: &str = "class Stack:\n    def push(self, x):\n        \"\"\"Adds x.\"\"\"\n        self.items.append(x)\n\n    def pop(self):\n        return self.items[0]\n";

    #[test]
    fn a_method_written_without_its_class_is_indented_again() {
        let answer = "def pop(self):\n    return self.items.pop()\n";
        let expected = CLASS.replace("return self.items[0]", "return self.items.pop()");
        assert_eq!(spliced(Language::Python, CLASS, "pop", answer).unwrap(), expected);
    }

    #[test]
    fn a_method_written_inside_its_class_is_found() {
        let answer = "class Stack:\n    def pop(self):\n        return self.items.pop()\n";
        let expected = CLASS.replace("return self.items[0]", "return self.items.pop()");
        assert_eq!(spliced(Language::Python, CLASS, "pop", answer).unwrap(), expected);
    }

    #[test]
    fn a_docstring_that_was_left_out_stays_and_an_added_comment_goes() {
        let answer = "def push(self, x):\n    # Fixed the bug\n    self.items.insert(0, x)\n";
        let expected = CLASS.replace("self.items.append(x)", "self.items.insert(0, x)");
        assert_eq!(spliced(Language::Python, CLASS, "push", answer).unwrap(), expected);
    }

    #[test]
    fn windows_line_ends_stay() {
        let source = CLASS.replace('\n', "\r\n");
        let answer = "def pop(self):\n    x = self.items.pop()\n    return x\n";
        let result = spliced(Language::Python, &source, "pop", answer).unwrap();
        assert_eq!(result.matches('\n').count(), result.matches("\r\n").count());
        assert!(result.contains("        x = self.items.pop()\r\n        return x\r\n"));
    }

    #[test]
    fn spaces_become_tabs_where_the_file_has_tabs() {
        let source =
            "package a\n\nfunc Add(a, b int) int {\n\tif a > 0 {\n\t\treturn a - b\n\t}\n\treturn b\n}\n";
        let answer =
            "func Add(a, b int) int {\n    if a > 0 {\n        return a + b\n    }\n    return b\n}\n";
        assert_eq!(spliced(Language::Go, source, "Add", answer).unwrap(), source.replace("a - b", "a + b"));
    }

    #[test]
    fn decorators_and_attributes_that_were_left_out_stay() {
        let python = "@cache\ndef f(n):\n    return n - 1\n";
        let answer = "def f(n):\n    return n + 1\n";
        assert_eq!(spliced(Language::Python, python, "f", answer).unwrap(), python.replace('-', "+"));
        let rust =
            "impl A {\n    /// Doc.\n    #[inline]\n    pub fn f(&self) -> u8 {\n        1\n    }\n}\n";
        let answer = "pub fn f(&self) -> u8 {\n    2\n}\n";
        assert_eq!(
            spliced(Language::Rust, rust, "f", answer).unwrap(),
            rust.replace("        1", "        2")
        );
    }

    #[test]
    fn an_answer_without_the_function_is_none() {
        assert_eq!(spliced(Language::Python, CLASS, "pop", "print('hello')\n"), None);
    }

    #[test]
    fn lines_that_are_no_function_are_replaced_as_they_are() {
        let source = "LIMIT = 10\nNAME = 'a'\n";
        let piece = Piece { function: None, range: 0..10 };
        assert_eq!(
            apply(Language::Python, source, &piece, "LIMIT = 12\n").unwrap(),
            "LIMIT = 12\nNAME = 'a'\n"
        );
    }
}
