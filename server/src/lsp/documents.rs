//! The open documents, as the client sees them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tasks::snapshot::Buffers;
use tower_lsp_server::gen_lsp_types::{TextDocumentContentChangeEvent, Uri};

use super::positions::Encoding;

/// One open document. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Document {
    /// As the client spells it.
    pub uri: Uri,
    /// Counted by the client.
    pub version: i32,
    /// Its text now.
    pub text: Arc<str>,
    /// Whether the text differs from the file since the document was opened or saved.
    pub unsaved: bool,
}

/// All open documents that are files, by path.
#[derive(Clone, Debug, Default)]
pub struct Documents(BTreeMap<PathBuf, Document>);

impl Documents {
    /// Takes a document that the client has opened; what is no file is ignored.
    pub fn open(&mut self, uri: Uri, version: i32, text: String) {
        let Some(path) = path(&uri) else { return };
        // An editor may open a buffer that it has recovered and not yet saved.
        let unsaved = std::fs::read(&path).map_or(true, |disk| disk != text.as_bytes());
        self.0.insert(path, Document { uri, version, text: text.into(), unsaved });
    }

    /// Applies the client's changes, one after the other.
    pub fn change(
        &mut self,
        uri: &Uri,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
        encoding: Encoding,
    ) {
        let Some(document) = path(uri).and_then(|path| self.0.get_mut(&path)) else { return };
        let mut text = document.text.to_string();
        for change in changes {
            match change {
                TextDocumentContentChangeEvent::TextDocumentContentChangePartial(change) => {
                    let start = encoding.offset(&text, change.range.start);
                    let end = encoding.offset(&text, change.range.end).max(start);
                    text.replace_range(start..end, &change.text);
                }
                TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(change) => {
                    text = change.text;
                }
            }
        }
        document.text = text.into();
        document.version = version;
        document.unsaved = true;
    }

    /// The client has saved it: the file holds what the document holds.
    pub fn save(&mut self, uri: &Uri) {
        if let Some(document) = path(uri).and_then(|path| self.0.get_mut(&path)) {
            document.unsaved = false;
        }
    }

    /// The client has closed it: the file counts again.
    pub fn close(&mut self, uri: &Uri) {
        if let Some(path) = path(uri) {
            self.0.remove(&path);
        }
    }

    /// The open document at `path`.
    pub fn at(&self, path: &Path) -> Option<&Document> {
        self.0.get(path)
    }

    /// The open documents with their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, &Document)> {
        self.0.iter().map(|(path, document)| (path.as_path(), document))
    }

    /// The texts that win over the disk.
    pub fn buffers(&self) -> Buffers {
        let unsaved = self.iter().filter(|(_, document)| document.unsaved);
        unsaved.map(|(path, document)| (path.to_owned(), document.text.to_string())).collect()
    }
}

/// The file that `uri` names; `None` for untitled and virtual documents.
pub fn path(uri: &Uri) -> Option<PathBuf> {
    let rest = uri.0.strip_prefix("file://")?;
    // A host other than this one is no file of ours.
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    let bytes = percent_encoding::percent_decode_str(rest.split(['?', '#']).next()?).collect::<Vec<u8>>();
    let path = PathBuf::from(OsString::from_vec(bytes));
    path.is_absolute().then_some(path)
}

/// The URI of a file.
pub fn uri(path: &Path) -> Uri {
    const KEPT: &percent_encoding::AsciiSet =
        &percent_encoding::NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    let encoded = percent_encoding::percent_encode(path.as_os_str().as_bytes(), KEPT);
    Uri(format!("file://{encoded}"))
}

#[cfg(test)]
mod tests {
    use tower_lsp_server::gen_lsp_types::{Position, Range, TextDocumentContentChangePartial};

    use super::*;

    fn replace(line: u32, from: u32, to: u32, text: &str) -> TextDocumentContentChangeEvent {
        let range =
            Range { start: Position { line, character: from }, end: Position { line, character: to } };
        #[expect(deprecated, reason = "the field has to be given")]
        let change = TextDocumentContentChangePartial { range, range_length: None, text: text.to_owned() };
        TextDocumentContentChangeEvent::TextDocumentContentChangePartial(change)
    }

    #[test]
    fn changes_apply_in_order_and_each_sees_the_one_before() {
        let mut documents = Documents::default();
        let name = uri(Path::new("/nonexistent/a b/\u{e9}.py"));
        documents.open(name.clone(), 1, "x = \"\u{1F600}\"\r\ny\r\n".into());
        let changes = vec![replace(0, 5, 7, "ab"), replace(0, 5, 7, "c"), replace(1, 0, 1, "z")];
        documents.change(&name, 2, changes, Encoding::Utf16);
        let document = documents.at(Path::new("/nonexistent/a b/\u{e9}.py"));
        assert_eq!(document.map(|it| (&*it.text, it.version)), Some(("x = \"c\"\r\nz\r\n", 2)));
    }

    #[test]
    fn a_path_with_spaces_and_accents_survives_its_uri() {
        let path_before = Path::new("/tmp/a b/caf\u{e9}#1?.rs");
        assert_eq!(path(&uri(path_before)).as_deref(), Some(path_before));
        assert_eq!(path(&Uri("untitled:Untitled-1".into())), None);
    }

    #[test]
    fn only_unsaved_texts_win_over_the_disk() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (a, b) = (dir.path().join("a.py"), dir.path().join("b.py"));
        std::fs::write(&a, "1\n")?;
        std::fs::write(&b, "1\n")?;
        let mut documents = Documents::default();
        documents.open(uri(&a), 1, "1\n".into());
        documents.open(uri(&b), 1, "1\n".into());
        documents.change(&uri(&b), 2, vec![replace(0, 0, 1, "2")], Encoding::Utf16);
        assert_eq!(documents.buffers(), Buffers::from([(b.clone(), "2\n".to_owned())]));
        documents.save(&uri(&b));
        assert!(documents.buffers().is_empty());
        Ok(())
    }
}
