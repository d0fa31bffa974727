//! Which directories of a tree have tests, of which framework. Nothing of the repository is run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Framework, Project, TestConfig, toolchain};
use crate::snapshot::Snapshot;

/// Limit of one test run where the configuration says nothing.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Directories whose projects are data for tests, or code of others.
const ASIDE: &[&str] = &["testdata", "fixtures", "__fixtures__", "vendor", "third_party", "node_modules"];

/// A directory that looks like a project.
struct Found {
    dir: PathBuf,
    framework: Framework,
}

/// The projects of a tree, outermost first; empty when there are no tests. What `config` says wins over
/// what is found.
pub fn detect(snapshot: &Snapshot, config: &TestConfig) -> Vec<Project> {
    let mut found = Vec::new();
    match (config.framework, &config.dir) {
        (Some(framework), dir) => found.push(Found { dir: dir.clone().unwrap_or_default(), framework }),
        (None, dir) => {
            let all = [python(snapshot, config), rust(snapshot), go(snapshot), javascript(snapshot)];
            found
                .extend(all.into_iter().flatten().filter(|it| dir.as_ref().is_none_or(|dir| it.dir == *dir)));
        }
    }
    found.sort_by_key(|it| (it.dir.components().count(), it.dir.clone()));
    let project = |it: Found| Project {
        environment: toolchain::find(snapshot, &it.dir, it.framework, config),
        dir: it.dir,
        framework: it.framework,
        extra_args: config.args.clone(),
        timeout: config.timeout_seconds.map_or(TIMEOUT, Duration::from_secs),
    };
    found.into_iter().map(project).collect()
}

/// Whether Python's frameworks look for tests in a file of this name.
pub(super) fn is_python_test(name: &str) -> bool {
    name.strip_suffix(".py")
        .is_some_and(|stem| stem.starts_with("test") || stem.ends_with("_test") || stem.ends_with("_tests"))
}

/// Whether JavaScript's frameworks look for tests in a file at this path (`a.test.ts`, `a.spec.js`, `__tests__/a.js`,
/// `test/a.mjs`).
pub(super) fn is_javascript_test(path: &str) -> bool {
    const EXTENSIONS: &[&str] = &[".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs"];
    let Some(stem) = EXTENSIONS.iter().find_map(|it| path.strip_suffix(it)) else { return false };
    let name = stem.rsplit('/').next().unwrap_or_default();
    let marked = [".test", ".spec", "_test", "-test"].iter().any(|it| name.ends_with(it));
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    marked
        || name.starts_with("test-")
        || directory.split('/').any(|part| part == "__tests__" || part == "test")
}

/// Paths of the tree that count for detection.
fn candidates(snapshot: &Snapshot) -> impl Iterator<Item = &Path> {
    let aside = |path: &&Path| {
        path.parent().is_some_and(|dir| dir.iter().any(|part| ASIDE.iter().any(|it| part == *it)))
    };
    snapshot.entries().keys().map(PathBuf::as_path).filter(move |path| !aside(path))
}

fn named<'a>(snapshot: &'a Snapshot, names: &'a [&str]) -> impl Iterator<Item = &'a Path> {
    candidates(snapshot)
        .filter(move |path| path.file_name().is_some_and(|name| names.iter().any(|it| name == *it)))
}

