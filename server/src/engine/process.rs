//! The engine process: a private socket, one connection a request, and the thread that decodes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::unbounded_channel;

use super::protocol::{Answer, Failure, decode_request, encode, frames};
use super::worker::{self, Incoming, Options};
use super::{client, kernels, memory};
use crate::model::{Event, ModelError, registry};

/// How far the process stands back behind what a person works with.
const NICENESS: i32 = 5;

/// What the process is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The GGUF file.
    pub model: PathBuf,
    /// Where to listen.
    pub socket: PathBuf,
    /// Tokens of all sequences together.
    pub window: u32,
    /// Ends after this long without a request.
    pub idle: Duration,
}

/// How far the model is.
#[derive(Default)]
struct State {
    /// Millionths of the file that are loaded.
    loaded: AtomicU32,
    ready: AtomicBool,
    failure: Mutex<Option<ModelError>>,
}

/// Runs the process to its end.
pub fn run(settings: Settings) -> ExitCode {
    // It takes every core; the editor and the language server go first. Where that is refused, it runs as it is.
    let _ = rustix::process::nice(NICENESS);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&error),
    };
    let guard = runtime.enter();
    let listener = match listen(&settings.socket) {
        Ok(listener) => listener,
        Err(error) => return refuse(&error),
    };
    drop(guard);
    // Tells whoever started us that we listen; it may have gone meanwhile.
    let _ = writeln!(std::io::stdout(), "{}", client::READY);
    let (sender, incoming) = mpsc::channel();
    let state = Arc::new(State::default());
    let worker_state = Arc::clone(&state);
    let socket = settings.socket.clone();
    let body = move || decode(&settings, &incoming, &worker_state);
    let worker = match std::thread::Builder::new().name("decode".into()).spawn(body) {
        Ok(worker) => worker,
        Err(error) => return refuse(&error),
    };
    runtime.spawn(accept(listener, sender, state));
    let ended = runtime.block_on(async { tokio::task::spawn_blocking(move || worker.join()).await });
    // A new process may listen there already; then its file is not ours to remove, but it makes a new one anyway.
    let _ = std::fs::remove_file(socket);
    match ended {
        Ok(Ok(code)) => code,
        _ => ExitCode::FAILURE,
    }
}

fn refuse(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("the engine cannot start: {error}");
    ExitCode::FAILURE
}

fn listen(socket: &Path) -> std::io::Result<UnixListener> {
    // Whoever starts us holds the lock, so a file there is left from a process that was killed.
    let _ = std::fs::remove_file(socket);
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(listener)
}

fn decode(settings: &Settings, incoming: &mpsc::Receiver<Incoming>, state: &Arc<State>) -> ExitCode {
    let served = check(settings).and_then(|()| {
        let (loading, ready) = (Arc::clone(state), Arc::clone(state));
        let kernels = kernels::file(settings.socket.parent().unwrap_or(Path::new(".")));
        kernels::watch(&kernels);
        let options =
            Options { path: settings.model.clone(), kernels, window: settings.window, idle: settings.idle };
        worker::run(
            &options,
            incoming,
            move |fraction| loading.loaded.store((fraction * 1e6) as u32, Ordering::Relaxed),
            move || ready.ready.store(true, Ordering::Relaxed),
        )
    });
    let Err(error) = served else { return ExitCode::SUCCESS };
    tracing::error!(%error, "the model cannot be served");
    let text = error.to_string();
    *state.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    while let Ok(waiting) = incoming.recv_timeout(Duration::from_millis(500)) {
        let failure = Failure::from(
            state
                .failure
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take()
                .unwrap_or(ModelError::Unusable(text.clone())),
        );
        drop(waiting.answers.send(Answer::Failed(failure)));
    }
    // The answers are on their way in the other thread.
    std::thread::sleep(Duration::from_millis(100));
    ExitCode::FAILURE
}

/// Refuses what would end llama.cpp's process or stop the machine, before either can happen.
fn check(settings: &Settings) -> Result<(), ModelError> {
    let gguf = registry::check(&settings.model)?;
    let name = settings.model.file_stem().unwrap_or_default().to_string_lossy();
    match memory::refusal(&name, memory::estimate(&gguf, settings.window), memory::available()) {
        Some(refusal) => Err(ModelError::Memory(refusal)),
        None => Ok(()),
    }
}

async fn accept(listener: UnixListener, sender: mpsc::Sender<Incoming>, state: Arc<State>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let own = rustix::process::getuid().as_raw();
        if stream.peer_cred().is_ok_and(|peer| peer.uid() == own) {
            tokio::spawn(serve(stream, sender.clone(), Arc::clone(&state)));
        }
    }
}

/// One connection: a request in, answers out. Its end from the other side cancels the request.
async fn serve(stream: UnixStream, sender: mpsc::Sender<Incoming>, state: Arc<State>) {
    let (mut sink, mut source) = frames(stream).split();
    let Some(Ok(frame)) = source.next().await else { return };
    let (answers, mut outgoing) = unbounded_channel();
    let cancelled = Arc::new(AtomicBool::new(false));
    match decode_request(&frame) {
        Ok(request) => {
            let incoming = Incoming { request, answers: answers.clone(), cancelled: Arc::clone(&cancelled) };
            if sender.send(incoming).is_err() {
                drop(answers.send(Answer::Failed(Failure::Unavailable("the engine is ending".into()))));
            }
        }
        Err(error) => drop(
            answers.send(Answer::Failed(Failure::Request(format!("the request cannot be read: {error}")))),
        ),
    }
    let mut ticks = tokio::time::interval(Duration::from_millis(250));
    loop {
        let answer = tokio::select! {
            Some(answer) = outgoing.recv() => answer,
            _ = ticks.tick(), if !state.ready.load(Ordering::Relaxed) => {
                Answer::Event(Event::Loading(state.loaded.load(Ordering::Relaxed) as f32 / 1e6))
            }
            _ = source.next() => break,
        };
        let last = matches!(answer, Answer::Done(_) | Answer::Failed(_));
        let Ok(frame) = encode(&answer) else { break };
        if sink.send(frame).await.is_err() || last {
            break;
        }
    }
    cancelled.store(true, Ordering::Relaxed);
}
