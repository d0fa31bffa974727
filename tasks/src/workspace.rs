//! Pooled, resettable, leak-proof copies of a snapshot, for commands and tests to change freely.

use std::path::{Path, PathBuf};

use crate::patch::Patch;
use crate::snapshot::{Snapshot, SnapshotError};

/// The workspaces of one data directory.
#[derive(Clone, Debug)]
pub struct Pool {
    dir: PathBuf,
}

impl Pool {
    /// The pool under `dir`, which is created when missing.
    ///
    /// # Errors
    /// If the directory cannot be made.
    pub fn open(dir: &Path) -> Result<Self, SnapshotError> {
        Ok(Self { dir: dir.to_owned() })
    }

    /// A workspace that equals `snapshot`: a free one of the same repository reset, or a new one. Held by an
    /// OS file lock until dropped, so a killed process frees it.
    ///
    /// # Errors
    /// If files cannot be written.
    pub fn acquire(&self, snapshot: &Snapshot) -> Result<Workspace, SnapshotError> {
        let _ = (snapshot, &self.dir);
        unimplemented!()
    }
}

/// A writable copy of a snapshot. The sandbox mounts [`Workspace::tree`] at [`Workspace::mount`].
#[derive(Debug)]
pub struct Workspace {
    tree: PathBuf,
    mount: PathBuf,
    cache: PathBuf,
}

impl Workspace {
    /// Where the files are on the host.
    pub fn tree(&self) -> &Path {
        &self.tree
    }

    /// The user's own path, at which the sandbox shows the tree.
    pub fn mount(&self) -> &Path {
        &self.mount
    }

    /// The build cache of this workspace (cargo target, GOCACHE, ...): survives a reset.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// Makes the tree equal to `snapshot` again (content, modes, links; nothing else stays but the cache).
    ///
    /// # Errors
    /// If files cannot be written.
    pub fn reset(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let _ = snapshot;
        unimplemented!()
    }

    /// Applies a patch to the tree; never follows a link out of it.
    ///
    /// # Errors
    /// If files cannot be written.
    pub fn apply(&self, patch: &Patch) -> Result<(), SnapshotError> {
        let _ = patch;
        unimplemented!()
    }

    /// What differs from `snapshot`, found by our own walk (never by git); ignored build output
    /// (`__pycache__`, `target`, ...) is left out.
    ///
    /// # Errors
    /// If files cannot be read.
    pub fn changes(&self, snapshot: &Snapshot) -> Result<Patch, SnapshotError> {
        let _ = snapshot;
        unimplemented!()
    }
}
