//! The client of the engine: starts the process when nobody has, sends one request a connection, and starts it once more if it dies.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use futures::{SinkExt, StreamExt};
use sha2::{Digest, Sha256};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::kernels;
use super::protocol::{Answer, decode_answer, encode, frames};
use crate::home::Home;
use crate::model::registry::Installed;
use crate::model::{Event, Model, ModelError, ModelInfo, Request, Response};

/// The line that the process prints once it listens.
pub(super) const READY: &str = "ready";

/// The longest path that fits into a socket address.
const SOCKET_PATH: usize = 100;

/// The process ends after this long without a request.
const IDLE: Duration = Duration::from_secs(600);

/// The local engine as a model.
#[derive(Debug)]
pub struct Engine {
    home: Home,
    executable: PathBuf,
    installed: Installed,
    idle: Duration,
}

/// How a try at a request ended without an answer.
enum Lost {
    /// The model's own error.
    Error(ModelError),
    /// The process died.
    Died,
}

impl Engine {
    /// The engine for `installed`, run by `executable` (our own binary). Nothing is started yet.
    pub fn new(home: Home, executable: PathBuf, installed: Installed) -> Self {
        Self { home, executable, installed, idle: IDLE }
    }

    /// The same, but ending after `idle` without a request.
    pub fn with_idle(self, idle: Duration) -> Self {
        Self { idle, ..self }
    }

    /// The log of the process.
    pub fn log(&self) -> PathBuf {
        self.home.log().join("engine.log")
    }

    /// The socket of this model and version; another model or version has another.
    ///
    /// # Errors
    /// If there is no private directory for it.
    pub fn socket(&self) -> Result<PathBuf, ModelError> {
        let mut hasher = Sha256::new();
        hasher.update(self.installed.path.as_os_str().as_encoded_bytes());
        for path in [&self.executable, &self.installed.path] {
            let modified = std::fs::metadata(path).and_then(|it| it.modified()).ok();
            let since = modified.and_then(|it| it.duration_since(std::time::UNIX_EPOCH).ok());
            hasher.update(since.map_or(0, |it| it.as_nanos()).to_le_bytes());
        }
        let name = format!("{}.sock", &hex::encode(hasher.finalize())[..16]);
        let own = self.home.run();
        let directory = if own.as_os_str().len() + name.len() < SOCKET_PATH {
            own
        } else {
            let user = rustix::process::getuid().as_raw();
            std::env::temp_dir().join(format!("tadpole-{user}"))
        };
        private_directory(&directory)?;
        Ok(directory.join(name))
    }

    /// A connection; the process is started if it does not run.
    async fn connect(&self) -> Result<UnixStream, ModelError> {
        let socket = self.socket()?;
        if let Ok(stream) = UnixStream::connect(&socket).await {
            return Ok(stream);
        }
        let (engine, lock_path) = (self.starter(&socket)?, socket.with_extension("lock"));
        // The lock decides who starts it; who waited finds it running.
        let started = tokio::task::spawn_blocking(move || {
            let lock = File::create(&lock_path).map_err(|error| unavailable(&lock_path, &error))?;
            lock.lock().map_err(|error| unavailable(&lock_path, &error))?;
            match std::os::unix::net::UnixStream::connect(&engine.socket) {
                Ok(_) => Ok(()),
                Err(_) => engine.start(),
            }
        });
        started.await.map_err(|error| ModelError::Unavailable(error.to_string()))??;
        UnixStream::connect(&socket).await.map_err(|error| unavailable(&socket, &error))
    }

    fn starter(&self, socket: &Path) -> Result<Starter, ModelError> {
        std::fs::create_dir_all(self.home.log()).map_err(|error| unavailable(&self.home.log(), &error))?;
        Ok(Starter {
            executable: self.executable.clone(),
            model: self.installed.path.clone(),
            socket: socket.to_owned(),
            window: self.installed.info.window,
            idle: self.idle,
            log: self.log(),
        })
    }

