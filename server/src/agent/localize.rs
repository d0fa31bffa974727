//! Which functions may hold the fault: those in the traceback, those that the failing test calls (and what they call), those
//! whose names or files the test names, and those that were changed lately. Scores add up; the order is what counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use tasks::grade::{FileKind, kind};
use tasks::syntax::{self, Function, Language};

use super::edit::Piece;
use super::{Problem, prose};

/// Largest source file that is looked at, in bytes.
const LARGEST_FILE: usize = 512 << 10;

/// Longest function that a model is asked to write again, in bytes.
const LONGEST: usize = 6_000;

/// Calls that are followed from the test: deeper ones are too many to tell apart.
const DEPTH: usize = 3;

/// Lines around a place that lies in no function.
const AROUND: usize = 12;

mod weight {
    /// The place that a person or tool points at.
    pub const FOCUS: f32 = 40.0;
    /// The innermost frame of the traceback that is no test.
    pub const INNERMOST: f32 = 10.0;
    /// Another frame.
    pub const FRAME: f32 = 6.0;
    /// Called by the test itself; halved for every call in between.
    pub const CALLED: f32 = 6.0;
    /// The name occurs in the failure or statement.
    pub const NAMED: f32 = 3.0;
    /// The test's own name holds it.
    pub const TEST_NAME: f32 = 2.0;
    /// In a file that the test imports.
    pub const IMPORTED: f32 = 3.0;
    /// In a file that was changed lately; less for each later one.
    pub const RECENT: f32 = 2.0;
}

/// A piece of code that may hold the fault.
#[derive(Clone, Debug)]
pub struct Suspect {
    /// File.
    pub path: PathBuf,
    /// Its language.
    pub language: Language,
    /// The file's text.
    pub source: String,
    /// What is to be written again.
    pub piece: Piece,
    /// Name for people.
    pub name: String,
    /// Higher is more suspect.
    pub score: f32,
}

/// The failing test as the model shall see it.
#[derive(Clone, Debug, Default)]
pub struct FailingTest {
    /// File.
    pub path: PathBuf,
    /// Its source.
    pub source: String,
    calls: Vec<String>,
    name: String,
}

struct File {
    path: PathBuf,
    language: Language,
    source: String,
    functions: Vec<Function>,
    /// Functions that belong to tests among the code, which may not be changed.
    fixed: BTreeSet<usize>,
    is_test: bool,
}

/// Suspects, most suspect first, and the failing test's source if it was found.
pub fn localize(problem: &Problem) -> (Vec<Suspect>, FailingTest) {
    let files = files(problem);
    let failure = failure(problem);
    let test = failing_test(problem, &files);
    let places = places(&failure, &files);
    let imported = imported(&files, &test);
    let called = called(&files, &test, &imported);
    let words: BTreeSet<&str> = failure.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let mut suspects = Vec::new();
    let mut innermost = true;
    let mut from_trace: BTreeMap<(usize, usize), f32> = BTreeMap::new();
    for (file, line) in places.iter().rev() {
        if files[*file].is_test && !problem.policy.tests {
            continue;
        }
        let Some(function) = function_at(&files[*file], *line) else {
            suspects.extend(lines_around(&files[*file], *line, weight::FRAME));
            continue;
        };
        if files[*file].fixed.contains(&function) {
            continue;
        }
        let score = if innermost { weight::INNERMOST } else { weight::FRAME };
        innermost = false;
        from_trace.entry((*file, function)).or_insert(score);
    }
    for (at, file) in files.iter().enumerate() {
        if file.is_test && !problem.policy.tests {
            continue;
        }
        let mut base = 0.0;
        if imported.contains(&at) {
            base += weight::IMPORTED;
        }
        if let Some(rank) = problem.recent.iter().position(|path| *path == file.path) {
            base += weight::RECENT / (1.0 + rank as f32);
        }
        for (index, function) in file.functions.iter().enumerate() {
            let mut score = base + from_trace.get(&(at, index)).copied().unwrap_or_default();
            score += called.get(&(at, index)).copied().unwrap_or_default();
            if words.contains(function.name.as_str()) && function.name.len() > 2 {
                score += weight::NAMED;
            }
            if function.name.len() > 2 && test.name.to_lowercase().contains(&function.name.to_lowercase()) {
                score += weight::TEST_NAME;
            }
            if let Some(focus) = &problem.focus
                && focus.path == file.path
                && (function.lines.0..=function.lines.1).contains(&focus.line)
            {
                score += weight::FOCUS;
            }
            let may_change = function.range.len() <= LONGEST && !file.fixed.contains(&index);
            if score > 0.0 && may_change && !holds_another(file, index) {
                suspects.push(suspect(file, function, score));
            }
        }
        if let Some(focus) = problem.focus.as_ref().filter(|focus| focus.path == file.path)
            && function_at(file, focus.line).is_none()
        {
            suspects.extend(lines_around(file, focus.line, weight::FOCUS));
        }
    }
    suspects.sort_by(|a, b| b.score.total_cmp(&a.score));
    (suspects, test)
}

