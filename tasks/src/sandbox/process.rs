//! One running sandbox seen from outside: a thread of its own starts it (the kernel ties "die with the parent" to the
//! thread that forked), watches its limits, and kills it. Killing bubblewrap ends the process namespace and
//! with it every descendant, whatever it did to escape its session.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open, waitid};
use tokio::sync::oneshot;

use super::output::HeadTail;
use super::{Command, Exit, INNER, Limits, Output, SandboxError, Sink, Stream, bwrap};

/// How often memory, processes and disk are looked at.
const WATCH: Duration = Duration::from_millis(100);

/// Holding it keeps the sandbox running; dropping it kills it.
pub(super) struct Running {
    _alive: OwnedFd,
}

/// Starts bubblewrap with `argv`; the future gives what `command` left.
pub(super) fn start(
    bwrap: &Path,
    argv: Vec<OsString>,
    command: &Command,
    sink: Option<Sink>,
) -> Result<(Running, impl Future<Output = Result<Output, SandboxError>>), SandboxError> {
    if let Some(path) = bwrap::linked(command) {
        return Err(SandboxError::Unavailable(format!(
            "{} is reached through a link, so it is not shown for writing",
            path.display()
        )));
    }
    let program = command.argv.first().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    let failed = |source: std::io::Error| SandboxError::Start { program: program.clone(), source };
    let (watched, alive) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|it| failed(it.into()))?;
    let (sender, receiver) = oneshot::channel();
    let (bwrap, limits, name) = (bwrap.to_owned(), command.limits.clone(), program.clone());
    let writable: Vec<PathBuf> = command.writable.iter().map(|bind| bind.host.clone()).collect();
    let body = move || {
        let ended = run(&bwrap, argv, &limits, &writable, &watched, sink);
        // Nobody waits any more if the caller has gone.
        let _ = sender.send(ended.and_then(|output| check(&name, output)));
    };
    std::thread::Builder::new().name("sandbox".into()).spawn(body).map_err(failed)?;
    let lost =
        move || SandboxError::Start { program, source: std::io::Error::other("its thread ended early") };
    Ok((Running { _alive: alive }, async move { receiver.await.unwrap_or_else(|_| Err(lost())) }))
}

fn run(
    bwrap: &Path,
    argv: Vec<OsString>,
    limits: &Limits,
    writable: &[PathBuf],
    alive: &OwnedFd,
    sink: Option<Sink>,
) -> Result<Output, SandboxError> {
    let failed = |source| SandboxError::Start { program: bwrap.display().to_string(), source };
    let started = Instant::now();
    let mut child = std::process::Command::new(bwrap)
        .args(argv)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let stdout = child.stdout.take().map(|pipe| reader(pipe, Stream::Stdout, limits.output, sink.clone()));
    let stderr = child.stderr.take().map(|pipe| reader(pipe, Stream::Stderr, limits.output, sink));
    let stopped = watch(&child, limits, writable, alive, started);
    if stopped.is_some() {
        kill(&mut child);
    }
    let status = child.wait().map_err(failed)?;
    let collect =
        |thread: Option<JoinHandle<Vec<u8>>>| thread.and_then(|it| it.join().ok()).unwrap_or_default();
    let (stdout, stderr) = (collect(stdout), collect(stderr));
    Ok(Output { exit: stopped.unwrap_or_else(|| exit(status)), stdout, stderr, elapsed: started.elapsed() })
}

/// Reads until every process that could write has ended.
fn reader(
    mut pipe: impl Read + Send + 'static,
    stream: Stream,
    limit: usize,
    sink: Option<Sink>,
) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut kept = HeadTail::new(limit);
        let mut chunk = vec![0; 1 << 16];
        loop {
            match pipe.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => {
                    kept.push(&chunk[..count]);
                    if let Some(sink) = &sink {
                        sink(stream, &chunk[..count]);
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        kept.into_bytes()
    })
}

/// Waits for the end, a limit or the cancel; `None` if it ended by itself.
fn watch(
    child: &Child,
    limits: &Limits,
    writable: &[PathBuf],
    alive: &OwnedFd,
    started: Instant,
) -> Option<Exit> {
    let id = Pid::from_child(child);
    let Ok(process) = pidfd_open(id, PidfdFlags::empty()) else {
        return Some(Exit::Limit("process descriptors (pidfd_open failed)".into()));
    };
    let free_before: Vec<u64> = writable.iter().map(|path| free(path)).collect();
    loop {
        let left = limits.wall.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Some(Exit::TimedOut);
        }
        let wait = left.min(WATCH);
        let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        let mut events =
            [PollFd::new(&process, PollFlags::IN), PollFd::from_borrowed_fd(alive.as_fd(), PollFlags::IN)];
        match poll(&mut events, Some(&timeout)) {
            Ok(0) => {
                if let Some(limit) = exceeded(id, limits, writable, &free_before) {
                    return Some(Exit::Limit(limit.into()));
                }
            }
            Ok(_) if !events[0].revents().is_empty() => return None,
            // The other end of the pipe was dropped.
            Ok(_) => return Some(Exit::Cancelled),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Some(Exit::Cancelled),
        }
    }
}

