//! pytest and unittest, with a reporter of ours inside.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::command::{SCRIPTS, argv, selected};
use super::report::{self, Event};
use super::{Framework, Run, RunError, Selection, TestId, TestRun};
use crate::sandbox::Output;

const PYTEST: (&str, &str) = ("tadpole_pytest_plugin.py", include_str!("scripts/pytest_plugin.py"));
const UNITTEST: (&str, &str) = ("unittest_runner.py", include_str!("scripts/unittest_runner.py"));

/// Share of a run's time that one test may take.
const ONE_TEST: f64 = 0.25;

pub(super) async fn list(run: &Run<'_>) -> Result<Vec<TestId>, RunError> {
    let (events, _) = match run.project.framework {
        Framework::Pytest => pytest(run, &Selection::All, &["--collect-only"]).await?,
        _ => unittest(run, &Selection::All, true).await?,
    };
    Ok(events
        .into_iter()
        .filter_map(|event| match event {
            Event::Collected { id } => Some(TestId(run.global(&id))),
            _ => None,
        })
        .collect())
}

pub(super) async fn run(run: &Run<'_>, selection: &Selection) -> Result<TestRun, RunError> {
    let (events, output) = match run.project.framework {
        Framework::Pytest => pytest(run, selection, &[]).await?,
        _ => unittest(run, selection, false).await?,
    };
    if events.is_empty() {
        usable(run, &output)?;
    }
    Ok(report::test_run(run, events, &output, |id| TestId(run.global(id))))
}

/// Nothing was reported at all: tells a missing pytest from a run that was stopped.
fn usable(run: &Run<'_>, output: &Output) -> Result<(), RunError> {
    let text = report::text(output);
    let python = run.project.environment.program.display();
    if text.contains("No module named pytest") {
        return Err(RunError::Environment(format!(
            "pytest is not installed for {python}; install it there (pip install pytest), or name another \
             interpreter as `program` under [tests] in .tadpole.toml"
        )));
    }
    if output.exit == crate::sandbox::Exit::TimedOut {
        return Ok(());
    }
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no output");
    Err(RunError::Environment(format!(
        "the tests could not be started with {python}: {last}; try `tadpole sandbox -- {python} -m pytest`"
    )))
}

async fn pytest(
    run: &Run<'_>,
    selection: &Selection,
    more: &[&str],
) -> Result<(Vec<Event>, Output), RunError> {
    let mut args = argv([run.project.environment.program.clone()]);
    args.extend(argv([
        "-m",
        "pytest",
        "-p",
        "tadpole_pytest_plugin",
        "-p",
        "no:cacheprovider",
        "--rootdir=.",
    ]));
    args.extend(argv(["--continue-on-collection-errors", "--tb=short", "--color=no", "-q"]));
    args.extend(argv(more.iter().copied()));
    args.extend(run.project.extra_args.iter().map(OsString::from));
    args.extend(files(run, selection).into_iter().map(OsString::from));
    let mut env = environment(run);
    let path = run.project.environment.env.get("PYTHONPATH").cloned();
    env.insert("PYTHONPATH".to_owned(), joined(path));
    run.report(args, env, PYTEST, selection).await
}

/// Our scripts before what the person has set.
fn joined(path: Option<OsString>) -> OsString {
    let mut joined = OsString::from(SCRIPTS);
    if let Some(path) = path {
        joined.push(":");
        joined.push(path);
    }
    joined
}

async fn unittest(
    run: &Run<'_>,
    selection: &Selection,
    only_list: bool,
) -> Result<(Vec<Event>, Output), RunError> {
    let mut args = argv([run.project.environment.program.clone().into_os_string()]);
    args.push(format!("{SCRIPTS}/{}", UNITTEST.0).into());
    let mut paths = files(run, selection);
    if paths.is_empty() {
        paths = test_files(run);
    }
    args.extend(paths.into_iter().map(OsString::from));
    let mut env = environment(run);
    if only_list {
        env.insert("TADPOLE_LIST".to_owned(), "1".into());
    }
    run.report(args, env, UNITTEST, selection).await
}

fn environment(run: &Run<'_>) -> BTreeMap<String, OsString> {
    let seconds = (run.project.timeout.as_secs_f64() * ONE_TEST).max(1.0);
    BTreeMap::from([("TADPOLE_TEST_SECONDS".to_owned(), seconds.to_string().into())])
}

/// The files that hold the selected tests.
fn files(run: &Run<'_>, selection: &Selection) -> Vec<String> {
    let mut files: Vec<String> = selected(selection)
        .unwrap_or_default()
        .iter()
        .filter(|id| id.0 != super::BUILD)
        .filter_map(|id| run.local(&id.0).split("::").next().map(str::to_owned))
        .collect();
    files.sort();
    files.dedup();
    files
}

/// Files that unittest would discover, by name.
fn test_files(run: &Run<'_>) -> Vec<String> {
    let root = run.workspace.tree().join(&run.project.dir);
    let walk = walkdir::WalkDir::new(&root).follow_links(false).sort_by_file_name();
    let visible = |entry: &walkdir::DirEntry| {
        entry.depth() == 0
            || (!entry.file_name().to_string_lossy().starts_with('.')
                && !entry.path().join("pyvenv.cfg").exists())
    };
    walk.into_iter()
        .filter_entry(visible)
        .flatten()
        .filter(|entry| entry.file_type().is_file())
        .filter(|entry| super::detect::is_python_test(&entry.file_name().to_string_lossy()))
        .filter_map(|entry| Some(entry.path().strip_prefix(&root).ok()?.to_string_lossy().into_owned()))
        .collect()
}
