//! The session: owns documents, folders, settings, results and jobs. Events come in one after the other; what takes time is
//! spawned and comes back as an event.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};
use tasks::grade::EditPolicy;
use tasks::patch::Patch;
use tasks::runner::{Outcome as TestOutcome, Selection, TestId};
use tasks::snapshot::Buffers;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tower_lsp_server::Client;
use tower_lsp_server::gen_lsp_types::{
    CodeActionParams, CodeActionResponse, CodeLens, ConfigurationItem, Diagnostic,
    DidChangeTextDocumentParams, ExecuteCommandParams, InitializeParams, InitializeResult,
    LspNotificationMethod, MessageDirection, MessageType, Notification, TextDocumentItem, Uri,
    WorkspaceFoldersChangeEvent,
};

use super::actions::{self, Asked};
use super::capabilities::{self, Client as Capabilities};
use super::documents::{self, Documents};
use super::edits::{self, Prepared};
use super::folders::Folders;
use super::jobs::{Command, Job, JobId, Jobs, Work};
use super::progress::Reporter;
use super::results::{self, Failure, Results};
use super::review::{self, Answer, Review};
use super::settings::Settings;
use crate::fix::{self, Context, Finished, FixError, Outcome, Request, Target};

/// How often we look whether the process that started us still lives.
const WATCH: Duration = Duration::from_secs(2);

/// What reaches the session.
pub enum Event {
    /// `initialize`.
    Initialize(Box<InitializeParams>, oneshot::Sender<InitializeResult>),
    /// `initialized`.
    Initialized,
    /// `textDocument/didOpen`.
    Open(TextDocumentItem),
    /// `textDocument/didChange`.
    Change(DidChangeTextDocumentParams),
    /// `textDocument/didSave`.
    Save(Uri),
    /// `textDocument/didClose`.
    Close(Uri),
    /// `workspace/didChangeWorkspaceFolders`.
    Folders(WorkspaceFoldersChangeEvent),
    /// `workspace/didChangeConfiguration`.
    ConfigurationChanged(Value),
    /// The answer to `workspace/configuration`, by folder.
    Settings(Vec<(PathBuf, Value)>),
    /// `textDocument/codeAction`.
    CodeActions(Box<CodeActionParams>, oneshot::Sender<Vec<CodeActionResponse>>),
    /// `textDocument/codeLens`.
    CodeLenses(Uri, oneshot::Sender<Vec<CodeLens>>),
    /// `textDocument/diagnostic`.
    Diagnostics(Uri, oneshot::Sender<Vec<Diagnostic>>),
    /// `workspace/executeCommand`.
    Execute(ExecuteCommandParams, oneshot::Sender<Result<Value, String>>),
    /// `window/workDoneProgress/cancel`.
    CancelProgress(String),
    /// Stop all jobs.
    CancelAll,
    /// Stop all jobs and end.
    Stop,
    /// The person was asked whether a job's repository is trusted.
    Trusted(Job, bool),
    /// A job's work is done.
    Ended(JobId, Box<Result<Done, FixError>>),
    /// Results of tests with the failures' places, by repository.
    Ran { repository: PathBuf, ran: Vec<TestId>, failed: Vec<(PathBuf, Failure)> },
    /// An edit is wanted that fits the buffers as they are now.
    Prepare { root: PathBuf, patch: Patch, annotated: bool, reply: oneshot::Sender<Result<Prepared, String>> },
}

/// What a job achieved.
pub enum Done {
    /// A fix, or none.
    Fix(Box<Finished>),
    /// How many tests passed and how many did not.
    Run { passed: usize, failed: usize },
}

/// `tadpole/finished`: how a job ended.
enum FinishedNotification {}

impl Notification for FinishedNotification {
    type Params = Value;
    const METHOD: LspNotificationMethod<'_> = LspNotificationMethod::Custom("tadpole/finished");
    const MESSAGE_DIRECTION: MessageDirection = MessageDirection::ServerToClient;
}

/// Owner of all state of one client.
pub struct Session {
    context: Arc<Context>,
    client: Client,
    inbox: mpsc::UnboundedSender<Event>,
    capabilities: Capabilities,
    documents: Documents,
    folders: Folders,
    defaults: Settings,
    settings: BTreeMap<PathBuf, Settings>,
    said: BTreeSet<String>,
    results: BTreeMap<PathBuf, Results>,
    jobs: Jobs,
    /// Work in the background, which the end waits for.
    background: tokio_util::task::TaskTracker,
}

