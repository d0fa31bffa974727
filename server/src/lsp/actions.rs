//! Code actions and lenses. They are computed off the session task from what was there when they were asked for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tasks::runner::TestId;
use tasks::syntax::TestItem;
use tower_lsp_server::gen_lsp_types::{
    CodeAction, CodeActionContext, CodeActionDisabled, CodeActionKind, CodeActionResponse, CodeActionTag,
    CodeLens, Command, Diagnostic, Message, Range,
};

use super::capabilities::Client;
use super::documents::Document;
use super::jobs::first_line;
use super::places;
use super::results::SOURCE;

/// Diagnostics at one place for which an action is offered.
const MOST: usize = 3;

/// A file of a repository, as it was when the client asked.
pub struct Asked {
    /// What the client can do.
    pub client: Client,
    /// The repository.
    pub repository: PathBuf,
    /// The file.
    pub path: PathBuf,
    /// Its text.
    pub document: Document,
    /// Why nothing can be fixed now (no model), if so.
    pub obstacle: Option<Arc<str>>,
}

impl Asked {
    /// The actions at `range`: for the test there, and for what tools report there. Ours never come first and are never
    /// preferred.
    pub fn actions(&self, range: Range, context: &CodeActionContext) -> Vec<CodeActionResponse> {
        let wanted =
            |only: &CodeActionKind| *only == CodeActionKind::Empty || *only == CodeActionKind::QuickFix;
        if context.only.as_ref().is_some_and(|only| !only.iter().any(wanted)) {
            return Vec::new();
        }
        let encoding = self.client.encoding;
        let text = &self.document.text;
        let bytes = encoding.offset(text, range.start)..encoding.offset(text, range.end);
        let mut actions = Vec::new();
        let touched = |item: &TestItem| item.range.start <= bytes.end && bytes.start <= item.range.end;
        let tests = places::tests(&self.repository, &self.path, text);
        if let Some((id, item)) =
            tests.iter().filter(|(_, item)| touched(item)).min_by_key(|it| it.1.range.len())
        {
            let ours = context.diagnostics.iter().filter(|it| is_ours(it)).cloned().collect();
            let title = format!("Tadpole: fix failing test `{}`", item.name);
            actions.push(self.action(title, fix_test(&self.document, id), ours));
        }
        for diagnostic in context.diagnostics.iter().filter(|it| !is_ours(it)).take(MOST) {
            let message = message(diagnostic);
            let title = format!("Tadpole: fix `{}`", first_line(message));
            let arguments =
                json!({ "uri": self.document.uri, "line": diagnostic.range.start.line, "message": message });
            let command = command(&title, "tadpole.fixDiagnostic", arguments);
            actions.push(self.action(title, command, vec![diagnostic.clone()]));
        }
        actions.into_iter().flatten().map(CodeActionResponse::CodeAction).collect()
    }

    /// The lenses of the file's tests. Their commands are filled in by [`resolve`].
    pub fn lenses(&self) -> Vec<CodeLens> {
        let tests = places::tests(&self.repository, &self.path, &self.document.text);
        let lens = |id: &TestId, item: &TestItem, kind: &str| CodeLens {
            range: self.client.encoding.range(&self.document.text, item.name_range.clone()),
            command: None,
            data: Some(json!({ "uri": self.document.uri, "test": id, "kind": kind })),
        };
        tests.iter().flat_map(|(id, item)| ["fix", "run"].map(|kind| lens(id, item, kind))).collect()
    }

    fn action(&self, title: String, command: Command, diagnostics: Vec<Diagnostic>) -> Option<CodeAction> {
        if self.obstacle.is_some() && !self.client.disabled_actions {
            return None;
        }
        let disabled = self.obstacle.as_ref().map(|reason| CodeActionDisabled { reason: reason.to_string() });
        Some(CodeAction {
            title,
            kind: Some(CodeActionKind::QuickFix),
            diagnostics: (!diagnostics.is_empty()).then_some(diagnostics),
            command: disabled.is_none().then_some(command),
            disabled,
            tags: self.client.model_made_tag.then(|| vec![CodeActionTag::LLMGenerated]),
            ..Default::default()
        })
    }
}

/// Fills in the command of a lens.
pub fn resolve(mut lens: CodeLens) -> CodeLens {
    let Some(data) = lens.data.clone() else { return lens };
    let (title, name) = match data.get("kind").and_then(Value::as_str) {
        Some("run") => ("Run", "tadpole.runTest"),
        _ => ("Fix", "tadpole.fixTest"),
    };
    lens.command = Some(command(title, name, json!({ "uri": data["uri"], "test": data["test"] })));
    lens
}

fn fix_test(document: &Document, id: &TestId) -> Command {
    command("Fix failing test", "tadpole.fixTest", json!({ "uri": document.uri, "test": id }))
}

fn command(title: &str, name: &str, arguments: Value) -> Command {
    Command { title: title.into(), tooltip: None, command: name.into(), arguments: Some(vec![arguments]) }
}

fn is_ours(diagnostic: &Diagnostic) -> bool {
    diagnostic.source.as_deref() == Some(SOURCE)
}

fn message(diagnostic: &Diagnostic) -> &str {
    match &diagnostic.message {
        Message::String(text) => text,
        Message::MarkupContent(content) => &content.value,
    }
}

/// Whether actions and lenses are offered for `path` at all.
pub fn is_source(path: &Path) -> bool {
    tasks::syntax::Language::of(path).is_some()
}
