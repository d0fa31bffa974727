//! What the client can do, resolved once, and what we offer it.

use tower_lsp_server::gen_lsp_types::{
    ClientCapabilities, CodeActionKind, CodeActionOptions, CodeActionProvider, CodeActionTag,
    CodeLensOptions, DiagnosticOptions, DiagnosticProvider, ExecuteCommandOptions, InitializeResult,
    ResourceOperationKind, Save, ServerCapabilities, ServerInfo, TextDocumentSync, TextDocumentSyncKind,
    TextDocumentSyncOptions, WorkspaceFoldersServerCapabilities, WorkspaceOptions,
};

use super::jobs::COMMANDS;
use super::positions::Encoding;

/// What the client can do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Client {
    /// How it counts columns.
    pub encoding: Encoding,
    /// It takes edits at all.
    pub apply_edit: bool,
    /// It takes versioned edits.
    pub document_changes: bool,
    /// It creates files as part of an edit.
    pub create_files: bool,
    /// It deletes files as part of an edit.
    pub delete_files: bool,
    /// It asks before it applies annotated edits.
    pub annotations: bool,
    /// It shows progress that we start.
    pub progress: bool,
    /// It opens a document that we name.
    pub show_document: bool,
    /// It asks for diagnostics itself.
    pub pull_diagnostics: bool,
    /// It can be told to ask again for diagnostics.
    pub refresh_diagnostics: bool,
    /// It can be told to ask again for lenses.
    pub refresh_lenses: bool,
    /// It shows why an action is not possible.
    pub disabled_actions: bool,
    /// It shows that an action is made by a model.
    pub model_made_tag: bool,
    /// It answers `workspace/configuration`.
    pub configuration: bool,
    /// It shows `tadpole/finished` itself, so that no message has to be sent for it.
    pub finished: bool,
}

impl Client {
    /// What `capabilities` say.
    pub fn new(capabilities: &ClientCapabilities) -> Self {
        let workspace = capabilities.workspace.as_ref();
        let edit = workspace.and_then(|it| it.workspace_edit.as_ref());
        let operations = edit.and_then(|it| it.resource_operations.as_deref()).unwrap_or_default();
        let text = capabilities.text_document.as_ref();
        let action = text.and_then(|it| it.code_action.as_ref());
        let window = capabilities.window.as_ref();
        let general = capabilities.general.as_ref();
        let tags = action.and_then(|it| it.tag_support.as_ref());
        let experimental = capabilities.experimental.as_ref();
        Self {
            encoding: Encoding::negotiate(general.and_then(|it| it.position_encodings.as_deref())),
            apply_edit: workspace.and_then(|it| it.apply_edit) == Some(true),
            // Operations on files come only in `documentChanges`, so naming one (as Neovim does) says both.
            document_changes: edit.and_then(|it| it.document_changes) == Some(true) || !operations.is_empty(),
            create_files: operations.contains(&ResourceOperationKind::Create),
            delete_files: operations.contains(&ResourceOperationKind::Delete),
            annotations: edit.is_some_and(|it| it.change_annotation_support.is_some())
                && action.and_then(|it| it.honors_change_annotations) == Some(true),
            progress: window.and_then(|it| it.work_done_progress) == Some(true),
            show_document: window.and_then(|it| it.show_document.as_ref()).is_some_and(|it| it.support),
            pull_diagnostics: text.is_some_and(|it| it.diagnostic.is_some()),
            refresh_diagnostics: workspace.and_then(|it| it.diagnostics.as_ref()?.refresh_support)
                == Some(true),
            refresh_lenses: workspace.and_then(|it| it.code_lens.as_ref()?.refresh_support) == Some(true),
            disabled_actions: action.and_then(|it| it.disabled_support) == Some(true),
            model_made_tag: tags.is_some_and(|it| it.value_set.contains(&CodeActionTag::LLMGenerated)),
            configuration: workspace.and_then(|it| it.configuration) == Some(true),
            finished: experimental.and_then(|it| it.get("tadpole")?.get("finished")?.as_bool()) == Some(true),
        }
    }
}

/// What we offer.
pub fn offered(client: &Client) -> InitializeResult {
    let capabilities = ServerCapabilities {
        position_encoding: Some(client.encoding.kind()),
        text_document_sync: Some(TextDocumentSync::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::Incremental),
            save: Some(Save::Bool(true)),
            ..Default::default()
        })),
        code_action_provider: Some(CodeActionProvider::CodeActionOptions(CodeActionOptions {
            code_action_kinds: Some(vec![CodeActionKind::QuickFix]),
            ..Default::default()
        })),
        code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(true), ..Default::default() }),
        execute_command_provider: Some(ExecuteCommandOptions {
            commands: COMMANDS.iter().map(|&name| name.to_owned()).collect(),
            ..Default::default()
        }),
        diagnostic_provider: client.pull_diagnostics.then(|| {
            DiagnosticProvider::DiagnosticOptions(DiagnosticOptions {
                identifier: Some("tadpole".into()),
                inter_file_dependencies: true,
                workspace_diagnostics: false,
                ..Default::default()
            })
        }),
        workspace: Some(WorkspaceOptions {
            workspace_folders: Some(WorkspaceFoldersServerCapabilities {
                supported: Some(true),
                change_notifications: Some(true.into()),
            }),
            ..Default::default()
        }),
        ..Default::default()
    };
    let info = ServerInfo { name: "tadpole".into(), version: Some(env!("CARGO_PKG_VERSION").into()) };
    InitializeResult { capabilities, server_info: Some(info) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn client(capabilities: serde_json::Value) -> Client {
        Client::new(&serde_json::from_value(capabilities).unwrap())
    }

    #[test]
    fn a_client_that_says_nothing_can_do_nothing() {
        let client = client(json!({}));
        assert!(!client.apply_edit && !client.progress && !client.annotations && !client.pull_diagnostics);
        assert_eq!(client.encoding, Encoding::Utf16);
    }

    #[test]
    fn operations_on_files_come_only_in_versioned_edits() {
        let edit = json!({ "workspaceEdit": { "resourceOperations": ["create"] } });
        assert!(client(json!({ "workspace": edit })).document_changes);
        assert!(!client(json!({ "workspace": { "workspaceEdit": {} } })).document_changes);
    }

    #[test]
    fn annotations_count_only_where_code_actions_honour_them() {
        let edit = json!({ "workspaceEdit": { "changeAnnotationSupport": {} } });
        assert!(!client(json!({ "workspace": edit })).annotations);
        let action = json!({ "codeAction": { "honorsChangeAnnotations": true } });
        assert!(client(json!({ "workspace": edit, "textDocument": action })).annotations);
    }
}