impl Session {
    /// A session that sends through `client` and is told through the other end of `inbox`.
    pub fn new(context: Arc<Context>, client: Client, inbox: mpsc::UnboundedSender<Event>) -> Self {
        Self {
            context,
            client,
            inbox,
            capabilities: Capabilities::default(),
            documents: Documents::default(),
            folders: Folders::default(),
            defaults: Settings::default(),
            settings: BTreeMap::new(),
            said: BTreeSet::new(),
            results: BTreeMap::new(),
            jobs: Jobs::default(),
            background: Default::default(),
        }
    }

    /// Cancels `gone` when the process `parent` is no more.
    pub async fn watch(parent: Pid, gone: CancellationToken) {
        while !matches!(test_kill_process(parent), Err(rustix::io::Errno::SRCH)) {
            tokio::time::sleep(WATCH).await;
        }
        gone.cancel();
    }

    /// Takes events until told to stop; then all jobs have stopped.
    pub async fn run(mut self, mut events: mpsc::UnboundedReceiver<Event>) {
        while let Some(event) = events.recv().await {
            if matches!(event, Event::Stop) {
                break;
            }
            self.take(event);
        }
        self.jobs.cancel(None);
        self.background.close();
        self.background.wait().await;
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Initialize(params, reply) => self.initialize(&params, reply),
            Event::Initialized => self.ask_for_settings(),
            Event::Open(item) => {
                let uri = item.uri.clone();
                self.documents.open(item.uri, item.version, item.text);
                self.publish_uri(&uri);
            }
            Event::Change(params) => {
                let uri = params.text_document.text_document_identifier.uri;
                let version = params.text_document.version;
                self.documents.change(&uri, version, params.content_changes, self.capabilities.encoding);
                self.publish_uri(&uri);
            }
            Event::Save(uri) => self.documents.save(&uri),
            Event::Close(uri) => self.documents.close(&uri),
            Event::Folders(change) => {
                self.folders.change(&change.added, &change.removed);
                self.ask_for_settings();
            }
            Event::ConfigurationChanged(settings) => {
                if self.capabilities.configuration {
                    self.ask_for_settings();
                } else {
                    self.defaults = self.parsed(&settings);
                }
            }
            Event::Settings(folders) => {
                self.settings =
                    folders.into_iter().map(|(folder, value)| (folder, self.parsed(&value))).collect();
            }
            Event::CodeActions(params, reply) => self.code_actions(*params, reply),
            Event::CodeLenses(uri, reply) => self.code_lenses(&uri, reply),
            Event::Diagnostics(uri, reply) => self.diagnostics(&uri, reply),
            Event::Execute(params, reply) => {
                let answer =
                    Command::parse(&params.command, params.arguments).and_then(|it| self.execute(it));
                let _ = reply.send(answer);
            }
            Event::CancelProgress(token) => {
                if let Some(id) = self.jobs.with_token(&token) {
                    self.cancel(Some(id));
                }
            }
            Event::CancelAll | Event::Stop => self.cancel(None),
            Event::Trusted(job, true) => self.enqueue(job),
            Event::Trusted(job, false) => {
                self.finish(
                    &job,
                    "cancelled",
                    "the repository is not trusted, so nothing was run".into(),
                    None,
                );
            }
            Event::Ended(id, result) => self.ended(id, *result),
            Event::Ran { repository, ran, failed } => self.ran(repository, ran, failed),
            Event::Prepare { root, patch, annotated, reply } => {
                // Reads the files of the patch, which are few; the buffers must not move meanwhile.
                let _ =
                    reply.send(edits::prepare(&root, &patch, &self.documents, &self.capabilities, annotated));
            }
        }
    }

    fn initialize(&mut self, params: &InitializeParams, reply: oneshot::Sender<InitializeResult>) {
        self.capabilities = Capabilities::new(&params.capabilities);
        self.folders = Folders::new(params);
        if let Some(options) = &params.initialization_options {
            self.defaults = self.parsed(options);
        }
        let _ = reply.send(capabilities::offered(&self.capabilities));
    }

    fn ask_for_settings(&self) {
        if !self.capabilities.configuration {
            return;
        }
        let folders: Vec<PathBuf> = self.folders.iter().map(Path::to_owned).collect();
        let item = |folder: &PathBuf| ConfigurationItem {
            scope_uri: Some(documents::uri(folder)),
            section: Some("tadpole".into()),
        };
        let items = folders.iter().map(item).collect();
        let (client, inbox) = (self.client.clone(), self.inbox.clone());
        tokio::spawn(async move {
            if let Ok(values) = client.configuration(items).await {
                let given = folders.into_iter().zip(values).filter(|(_, value)| !value.is_null());
                let _ = inbox.send(Event::Settings(given.collect()));
            }
        });
    }

    /// The settings in `value`; each mistake is said once.
    fn parsed(&mut self, value: &Value) -> Settings {
        let (settings, mistakes) = Settings::parse(value);
        for mistake in mistakes {
            if self.said.insert(mistake.clone()) {
                self.show(MessageType::Warning, format!("Tadpole: {mistake}"));
            }
        }
        settings
    }

    fn settings(&self, path: &Path) -> &Settings {
        self.folders.of(path).and_then(|folder| self.settings.get(folder)).unwrap_or(&self.defaults)
    }

    fn show(&self, kind: MessageType, text: String) {
        let client = self.client.clone();
        tokio::spawn(async move { client.show_message(kind, text).await });
    }

    /// An open source file of a repository, as it is now.
    fn asked(&self, uri: &Uri) -> Option<Asked> {
        let path = documents::path(uri).filter(|path| actions::is_source(path))?;
        Some(Asked {
            client: self.capabilities,
            repository: self.folders.repository(&path)?,
            document: self.documents.at(&path)?.clone(),
            path,
            obstacle: None,
        })
    }

    fn code_actions(&self, params: CodeActionParams, reply: oneshot::Sender<Vec<CodeActionResponse>>) {
        let asked = self.asked(&params.text_document.uri);
        let Some(mut asked) = asked.filter(|asked| self.settings(&asked.path).code_actions) else {
            let _ = reply.send(Vec::new());
            return;
        };
        let context = Arc::clone(&self.context);
        tokio::task::spawn_blocking(move || {
            asked.obstacle = context.model_obstacle().map(Into::into);
            let _ = reply.send(asked.actions(params.range, &params.context));
        });
    }

    fn code_lenses(&self, uri: &Uri, reply: oneshot::Sender<Vec<CodeLens>>) {
        let Some(asked) = self.asked(uri).filter(|asked| self.settings(&asked.path).code_lens) else {
            let _ = reply.send(Vec::new());
            return;
        };
        tokio::task::spawn_blocking(move || {
            let _ = reply.send(asked.lenses());
        });
    }

    fn diagnostics(&self, uri: &Uri, reply: oneshot::Sender<Vec<Diagnostic>>) {
        let Some((asked, failures)) = self.failures(uri) else {
            let _ = reply.send(Vec::new());
            return;
        };
        let encoding = self.capabilities.encoding;
        tokio::task::spawn_blocking(move || {
            let Asked { repository, path, document, .. } = &asked;
            let _ = reply.send(results::diagnostics(repository, path, &document.text, &failures, encoding));
        });
    }

    fn failures(&self, uri: &Uri) -> Option<(Asked, Vec<Failure>)> {
        let asked = self.asked(uri)?;
        let failures = self.results.get(&asked.repository)?.of(&asked.path);
        Some((asked, failures))
    }

    /// Sends the diagnostics of an open file to a client that does not ask for them.
    fn publish_uri(&self, uri: &Uri) {
        if self.capabilities.pull_diagnostics {
            return;
        }
        let Some((asked, failures)) = self.failures(uri) else { return };
        let (client, encoding) = (self.client.clone(), self.capabilities.encoding);
        tokio::spawn(async move {
            let version = asked.document.version;
            let uri = asked.document.uri.clone();
            let found = tokio::task::spawn_blocking(move || {
                results::diagnostics(
                    &asked.repository,
                    &asked.path,
                    &asked.document.text,
                    &failures,
                    encoding,
                )
            });
            if let Ok(found) = found.await {
                client.publish_diagnostics(uri, found, Some(version)).await;
            }
        });
    }

    /// Runs a command; what starts a job answers with its number at once.
    fn execute(&mut self, command: Command) -> Result<Value, String> {
        match command {
            Command::Start { uri, work } => {
                let id = self.start(uri.as_ref(), work)?;
                Ok(json!({ "job": id }))
            }
            Command::Cancel(id) => {
                self.cancel(id);
                Ok(Value::Null)
            }
            Command::Status => {
                let jobs = self.jobs.status();
                let trusted: Vec<&Path> = self.folders.iter().filter(|it| self.context.trusted(it)).collect();
                let state = if jobs.is_empty() { "idle" } else { "running" };
                let model = self.context.model_status();
                Ok(json!({ "state": state, "jobs": jobs, "model": model, "trusted": trusted }))
            }
            Command::Trust(uri) => {
                let repository = self.repository(uri.as_ref())?;
                self.context.trust(&repository).map_err(|error| error.to_string())?;
                Ok(json!({ "trusted": repository }))
            }
        }
    }

    /// The repository that a command means.
    fn repository(&self, uri: Option<&Uri>) -> Result<PathBuf, String> {
        if let Some(uri) = uri {
            let path = documents::path(uri).ok_or_else(|| format!("{} is no file", uri.0))?;
            return self.folders.repository(&path).ok_or_else(|| {
                format!("{} is in no workspace folder and no git repository", path.display())
            });
        }
        let mut folders = self.folders.iter();
        match (folders.next(), folders.next()) {
            (Some(folder), None) => Ok(folder.to_owned()),
            (None, _) => Err("no folder is open".into()),
            _ => Err("several folders are open; say which one with {\"uri\"}".into()),
        }
    }

    fn start(&mut self, uri: Option<&Uri>, work: Work) -> Result<JobId, String> {
        let repository = self.repository(uri)?;
        let id = self.jobs.number();
        let reporter = if self.capabilities.progress {
            Reporter::begin(self.client.clone(), format!("tadpole/{id}"), work.title())
        } else {
            Reporter::silent()
        };
        let file = uri.and_then(documents::path);
        let job = Job { id, repository, file, work, cancel: CancellationToken::new(), reporter };
        if self.context.trusted(&job.repository) {
            self.enqueue(job);
        } else {
            self.ask_for_trust(job);
        }
        Ok(id)
    }

    /// Nothing is run in a repository before the person has said that it may be.
    fn ask_for_trust(&self, job: Job) {
        const TRUST: &str = "Trust";
        let (client, inbox, context) = (self.client.clone(), self.inbox.clone(), Arc::clone(&self.context));
        tokio::spawn(async move {
            let question = format!(
                "Tadpole runs the tests of {} in a sandbox. Do you trust this repository?",
                job.repository.display()
            );
            let choices = vec![review::item(TRUST), review::item("Not now")];
            let answer = client.show_message_request(MessageType::Warning, question, Some(choices)).await;
            let trusted = matches!(answer, Ok(Some(item)) if item.title == TRUST)
                && context.trust(&job.repository).is_ok();
            let _ = inbox.send(Event::Trusted(job, trusted));
        });
    }

    fn enqueue(&mut self, job: Job) {
        self.jobs.push(job);
        self.start_next();
    }

    fn start_next(&mut self) {
        let Some(job) = self.jobs.start() else { return };
        let (id, cancel, reporter) = (job.id, job.cancel.clone(), job.reporter.clone());
        let (repository, file, work) = (job.repository.clone(), job.file.clone(), job.work.clone());
        let settings = self.settings(file.as_deref().unwrap_or(&repository)).clone();
        let background = Background {
            context: Arc::clone(&self.context),
            inbox: self.inbox.clone(),
            buffers: self.documents.buffers(),
            repository,
            file,
            settings,
        };
        let inbox = self.inbox.clone();
        self.background.spawn(async move {
            let progress = |step: crate::agent::Progress| {
                reporter
                    .report(step.message, step.fraction.map(|part| (part.clamp(0.0, 1.0) * 100.0) as u32));
            };
            let result = background.work(work, &progress, &cancel).await;
            let _ = inbox.send(Event::Ended(id, Box::new(result)));
        });
    }

    fn cancel(&mut self, id: Option<JobId>) {
        for job in self.jobs.cancel(id) {
            self.finish(&job, "cancelled", "cancelled".into(), None);
        }
    }

    fn ended(&mut self, id: JobId, result: Result<Done, FixError>) {
        let Some(job) = self.jobs.end(id) else { return };
        match result {
            Ok(Done::Run { passed, failed }) => {
                let outcome = if failed == 0 { "passed" } else { "failed_tests" };
                self.finish(&job, outcome, format!("{passed} passed, {failed} failed"), None);
            }
            Ok(Done::Fix(finished)) => self.fixed(job, *finished),
            Err(FixError::Cancelled) => {
                self.finish(&job, "cancelled", "cancelled; nothing was changed".into(), None)
            }
            Err(error) => self.finish(&job, "failed", error.to_string(), None),
        }
        self.start_next();
    }

    fn fixed(&self, job: Job, finished: Finished) {
        let report = serde_json::to_value(&finished.report).unwrap_or_default();
        let note = finished.report.note.as_deref().map(|note| format!(" ({note})")).unwrap_or_default();
        match finished.report.outcome {
            Outcome::NothingToFix => {
                self.finish(&job, "nothing_to_fix", format!("no test fails{note}"), Some(report));
            }
            Outcome::NotFixed => {
                let text = format!("no fix was found in {} answers{note}", finished.report.samples);
                self.finish(&job, "not_fixed", text, Some(report));
            }
            Outcome::Fixed => {
                let mended = finished.report.tests.iter().filter(|it| it.after == TestOutcome::Passed);
                let tests: Vec<String> = mended.map(|test| test.id.to_string()).collect();
                let files: Vec<String> =
                    finished.patch.files.keys().map(|it| it.display().to_string()).collect();
                let what = match tests.as_slice() {
                    [one] => format!("{one} passes"),
                    several => format!("{} tests pass", several.len()),
                };
                let summary = format!("Tadpole: {what} with a verified change to {}{note}", files.join(", "));
                job.reporter.report("verified; waiting for you".into(), Some(100));
                self.review(job, finished, summary, report);
            }
        }
    }

    fn review(&self, job: Job, finished: Finished, summary: String, report: Value) {
        let review = Review {
            client: self.client.clone(),
            capabilities: self.capabilities,
            inbox: self.inbox.clone(),
            confirm: self.settings(job.file.as_deref().unwrap_or(&job.repository)).confirm,
            root: finished.snapshot.root().to_owned(),
            patch: finished.patch,
            summary: summary.clone(),
            scratch: self.context.home.scratch(),
        };
        let (finisher, inbox) = (self.finisher(), self.inbox.clone());
        let passing = finished.report.tests.iter().filter(|it| it.after == TestOutcome::Passed);
        let ran = passing.map(|it| it.id.clone()).collect();
        let repository = job.repository.clone();
        tokio::spawn(async move {
            let (outcome, message) = match review.run().await {
                Ok(Answer::Applied) => ("fixed", summary),
                Ok(Answer::Discarded) => {
                    ("discarded", "the fix was discarded; nothing was changed".to_owned())
                }
                Err(reason) => ("failed", reason),
            };
            if outcome == "fixed" {
                let _ = inbox.send(Event::Ran { repository, ran, failed: Vec::new() });
            }
            finisher.finish(&job, outcome, message, Some(report)).await;
        });
    }

    fn ran(&mut self, repository: PathBuf, ran: Vec<TestId>, failed: Vec<(PathBuf, Failure)>) {
        let results = self.results.entry(repository).or_default();
        let changed = results.update(ran.into_iter(), failed);
        for path in &changed {
            let uri = self.documents.at(path).map(|document| document.uri.clone());
            if let Some(uri) = uri {
                self.publish_uri(&uri);
            }
        }
        let (client, capabilities) = (self.client.clone(), self.capabilities);
        tokio::spawn(async move {
            if capabilities.pull_diagnostics && capabilities.refresh_diagnostics && !changed.is_empty() {
                let _ = client.workspace_diagnostic_refresh().await;
            }
            if capabilities.refresh_lenses {
                let _ = client.code_lens_refresh().await;
            }
        });
    }

    fn finisher(&self) -> Finisher {
        Finisher { client: self.client.clone(), says_it: !self.capabilities.finished }
    }

    fn finish(&self, job: &Job, outcome: &'static str, message: String, report: Option<Value>) {
        let finisher = self.finisher();
        job.reporter.end(message.clone());
        let (id, title) = (job.id, job.work.title());
        tokio::spawn(async move { finisher.tell(id, &title, outcome, message, report).await });
    }
}

