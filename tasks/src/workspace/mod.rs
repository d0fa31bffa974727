//! Pooled, resettable, leak-proof copies of a snapshot, for commands and tests to change freely.
//!
//! A pool holds slots by repository: `POOL/<hash of root>/<n>/{lock,tree,cache}`. A slot belongs to whoever holds
//! its OS file lock, so a killed process frees it. Files are copied (or cloned where the file system can),
//! never hard-linked: a command that writes into its copy reaches nothing else. The copy has a git
//! repository of its own, with one commit and no history.

mod git;
mod tree;

#[cfg(test)]
mod tests;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

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
        std::fs::create_dir_all(dir).map_err(SnapshotError::io(dir))?;
        let dir = dir.canonicalize().map_err(SnapshotError::io(dir))?;
        Ok(Self { dir })
    }

    /// A workspace that equals `snapshot`: a free one of the same repository reset, or a new one. Held by an
    /// OS file lock until dropped, so a killed process frees it.
    ///
    /// # Errors
    /// If files cannot be written.
    pub fn acquire(&self, snapshot: &Snapshot) -> Result<Workspace, SnapshotError> {
        let key = hex::encode(&Sha256::digest(snapshot.root().as_os_str().as_encoded_bytes())[..8]);
        let mut number = 0;
        loop {
            let slot = self.dir.join(&key).join(number.to_string());
            if let Some(lock) = try_lock(&slot)? {
                let mut workspace = Workspace {
                    tree: slot.join("tree"),
                    cache: slot.join("cache"),
                    mount: snapshot.root().to_owned(),
                    _lock: lock,
                };
                std::fs::create_dir_all(&workspace.cache).map_err(SnapshotError::io(&workspace.cache))?;
                workspace.reset(snapshot)?;
                return Ok(workspace);
            }
            number += 1;
        }
    }
}

/// The lock of a slot, or `None` if another holds it.
fn try_lock(slot: &Path) -> Result<Option<File>, SnapshotError> {
    std::fs::create_dir_all(slot).map_err(SnapshotError::io(slot))?;
    let path = slot.join("lock");
    let file = File::options().create(true).append(true).open(&path).map_err(SnapshotError::io(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(SnapshotError::io(&path)(error)),
    }
}

/// A writable copy of a snapshot. The sandbox mounts [`Workspace::tree`] at [`Workspace::mount`].
#[derive(Debug)]
pub struct Workspace {
    tree: PathBuf,
    mount: PathBuf,
    cache: PathBuf,
    /// Closing it frees the slot.
    _lock: File,
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
    /// A file that still has the right content keeps its time stamp, so that build tools see what changed
    /// and nothing more; a file that is rewritten gets a new one.
    ///
    /// # Errors
    /// If files cannot be written.
    pub fn reset(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.mount = snapshot.root().to_owned();
        tree::make_equal(&self.tree, snapshot)?;
        git::one_commit(&self.tree, snapshot)
    }

    /// Applies a patch to the tree; never follows a link out of it.
    ///
    /// # Errors
    /// If a path leads out of the tree or files cannot be written.
    pub fn apply(&self, patch: &Patch) -> Result<(), SnapshotError> {
        patch
            .files
            .iter()
            .try_for_each(|(path, change)| tree::write(&self.tree, path, change.after.as_deref()))
    }

    /// What differs from `snapshot`, found by our own walk (never by git); ignored build output
    /// (`__pycache__`, `target`, ...) is left out.
    ///
    /// # Errors
    /// If files cannot be read.
    pub fn changes(&self, snapshot: &Snapshot) -> Result<Patch, SnapshotError> {
        tree::changes(&self.tree, snapshot)
    }
}