/// The text in which places and names are looked for.
fn failure(problem: &Problem) -> String {
    let mut text = problem.statement.clone();
    for target in &problem.targets {
        if let Some(result) = problem.baseline.results.get(target) {
            if let Some((path, line)) = &result.location {
                text.push_str(&format!("\n{}:{line}\n", path.display()));
            }
            text.push('\n');
            text.push_str(&result.message);
        }
    }
    text
}

fn files(problem: &Problem) -> Vec<File> {
    let paths = problem.snapshot.entries().keys().filter(|path| path.starts_with(&problem.project.dir));
    let file = |path: &PathBuf| {
        let language = Language::of(path)?;
        let is_test = match kind(path) {
            FileKind::Code => false,
            FileKind::Test => true,
            FileKind::Configuration | FileKind::AutoExecuted => return None,
        };
        let bytes = problem.snapshot.read(path).ok().filter(|bytes| bytes.len() <= LARGEST_FILE)?;
        let source = std::str::from_utf8(&bytes).ok()?.to_owned();
        let functions = syntax::functions(language, &source);
        let fixed = if problem.policy.tests {
            BTreeSet::new()
        } else {
            of_tests(language, path, &source, &functions)
        };
        Some(File { path: path.clone(), language, source, functions, fixed, is_test })
    };
    paths.filter_map(file).collect()
}

/// Tests among the code, as Rust's are, and what only they use.
fn of_tests(language: Language, path: &Path, source: &str, functions: &[Function]) -> BTreeSet<usize> {
    if language != Language::Rust {
        return BTreeSet::new();
    }
    let tests = syntax::tests(language, path, source);
    let belongs = |it: &Function| {
        let scope = it.qualified_name.split("::").next().unwrap_or_default();
        matches!(scope, "tests" | "test") || tests.iter().any(|test| it.range.end == test.range.end)
    };
    functions.iter().enumerate().filter(|(_, it)| belongs(it)).map(|(index, _)| index).collect()
}

fn suspect(file: &File, function: &Function, score: f32) -> Suspect {
    Suspect {
        path: file.path.clone(),
        language: file.language,
        source: file.source.clone(),
        piece: Piece { function: Some(function.name.clone()), range: function.range.clone() },
        name: function.qualified_name.clone(),
        score,
    }
}

/// Whether a function is only the scope of others (a factory, a describe block): those are suspects themselves.
fn holds_another(file: &File, index: usize) -> bool {
    let outer = &file.functions[index].range;
    let inner: usize = file
        .functions
        .iter()
        .filter(|it| it.range != *outer && it.range.start >= outer.start && it.range.end <= outer.end)
        .map(|it| it.range.len())
        .sum();
    inner * 10 > outer.len() * 8
}

fn function_at(file: &File, line: u32) -> Option<usize> {
    let holding =
        file.functions.iter().enumerate().filter(|(_, it)| (it.lines.0..=it.lines.1).contains(&line));
    holding.min_by_key(|(_, it)| it.range.len()).map(|(index, _)| index)
}

