//! From a verified patch to a `WorkspaceEdit` that fits the buffers as they are now, or a refusal.

use std::collections::HashMap;
use std::path::Path;

use similar::{ChangeTag, DiffOp};
use tasks::patch::{FileChange, Patch};
use tower_lsp_server::gen_lsp_types::{
    AnnotatedTextEdit, ChangeAnnotation, CreateFile, DeleteFile, DocumentChange, Edit,
    OptionalVersionedTextDocumentIdentifier, TextDocumentEdit, TextDocumentIdentifier, TextEdit, Uri,
    WorkspaceEdit,
};

use super::capabilities::Client;
use super::documents::{self, Document, Documents};
use super::positions::Encoding;

/// The one annotation of our edits.
const ANNOTATION: &str = "tadpole";

/// An edit, and whether any buffer had moved on since the fix was verified.
#[derive(Debug)]
pub struct Prepared {
    /// For `workspace/applyEdit`.
    pub edit: WorkspaceEdit,
    /// Something was rebased: the tests have not seen exactly this text.
    pub rebased: bool,
}

/// The edit that makes `patch` (paths relative to `root`) of the buffers and files as they are now.
///
/// # Errors
/// One line, if a file has changed where the patch changes it, or the client cannot make such an edit.
pub fn prepare(
    root: &Path,
    patch: &Patch,
    documents: &Documents,
    client: &Client,
    annotated: bool,
) -> Result<Prepared, String> {
    if !client.apply_edit {
        return Err("this editor takes no edits from a language server".into());
    }
    let mut changes = Vec::new();
    let mut rebased = false;
    for (relative, change) in &patch.files {
        if change.before == change.after {
            continue;
        }
        let path = root.join(relative);
        let open = open_at(documents, &path);
        let uri = open.map_or_else(|| documents::uri(&path), |document| document.uri.clone());
        let now = now(&path, open)?;
        match (&change.before, &change.after) {
            (None, Some(after)) => {
                if now.is_some() {
                    return Err(format!("{} has appeared meanwhile", relative.display()));
                }
                if !client.create_files || !client.document_changes {
                    return Err(format!(
                        "this editor cannot create {} as part of an edit",
                        relative.display()
                    ));
                }
                changes.push(DocumentChange::CreateFile(CreateFile::new(uri.clone(), None, id(annotated))));
                let insert =
                    TextEdit { range: Default::default(), new_text: utf8(relative, after)?.to_owned() };
                changes.push(text_edit(uri, None, vec![insert], annotated));
            }
            (_, None) => {
                if now.as_deref().map(str::as_bytes) != change.before.as_deref() {
                    return Err(format!("{} has changed meanwhile", relative.display()));
                }
                if !client.delete_files || !client.document_changes {
                    return Err(format!(
                        "this editor cannot delete {} as part of an edit",
                        relative.display()
                    ));
                }
                changes.push(DocumentChange::DeleteFile(DeleteFile::new(uri, None, id(annotated))));
            }
            (Some(_), Some(_)) => {
                let Some(now) = now else { return Err(format!("{} is gone", relative.display())) };
                let edits = file_edits(relative, change, &now, client.encoding)?;
                rebased |= change.before.as_deref() != Some(now.as_bytes());
                if open.is_none() && rebased {
                    return Err(format!("{} has changed on disk meanwhile", relative.display()));
                }
                changes.push(text_edit(uri, open.map(|it| it.version), edits, annotated));
            }
        }
    }
    Ok(Prepared { edit: workspace_edit(changes, client, annotated), rebased })
}

/// The open document whose file is `path`, however the client spells it.
fn open_at<'a>(documents: &'a Documents, path: &Path) -> Option<&'a Document> {
    documents.at(path).or_else(|| {
        let same = |other: &Path| other.canonicalize().is_ok_and(|it| it == path);
        documents
            .iter()
            .find(|(other, _)| other.file_name() == path.file_name() && same(other))
            .map(|it| it.1)
    })
}

