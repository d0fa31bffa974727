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