/// The lines around a place that lies in no function: module-level code, or a file that does not parse.
fn lines_around(file: &File, line: u32, score: f32) -> Option<Suspect> {
    let starts: Vec<usize> =
        std::iter::once(0).chain(file.source.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let at = (line as usize).checked_sub(1).filter(|at| *at < starts.len())?;
    let text = |row: usize| {
        let end = starts.get(row + 1).copied().unwrap_or(file.source.len());
        file.source[starts[row]..end].trim_end()
    };
    // Up to where a top-level piece begins, down to where the next one does.
    let top = |row: usize| {
        text(row).chars().next().is_some_and(|first| !first.is_whitespace() && !")]}#@".contains(first))
    };
    let first =
        (at.saturating_sub(AROUND)..=at).rev().find(|row| top(*row)).unwrap_or(at.saturating_sub(AROUND));
    let last_row = starts.len() - 1;
    let after = (at + 1..=(at + AROUND).min(last_row))
        .find(|row| top(*row))
        .unwrap_or((at + AROUND).min(last_row) + 1);
    let last = (first..after).rev().find(|row| !text(*row).is_empty()).unwrap_or(at);
    let range = starts[first]..starts[last] + text(last).len();
    Some(Suspect {
        path: file.path.clone(),
        language: file.language,
        source: file.source.clone(),
        piece: Piece { function: None, range },
        name: format!("lines {} to {}", first + 1, last + 1),
        score,
    })
}

/// Files and lines that a failure names, outermost first.
fn places(failure: &str, files: &[File]) -> Vec<(usize, u32)> {
    static PLACE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r#"(?:File "([^"]+)", line (\d+))|(?:([\w@.+\-/\\]+\.(?:py|rs|go|[cm]?[jt]sx?)):(\d+))"#)
            .ok()
    });
    let Some(place) = PLACE.as_ref() else { return Vec::new() };
    let mut found = Vec::new();
    for captures in place.captures_iter(failure) {
        let path = captures.get(1).or(captures.get(3)).map_or("", |it| it.as_str()).replace('\\', "/");
        let line = captures.get(2).or(captures.get(4)).and_then(|it| it.as_str().parse().ok());
        let known = files.iter().position(|file| {
            let own = file.path.to_string_lossy();
            path == own
                || path.ends_with(&format!("/{own}"))
                || own.ends_with(&format!("/{}", path.trim_start_matches("./")))
        });
        if let (Some(file), Some(line)) = (known, line)
            && !found.contains(&(file, line))
        {
            found.push((file, line));
        }
    }
    found
}

fn failing_test(problem: &Problem, files: &[File]) -> FailingTest {
    for target in &problem.targets {
        let id = &target.0;
        for file in files {
            let path = file.path.to_string_lossy();
            for item in syntax::tests(file.language, &file.path, &file.source) {
                if names(id, &path, &item.path, file.language) {
                    return test_of(file, &item);
                }
            }
        }
    }
    FailingTest::default()
}

/// Whether a test id means the test at `parts` of the file at `path`.
fn names(id: &str, path: &str, parts: &[String], language: Language) -> bool {
    let Some(own) = parts.last() else { return false };
    match language {
        Language::Python => {
            let id = id.split('[').next().unwrap_or_default();
            id == format!("{path}::{}", parts.join("::"))
        }
        Language::Rust => id.ends_with(&format!("::{}", parts.join("::"))) || id == parts.join("::"),
        Language::Go => {
            let Some((package, name)) = id.split_once("::") else { return false };
            let directory = path.rsplit_once('/').map_or(".", |(directory, _)| directory);
            let same = package.trim_start_matches("./") == directory.trim_start_matches("./");
            same && name.split('/').next() == Some(own)
        }
        Language::JavaScript | Language::TypeScript | Language::Tsx => {
            id == format!("{path} > {}", parts.join(" > "))
        }
    }
}

fn test_of(file: &File, item: &syntax::TestItem) -> FailingTest {
    let source = file.source.get(item.range.clone()).unwrap_or_default().to_owned();
    let calls = syntax::called_names(file.language, &source);
    FailingTest { path: file.path.clone(), source, calls, name: item.name.clone() }
}

