//! Running one command with a promise: no network but a private loopback, writes only where allowed,
//! reads only what is bound, no secrets, gone within a second of cancel.
//!
//! Three layers: namespaces with an allow-listed view of the file system (bubblewrap; [`bwrap`] turns a policy into its
//! arguments), then our own binary inside ([`inner`]: closed descriptors, limits, Landlock, seccomp), and
//! a thread outside ([`process`]) that bounds time, memory, processes and disk and kills everything.
//!
//! Not promised: protection against bugs of the kernel, side channels, and what happens later when a person runs
//! code that a model wrote outside of the sandbox. Memory, processes and disk are watched ten times a
//! second, not accounted by the kernel, so a burst may overshoot for that long; the disk bound counts what other
//! programs write on the same file system meanwhile.

mod bwrap;
#[cfg(target_os = "linux")]
mod inner;
mod output;
mod probe;
mod process;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
    /// Growth of the file systems that are written to, in bytes.
    pub disk: u64,
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
            disk: 8 << 30,
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

/// Receives output as it comes.
pub type Sink = Arc<dyn Fn(Stream, &[u8]) + Send + Sync>;

/// One of the two output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A probed sandbox.
#[derive(Clone, Debug)]
pub struct Sandbox {
    bwrap: PathBuf,
    helper: PathBuf,
    guarantees: Arc<[Guarantee]>,
}

impl Sandbox {
    /// Probes the machine by running a command. `helper` is the binary that, called with
    /// [`INNER`] as its first argument, runs [`inner_main`] (normally `tadpole` itself).
    ///
    /// # Errors
    /// [`SandboxError::Unavailable`] with one sentence that says what to do.
    pub fn probe(helper: PathBuf) -> Result<Self, SandboxError> {
        let bwrap = bwrap::find()?;
        let mut sandbox = Self { bwrap, helper, guarantees: Arc::default() };
        sandbox.guarantees = probe::guarantees(&sandbox)?.into();
        Ok(sandbox)
    }

    /// What is enforced here.
    pub fn guarantees(&self) -> &[Guarantee] {
        &self.guarantees
    }

    /// Runs one command to its end, limit or cancel; afterwards no process of it is left. Dropping the
    /// future kills it too.
    ///
    /// # Errors
    /// If the sandbox could not be set up (the command did not run).
    pub async fn run(&self, command: &Command, cancel: &CancellationToken) -> Result<Output, SandboxError> {
        self.run_streaming(command, None, cancel).await
    }

    /// Like [`Sandbox::run`], and `sink` sees all output as it comes.
    ///
    /// # Errors
    /// If the sandbox could not be set up (the command did not run).
    pub async fn run_streaming(
        &self,
        command: &Command,
        sink: Option<Sink>,
        cancel: &CancellationToken,
    ) -> Result<Output, SandboxError> {
        let argv = bwrap::arguments(&self.helper, command);
        let (process, done) = process::start(&self.bwrap, argv, command, sink)?;
        tokio::pin!(done);
        tokio::select! {
            ended = &mut done => ended,
            () = cancel.cancelled() => {
                drop(process);
                done.await
            }
        }
    }
}

/// First argument that turns our binary into the inner helper.
pub const INNER: &str = "sandbox-inner";

/// The helper inside the sandbox: closes descriptors, sets limits, applies Landlock and seccomp, executes. Its own
/// problems are one line on standard error that begins with [`INNER`].
#[cfg(target_os = "linux")]
pub fn inner_main(args: &[OsString]) -> ! {
    inner::main(args)
}

/// There is no sandbox on this system yet.
#[cfg(not(target_os = "linux"))]
pub fn inner_main(_args: &[OsString]) -> ! {
    std::process::exit(126)
}

/// Variables that change what a program loads or runs, or that hold secrets, are removed from `env`.
pub fn scrub(env: &mut BTreeMap<String, OsString>) {
    const PREFIXES: &[&str] = &["LD_", "DYLD_", "GIT_", "SSH_", "DBUS_", "AWS_", "XDG_"];
    const SUFFIXES: &[&str] = &["_TOKEN", "_KEY", "_SECRET", "_PASSWORD", "_CREDENTIALS"];
    const NAMES: &[&str] = &[
        "BASH_ENV",
        "ENV",
        "NODE_OPTIONS",
        "PYTHONSTARTUP",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "PERL5OPT",
        "RUBYOPT",
        "JAVA_TOOL_OPTIONS",
        "RUSTC_WRAPPER",
    ];
    env.retain(|name, _| {
        let name = name.to_ascii_uppercase();
        !PREFIXES.iter().any(|it| name.starts_with(it))
            && !SUFFIXES.iter().any(|it| name.ends_with(it))
            && !NAMES.contains(&name.as_str())
    });
}

/// Whether `path` or a directory above it is a link, which a command could have planted.
fn has_link(path: &Path) -> bool {
    path.ancestors().any(Path::is_symlink)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_loader_variables_are_scrubbed_and_the_others_stay() {
        let names = ["PATH", "LD_PRELOAD", "git_dir", "MY_API_KEY", "NODE_OPTIONS", "CARGO_HOME", "GOFLAGS"];
        let mut env = names.iter().map(|name| ((*name).to_owned(), OsString::from("x"))).collect();
        scrub(&mut env);
        assert_eq!(env.keys().collect::<Vec<_>>(), ["CARGO_HOME", "GOFLAGS", "PATH"]);
    }
}
