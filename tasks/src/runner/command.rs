//! From a project and a workspace to a sandboxed command: the user's path, the project's toolchain, our cache.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::report::{self, Event};
use super::{Project, Run, RunError, Selection};
use crate::sandbox::{Bind, Command, Exit, Limits, Output};
use crate::workspace::Workspace;

/// Bytes of each output stream that are kept of a test run, as some frameworks report there.
const OUTPUT: usize = 16 << 20;

/// Largest report that is read, in bytes.
const REPORT: u64 = 256 << 20;

/// Where reporters are inside the sandbox.
pub(super) const SCRIPTS: &str = "/tmp/tadpole/scripts";

/// Where reports are inside the sandbox.
const REPORTS: &str = "/tmp/tadpole/reports";

/// `argv` as a command in `workspace`, with the toolchain of `project`, as tests and the agent run commands.
pub fn command(workspace: &Workspace, project: &Project, argv: Vec<OsString>) -> Command {
    let cache = workspace.cache();
    let mut env = project.environment.env.clone();
    for (name, below) in
        [("CARGO_TARGET_DIR", "target"), ("GOCACHE", "go-build"), ("PYTHONPYCACHEPREFIX", "pycache")]
    {
        env.insert(name.to_owned(), cache.join(below).into());
    }
    env.insert("PYTHONDONTWRITEBYTECODE".to_owned(), "1".into());
    Command {
        argv,
        cwd: workspace.mount().join(&project.dir),
        env,
        writable: vec![
            Bind { host: workspace.tree().to_owned(), inside: workspace.mount().to_owned() },
            Bind { host: cache.to_owned(), inside: cache.to_owned() },
        ],
        read_only: project.environment.read_only.clone(),
        limits: Limits { wall: project.timeout, ..Limits::default() },
    }
}

/// A script of ours to show inside, by file name.
pub(super) type Script = (&'static str, &'static str);

impl Run<'_> {
    /// Runs a command whose output is read, within `wall`.
    pub(super) async fn execute(
        &self,
        argv: Vec<OsString>,
        env: &[(&str, &str)],
        wall: Duration,
    ) -> Result<Output, RunError> {
        let mut command = command(self.workspace, self.project, argv);
        command.limits.output = OUTPUT;
        command.limits.wall = wall;
        command.env.extend(env.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))));
        self.finish(&command).await
    }

    /// Runs a framework with a reporter of ours; the events it wrote.
    pub(super) async fn report(
        &self,
        argv: Vec<OsString>,
        env: BTreeMap<String, OsString>,
        script: Script,
        selection: &Selection,
    ) -> Result<(Vec<Event>, Output), RunError> {
        let scratch = tempfile::tempdir_in(self.workspace.cache()).map_err(unwritable)?;
        let (scripts, reports) = (scratch.path().join("scripts"), scratch.path().join("reports"));
        std::fs::create_dir(&scripts).map_err(unwritable)?;
        std::fs::create_dir(&reports).map_err(unwritable)?;
        std::fs::write(scripts.join(script.0), script.1).map_err(unwritable)?;
        let mut command = command(self.workspace, self.project, argv);
        command.env.extend(env);
        command.env.insert("TADPOLE_REPORT".to_owned(), PathBuf::from(REPORTS).join("report.jsonl").into());
        if let Selection::Tests(ids) = selection {
            let names: Vec<&str> = ids.iter().map(|id| self.local(&id.0)).collect();
            let list = serde_json::to_vec(&names).unwrap_or_default();
            std::fs::write(scripts.join("select.json"), list).map_err(unwritable)?;
            command
                .env
                .insert("TADPOLE_SELECT".to_owned(), PathBuf::from(SCRIPTS).join("select.json").into());
        }
        command.writable.push(Bind { host: reports.clone(), inside: REPORTS.into() });
        command.read_only.push(Bind { host: scripts, inside: SCRIPTS.into() });
        let output = self.finish(&command).await?;
        let file = reports.join("report.jsonl");
        let size = std::fs::symlink_metadata(&file).map_or(0, |it| if it.is_file() { it.len() } else { 0 });
        let text = if size <= REPORT { std::fs::read(&file).unwrap_or_default() } else { Vec::new() };
        Ok((report::events(&String::from_utf8_lossy(&text)), output))
    }

    async fn finish(&self, command: &Command) -> Result<Output, RunError> {
        let started = Instant::now();
        let output = self.sandbox.run(command, self.cancel).await?;
        tracing::debug!(program = ?command.argv.first(), exit = ?output.exit, elapsed = ?started.elapsed(), "test run");
        if output.exit == Exit::Cancelled {
            return Err(RunError::Cancelled);
        }
        Ok(output)
    }

    /// A repository-relative id or path as the project spells it.
    pub(super) fn local<'a>(&self, id: &'a str) -> &'a str {
        let dir = self.project.dir.to_string_lossy();
        id.strip_prefix(&*dir).map_or(id, |rest| rest.strip_prefix('/').unwrap_or(rest))
    }

    /// A project's spelling as a repository-relative id or path.
    pub(super) fn global(&self, local: &str) -> String {
        match self.project.dir.to_string_lossy() {
            dir if dir.is_empty() => local.to_owned(),
            dir => format!("{dir}/{local}"),
        }
    }
}

fn unwritable(error: std::io::Error) -> RunError {
    RunError::Environment(format!(
        "cannot write into the workspace's cache: {error}; free disk space and try again"
    ))
}

/// Strings as arguments.
pub(super) fn argv<T: Into<OsString>>(args: impl IntoIterator<Item = T>) -> Vec<OsString> {
    args.into_iter().map(Into::into).collect()
}

/// Ids of a selection by which a framework can choose: none for all, and none where the build as a whole is among them.
pub(super) fn chosen(selection: &Selection) -> Option<&[super::TestId]> {
    selected(selection).filter(|ids| ids.iter().all(|id| id.0 != super::BUILD))
}

/// Ids of a selection, or none for all.
pub(super) fn selected(selection: &Selection) -> Option<&[super::TestId]> {
    match selection {
        Selection::All => None,
        Selection::Tests(ids) => Some(ids),
    }
}
