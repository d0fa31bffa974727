//! go test, by its JSON events. Ids are `./package::TestA/subtest`, `.::TestA` at the project's root.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::time::Duration;

use serde::Deserialize;

use super::command::{self, argv};
use super::{Outcome, Run, RunError, Selection, TestId, TestResult, TestRun, report};
use crate::sandbox::{Exit, Output};

/// The least time that a run gets, as a first one builds the standard library's packages.
const BUILD_TIME: Duration = Duration::from_secs(300);

/// What Go prints when a package's tests take too long.
const TIMED_OUT: &str = "panic: test timed out after";

pub(super) async fn list(run: &Run<'_>) -> Result<Vec<TestId>, RunError> {
    let output = go_test(run, &["-list", "."], &["./...".to_owned()]).await?;
    let module = module(run)?;
    let tests = events(&output).into_iter().filter_map(|event| {
        let line = event.output.trim_end();
        let named =
            ["Test", "Example", "Fuzz"].iter().any(|kind| line.starts_with(kind)) && !line.contains(' ');
        named.then(|| TestId(format!("{}::{line}", directory(run, &module, &event.package))))
    });
    Ok(tests.collect())
}

pub(super) async fn run(run: &Run<'_>, selection: &Selection) -> Result<TestRun, RunError> {
    let module = module(run)?;
    let wanted = command::chosen(selection);
    let (packages, pattern) = match wanted {
        None => (vec!["./...".to_owned()], String::new()),
        Some(ids) => chosen(run, ids),
    };
    // A time-out of Go's own prints where every goroutine is.
    let limit = format!("{}s", (run.project.timeout.as_secs() * 3 / 4).max(1));
    let mut flags = vec!["-timeout", &*limit];
    if !pattern.is_empty() {
        flags.extend(["-run", &*pattern]);
    }
    let output = go_test(run, &flags, &packages).await?;
    let events = events(&output);
    if events.is_empty() && output.exit != Exit::TimedOut {
        let text = report::text(&output);
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no output");
        return Err(RunError::Environment(format!(
            "go cannot run the tests: {line}; run `go mod download` in the repository if a module is missing, as \
             nothing is downloaded inside the sandbox"
        )));
    }
    let mut done = collect(run, &module, events, &output);
    if let Some(wanted) = wanted {
        let asked = |id: &TestId| {
            wanted.contains(id) || wanted.iter().any(|it| !it.0.contains("::")) || !id.0.contains("::")
        };
        done.results.retain(|id, _| asked(id));
    }
    Ok(done)
}

/// Packages and a pattern of top-level names; a subtest runs with its siblings.
fn chosen(run: &Run<'_>, ids: &[TestId]) -> (Vec<String>, String) {
    let mut packages = BTreeSet::new();
    let mut names = BTreeSet::new();
    let mut whole = false;
    for id in ids {
        let (package, name) = id.0.split_once("::").unwrap_or((&id.0, ""));
        let package = package.strip_prefix("./").unwrap_or(package);
        let local = run.local(package);
        packages.insert(if local.is_empty() || local == "." { ".".to_owned() } else { format!("./{local}") });
        whole |= name.is_empty();
        names.insert(regex::escape(name.split('/').next().unwrap_or_default()));
    }
    let pattern = if whole {
        String::new()
    } else {
        format!("^({})$", names.into_iter().collect::<Vec<_>>().join("|"))
    };
    (packages.into_iter().collect(), pattern)
}

async fn go_test(run: &Run<'_>, flags: &[&str], packages: &[String]) -> Result<Output, RunError> {
    let mut args = argv([run.project.environment.program.clone()]);
    args.extend(argv(["test", "-json", "-count=1"]));
    args.extend(argv(flags.iter().copied()));
    args.extend(run.project.extra_args.iter().map(OsString::from));
    args.extend(packages.iter().map(OsString::from));
    run.execute(args, &[], run.project.timeout.max(BUILD_TIME)).await
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    #[serde(default)]
    package: String,
    #[serde(default)]
    import_path: String,
    #[serde(default)]
    test: String,
    #[serde(default)]
    output: String,
}

fn events(output: &Output) -> Vec<Event> {
    let stdout = String::from_utf8_lossy(&output.stdout);
    stdout.lines().filter_map(|line| serde_json::from_str(line).ok().or_else(|| unbuilt(line))).collect()
}

/// Go before 1.20 says in plain text that a package could not be built: `FAIL<tab>package [build failed]`.
fn unbuilt(line: &str) -> Option<Event> {
    let (package, reason) = line.strip_prefix("FAIL\t")?.split_once(' ')?;
    ["[build failed]", "[setup failed]"].contains(&reason.trim()).then(|| Event {
        action: "fail".to_owned(),
        package: package.to_owned(),
        ..Event::default()
    })
}

