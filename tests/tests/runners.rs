//! Every test framework for real: detection, listing, results of each test, a run of chosen tests, a hanging test, and a
//! build that fails.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failing step fails the test")]

use std::collections::BTreeMap;
use std::time::Duration;

use tasks::runner::{self, Environment, Framework, Outcome, Project, Selection, TestConfig, TestId, TestRun};
use tasks::sandbox::Sandbox;
use tasks::snapshot::{Buffers, Snapshot};
use tasks::workspace::{Pool, Workspace};
use tests::sample::Sample;
use tests::{tadpole, tool};
use tokio_util::sync::CancellationToken;

use Outcome::{Error, Failed, Passed, Skipped};

struct Bench {
    sandbox: Sandbox,
    workspace: Workspace,
    project: Project,
    _store: tempfile::TempDir,
}

impl Bench {
    fn new(sample: &Sample, config: &TestConfig) -> Self {
        let store = tempfile::tempdir().unwrap();
        let snapshot =
            Snapshot::capture(&sample.root(), &Buffers::new(), &store.path().join("store")).unwrap();
        let mut projects = runner::detect(&snapshot, config);
        assert_eq!(projects.len(), 1, "{projects:?}");
        let workspace = Pool::open(&store.path().join("pool")).unwrap().acquire(&snapshot).unwrap();
        let sandbox = Sandbox::probe(tadpole()).unwrap();
        Self { sandbox, workspace, project: projects.remove(0), _store: store }
    }

    fn environment(&self) -> &Environment {
        &self.project.environment
    }

    async fn list(&self) -> Vec<String> {
        let listed =
            runner::list(&self.sandbox, &self.workspace, &self.project, &CancellationToken::new()).await;
        let mut ids: Vec<String> = listed.unwrap().into_iter().map(|it| it.0).collect();
        ids.sort();
        ids
    }

    async fn run(&self, selection: Selection) -> TestRun {
        let token = CancellationToken::new();
        runner::run(&self.sandbox, &self.workspace, &self.project, &selection, &token).await.unwrap()
    }

    async fn all(&self) -> TestRun {
        self.run(Selection::All).await
    }

    async fn only(&self, ids: &[&str]) -> TestRun {
        self.run(Selection::Tests(ids.iter().map(|id| TestId((*id).to_owned())).collect())).await
    }
}

fn outcomes(run: &TestRun) -> BTreeMap<&str, Outcome> {
    run.results.iter().map(|(id, result)| (id.0.as_str(), result.outcome)).collect()
}

fn message<'a>(run: &'a TestRun, id: &str) -> &'a str {
    &run.results[&TestId(id.to_owned())].message
}

fn line(run: &TestRun, id: &str) -> Option<(String, u32)> {
    let location = run.results[&TestId(id.to_owned())].location.clone();
    location.map(|(path, line)| (path.display().to_string(), line))
}

/// The interpreter with pytest, named as a repository's configuration names it.
fn python(framework: Framework) -> TestConfig {
    TestConfig {
        framework: Some(framework),
        program: Some(tool("python/bin/python")),
        ..TestConfig::default()
    }
}

#[tokio::test]
async fn pytest() {
    let sample = Sample::of(&[
        (
            "tests/test_a.py",
            "import pytest\n\n\n@pytest.mark.parametrize('x', [1, 2])\ndef test_odd(x):\n    assert x % 2 == 1\n\n\n@pytest.mark.skip\ndef test_skipped():\n    pass\n\n\nclass TestGroup:\n    def test_in(self):\n        print('seen')\n        raise KeyError('k')\n\n\n@pytest.fixture\ndef broken():\n    raise OSError('no set-up')\n\n\ndef test_fixture(broken):\n    pass\n",
        ),
        ("tests/test_b.py", "import missing_module\n\n\ndef test_never():\n    pass\n"),
    ]);
    let bench = Bench::new(&sample, &python(Framework::Pytest));
    assert!(bench.environment().description.starts_with("Python 3."), "{:?}", bench.environment());
    let run = bench.all().await;
    assert_eq!(
        outcomes(&run),
        BTreeMap::from([
            ("tests/test_a.py::TestGroup::test_in", Failed),
            ("tests/test_a.py::test_fixture", Error),
            ("tests/test_a.py::test_odd[1]", Passed),
            ("tests/test_a.py::test_odd[2]", Failed),
            ("tests/test_a.py::test_skipped", Skipped),
            ("tests/test_b.py", Error),
        ])
    );
    assert!(run.complete && run.build_failure.as_deref().is_some_and(|it| it.contains("missing_module")));
    assert_eq!(line(&run, "tests/test_a.py::test_odd[2]"), Some(("tests/test_a.py".to_owned(), 6)));
    assert!(message(&run, "tests/test_a.py::TestGroup::test_in").contains("KeyError"), "{run:?}");
    let chosen = bench.only(&["tests/test_a.py::test_odd[1]", "tests/test_a.py::test_gone"]).await;
    assert_eq!(
        outcomes(&chosen),
        BTreeMap::from([
            ("tests/test_a.py::test_gone", Outcome::Missing),
            ("tests/test_a.py::test_odd[1]", Passed)
        ])
    );
}

