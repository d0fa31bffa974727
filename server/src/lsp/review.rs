//! From a verified patch to the person's yes: asks where the client does not, applies, and says how it ended.

use std::path::Path;

use tasks::grade::{FileKind, kind};
use tasks::patch::Patch;
use tokio::sync::{mpsc, oneshot};
use tower_lsp_server::Client;
use tower_lsp_server::gen_lsp_types::{
    ApplyWorkspaceEditParams, ApplyWorkspaceEditRequest, MessageActionItem, MessageType, ShowDocumentParams,
};

use super::capabilities;
use super::documents;
use super::edits::Prepared;
use super::session::Event;

const APPLY: &str = "Apply";
const SHOW: &str = "Show diff";
const DISCARD: &str = "Discard";

/// A verified patch on its way into the editor.
pub struct Review {
    /// The connection.
    pub client: Client,
    /// What the client can do.
    pub capabilities: capabilities::Client,
    /// To the session, which knows the buffers.
    pub inbox: mpsc::UnboundedSender<Event>,
    /// Ask even for changes to code only.
    pub confirm: bool,
    /// Canonical root of the repository.
    pub root: std::path::PathBuf,
    /// The verified patch.
    pub patch: Patch,
    /// What was achieved, in one line.
    pub summary: String,
    /// Directory for a diff to show.
    pub scratch: std::path::PathBuf,
}

/// How a review ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The edit is in the buffers.
    Applied,
    /// The person did not want it.
    Discarded,
}

impl Review {
    /// Whether the person is asked: unless told otherwise, and always for tests, configuration and what tools run by themselves.
    fn asks(&self) -> bool {
        self.confirm || self.patch.files.keys().any(|path| kind(path) != FileKind::Code)
    }

    /// Asks and applies.
    ///
    /// # Errors
    /// One line, if it could not be applied.
    pub async fn run(self) -> Result<Answer, String> {
        let annotated = self.asks() && self.capabilities.annotations;
        if self.asks() && !annotated && !self.confirmed().await? {
            return Ok(Answer::Discarded);
        }
        let (reply, prepared) = oneshot::channel();
        let event = Event::Prepare { root: self.root.clone(), patch: self.patch.clone(), annotated, reply };
        let gone = |_| "the editor has left".to_owned();
        self.inbox.send(event).map_err(|_| "the editor has left".to_owned())?;
        let Prepared { edit, rebased } = prepared.await.map_err(gone)??;
        let params = ApplyWorkspaceEditParams { label: Some("Tadpole fix".into()), edit, metadata: None };
        let applied = self.client.send_request::<ApplyWorkspaceEditRequest>(params).await;
        let applied = applied.map_err(|error| format!("the editor could not apply the fix: {error}"))?;
        if !applied.applied {
            // With annotations, a person who says no in the preview looks like this too.
            if annotated && applied.failure_reason.is_none() {
                return Ok(Answer::Discarded);
            }
            let reason = applied.failure_reason.unwrap_or_else(|| "it gave no reason".into());
            return Err(format!("the editor did not apply the fix: {reason}"));
        }
        if rebased {
            let text = "The fix was fitted to what you typed meanwhile; run its tests again.";
            self.client.show_message(MessageType::Info, text).await;
        }
        Ok(Answer::Applied)
    }

    async fn confirmed(&self) -> Result<bool, String> {
        let mut shown = false;
        loop {
            let choices: &[&str] = if shown { &[APPLY, DISCARD] } else { &[APPLY, SHOW, DISCARD] };
            let choices = choices.iter().map(|&title| item(title)).collect();
            let answer =
                self.client.show_message_request(MessageType::Info, &self.summary, Some(choices)).await;
            let answer = answer.map_err(|error| format!("the editor could not ask: {error}"))?;
            match answer.map(|it| it.title).as_deref() {
                Some(APPLY) => return Ok(true),
                Some(SHOW) => {
                    self.show_diff().await;
                    shown = true;
                }
                _ => return Ok(false),
            }
        }
    }

    /// Opens the diff in the editor, or writes it to the editor's log where that is not possible.
    async fn show_diff(&self) {
        let diff = self.patch.unified_diff();
        let path = self.scratch.join("fix.diff");
        let written = std::fs::create_dir_all(&self.scratch).and_then(|()| std::fs::write(&path, &diff));
        if self.capabilities.show_document && written.is_ok() && self.open(&path).await {
            return;
        }
        self.client.show_message(MessageType::Log, diff).await;
    }

    async fn open(&self, path: &Path) -> bool {
        let uri = documents::uri(path);
        let params =
            ShowDocumentParams { uri, external: Some(false), take_focus: Some(false), selection: None };
        self.client.show_document(params).await.unwrap_or(false)
    }
}

/// A choice of a message.
pub fn item(title: &str) -> MessageActionItem {
    MessageActionItem { title: title.to_owned(), properties: Default::default() }
}