/// What the person sees at `path`: the buffer, else the file.
fn now(path: &Path, open: Option<&Document>) -> Result<Option<String>, String> {
    if let Some(document) = open {
        return Ok(Some(document.text.to_string()));
    }
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

fn utf8<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a str, String> {
    std::str::from_utf8(bytes).map_err(|_| format!("{} is not UTF-8 text", path.display()))
}

fn file_edits(
    path: &Path,
    change: &FileChange,
    now: &str,
    encoding: Encoding,
) -> Result<Vec<TextEdit>, String> {
    let before = utf8(path, change.before.as_deref().unwrap_or_default())?;
    let after = utf8(path, change.after.as_deref().unwrap_or_default())?;
    rebase(before, after, now, encoding)
        .ok_or_else(|| format!("{} has changed where the fix changes it; run the fix again", path.display()))
}

/// The edits that do to `now` what turns `before` into `after`, in order, not overlapping; `None` where `now` differs from
/// `before` in a changed line or one beside it.
fn rebase(before: &str, after: &str, now: &str, encoding: Encoding) -> Option<Vec<TextEdit>> {
    let (old, new, current) = (lines(before), lines(after), lines(now));
    let places = places(&old, &current);
    let mut starts = vec![0];
    starts.extend(current.iter().scan(0, |offset, line| {
        *offset += line.len();
        Some(*offset)
    }));
    let mut edits = Vec::new();
    for op in similar::capture_diff_slices(similar::Algorithm::Patience, &old, &new) {
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        let (gone, come) = (op.old_range(), op.new_range());
        // `places` has a sentinel on either side, so line i stands at i + 1.
        let around = &places[gone.start..=gone.end + 1];
        let untouched = around.windows(2).all(|pair| match (pair[0], pair[1]) {
            (Some(one), Some(next)) => next == one + 1,
            _ => false,
        });
        let first = around[0].filter(|_| untouched)?;
        let bytes = starts[first]..starts[first + gone.len()];
        edits.push(TextEdit { range: encoding.range(now, bytes), new_text: new[come].concat() });
    }
    Some(edits)
}

/// Where each line of `old` stands in `current`, counted from 1, between two sentinels for the beginning and the end.
fn places(old: &[&str], current: &[&str]) -> Vec<Option<usize>> {
    let mut places = vec![None; old.len() + 2];
    places[0] = Some(0);
    places[old.len() + 1] = Some(current.len() + 1);
    for op in similar::capture_diff_slices(similar::Algorithm::Patience, old, current) {
        for change in op.iter_changes(old, current).filter(|it| it.tag() == ChangeTag::Equal) {
            if let (Some(old), Some(new)) = (change.old_index(), change.new_index()) {
                places[old + 1] = Some(new + 1);
            }
        }
    }
    places
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn id(annotated: bool) -> Option<String> {
    annotated.then(|| ANNOTATION.to_owned())
}

fn text_edit(uri: Uri, version: Option<i32>, edits: Vec<TextEdit>, annotated: bool) -> DocumentChange {
    let marked = |text_edit: TextEdit| match id(annotated) {
        Some(annotation_id) => Edit::AnnotatedTextEdit(AnnotatedTextEdit { annotation_id, text_edit }),
        None => Edit::TextEdit(text_edit),
    };
    let text_document = OptionalVersionedTextDocumentIdentifier {
        version,
        text_document_identifier: TextDocumentIdentifier { uri },
    };
    DocumentChange::TextDocumentEdit(TextDocumentEdit {
        text_document,
        edits: edits.into_iter().map(marked).collect(),
    })
}

fn workspace_edit(changes: Vec<DocumentChange>, client: &Client, annotated: bool) -> WorkspaceEdit {
    if client.document_changes {
        let annotation = ChangeAnnotation {
            label: "Fix by Tadpole, verified by the tests".into(),
            needs_confirmation: Some(true),
            description: None,
        };
        return WorkspaceEdit {
            document_changes: Some(changes),
            change_annotations: annotated.then(|| HashMap::from([(ANNOTATION.to_owned(), annotation)])),
            ..Default::default()
        };
    }
    let mut plain: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
    for change in changes {
        let DocumentChange::TextDocumentEdit(change) = change else { continue };
        let edits = change.edits.into_iter().filter_map(|edit| match edit {
            Edit::TextEdit(edit) => Some(edit),
            _ => None,
        });
        plain.entry(change.text_document.text_document_identifier.uri).or_default().extend(edits);
    }
    WorkspaceEdit { changes: Some(plain), ..Default::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a client does it: positions refer to the text before, so the last edit goes first.
    fn apply(text: &str, edits: &[TextEdit], encoding: Encoding) -> String {
        let mut text = text.to_owned();
        for edit in edits.iter().rev() {
            let range = encoding.offset(&text, edit.range.start)..encoding.offset(&text, edit.range.end);
            text.replace_range(range, &edit.new_text);
        }
        text
    }

    #[test]
    fn an_unchanged_buffer_becomes_exactly_the_verified_text() {
        let before = "a\r\n\t\u{1F600} = 1\r\nb\r\nc";
        for after in
            ["a\r\n\t\u{1F600} = 2\r\nb\r\nc", "a\r\nb\r\nc", "", "x\r\na\r\n\t\u{1F600} = 1\r\nb\r\nc\r\nd"]
        {
            for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
                let edits = rebase(before, after, before, encoding).unwrap();
                assert_eq!(apply(before, &edits, encoding), after);
            }
        }
    }

    #[test]
    fn a_change_elsewhere_is_kept() {
        let (before, after) = ("a\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n");
        let now = "new\na\nb!\nc\nd\ne\n";
        let edits = rebase(before, after, now, Encoding::Utf16).unwrap();
        assert_eq!(apply(now, &edits, Encoding::Utf16), "new\na\nb!\nc\nd\nE\n");
    }

    #[test]
    fn a_change_in_or_beside_the_place_is_refused() {
        let (before, after) = ("a\nb\nc\nd\n", "a\nB\nc\nd\n");
        assert_eq!(rebase(before, after, "a\nb?\nc\nd\n", Encoding::Utf16), None);
        assert_eq!(rebase(before, after, "a\nb\nc?\nd\n", Encoding::Utf16), None);
        assert_eq!(rebase(before, after, "a\nnew\nb\nc\nd\n", Encoding::Utf16), None);
    }

    #[test]
    fn a_file_that_changed_on_disk_is_refused() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        let root = root.path().canonicalize()?;
        std::fs::write(root.join("a.py"), "other\nb\nc\nd\n")?;
        let patch = Patch::replace("a.py", b"a\nb\nc\nd\n", b"a\nb\nc\nD\n");
        let client = Client { apply_edit: true, document_changes: true, ..Default::default() };
        let refused = prepare(&root, &patch, &Documents::default(), &client, false);
        assert_eq!(refused.unwrap_err(), "a.py has changed on disk meanwhile");
        std::fs::write(root.join("a.py"), "a\nb\nc\nd\n")?;
        assert!(!prepare(&root, &patch, &Documents::default(), &client, false).unwrap().rebased);
        Ok(())
    }
}