#[tokio::test]
async fn unittest() {
    let sample = Sample::of(&[(
        "test_a.py",
        "import unittest\n\n\nclass A(unittest.TestCase):\n    def test_good(self):\n        self.assertEqual(1, 1)\n\n    def test_bad(self):\n        self.assertEqual(1, 2)\n\n    @unittest.skip('why')\n    def test_skipped(self):\n        pass\n\n    def test_error(self):\n        raise ValueError('v')\n",
    )]);
    let bench = Bench::new(&sample, &python(Framework::Unittest));
    assert_eq!(bench.list().await.len(), 4);
    let run = bench.all().await;
    assert_eq!(
        outcomes(&run),
        BTreeMap::from([
            ("test_a.py::A::test_bad", Failed),
            ("test_a.py::A::test_error", Error),
            ("test_a.py::A::test_good", Passed),
            ("test_a.py::A::test_skipped", Skipped),
        ])
    );
    assert_eq!(outcomes(&bench.only(&["test_a.py::A::test_good"]).await).len(), 1);
}

#[tokio::test]
async fn a_hanging_test_is_ended_and_the_others_are_known() {
    let sample = Sample::of(&[(
        "test_a.py",
        "import time\n\n\ndef test_first():\n    pass\n\n\ndef test_hangs():\n    time.sleep(600)\n",
    )]);
    let mut bench = Bench::new(&sample, &python(Framework::Pytest));
    bench.project.timeout = Duration::from_secs(8);
    let run = bench.all().await;
    assert_eq!(run.results[&TestId("test_a.py::test_first".to_owned())].outcome, Passed, "{run:?}");
    assert_ne!(
        run.results.get(&TestId("test_a.py::test_hangs".to_owned())).map(|it| it.outcome),
        Some(Passed)
    );
    assert!(run.elapsed < Duration::from_secs(20));
}

const LIB: &str = "pub fn half(x: u32) -> u32 {\n    x / 2\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn even() {\n        assert_eq!(super::half(4), 2);\n    }\n\n    #[test]\n    fn odd() {\n        assert_eq!(super::half(3), 2);\n    }\n\n    #[test]\n    #[ignore]\n    fn slow() {}\n}\n";

fn rust() -> Sample {
    Sample::of(&[
        (
            "Cargo.toml",
            "[package]\nname = \"halves\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
        ),
        ("Cargo.lock", "version = 3\n\n[[package]]\nname = \"halves\"\nversion = \"0.1.0\"\n"),
        ("src/lib.rs", LIB),
        ("src/main.rs", "fn main() {}\n\n#[test]\nfn starts() {}\n"),
        ("tests/whole.rs", "#[test]\nfn zero() {\n    assert_eq!(halves::half(0), 0);\n}\n"),
    ])
}

async fn cargo(framework: Framework) {
    let sample = rust();
    let config = TestConfig { framework: Some(framework), ..TestConfig::default() };
    let bench = Bench::new(&sample, &config);
    // The program has the library's name.
    let all = [
        "halves::bin/halves::starts",
        "halves::tests::even",
        "halves::tests::odd",
        "halves::tests::slow",
        "halves::whole::zero",
    ];
    assert_eq!(bench.list().await, all);
    let run = bench.all().await;
    let expected = BTreeMap::from([
        (all[0], Passed),
        (all[1], Passed),
        (all[2], Failed),
        (all[3], Skipped),
        (all[4], Passed),
    ]);
    assert_eq!(outcomes(&run), expected, "{run:?}");
    assert_eq!(line(&run, all[2]), Some(("src/lib.rs".to_owned(), 14)));
    let chosen = bench.only(&[all[4]]).await;
    assert_eq!(outcomes(&chosen), BTreeMap::from([(all[4], Passed)]));
    sample.write("src/lib.rs", &LIB.replace("x / 2", "x / \"2\""));
    let bench = Bench::new(&sample, &config);
    let broken = bench.all().await;
    assert!(broken.build_failure.as_deref().is_some_and(|it| it.contains("cannot divide")), "{broken:?}");
    assert!(broken.results.values().all(|it| it.outcome != Passed), "{broken:?}");
    let chosen = bench.only(&[all[0]]).await;
    assert_ne!(chosen.results[&TestId(all[0].to_owned())].outcome, Passed);
}

#[tokio::test]
async fn cargo_test() {
    cargo(Framework::Cargo).await;
}

#[tokio::test]
async fn cargo_nextest() {
    let found = std::process::Command::new("cargo").args(["nextest", "--version"]).output().unwrap();
    if found.status.success() {
        cargo(Framework::Nextest).await;
    }
}