fn directory(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

fn text(snapshot: &Snapshot, path: &Path) -> String {
    snapshot.read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Keeps those that no other one holds.
fn outermost(dirs: BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let inside = |dir: &PathBuf| dir.ancestors().skip(1).any(|it| dirs.contains(it));
    dirs.iter().filter(|dir| !inside(dir)).cloned().collect()
}

fn python(snapshot: &Snapshot, config: &TestConfig) -> Vec<Found> {
    const MARKS: &[&str] = &[
        "pyproject.toml",
        "pytest.ini",
        "setup.cfg",
        "setup.py",
        "tox.ini",
        "conftest.py",
        "requirements.txt",
        "Pipfile",
    ];
    let tests: Vec<&Path> = candidates(snapshot)
        .filter(|path| path.file_name().is_some_and(|it| is_python_test(&it.to_string_lossy())))
        .collect();
    let marks: BTreeSet<PathBuf> = named(snapshot, MARKS).map(directory).collect();
    // A test belongs to the nearest marked directory above it, else to the repository itself.
    let owner = |test: &&Path| {
        test.ancestors().skip(1).find(|it| marks.contains(*it)).map(Path::to_owned).unwrap_or_default()
    };
    let owners: BTreeSet<PathBuf> = tests.iter().map(owner).collect();
    let framework = |dir: &Path| {
        let own = || tests.iter().filter(|path| path.starts_with(dir)).map(|path| text(snapshot, path));
        let wants_pytest = text(snapshot, &dir.join("pyproject.toml")).contains("pytest")
            || snapshot.entries().contains_key(&dir.join("pytest.ini"))
            || snapshot.entries().contains_key(&dir.join("conftest.py"))
            || own().any(|it| {
                it.contains("import pytest") || it.lines().any(|line| line.starts_with("def test"))
            });
        if wants_pytest || toolchain::has_pytest(snapshot, dir, config) {
            Framework::Pytest
        } else {
            Framework::Unittest
        }
    };
    outermost(owners).into_iter().map(|dir| Found { framework: framework(&dir), dir }).collect()
}

fn rust(snapshot: &Snapshot) -> Vec<Found> {
    let manifests: Vec<&Path> = named(snapshot, &["Cargo.toml"]).collect();
    let dirs: BTreeSet<PathBuf> = manifests.iter().map(|it| directory(it)).collect();
    let own_workspace: BTreeSet<PathBuf> = manifests
        .iter()
        .filter(|it| text(snapshot, it).contains("[workspace]"))
        .map(|it| directory(it))
        .collect();
    let mut roots: BTreeSet<PathBuf> = outermost(dirs).into_iter().collect();
    roots.extend(own_workspace);
    let has_tests = |dir: &Path| {
        candidates(snapshot).any(|path| {
            path.starts_with(dir)
                && path.extension().is_some_and(|it| it == "rs")
                && text(snapshot, path).contains("test]")
        })
    };
    let framework = if toolchain::nextest().is_some() { Framework::Nextest } else { Framework::Cargo };
    roots.into_iter().filter(|dir| has_tests(dir)).map(|dir| Found { dir, framework }).collect()
}

fn go(snapshot: &Snapshot) -> Vec<Found> {
    let tested = |dir: &Path| {
        candidates(snapshot).any(|path| path.starts_with(dir) && path.to_string_lossy().ends_with("_test.go"))
    };
    let modules = named(snapshot, &["go.mod"]).map(directory);
    modules.filter(|dir| tested(dir)).map(|dir| Found { dir, framework: Framework::Go }).collect()
}

fn javascript(snapshot: &Snapshot) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let mut manifests: Vec<&Path> = named(snapshot, &["package.json"]).collect();
    manifests.sort_by_key(|path| path.components().count());
    for manifest in manifests {
        let dir = directory(manifest);
        let Some(framework) = javascript_framework(&text(snapshot, manifest)) else { continue };
        let tests = candidates(snapshot).any(|path| {
            path.strip_prefix(&dir).is_ok_and(|path| is_javascript_test(&path.to_string_lossy()))
        });
        let covered = found.iter().any(|outer| outer.framework == framework && dir.starts_with(&outer.dir));
        if tests && !covered {
            found.push(Found { dir, framework });
        }
    }
    found
}

/// The framework that a `package.json` names in its test script, else in its dependencies.
fn javascript_framework(manifest: &str) -> Option<Framework> {
    let manifest: serde_json::Value = serde_json::from_str(manifest).ok()?;
    let script = manifest["scripts"]["test"].as_str().unwrap_or_default();
    let depends =
        |name: &str| ["dependencies", "devDependencies"].iter().any(|it| manifest[*it].get(name).is_some());
    let known = [("vitest", Framework::Vitest), ("jest", Framework::Jest)];
    let named = known
        .iter()
        .find(|(name, _)| script.contains(name))
        .or_else(|| known.iter().find(|(name, _)| depends(name)));
    match named {
        Some((_, framework)) => Some(*framework),
        None => (script.contains("node") && script.contains("--test")).then_some(Framework::Node),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_script_decides_before_the_dependencies() {
        let both = r#"{"scripts":{"test":"jest --coverage"},"devDependencies":{"vitest":"3","jest":"29"}}"#;
        assert_eq!(javascript_framework(both), Some(Framework::Jest));
        assert_eq!(javascript_framework(r#"{"devDependencies":{"vitest":"3"}}"#), Some(Framework::Vitest));
        assert_eq!(javascript_framework(r#"{"scripts":{"test":"node --test"}}"#), Some(Framework::Node));
        assert_eq!(javascript_framework(r#"{"scripts":{"test":"echo none"}}"#), None);
        assert_eq!(javascript_framework("not json"), None);
    }

    #[test]
    fn names_of_test_files_are_known() {
        for path in ["src/a.test.ts", "a.spec.js", "__tests__/a.jsx", "test/a.mjs", "pkg/a-test.cjs"] {
            assert!(is_javascript_test(path), "{path}");
        }
        for path in ["src/latest.ts", "src/contest.js", "testing/a.ts", "a.test.md"] {
            assert!(!is_javascript_test(path), "{path}");
        }
        assert!(is_python_test("test_a.py") && is_python_test("a_test.py") && !is_python_test("contest.py"));
    }
}
