//! Lines that explain and do not run.

use std::collections::BTreeSet;

use super::{Language, visit};

/// 0-based lines that hold nothing but comments or documentation (Python's docstrings too).
pub fn prose_lines(language: Language, source: &str) -> BTreeSet<usize> {
    let Some(tree) = language.parse(source) else { return BTreeSet::new() };
    let (mut prose, mut code) = (BTreeSet::new(), BTreeSet::new());
    visit(tree.root_node(), |node| {
        let docstring = language == Language::Python
            && node.kind() == "expression_statement"
            && node.named_child_count() == 1
            && node.named_child(0).is_some_and(|it| it.kind() == "string");
        let rows = || node.start_position().row..=node.end_position().row;
        if docstring || node.kind().contains("comment") {
            // A comment of Rust's ends at the beginning of the next line.
            let last = if node.end_position().column == 0 {
                node.end_position().row
            } else {
                node.end_position().row + 1
            };
            prose.extend(node.start_position().row..last.max(node.start_position().row + 1));
            return false;
        }
        if node.child_count() == 0 {
            code.extend(rows());
        }
        true
    });
    &prose - &code
}