#[tokio::test]
async fn go_test() {
    let sample = Sample::of(&[
        ("go.mod", "module example.org/halves\n\ngo 1.19\n"),
        ("half/half.go", "package half\n\nfunc Half(x int) int { return x / 2 }\n"),
        (
            "half/half_test.go",
            "package half\n\nimport \"testing\"\n\nfunc TestHalf(t *testing.T) {\n\tt.Run(\"even\", func(t *testing.T) {\n\t\tif Half(4) != 2 {\n\t\t\tt.Fatal(\"wrong\")\n\t\t}\n\t})\n\tt.Run(\"odd one\", func(t *testing.T) {\n\t\tif Half(3) != 2 {\n\t\t\tt.Fatal(\"wrong\")\n\t\t}\n\t})\n}\n\nfunc TestSkipped(t *testing.T) { t.Skip() }\n",
        ),
        ("other/other_test.go", "package other\n\nimport \"testing\"\n\nfunc TestOther(t *testing.T) {}\n"),
    ]);
    let bench = Bench::new(&sample, &TestConfig::default());
    assert_eq!(bench.project.framework, Framework::Go);
    assert_eq!(bench.list().await, ["./half::TestHalf", "./half::TestSkipped", "./other::TestOther"]);
    let run = bench.all().await;
    let expected = BTreeMap::from([
        ("./half::TestHalf", Failed),
        ("./half::TestHalf/even", Passed),
        ("./half::TestHalf/odd_one", Failed),
        ("./half::TestSkipped", Skipped),
        ("./other::TestOther", Passed),
    ]);
    assert_eq!(outcomes(&run), expected);
    assert_eq!(line(&run, "./half::TestHalf/odd_one"), Some(("half/half_test.go".to_owned(), 13)));
    sample.write("half/half.go", "package half\n\nfunc Half(x int) int { return x / \"2\" }\n");
    let bench = Bench::new(&sample, &TestConfig::default());
    let broken = bench.all().await;
    assert_eq!(
        outcomes(&broken),
        BTreeMap::from([("./half", Error), ("./other::TestOther", Passed)]),
        "{broken:?}"
    );
    assert!(broken.build_failure.is_some());
    // Nothing else is run, so the framework reports no test at all.
    let chosen = bench.only(&["./half::TestHalf/even"]).await;
    assert_ne!(chosen.results[&TestId("./half::TestHalf/even".to_owned())].outcome, Passed, "{chosen:?}");
    assert!(chosen.build_failure.is_some(), "{chosen:?}");
}

const JAVASCRIPT: &str = "describe('half', () => {\n  test('even', () => {\n    expect(half(4)).toBe(2);\n  });\n  test('odd', () => {\n    expect(half(3)).toBe(2);\n  });\n  test.skip('later', () => {});\n});\n";

async fn javascript(framework: Framework, manifest: &str, head: &str) {
    let sample = Sample::new("typescript");
    for path in ["src", "test"] {
        std::fs::remove_dir_all(sample.path(path)).unwrap();
    }
    // A configuration in TypeScript, which vite must not bundle into `node_modules`.
    let config = sample.read("vitest.config.ts").replace("*.test.ts", "*.test.mjs");
    sample.write("vitest.config.ts", &config);
    sample.write("package.json", manifest);
    sample.write("half.mjs", "export function half(x) {\n  return Math.floor(x / 2);\n}\n");
    sample.write("half.js", "exports.half = (x) => Math.floor(x / 2);\n");
    let file = if framework == Framework::Jest { "test/half.test.js" } else { "test/half.test.mjs" };
    sample.write(file, &format!("{head}{JAVASCRIPT}"));
    let other = file.replace("half", "broken");
    sample.write(&other, "throw new Error('cannot be loaded');\n");
    let bench = Bench::new(&sample, &TestConfig::default());
    assert_eq!(bench.project.framework, framework);
    let id = |name: &str| format!("{file} > half > {name}");
    let (even, odd, later) = (id("even"), id("odd"), id("later"));
    assert_eq!(bench.list().await, [even.clone(), later.clone(), odd.clone()]);
    let run = bench.all().await;
    let expected = BTreeMap::from([
        (even.as_str(), Passed),
        (odd.as_str(), Failed),
        (later.as_str(), Skipped),
        (other.as_str(), Error),
    ]);
    assert_eq!(outcomes(&run), expected, "{run:?}");
    let chosen = bench.only(&[&even]).await;
    assert_eq!(outcomes(&chosen), BTreeMap::from([(even.as_str(), Passed)]), "{chosen:?}");
}

#[tokio::test]
async fn vitest() {
    let head = "import { describe, expect, test } from 'vitest';\nimport { half } from '../half.mjs';\n\n";
    javascript(Framework::Vitest, r#"{"type":"module","scripts":{"test":"vitest run"}}"#, head).await;
}

#[tokio::test]
async fn jest() {
    let head = "const { half } = require('../half.js');\n\n";
    javascript(Framework::Jest, r#"{"scripts":{"test":"jest"}}"#, head).await;
}

#[tokio::test]
async fn node_test() {
    let head = "import { describe, test } from 'node:test';\nimport assert from 'node:assert';\nimport { half } from '../half.mjs';\nconst expect = (x) => ({ toBe: (y) => assert.strictEqual(x, y) });\n\n";
    javascript(Framework::Node, r#"{"type":"module","scripts":{"test":"node --test"}}"#, head).await;
}