/// Ends bubblewrap and the process namespace. It may have ended by itself meanwhile, which is as good.
fn kill(child: &mut Child) {
    let id = Pid::from_child(child);
    // Killed in its first milliseconds, bubblewrap would leave a child that waits for it and has not yet asked to die with
    // it. Stopped, it starts nothing more, and its child, the first process of the namespace, keeps its number.
    let _ = kill_process(id, Signal::STOP);
    let _ = waitid(WaitId::Pid(id), WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    for first in children(id.as_raw_nonzero().get()).into_iter().filter_map(Pid::from_raw) {
        let _ = kill_process(first, Signal::KILL);
    }
    let _ = child.kill();
}

fn exceeded(id: Pid, limits: &Limits, writable: &[PathBuf], free_before: &[u64]) -> Option<&'static str> {
    let processes = descendants(id);
    if processes.len() as u64 > limits.processes {
        return Some("processes");
    }
    if memory(&processes, "statm") > limits.memory && memory(&processes, "smaps_rollup") > limits.memory {
        return Some("memory");
    }
    let grown = writable.iter().zip(free_before).map(|(path, before)| before.saturating_sub(free(path)));
    grown.max().filter(|&bytes| bytes > limits.disk).map(|_| "disk")
}

/// All processes under `id`. In a process namespace orphans go to its first process, so none is missed.
fn descendants(id: Pid) -> Vec<i32> {
    let mut found = vec![id.as_raw_nonzero().get()];
    let mut next = 0;
    while let Some(&id) = found.get(next) {
        next += 1;
        found.extend(children(id));
    }
    found
}

fn children(id: i32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let lists = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|it| it.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Bytes of memory: `statm` counts shared pages for every process (quick, too high), `smaps_rollup` shares them out.
fn memory(processes: &[i32], source: &str) -> u64 {
    let page = rustix::param::page_size() as u64;
    let of = |id: &i32| -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{id}/{source}")).ok()?;
        if source == "statm" {
            return Some(text.split_whitespace().nth(1)?.parse::<u64>().ok()? * page);
        }
        let line = text.lines().find(|line| line.starts_with("Pss:"))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
    };
    processes.iter().filter_map(of).sum()
}

fn free(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(u64::MAX, |it| it.f_bavail.saturating_mul(it.f_frsize))
}

/// Bubblewrap says 128 + n for signal n, as shells do.
fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) if code > 128 && code <= 128 + 64 => Exit::Signal(code - 128),
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(9)),
    }
}

/// Tells a sandbox that could not be set up from a command that failed.
fn check(program: &str, output: Output) -> Result<Output, SandboxError> {
    let first_line = || {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        text.lines().next().unwrap_or_default().to_owned()
    };
    match output.exit {
        Exit::Code(1) if output.stdout.is_empty() && first_line().starts_with("bwrap: ") => {
            Err(SandboxError::Unavailable(advice(&first_line())))
        }
        Exit::Code(126) if first_line().starts_with(INNER) => Err(SandboxError::Unavailable(first_line())),
        Exit::Code(127) if first_line().starts_with(INNER) => {
            let reason = first_line().split_once(": ").map(|it| it.1.to_owned()).unwrap_or_default();
            Err(SandboxError::Start { program: program.to_owned(), source: std::io::Error::other(reason) })
        }
        _ => Ok(output),
    }
}

/// What bubblewrap said, and what a person can do about it.
fn advice(line: &str) -> String {
    let blocked = ["uid map", "RTM_NEWADDR", "No permissions to create", "creating new namespace"];
    let what = if blocked.iter().any(|it| line.contains(it)) {
        "this system does not let programs make user namespaces; on Ubuntu add an AppArmor profile for bwrap that \
         allows userns, elsewhere set kernel.unprivileged_userns_clone=1"
    } else if line.contains("--disable-userns") || line.contains("Unknown option") {
        "this bubblewrap is too old; install version 0.8 or later"
    } else {
        "see `tadpole doctor`"
    };
    format!("the sandbox cannot start ({line}); {what}")
}