/// Tells the client how a job ended.
struct Finisher {
    client: Client,
    /// The client does not show `tadpole/finished`, so a message is sent.
    says_it: bool,
}

impl Finisher {
    async fn finish(&self, job: &Job, outcome: &'static str, message: String, report: Option<Value>) {
        job.reporter.end(message.clone());
        self.tell(job.id, &job.work.title(), outcome, message, report).await;
    }

    async fn tell(
        &self,
        id: JobId,
        title: &str,
        outcome: &'static str,
        message: String,
        report: Option<Value>,
    ) {
        let mut params = json!({ "job": id, "title": title, "outcome": outcome, "message": message });
        if let Some(report) = report {
            params["report"] = report;
        }
        self.client.send_notification::<FinishedNotification>(params).await;
        if self.says_it {
            let kind = if outcome == "failed" { MessageType::Error } else { MessageType::Info };
            self.client.show_message(kind, format!("{title}: {message}")).await;
        }
    }
}

/// What a job needs, off the session task.
struct Background {
    context: Arc<Context>,
    inbox: mpsc::UnboundedSender<Event>,
    buffers: Buffers,
    repository: PathBuf,
    file: Option<PathBuf>,
    settings: Settings,
}

impl Background {
    async fn work(
        self,
        work: Work,
        progress: fix::OnProgress<'_>,
        cancel: &CancellationToken,
    ) -> Result<Done, FixError> {
        let target = match work {
            Work::RunTest(id) => return self.run_test(id, progress, cancel).await,
            Work::FixTest(id) => Target::Tests(vec![id]),
            Work::FixAll => Target::AllFailing,
            Work::FixIssue(text) => Target::Issue(text),
            Work::FixDiagnostic { line, message } => {
                let inside = self.file.as_ref().and_then(|file| file.strip_prefix(&self.repository).ok());
                let Some(path) = inside.map(Path::to_owned) else {
                    return Err(FixError::Environment(
                        "the diagnostic is in no file of the repository".into(),
                    ));
                };
                Target::Diagnostic { path, line: line + 1, message }
            }
        };
        let request = Request {
            repo: self.repository,
            buffers: self.buffers,
            target,
            policy: self.settings.edit.map(EditPolicy::from),
            samples: self.settings.samples,
        };
        fix::fix(&self.context, request, progress, cancel).await.map(Box::new).map(Done::Fix)
    }

