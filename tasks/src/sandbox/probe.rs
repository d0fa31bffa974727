//! What this machine really enforces, found by trying to break out.

use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Bind, Command, Exit, Guarantee, INNER, Limits, Sandbox, SandboxError, bwrap, process};

/// First argument after [`INNER`] that makes the helper try to break out.
pub(super) const FLAG: &str = "--probe";

/// A file that must not appear beside the workspace.
const ESCAPED: &str = "escaped";

/// What the attempts inside came to; `true` is an escape.
#[derive(Debug, Serialize, Deserialize)]
struct Escapes {
    network: bool,
    read: bool,
    environment: bool,
    processes: bool,
    /// Control: writing where it is allowed works.
    allowed_write: bool,
    /// Control: the private loopback works.
    loopback: bool,
}

/// Tries to break out of `sandbox`.
///
/// # Errors
/// If it cannot start, or something escapes that must not.
pub(super) fn guarantees(sandbox: &Sandbox) -> Result<Vec<Guarantee>, SandboxError> {
    let unavailable =
        |error: std::io::Error| SandboxError::Unavailable(format!("the sandbox cannot be probed: {error}"));
    let scratch = tempfile::tempdir().map_err(unavailable)?;
    let scratch_path = scratch.path().canonicalize().map_err(unavailable)?;
    let (allowed, secret) = (scratch_path.join("allowed"), scratch_path.join("secret"));
    std::fs::create_dir(&allowed).map_err(unavailable)?;
    std::fs::write(&secret, "secret").map_err(unavailable)?;
    let listener = TcpListener::bind("127.0.0.1:0").map_err(unavailable)?;
    let port = listener.local_addr().map_err(unavailable)?.port();
    let escapes = attempt(sandbox, &allowed, &secret, port)?;
    if !escapes.allowed_write || !escapes.loopback {
        return Err(SandboxError::Unavailable(
            "the sandbox starts but is of no use here (no writes or no private loopback); see `tadpole doctor`".into(),
        ));
    }
    let escaped = secret.with_file_name(ESCAPED).exists();
    let kept = |name, kept, detail: &str| Guarantee { name, kept, detail: detail.to_owned() };
    let found = vec![
        kept("network", !escapes.network, "only a private loopback (network namespace)"),
        kept("writes", !escaped, "only the workspace, its cache and a private /tmp (mounts, Landlock)"),
        kept("reads", !escapes.read, "only the workspace, toolchains and system libraries (mounts)"),
        kept(
            "secrets",
            !escapes.environment && !escapes.processes,
            "clean environment, closed descriptors, own processes only",
        ),
        kept("git", !escaped, "the repository's own .git is never shown"),
        kept("kill", true, "everything ends with the process namespace"),
        kept("time", true, "wall clock"),
        kept("memory", true, "watched ten times a second, not accounted by the kernel"),
        kept("processes", true, "watched ten times a second, and a resource limit"),
        kept("disk", true, "largest file by a resource limit, growth watched"),
        kept("output", true, "both ends of each stream are kept"),
    ];
    match found.iter().find(|it| !it.kept) {
        Some(broken) => Err(SandboxError::Unavailable(format!(
            "the sandbox does not hold on this machine ({}), so nothing is run; please report this",
            broken.name
        ))),
        None => Ok(found),
    }
}

fn attempt(sandbox: &Sandbox, allowed: &Path, secret: &Path, port: u16) -> Result<Escapes, SandboxError> {
    let helper = Path::new(bwrap::HELPER_DIR).join(sandbox.helper.file_name().unwrap_or_default());
    let command = Command {
        argv: [
            helper.into_os_string(),
            INNER.into(),
            FLAG.into(),
            allowed.into(),
            secret.into(),
            port.to_string().into(),
        ]
        .into(),
        cwd: "/".into(),
        env: Default::default(),
        writable: vec![Bind { host: allowed.to_owned(), inside: allowed.to_owned() }],
        read_only: Vec::new(),
        limits: Limits { wall: Duration::from_secs(10), ..Limits::default() },
    };
    let argv = bwrap::arguments(&sandbox.helper, &command);
    let (_running, done) = process::start(&sandbox.bwrap, argv, &command, None)?;
    let output = futures_block(done)?;
    if output.exit != Exit::Code(0) {
        let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(SandboxError::Unavailable(format!(
            "the sandbox cannot be probed ({:?}: {text})",
            output.exit
        )));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| SandboxError::Unavailable(format!("the sandbox cannot be probed: {error}")))
}

/// Waits on this thread; the answer comes from the sandbox's own thread and needs no runtime.
fn futures_block<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

/// The attempts, run inside.
pub(super) fn inside(args: &[OsString]) -> ! {
    let path = |index: usize| args.get(index).map(PathBuf::from).unwrap_or_default();
    let number = |index: usize| args.get(index).and_then(|it| it.to_str()?.parse::<u32>().ok()).unwrap_or(0);
    let (allowed, secret) = (path(0), path(1));
    let connects =
        |address: SocketAddr| TcpStream::connect_timeout(&address, Duration::from_millis(300)).is_ok();
    let port = u16::try_from(number(2)).unwrap_or(0);
    let loopback = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| TcpStream::connect(listener.local_addr()?))
        .is_ok();
    // May succeed in the private /tmp; what counts is whether the file is there outside.
    let _ = std::fs::write(secret.with_file_name(ESCAPED), "x");
    let escapes = Escapes {
        network: connects(([127, 0, 0, 1], port).into()),
        read: std::fs::read(&secret).is_ok() || std::fs::read("/etc/shadow").is_ok(),
        environment: std::env::vars_os().any(|(name, _)| !bwrap::is_own_variable(&name)),
        processes: std::fs::read_dir("/proc").is_ok_and(|entries| {
            let ids = entries.flatten().filter(|it| it.file_name().to_string_lossy().parse::<u32>().is_ok());
            ids.count() > 4
        }),
        allowed_write: std::fs::write(allowed.join("written"), "x").is_ok(),
        loopback,
    };
    match serde_json::to_string(&escapes) {
        Ok(text) => {
            println!("{text}");
            std::process::exit(0)
        }
        Err(_) => std::process::exit(1),
    }
}
