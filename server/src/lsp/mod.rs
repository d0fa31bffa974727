//! The language server: one session task owns all state and takes what the client sends in the order in which it was
//! sent; everything that takes time runs in the background and reports back as an event.
//!
//! The invariants: a handler queues its event before its first await; nothing is computed on the session task beyond
//! bookkeeping; a file changes only by a `workspace/applyEdit` that was verified and confirmed.

mod actions;
mod backend;
mod capabilities;
mod documents;
mod edits;
mod folders;
mod jobs;
mod places;
mod positions;
mod progress;
mod results;
mod review;
mod session;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tower_lsp_server::{LspService, Server};

use crate::fix::Context;

/// Requests under way at once. Handlers only queue and wait for an answer, so this bounds nothing but memory.
const CONCURRENCY: usize = 256;

/// How long jobs may take to stop after the client has left.
const FAREWELL: Duration = Duration::from_secs(1);

/// Serves one client until it leaves; every job is stopped when this returns.
pub async fn serve(
    context: Arc<Context>,
    input: impl AsyncRead + Unpin + Send,
    output: impl AsyncWrite + Send,
) {
    let (inbox, events) = mpsc::unbounded_channel();
    let (service, socket) = LspService::build(|client| {
        let session = session::Session::new(context, client.clone(), inbox.clone());
        let ended = tokio::spawn(session.run(events));
        backend::Backend::new(inbox, ended)
    })
    .custom_method("window/workDoneProgress/cancel", backend::Backend::cancel_progress)
    .finish();
    let ended = service.inner().session_end();
    let parent_gone = service.inner().parent_gone();
    tokio::select! {
        () = Server::new(input, output, socket).concurrency_level(CONCURRENCY).serve(service) => {}
        () = parent_gone.cancelled() => {}
    }
    ended.stop();
    // A job that does not stop in time is killed with this process: the sandbox dies with its parent.
    let _ = tokio::time::timeout(FAREWELL, ended.finished()).await;
}
