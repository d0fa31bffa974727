//! Running one command with a promise: no network but a private loopback, writes only where allowed,
//! reads only what is bound, no secrets, gone within a second of cancel.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// A directory of the host and where the command sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// Path on the host.
    pub host: PathBuf,
    /// Path inside.
    pub inside: PathBuf,
}

/// Bounds of one command.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Wall-clock time.
    pub wall: Duration,
    /// Resident memory of all processes, in bytes.
    pub memory: u64,
    /// Number of processes and threads.
    pub processes: u64,
    /// Size of one file, in bytes.
    pub file_size: u64,
    /// Bytes kept of each output stream (half from the head, half from the tail).
    pub output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(120),
            memory: 4 << 30,
            processes: 512,
            file_size: 1 << 30,
            output: 256 << 10,
        }
    }
}

/// One command to run.
#[derive(Clone, Debug)]
pub struct Command {
    /// Program (looked up in the PATH of `env` inside the sandbox) and its arguments.
    pub argv: Vec<OsString>,
    /// Working directory, as seen inside.
    pub cwd: PathBuf,
    /// The whole environment, before the sandbox adds HOME, TMPDIR, LANG and the like.
    pub env: BTreeMap<String, OsString>,
    /// Directories bound read-write.
    pub writable: Vec<Bind>,
    /// Directories bound read-only (bound after the writable ones, so they may lie within them).
    pub read_only: Vec<Bind>,
    /// Bounds.
    pub limits: Limits,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// Wall-clock limit.
    TimedOut,
    /// Cancelled by us.
    Cancelled,
    /// Another limit, named.
    Limit(String),
}

/// What a command left.
#[derive(Clone, Debug)]
pub struct Output {
    /// How it ended.
    pub exit: Exit,
    /// Standard output, head and tail, with a mark where bytes were cut.
    pub stdout: Vec<u8>,
    /// Standard error, likewise.
    pub stderr: Vec<u8>,
    /// Time it took.
    pub elapsed: Duration,
}

/// Why a command could not be run as promised.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The machine cannot keep the promise; the message says what to do.
    #[error("{0}")]
    Unavailable(String),
    /// Starting failed.
    #[error("cannot start {program}: {source}")]
    Start {
        /// Program name.
        program: String,
        /// The cause.
        source: std::io::Error,
    },
}

/// One part of the promise and whether this machine keeps it.
#[derive(Clone, Debug)]
pub struct Guarantee {
    /// Short name, such as `network`.
    pub name: &'static str,
    /// Whether it is enforced.
    pub kept: bool,
    /// How, or why not.
    pub detail: String,
}

/// A probed sandbox.
#[derive(Clone, Debug)]
pub struct Sandbox {
    helper: PathBuf,
    guarantees: Vec<Guarantee>,
}

impl Sandbox {
    /// Probes the machine by running a command. `helper` is the binary that, called with
    /// [`INNER`] as its first argument, runs [`inner_main`] (normally `tadpole` itself).
    ///
    /// # Errors
    /// [`SandboxError::Unavailable`] with one sentence that says what to do.
    pub fn probe(helper: PathBuf) -> Result<Self, SandboxError> {
        Ok(Self { helper, guarantees: Vec::new() })
    }

    /// What is enforced here.
    pub fn guarantees(&self) -> &[Guarantee] {
        &self.guarantees
    }

    /// Runs one command to its end, limit or cancel; afterwards no process of it is left.
    ///
    /// # Errors
    /// If the sandbox could not be set up (the command did not run).
    pub async fn run(&self, command: &Command, cancel: &CancellationToken) -> Result<Output, SandboxError> {
        let _ = (command, cancel, &self.helper);
        unimplemented!()
    }
}

/// First argument that turns our binary into the inner helper.
pub const INNER: &str = "sandbox-inner";

/// The helper inside the sandbox: closes descriptors, sets limits, applies Landlock and seccomp, executes.
pub fn inner_main(args: &[OsString]) -> ! {
    let _ = args;
    unimplemented!()
}
