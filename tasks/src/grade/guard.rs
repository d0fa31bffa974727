//! What is refused before anything is run: forbidden files, code that does not parse, changed tests, and tricks that make
//! tests pass without mending anything.

use std::collections::BTreeMap;
use std::path::Path;

use super::{EditPolicy, FileKind, kind};
use crate::patch::{FileChange, Patch};
use crate::snapshot;
use crate::syntax::{self, Language};

/// Largest file whose syntax is checked, in bytes.
const LARGEST: usize = 1 << 20;

/// Text that a fix has no reason to add: it ends the process early, skips tests or looks for the test runner.
const TRICKS: &[&str] = &[
    "os._exit(",
    "sys.exit(",
    "process.exit(",
    "process::exit(",
    "os.Exit(",
    "pytest.skip",
    "pytest.xfail",
    "unittest.skip",
    "SkipTest",
    "t.Skip",
    "#[ignore",
    "PYTEST_CURRENT_TEST",
    "VITEST_WORKER_ID",
    "JEST_WORKER_ID",
    "TADPOLE_",
    "sys._getframe",
    "inspect.stack",
];

/// Why `patch` is not worth a run, if so.
pub(super) fn objection(patch: &Patch, policy: EditPolicy) -> Option<String> {
    if patch.is_empty() {
        return Some("it changes nothing".to_owned());
    }
    let changed = patch.files.iter().filter(|(_, change)| change.before != change.after);
    changed
        .map(|(path, change)| forbidden(path, policy).or_else(|| bad(path, change, policy)))
        .find_map(|it| it)
}

fn forbidden(path: &Path, policy: EditPolicy) -> Option<String> {
    if !snapshot::is_plain(path) {
        return Some(format!("{} lies outside of the repository", path.display()));
    }
    let (allowed, what) = match kind(path) {
        FileKind::Code => (policy.code, "code"),
        FileKind::Test => (policy.tests, "a test file"),
        FileKind::Configuration => (policy.configuration, "configuration"),
        FileKind::AutoExecuted => (policy.configuration, "a file that other tools execute"),
    };
    (!allowed).then(|| format!("{} is {what}, which may not be changed", path.display()))
}

fn bad(path: &Path, change: &FileChange, policy: EditPolicy) -> Option<String> {
    let text = |side: &Option<std::sync::Arc<[u8]>>| {
        side.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    };
    let (before, after) = (text(&change.before), text(&change.after));
    if before.len().max(after.len()) > LARGEST {
        return None;
    }
    let count = |text: &str, what: &str| text.matches(what).count();
    if let Some(trick) = TRICKS.iter().find(|it| count(&after, it) > count(&before, it)) {
        return Some(format!("{} adds `{trick}`, which a fix has no reason to", path.display()));
    }
    let language = Language::of(path)?;
    if change.after.is_some() && syntax::errors(language, &after) > syntax::errors(language, &before) {
        return Some(format!("{} does not parse", path.display()));
    }
    if !policy.tests && kind(path) != FileKind::Test {
        let (old, new) = (tests(language, path, &before), tests(language, path, &after));
        if let Some(name) =
            old.iter().find(|(name, body)| new.get(*name) != Some(*body)).map(|(name, _)| name)
        {
            return Some(format!("{} changes the test {name}, which may not be changed", path.display()));
        }
    }
    None
}

/// Tests that stand among the code, as Rust's do.
fn tests<'a>(language: Language, path: &Path, source: &'a str) -> BTreeMap<String, &'a str> {
    let found = syntax::tests(language, path, source).into_iter();
    found.filter_map(|test| Some((test.name, source.get(test.range)?))).collect()
}

#[cfg(test)]
mod tests_of_guard {
    use super::*;

    fn objection_to(path: &str, before: &str, after: &str) -> Option<String> {
        objection(&Patch::replace(path, before.as_bytes(), after.as_bytes()), EditPolicy::default())
    }

    #[test]
    fn a_plain_fix_is_let_through() {
        assert_eq!(objection_to("a.py", "def f():\n    return 1\n", "def f():\n    return 2\n"), None);
    }

    #[test]
    fn tests_configuration_and_executed_files_stay() {
        for path in
            ["tests/test_a.py", "pyproject.toml", "conftest.py", ".github/workflows/ci.yml", ".git/config"]
        {
            assert!(objection_to(path, "a", "b").is_some(), "{path}");
        }
    }

    #[test]
    fn what_does_not_parse_is_refused_unless_it_did_not_before() {
        let broken = "def f(:\n    return 1\n";
        assert!(objection_to("a.py", "def f():\n    return 1\n", broken).unwrap().contains("does not parse"));
        assert_eq!(objection_to("a.py", broken, "def f():\n    return 1\n"), None);
    }

    #[test]
    fn a_test_among_the_code_may_not_change() {
        let code = |body: &str, expected: &str| {
            format!(
                "fn f() -> u8 {{ {body} }}\n#[cfg(test)]\nmod tests {{\n    #[test]\n    fn t() {{ assert_eq!(super::f(), {expected}); }}\n}}\n"
            )
        };
        assert_eq!(objection_to("src/a.rs", &code("1", "2"), &code("2", "2")), None);
        assert!(
            objection_to("src/a.rs", &code("1", "2"), &code("1", "1")).unwrap().contains("changes the test")
        );
    }

    #[test]
    fn leaving_the_process_early_is_a_trick() {
        let after = "import os\ndef f():\n    os._exit(0)\n";
        assert!(objection_to("a.py", "def f():\n    pass\n", after).unwrap().contains("os._exit"));
    }
}
