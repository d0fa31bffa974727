//! The command line, as a person or a script uses it.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::home::Home;
use crate::{tadpole, tool};

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// The one object that `--json` prints.
    pub fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "one object on one line: {self:?}");
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// The message of an error; it is one line, and the same in the object.
    pub fn error(&self) -> String {
        let last = self.stderr.lines().last().unwrap_or_default();
        let message = last.strip_prefix("tadpole: ").unwrap_or_else(|| panic!("no error in {self:?}"));
        assert_eq!(self.json()["error"], message, "{self:?}");
        message.to_owned()
    }
}

/// `tadpole` with `args`, in a data directory of the test's own, Python's tools on the search path.
pub fn command(home: &Home, args: &[&str]) -> Command {
    let mut command = Command::new(tadpole());
    command.args(args).env("TADPOLE_HOME", home.path()).env("VIRTUAL_ENV", tool("python"));
    command.env_remove("TADPOLE_MODEL").env("XDG_CONFIG_HOME", home.path().join("config"));
    command.stdin(Stdio::null());
    command
}

/// Runs to the end.
pub fn run(command: &mut Command) -> Ended {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

/// `tadpole fix --trust --json` in `repo`.
pub fn fix(home: &Home, repo: &Path, args: &[&str]) -> Command {
    let mut command = command(home, &["fix", "--trust", "--json", "--repo"]);
    command.arg(repo).args(args);
    command
}
