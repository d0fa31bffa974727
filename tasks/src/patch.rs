//! A change to a tree of files: what an attempt produced and what an editor applies.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// One file before and after; `None` means that the file does not exist on that side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Content before.
    pub before: Option<Arc<[u8]>>,
    /// Content after.
    pub after: Option<Arc<[u8]>>,
}

/// A set of file changes, keyed by the path relative to the snapshot's root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    /// The changed files.
    pub files: BTreeMap<PathBuf, FileChange>,
}

impl Patch {
    /// A patch that replaces one file's content.
    pub fn replace(path: impl Into<PathBuf>, before: &[u8], after: &[u8]) -> Self {
        let change = FileChange { before: Some(before.into()), after: Some(after.into()) };
        Self { files: BTreeMap::from([(path.into(), change)]) }
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.files.values().all(|change| change.before == change.after)
    }

    /// The unified diff (`a/` and `b/` prefixes, three lines of context, `/dev/null` for a missing
    /// side); files that are not UTF-8 are named as binary.
    pub fn unified_diff(&self) -> String {
        self.files
            .iter()
            .filter(|(_, change)| change.before != change.after)
            .map(|(path, change)| file_diff(path, change))
            .collect()
    }
}

fn file_diff(path: &Path, change: &FileChange) -> String {
    let name = path.to_string_lossy().replace('\\', "/");
    let side = |prefix: char, content: &Option<Arc<[u8]>>| match content {
        Some(_) => format!("{prefix}/{name}"),
        None => "/dev/null".to_owned(),
    };
    let (old, new) = (side('a', &change.before), side('b', &change.after));
    let before = change.before.as_deref().unwrap_or_default();
    let after = change.after.as_deref().unwrap_or_default();
    let (Ok(before), Ok(after)) = (std::str::from_utf8(before), std::str::from_utf8(after)) else {
        return format!("Binary files {old} and {new} differ\n");
    };
    similar::TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(3)
        .header(&old, &new)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diff_names_both_sides_and_the_changed_line() {
        let patch = Patch::replace("src/a.py", b"x = 1\ny = 2\n", b"x = 1\ny = 3\n");
        let diff = patch.unified_diff();
        assert_eq!(diff, "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n");
    }

    #[test]
    fn an_unchanged_file_is_no_change() {
        let patch = Patch::replace("a", b"1", b"1");
        assert!(patch.is_empty());
        assert_eq!(patch.unified_diff(), "");
    }
}
