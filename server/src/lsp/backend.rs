//! The protocol's side: every handler queues an event before its first await, and at most waits for the answer. tower-lsp runs
//! handlers concurrently but polls them first in the order of the wire, so the queue has that order.

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower_lsp_server::LanguageServer;
use tower_lsp_server::gen_lsp_types::{
    CodeActionParams, CodeActionResponse, CodeLens, CodeLensParams, DidChangeConfigurationParams,
    DidChangeTextDocumentParams, DidChangeWatchedFilesParams, DidChangeWorkspaceFoldersParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, DidSaveTextDocumentParams,
    DocumentDiagnosticParams, DocumentDiagnosticReport, ExecuteCommandParams, FullDocumentDiagnosticReport,
    InitializeParams, InitializeResult, InitializedParams, LspAny, ProgressToken,
    RelatedFullDocumentDiagnosticReport, WorkDoneProgressCancelParams,
};
use tower_lsp_server::jsonrpc::{Error, Result};

use super::actions;
use super::session::{Event, Session};

/// Forwards what the client sends to the session.
pub struct Backend {
    inbox: mpsc::UnboundedSender<Event>,
    session: std::sync::Mutex<Option<JoinHandle<()>>>,
    parent_gone: CancellationToken,
}

/// Stops the session and waits for it.
pub struct SessionEnd {
    inbox: mpsc::UnboundedSender<Event>,
    session: Option<JoinHandle<()>>,
}

impl SessionEnd {
    /// Tells the session to stop.
    pub fn stop(&self) {
        let _ = self.inbox.send(Event::Stop);
    }

    /// Waits until it has.
    pub async fn finished(self) {
        if let Some(session) = self.session {
            let _ = session.await;
        }
    }
}

impl Backend {
    /// A backend of the session that reads from the other end of `inbox`.
    pub fn new(inbox: mpsc::UnboundedSender<Event>, session: JoinHandle<()>) -> Self {
        Self { inbox, session: Some(session).into(), parent_gone: CancellationToken::new() }
    }

    /// The way to end the session; only the first call has a session to wait for.
    pub fn session_end(&self) -> SessionEnd {
        let session = self.session.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        SessionEnd { inbox: self.inbox.clone(), session }
    }

    /// Cancelled when the process that started us is gone.
    pub fn parent_gone(&self) -> CancellationToken {
        self.parent_gone.clone()
    }

    /// `window/workDoneProgress/cancel`.
    pub async fn cancel_progress(&self, params: WorkDoneProgressCancelParams) {
        if let ProgressToken::String(token) = params.token {
            self.tell(Event::CancelProgress(token));
        }
    }

    fn tell(&self, event: Event) {
        // The session ends before the backend only when the client leaves; nobody waits for an answer then.
        let _ = self.inbox.send(event);
    }

    /// Queues an event and waits for the answer. Awaiting this polls it at once, so the event is queued before anything waits.
    async fn ask<T>(&self, event: impl FnOnce(oneshot::Sender<T>) -> Event) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.tell(event(reply));
        answer.await.map_err(|_| Error::internal_error())
    }
}

impl LanguageServer for Backend {
    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResult> {
        if let Some(parent) = params.process_id.and_then(rustix::process::Pid::from_raw) {
            tokio::spawn(Session::watch(parent, self.parent_gone.clone()));
        }
        self.ask(|reply| Event::Initialize(Box::new(params), reply)).await
    }

    async fn initialized(&self, _: InitializedParams) {
        self.tell(Event::Initialized);
    }

    async fn shutdown(&self) -> Result<()> {
        // Neovim kills the server right after this request, so jobs are stopped here and not at `exit`.
        self.tell(Event::CancelAll);
        Ok(())
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        self.tell(Event::Open(params.text_document));
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        self.tell(Event::Change(params));
    }

    async fn did_save(&self, params: DidSaveTextDocumentParams) {
        self.tell(Event::Save(params.text_document.uri));
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams) {
        self.tell(Event::Close(params.text_document.uri));
    }

    async fn did_change_workspace_folders(&self, params: DidChangeWorkspaceFoldersParams) {
        self.tell(Event::Folders(params.event));
    }

    async fn did_change_configuration(&self, params: DidChangeConfigurationParams) {
        self.tell(Event::ConfigurationChanged(params.settings));
    }

    async fn did_change_watched_files(&self, _: DidChangeWatchedFilesParams) {
        // Files are read when a job starts; nothing of them is remembered.
    }

    async fn code_action(&self, params: CodeActionParams) -> Result<Option<Vec<CodeActionResponse>>> {
        self.ask(|reply| Event::CodeActions(Box::new(params), reply)).await.map(Some)
    }

    async fn code_lens(&self, params: CodeLensParams) -> Result<Option<Vec<CodeLens>>> {
        self.ask(|reply| Event::CodeLenses(params.text_document.uri, reply)).await.map(Some)
    }

    async fn code_lens_resolve(&self, lens: CodeLens) -> Result<CodeLens> {
        Ok(actions::resolve(lens))
    }

    async fn diagnostic(&self, params: DocumentDiagnosticParams) -> Result<DocumentDiagnosticReport> {
        let items = self.ask(|reply| Event::Diagnostics(params.text_document.uri, reply)).await?;
        let report = RelatedFullDocumentDiagnosticReport {
            related_documents: None,
            full_document_diagnostic_report: FullDocumentDiagnosticReport { result_id: None, items },
        };
        Ok(DocumentDiagnosticReport::RelatedFullDocumentDiagnosticReport(report))
    }

    async fn execute_command(&self, params: ExecuteCommandParams) -> Result<Option<LspAny>> {
        let answer = self.ask(|reply| Event::Execute(params, reply)).await?;
        answer.map(Some).map_err(Error::invalid_params)
    }
}
