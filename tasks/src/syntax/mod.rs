//! What tree-sitter tells about a source file: functions, tests, calls, imports, syntax errors.

mod calls;
mod functions;
mod imports;
mod items;
mod prose;

#[cfg(test)]
mod examples;

use std::ops::Range;
use std::path::Path;

use tree_sitter::{Node, Parser, Tree};

pub use calls::called_names;
pub use functions::functions;
pub use imports::imports;
pub use items::tests;
pub use prose::prose_lines;

/// Languages with a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// Python.
    Python,
    /// Rust.
    Rust,
    /// JavaScript and JSX.
    JavaScript,
    /// TypeScript.
    TypeScript,
    /// TypeScript with JSX.
    Tsx,
    /// Go.
    Go,
}

impl Language {
    /// The language of a path, by extension.
    pub fn of(path: &Path) -> Option<Self> {
        Some(match path.extension()?.to_str()? {
            "py" | "pyi" => Self::Python,
            "rs" => Self::Rust,
            "js" | "jsx" | "mjs" | "cjs" => Self::JavaScript,
            "ts" | "mts" | "cts" => Self::TypeScript,
            "tsx" => Self::Tsx,
            "go" => Self::Go,
            _ => return None,
        })
    }

    fn grammar(self) -> tree_sitter::Language {
        match self {
            Self::Python => tree_sitter_python::LANGUAGE.into(),
            Self::Rust => tree_sitter_rust::LANGUAGE.into(),
            Self::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
            Self::Go => tree_sitter_go::LANGUAGE.into(),
        }
    }

    fn parse(self, source: &str) -> Option<Tree> {
        let mut parser = Parser::new();
        parser.set_language(&self.grammar()).ok()?;
        parser.parse(source, None)
    }
}

/// A function or method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its own name.
    pub name: String,
    /// With its class, impl or module: `Stack.push`, `Stack::push`.
    pub qualified_name: String,
    /// Bytes of the whole definition, decorators and attributes included (whole lines' indentation not).
    pub range: Range<usize>,
    /// 1-based first and last line.
    pub lines: (u32, u32),
    /// Names called in its body.
    pub calls: Vec<String>,
}

/// A test found in a source file, for lenses and code actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestItem {
    /// Display name with its suites.
    pub name: String,
    /// The pieces from outermost suite to the test (`["TestStack", "test_push"]`).
    pub path: Vec<String>,
    /// Bytes of the test's name.
    pub name_range: Range<usize>,
    /// Bytes of the whole test.
    pub range: Range<usize>,
}

/// Number of ERROR and MISSING nodes.
pub fn errors(language: Language, source: &str) -> usize {
    let Some(tree) = language.parse(source) else { return 1 };
    let mut count = 0;
    visit(tree.root_node(), |node| {
        count += usize::from(node.is_error() || node.is_missing());
        node.has_error()
    });
    count
}

/// The source without comments and layout, for telling whether two texts are the same code. Python's blocks count.
pub fn normalized(language: Language, source: &str) -> String {
    let Some(tree) = language.parse(source) else { return source.to_owned() };
    let mut text = String::new();
    visit(tree.root_node(), |node| {
        if node.kind().contains("comment") {
            return false;
        }
        let whole =
            node.child_count() == 0 || matches!(node.kind(), "string" | "string_literal" | "template_string");
        if whole {
            text.push_str(&source[node.byte_range()]);
            text.push(' ');
            return false;
        }
        // Where a block begins and ends is layout in Python and nothing else says it.
        if language == Language::Python && node.kind() == "block" {
            text.push_str(&format!("block {} ", node.named_child_count()));
        }
        true
    });
    text
}

/// Visits `node` and what lies beneath, outermost first; `enter` says whether to go deeper. Not recursive, as files may nest
/// without bound.
fn visit<'tree>(node: Node<'tree>, mut enter: impl FnMut(Node<'tree>) -> bool) {
    let mut cursor = node.walk();
    let mut depth = 0;
    let mut descend = enter(node);
    loop {
        if descend && cursor.goto_first_child() {
            depth += 1;
            descend = enter(cursor.node());
            continue;
        }
        while !(depth > 0 && cursor.goto_next_sibling()) {
            if depth == 0 {
                return;
            }
            cursor.goto_parent();
            depth -= 1;
        }
        descend = enter(cursor.node());
    }
}

fn text<'a>(node: Node<'_>, source: &'a str) -> &'a str {
    source.get(node.byte_range()).unwrap_or_default()
}

fn field<'a>(node: Node<'_>, name: &str, source: &'a str) -> Option<&'a str> {
    node.child_by_field_name(name).map(|it| text(it, source))
}