fn collect(run: &Run<'_>, module: &str, events: Vec<Event>, output: &Output) -> TestRun {
    let mut results: BTreeMap<TestId, TestResult> = BTreeMap::new();
    let mut texts: BTreeMap<TestId, String> = BTreeMap::new();
    let mut builds: BTreeMap<String, String> = builds(run, module, &String::from_utf8_lossy(&output.stderr));
    let mut broken = BTreeSet::new();
    let mut complete = output.exit != Exit::TimedOut;
    let mut exit = output.exit.clone();
    for event in events {
        if event.action.starts_with("build-") {
            let package = event.import_path.split(' ').next().unwrap_or_default();
            builds.entry(directory(run, module, package)).or_default().push_str(&event.output);
            continue;
        }
        let package = directory(run, module, &event.package);
        if event.output.contains(TIMED_OUT) {
            exit = Exit::TimedOut;
        }
        if event.test.is_empty() {
            complete &= !event.output.starts_with("panic: ");
            if event.action == "fail"
                || event.output.contains("[build failed]")
                || event.output.contains("[setup failed]")
            {
                broken.insert(package);
            }
            continue;
        }
        let id = TestId(format!("{package}::{}", event.test));
        let outcome = match event.action.as_str() {
            "run" => Outcome::Error,
            "pass" => Outcome::Passed,
            "fail" => Outcome::Failed,
            "skip" => Outcome::Skipped,
            "output" => {
                complete &= !event.output.starts_with("panic: ");
                let noise = ["=== ", "--- PASS", "--- FAIL"];
                if !noise.iter().any(|it| event.output.trim_start().starts_with(it)) {
                    texts.entry(id).or_default().push_str(&event.output);
                }
                continue;
            }
            _ => continue,
        };
        results.insert(id, report::unreported(outcome, ""));
    }
    for (id, result) in &mut results {
        let text = texts.remove(id).unwrap_or_default();
        result.location = place(run, id, &text);
        result.message = match result.outcome {
            Outcome::Error if text.trim().is_empty() => report::unfinished(&exit),
            Outcome::Error | Outcome::Failed => report::shortened(text),
            _ => String::new(),
        };
    }
    let has_tests: BTreeSet<String> =
        results.keys().filter_map(|id| Some(id.0.split_once("::")?.0.to_owned())).collect();
    let mut build_failure = None;
    for package in broken.difference(&has_tests) {
        let message = builds.get(package).cloned().unwrap_or_else(|| report::text(output));
        let location = place(run, &TestId(package.clone()), &message);
        build_failure.get_or_insert_with(|| message.clone());
        results.insert(
            TestId(package.clone()),
            TestResult { outcome: Outcome::Error, message: report::shortened(message), location },
        );
    }
    complete &= exit != Exit::TimedOut;
    TestRun { results, build_failure, complete, exit, output: report::text(output), elapsed: output.elapsed }
}

/// Messages of the compiler by package, from `# package` sections on standard error (before Go 1.24).
fn builds(run: &Run<'_>, module: &str, text: &str) -> BTreeMap<String, String> {
    let mut builds: BTreeMap<String, String> = BTreeMap::new();
    let mut current = None;
    for line in text.lines() {
        if let Some(package) = line.strip_prefix("# ") {
            current = Some(directory(run, module, package.split(' ').next().unwrap_or_default()));
        } else if let Some(package) = &current {
            let text = builds.entry(package.clone()).or_default();
            text.push_str(line);
            text.push('\n');
        }
    }
    builds
}

/// The first place in `text` that names a file: relative to the package (`a_test.go:12:`) or to the project.
fn place(run: &Run<'_>, id: &TestId, text: &str) -> Option<(std::path::PathBuf, u32)> {
    let package =
        id.0.split("::").next().unwrap_or_default().trim_start_matches("./").trim_start_matches('.');
    let tree = run.workspace.tree();
    for word in text.split_whitespace() {
        let mut parts = word.split(':');
        let (Some(file), Some(line)) = (parts.next(), parts.next()) else { continue };
        let Ok(line) = line.parse() else { continue };
        if !file.ends_with(".go") {
            continue;
        }
        let file = file.trim_start_matches("./");
        if let Ok(relative) = std::path::Path::new(file).strip_prefix(run.workspace.mount()) {
            return Some((relative.to_owned(), line));
        }
        let candidates = [std::path::Path::new(package).join(file), run.project.dir.join(file)];
        if let Some(found) = candidates.into_iter().find(|it| tree.join(it).is_file()) {
            return Some((found, line));
        }
    }
    None
}

/// `./dir` of a package by its import path, relative to the repository.
fn directory(run: &Run<'_>, module: &str, package: &str) -> String {
    let package = package.trim_end_matches(".test").trim_end_matches("_test");
    let below = package.strip_prefix(module).map_or(package, |rest| rest.trim_start_matches('/'));
    match run.global(below).trim_end_matches('/') {
        "" => ".".to_owned(),
        path => format!("./{path}"),
    }
}

/// The module's path, from `go.mod`.
fn module(run: &Run<'_>) -> Result<String, RunError> {
    let file = run.workspace.tree().join(&run.project.dir).join("go.mod");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("module "));
    let name = line.map(|it| it.split("//").next().unwrap_or_default().trim().trim_matches('"').to_owned());
    name.ok_or_else(|| {
        let shown = run.workspace.mount().join(&run.project.dir).join("go.mod");
        RunError::Environment(format!("{} names no module; add a `module` line", shown.display()))
    })
}
