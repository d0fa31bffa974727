//! vitest, jest and node's own runner, with a reporter of ours inside.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;

use super::command::{self, SCRIPTS, Script, argv, selected};
use super::{BUILD, Framework, Run, RunError, Selection, TestId, TestRun, report};
use crate::sandbox::Exit;
use crate::syntax::{self, Language};

const VITEST: Script = ("vitest_reporter.mjs", include_str!("scripts/vitest_reporter.mjs"));
const JEST: Script = ("jest_reporter.cjs", include_str!("scripts/jest_reporter.cjs"));
const NODE: Script = ("node_reporter.mjs", include_str!("scripts/node_reporter.mjs"));

/// Names that are given as one pattern; more of them are told by their files alone.
const PATTERN: usize = 20;

/// Tests read from the sources of the workspace.
pub(super) fn list(run: &Run<'_>) -> Vec<TestId> {
    let tree = run.workspace.tree();
    let mut found = Vec::new();
    for path in test_files(run) {
        let Some(language) = Language::of(Path::new(&path)) else { continue };
        let Ok(source) = std::fs::read_to_string(tree.join(&run.project.dir).join(&path)) else { continue };
        for test in syntax::tests(language, Path::new(&path), &source) {
            found.push(TestId(run.global(&format!("{path} > {}", test.path.join(" > ")))));
        }
    }
    found
}

pub(super) async fn run(run: &Run<'_>, selection: &Selection) -> Result<TestRun, RunError> {
    let program = &run.project.environment.program;
    let mut args = argv([program.clone()]);
    let script = match run.project.framework {
        Framework::Vitest => {
            let vitest = package(run, "vitest", "vitest.mjs")?;
            let in_place = loads_config_in_place(Path::new(&vitest));
            args.push(vitest);
            if in_place {
                // Otherwise the configuration is bundled into `node_modules`, where nothing can be written.
                args.extend(argv(["--configLoader=runner"]));
            }
            args.extend(argv(["run".to_owned(), format!("--reporter={SCRIPTS}/{}", VITEST.0)]));
            args.extend(argv(["--no-color", "--passWithNoTests"]));
            VITEST
        }
        Framework::Jest => {
            args.push(package(run, "jest", "bin/jest.js")?);
            args.extend(argv([format!("--reporters={SCRIPTS}/{}", JEST.0)]));
            args.extend(argv(["--ci", "--watchman=false", "--no-color", "--passWithNoTests"]));
            args.extend(argv([format!("--cacheDirectory={}", run.workspace.cache().join("jest").display())]));
            JEST
        }
        _ => {
            args.extend(argv(["--test".to_owned(), format!("--test-reporter={SCRIPTS}/{}", NODE.0)]));
            args.extend(argv(["--test-reporter-destination=stdout"]));
            NODE
        }
    };
    args.extend(run.project.extra_args.iter().map(OsString::from));
    args.extend(chosen(run, selection));
    let (events, output) = run.report(args, BTreeMap::new(), script, selection).await?;
    if events.is_empty() && output.exit != Exit::TimedOut {
        let text = report::text(&output);
        let last = text.lines().find(|line| line.contains("Error")).or_else(|| text.lines().last());
        return Err(RunError::Environment(format!(
            "the tests could not be started with {}: {}; try `tadpole sandbox -- npm test`",
            program.display(),
            last.unwrap_or("no output")
        )));
    }
    let mut done = report::test_run(run, events, &output, |id| TestId(run.global(id)));
    if let Some(wanted) = selected(selection) {
        // Whole files are run; what was not asked for does not count, except where a file or the build was.
        let containers: BTreeSet<&str> =
            wanted.iter().map(|id| id.0.as_str()).filter(|id| !id.contains(" > ")).collect();
        let asked = |id: &TestId| {
            let file = id.0.split(" > ").next().unwrap_or_default();
            wanted.contains(id) || containers.contains(file) || containers.contains(BUILD) || file == id.0
        };
        done.results.retain(|id, _| asked(id));
    }
    Ok(done)
}

/// The script of a package in the project's `node_modules`, or in one above it.
fn package(run: &Run<'_>, name: &str, script: &str) -> Result<OsString, RunError> {
    let root = run.workspace.mount();
    let below = Path::new("node_modules").join(name).join(script);
    let project = root.join(&run.project.dir);
    let found = project
        .ancestors()
        .take_while(|it| it.starts_with(root))
        .map(|it| it.join(&below))
        .find(|it| it.exists());
    found.map(Into::into).ok_or_else(|| {
        RunError::Environment(format!(
            "{name} is not installed in {}; run `npm install` there",
            project.display()
        ))
    })
}

/// Whether this vitest can load its configuration without writing it anywhere: from 3.2 on.
fn loads_config_in_place(script: &Path) -> bool {
    let manifest = std::fs::read_to_string(script.with_file_name("package.json")).unwrap_or_default();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap_or_default();
    let mut parts =
        manifest["version"].as_str().unwrap_or_default().split('.').map(|it| it.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (3_u32, 2_u32)
}

/// Arguments that choose files and, for a few tests, their names.
fn chosen(run: &Run<'_>, selection: &Selection) -> Vec<OsString> {
    let node = run.project.framework == Framework::Node;
    let Some(ids) = command::chosen(selection) else {
        // Node's own search knows fewer names than people use, and none of TypeScript.
        return if node { argv(test_files(run)) } else { Vec::new() };
    };
    let mut files = BTreeSet::new();
    let mut names = Vec::new();
    for id in ids {
        let mut parts = run.local(&id.0).split(" > ");
        files.extend(parts.next().map(str::to_owned));
        names.push(parts.map(regex::escape).collect::<Vec<_>>().join(" "));
    }
    let mut args = Vec::new();
    if run.project.framework == Framework::Jest {
        args.push("--runTestsByPath".into());
    }
    if !node && names.len() <= PATTERN && names.iter().all(|name| !name.is_empty()) {
        args.extend(argv(["-t".to_owned(), format!("^({})$", names.join("|"))]));
    }
    args.extend(files.into_iter().map(OsString::from));
    args
}

/// Files with tests, by name, relative to the project.
fn test_files(run: &Run<'_>) -> Vec<String> {
    let root = run.workspace.tree().join(&run.project.dir);
    let walk = walkdir::WalkDir::new(&root).follow_links(false).sort_by_file_name();
    walk.into_iter()
        .filter_entry(|entry| {
            entry.depth() == 0 || (entry.file_name() != "node_modules" && entry.file_name() != ".git")
        })
        .flatten()
        .filter(|entry| entry.file_type().is_file())
        .filter_map(|entry| Some(entry.path().strip_prefix(&root).ok()?.to_string_lossy().into_owned()))
        .filter(|path| super::detect::is_javascript_test(path))
        .collect()
}