    async fn attempt(
        &self,
        request: &Request,
        events: &mpsc::Sender<Event>,
        cancel: &CancellationToken,
    ) -> Result<Response, Lost> {
        let stream = self.connect().await.map_err(Lost::Error)?;
        let mut frames = frames(stream);
        let request = encode(request).map_err(|error| Lost::Error(ModelError::Request(error.to_string())))?;
        if frames.send(request).await.is_err() {
            return Err(Lost::Died);
        }
        loop {
            let frame = tokio::select! {
                frame = frames.next() => frame,
                () = cancel.cancelled() => return Err(Lost::Error(ModelError::Cancelled)),
            };
            let Some(Ok(frame)) = frame else { return Err(Lost::Died) };
            match decode_answer(&frame) {
                Ok(Answer::Event(event)) => tell(events, event).await,
                Ok(Answer::Done(response)) => return Ok(response),
                Ok(Answer::Failed(failure)) => return Err(Lost::Error(failure.into())),
                Err(error) => {
                    return Err(Lost::Error(ModelError::Unavailable(format!(
                        "the engine's answer cannot be read: {error}"
                    ))));
                }
            }
        }
    }
}

/// What is needed to start the process.
struct Starter {
    executable: PathBuf,
    model: PathBuf,
    socket: PathBuf,
    window: u32,
    idle: Duration,
    log: PathBuf,
}

impl Starter {
    /// Starts the process and waits until it listens.
    fn start(&self) -> Result<(), ModelError> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(&self.log)
            .map_err(|error| unavailable(&self.log, &error))?;
        let mut child = std::process::Command::new(&self.executable)
            .arg("engine")
            .arg("--model")
            .arg(&self.model)
            .arg("--socket")
            .arg(&self.socket)
            .args(["--window", &self.window.to_string(), "--idle", &self.idle.as_secs().to_string()])
            // Sandboxed tests run beside it: threads that wait must sleep, not spin.
            .env("GOMP_SPINCOUNT", "20000")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            // A Ctrl-C in the terminal of one client is not meant for the engine of all.
            .process_group(0)
            .spawn()
            .map_err(|error| unavailable(&self.executable, &error))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            // An error reads as no line, which is told below.
            let _ = BufReader::new(stdout).read_line(&mut line);
        }
        if line.trim() == READY {
            // Reaps it when it ends, so that no zombie stays with a server that lives for days.
            std::thread::spawn(move || child.wait());
            return Ok(());
        }
        let _ = child.wait();
        Err(ModelError::Unavailable(format!(
            "the engine did not start ({}); see {}",
            last_line(&self.log),
            self.log.display()
        )))
    }
}

#[async_trait]
impl Model for Engine {
    fn info(&self) -> &ModelInfo {
        &self.installed.info
    }

    async fn generate(
        &self,
        request: Request,
        events: mpsc::Sender<Event>,
        cancel: CancellationToken,
    ) -> Result<Response, ModelError> {
        let kernels = kernels::file(self.socket()?.parent().unwrap_or(Path::new(".")));
        let mut level = kernels::level(&kernels);
        let mut died_before = false;
        loop {
            match self.attempt(&request, &events, &cancel).await {
                Ok(response) => return Ok(response),
                Err(Lost::Error(error)) => return Err(error),
                Err(Lost::Died) => {}
            }
            let plainer = kernels::level(&kernels);
            let notice = if plainer > level {
                level = plainer;
                "this machine refuses its best CPU instructions; the engine goes on with plainer ones"
            } else if !died_before {
                died_before = true;
                "the engine stopped unexpectedly; it is started once more"
            } else {
                return Err(ModelError::Unavailable(format!(
                    "the engine stopped twice on this request ({}); try another model with `tadpole models use`, and see {}",
                    last_line(&self.log()),
                    self.log().display()
                )));
            };
            tracing::warn!("{notice}");
            tell(&events, Event::Notice(notice.into())).await;
        }
    }
}

/// Events are for people: one that nobody reads any more is dropped.
async fn tell(events: &mpsc::Sender<Event>, event: Event) {
    let _ = events.send(event).await;
}

fn unavailable(path: &Path, error: &dyn std::fmt::Display) -> ModelError {
    ModelError::Unavailable(format!("the engine cannot be reached: {}: {error}", path.display()))
}

/// A directory that only we can enter.
fn private_directory(directory: &Path) -> Result<(), ModelError> {
    use std::os::unix::fs::MetadataExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| unavailable(directory, &error))?;
    let metadata = std::fs::symlink_metadata(directory).map_err(|error| unavailable(directory, &error))?;
    let ours = metadata.is_dir()
        && metadata.uid() == rustix::process::getuid().as_raw()
        && metadata.mode() & 0o022 == 0;
    if ours { Ok(()) } else { Err(unavailable(directory, &"it does not belong to you alone")) }
}

/// The last line of a log, for a message.
fn last_line(log: &Path) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(2_000)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().to_owned())
    };
    read().ok().filter(|line| !line.is_empty()).unwrap_or_else(|| "no message".into())
}
