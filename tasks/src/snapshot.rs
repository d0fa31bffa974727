//! What the user sees now, as one immutable tree: files on disk (tracked, changed and untracked), with
//! the text of unsaved buffers in place of what is on disk. Nothing is ever written to the user's tree
//! or `.git`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::patch::Patch;

/// Texts of unsaved editor buffers by absolute path; they win over the disk.
pub type Buffers = BTreeMap<PathBuf, String>;

/// Why a snapshot could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The root is missing or not a directory.
    #[error("{0} is not a directory")]
    NotADirectory(PathBuf),
    /// Reading or writing failed.
    #[error("{path}: {source}")]
    Io {
        /// The file concerned.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// One entry of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A regular file: SHA-256 of its content and whether it is executable.
    File {
        /// SHA-256 of the content.
        hash: [u8; 32],
        /// The executable bit.
        executable: bool,
    },
    /// A symbolic link, kept as it is.
    Symlink(PathBuf),
}

/// An immutable tree. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Snapshot {
    root: PathBuf,
    store: PathBuf,
    entries: Arc<BTreeMap<PathBuf, Entry>>,
    dependencies: Arc<Vec<PathBuf>>,
}

impl Snapshot {
    /// What the user sees under `root` now. Content goes to the content-addressed directory `store`.
    ///
    /// Respects ignore rules; `.git` is left out. Ignored directories that tests need (virtual environments,
    /// `node_modules`) are not copied but listed in [`Snapshot::dependencies`].
    ///
    /// # Errors
    /// If `root` is not a directory or a file cannot be read.
    pub fn capture(root: &Path, buffers: &Buffers, store: &Path) -> Result<Self, SnapshotError> {
        let _ = (root, buffers, store);
        unimplemented!()
    }

    /// The user's own absolute, canonical path of the tree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The entries by path relative to the root.
    pub fn entries(&self) -> &BTreeMap<PathBuf, Entry> {
        &self.entries
    }

    /// Absolute directories of the user to be bound read-only at their own path.
    pub fn dependencies(&self) -> &[PathBuf] {
        &self.dependencies
    }

    /// The content of a regular file.
    ///
    /// # Errors
    /// If there is no such file or it cannot be read.
    pub fn read(&self, path: &Path) -> Result<Arc<[u8]>, SnapshotError> {
        let _ = (path, &self.store);
        unimplemented!()
    }

    /// The content-addressed file that holds a regular file's content (to copy or reflink from).
    pub fn blob(&self, hash: &[u8; 32]) -> PathBuf {
        let name = hex::encode(hash);
        self.store.join(&name[..2]).join(&name[2..])
    }

    /// A new snapshot with `patch` applied.
    ///
    /// # Errors
    /// If the new content cannot be stored.
    pub fn with(&self, patch: &Patch) -> Result<Self, SnapshotError> {
        let _ = patch;
        unimplemented!()
    }

    /// Hex SHA-256 over paths, modes and hashes: equal trees have equal ids.
    pub fn id(&self) -> String {
        unimplemented!()
    }
}