/// Files that the failing test's file imports, by the last part of the path that it names.
fn imported(files: &[File], test: &FailingTest) -> BTreeSet<usize> {
    let Some(own) = files.iter().find(|file| file.path == test.path) else { return BTreeSet::new() };
    let imports = syntax::imports(own.language, &own.source);
    let named = |file: &File| {
        if file.language == Language::Go && file.path.parent() == own.path.parent() {
            return true;
        }
        let stem = file.path.file_stem().unwrap_or_default().to_string_lossy();
        let module = match &*stem {
            "__init__" | "mod" | "index" | "lib" => {
                file.path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy()
            }
            _ => stem,
        };
        imports.iter().any(|import| {
            import.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').any(|part| part == module)
        })
    };
    // A Rust test among the code, or a package whose `__init__` passes names on, imports everything near.
    let found: BTreeSet<usize> =
        files.iter().enumerate().filter(|(_, it)| !it.is_test && named(it)).map(|(at, _)| at).collect();
    let mut all = found.clone();
    for at in found {
        let names = syntax::imports(files[at].language, &files[at].source);
        let stem = files[at].path.file_stem().unwrap_or_default();
        if stem == "__init__" || stem == "index" || stem == "lib" {
            all.extend(
                files
                    .iter()
                    .enumerate()
                    .filter(|(_, it)| !it.is_test && names_module(&names, &it.path))
                    .map(|(at, _)| at),
            );
        }
    }
    if own.language == Language::Rust && !own.is_test {
        all.extend(files.iter().position(|file| file.path == own.path));
    }
    all
}

fn names_module(imports: &[String], path: &Path) -> bool {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    imports.iter().any(|import| import.split(['.', '/', ':']).any(|part| part == stem))
}

/// Functions that the test reaches by calls, with their scores. Where names collide, those in imported files win.
fn called(files: &[File], test: &FailingTest, imported: &BTreeSet<usize>) -> BTreeMap<(usize, usize), f32> {
    let mut by_name: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
    // What the test's own file has beside it, such as a helper, is on the way to the code.
    let reached = |it: &File| !it.is_test || it.path == test.path;
    for (at, file) in files.iter().enumerate().filter(|(_, it)| reached(it)) {
        for (index, function) in file.functions.iter().enumerate() {
            by_name.entry(&function.name).or_default().push((at, index));
            // Calling a class runs its constructor.
            if matches!(function.name.as_str(), "__init__" | "constructor" | "__post_init__") {
                let class = function.qualified_name.rsplit(['.', ':']).nth(1).unwrap_or_default();
                by_name.entry(class).or_default().push((at, index));
            }
        }
    }
    let mut scores = BTreeMap::new();
    let mut names: BTreeSet<String> = test.calls.iter().cloned().collect();
    names.extend(test.calls.iter().filter_map(|name| implied(name)));
    let mut score = weight::CALLED;
    for _ in 0..DEPTH {
        let mut next = BTreeSet::new();
        for name in &names {
            let all = by_name.get(name.as_str()).map(Vec::as_slice).unwrap_or_default();
            let near = |at: &usize| imported.contains(at) || files[*at].path == test.path;
            let near: Vec<_> = all.iter().filter(|(at, _)| near(at)).collect();
            let chosen = if near.is_empty() { all.iter().collect() } else { near };
            for key in chosen {
                if !scores.contains_key(key) {
                    scores.insert(*key, score);
                    let calls = &files[key.0].functions[key.1].calls;
                    next.extend(calls.iter().cloned());
                    next.extend(calls.iter().filter_map(|name| implied(name)));
                }
            }
        }
        names = next;
        score /= 2.0;
    }
    scores
}

/// The method that a call runs under another name.
fn implied(called: &str) -> Option<String> {
    match called {
        "parse" => Some("from_str".to_owned()),
        "to_string" | "format" | "println" => Some("fmt".to_owned()),
        "len" | "str" | "repr" | "iter" | "next" | "bool" | "int" | "float" | "hash" | "abs" | "round" => {
            Some(format!("__{called}__"))
        }
        _ => None,
    }
}

/// The failure as the model shall see it.
pub fn shown_failure(problem: &Problem, limit: usize) -> String {
    let messages = problem.targets.iter().filter_map(|target| problem.baseline.results.get(target));
    let message = messages.map(|result| result.message.trim()).find(|message| !message.is_empty());
    let text = message.unwrap_or(problem.statement.trim());
    prose::tail(text, limit).to_owned()
}