    async fn run_test(
        self,
        id: TestId,
        progress: fix::OnProgress<'_>,
        cancel: &CancellationToken,
    ) -> Result<Done, FixError> {
        let Self { context, inbox, buffers, repository, file, .. } = self;
        let selection = Selection::Tests(vec![id.clone()]);
        let runs = fix::run_tests(&context, &repository, &buffers, &selection, progress, cancel).await?;
        let results: Vec<_> = runs.into_iter().flat_map(|(_, run)| run.results).collect();
        if results.is_empty() {
            return Err(FixError::Environment(format!("{id} was not found by the test framework")));
        }
        let passed = results.iter().filter(|(_, it)| it.outcome == TestOutcome::Passed).count();
        let failed = results
            .iter()
            .filter(|(_, it)| !matches!(it.outcome, TestOutcome::Passed | TestOutcome::Skipped));
        let done = Done::Run { passed, failed: failed.count() };
        let located = tokio::task::spawn_blocking(move || {
            let read =
                |path: &Path| buffers.get(path).cloned().or_else(|| std::fs::read_to_string(path).ok());
            let pairs = results.iter().map(|(id, result)| (id, result));
            let failed = results::locate(&repository, file.as_deref(), pairs, read);
            let ran = results.iter().map(|(id, _)| id.clone()).collect();
            Event::Ran { repository, ran, failed }
        });
        if let Ok(event) = located.await {
            let _ = inbox.send(event);
        }
        Ok(done)
    }
}
