//! What tree-sitter tells about a source file: functions, tests, calls, imports, syntax errors.

use std::ops::Range;
use std::path::Path;

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

/// All functions, outermost first, in order.
pub fn functions(language: Language, source: &str) -> Vec<Function> {
    let _ = (language, source);
    unimplemented!()
}

/// All tests of a file.
pub fn tests(language: Language, path: &Path, source: &str) -> Vec<TestItem> {
    let _ = (language, path, source);
    unimplemented!()
}

/// The module paths or names that a file imports, as written.
pub fn imports(language: Language, source: &str) -> Vec<String> {
    let _ = (language, source);
    unimplemented!()
}

/// Number of ERROR and MISSING nodes.
pub fn errors(language: Language, source: &str) -> usize {
    let _ = (language, source);
    unimplemented!()
}
