//! What the user sees now, as one immutable tree: files on disk (tracked, changed and untracked), with
//! the text of unsaved buffers in place of what is on disk. Nothing is ever written to the user's tree
//! or `.git`.

mod blobs;
mod history;
mod walk;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

pub use self::history::recently_changed;
pub use self::walk::is_build_output;
use crate::patch::{FileChange, Patch};
use blobs::Blobs;

/// Texts of unsaved editor buffers by absolute path; they win over the disk.
pub type Buffers = BTreeMap<PathBuf, String>;

/// Why a snapshot could not be taken or used.
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
    /// A patch names a path that lies outside of the tree or passes through a link.
    #[error("{0} is not a path inside of the repository")]
    Outside(PathBuf),
}

impl SnapshotError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }
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
    blobs: Blobs,
    entries: Arc<BTreeMap<PathBuf, Entry>>,
    dependencies: Arc<Vec<PathBuf>>,
}

impl Snapshot {
    /// What the user sees under `root` now. Content goes to the content-addressed directory `store`.
    ///
    /// Respects ignore rules (files that git tracks are kept even if a rule ignores them); `.git` is left out. Directories that
    /// tests need and nobody edits (virtual environments, `node_modules`) are not copied but listed in
    /// [`Snapshot::dependencies`].
    ///
    /// # Errors
    /// If `root` is not a directory or a file cannot be read.
    pub fn capture(root: &Path, buffers: &Buffers, store: &Path) -> Result<Self, SnapshotError> {
        let canonical = root.canonicalize().map_err(|_| SnapshotError::NotADirectory(root.to_owned()))?;
        if !canonical.is_dir() {
            return Err(SnapshotError::NotADirectory(root.to_owned()));
        }
        let blobs = Blobs::open(store)?;
        let found = walk::walk(&canonical);
        let mut entries = blobs.add_all(&canonical, &found.paths)?;
        for (path, text) in buffers {
            let Some(relative) = inside(&canonical, path) else { continue };
            let executable = matches!(entries.get(&relative), Some(Entry::File { executable: true, .. }));
            let hash = blobs.add(text.as_bytes())?;
            entries.insert(relative, Entry::File { hash, executable });
        }
        Ok(Self {
            root: canonical,
            blobs,
            entries: Arc::new(entries),
            dependencies: Arc::new(found.dependencies),
        })
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
        match self.entries.get(path) {
            Some(Entry::File { hash, .. }) => self.blobs.read(hash),
            _ => {
                Err(SnapshotError::Io { path: path.to_owned(), source: std::io::ErrorKind::NotFound.into() })
            }
        }
    }

    /// The content-addressed file that holds a regular file's content (to copy or reflink from).
    pub fn blob(&self, hash: &[u8; 32]) -> PathBuf {
        self.blobs.path(hash)
    }

    /// A new snapshot with `patch` applied.
    ///
    /// # Errors
    /// If a path lies outside of the tree, or the new content cannot be stored.
    pub fn with(&self, patch: &Patch) -> Result<Self, SnapshotError> {
        let mut entries = BTreeMap::clone(&self.entries);
        for (path, change) in &patch.files {
            self.check(path)?;
            let Some(after) = &change.after else {
                entries.remove(path);
                continue;
            };
            let executable = matches!(entries.get(path), Some(Entry::File { executable: true, .. }));
            entries.insert(path.clone(), Entry::File { hash: self.blobs.add(after)?, executable });
        }
        Ok(Self { entries: Arc::new(entries), ..self.clone() })
    }

    /// The patch that turns this snapshot into `other`, a snapshot of the same root.
    ///
    /// # Errors
    /// If content cannot be read.
    pub fn patch_to(&self, other: &Self) -> Result<Patch, SnapshotError> {
        let mut patch = Patch::default();
        for path in self.entries.keys().chain(other.entries.keys()) {
            let (before, after) = (self.entries.get(path), other.entries.get(path));
            if before == after || patch.files.contains_key(path) {
                continue;
            }
            let content = |snapshot: &Self, entry: Option<&Entry>| match entry {
                Some(Entry::File { hash, .. }) => snapshot.blobs.read(hash).map(Some),
                _ => Ok(None),
            };
            let change = FileChange { before: content(self, before)?, after: content(other, after)? };
            patch.files.insert(path.clone(), change);
        }
        Ok(patch)
    }

    /// Hex SHA-256 over paths, modes and hashes: equal trees have equal ids.
    pub fn id(&self) -> String {
        let mut hasher = Sha256::new();
        for (path, entry) in self.entries.iter() {
            let mut field = |bytes: &[u8]| {
                hasher.update((bytes.len() as u64).to_le_bytes());
                hasher.update(bytes);
            };
            field(path.as_os_str().as_encoded_bytes());
            match entry {
                Entry::File { hash, executable } => {
                    field(if *executable { b"x" } else { b"f" });
                    field(hash);
                }
                Entry::Symlink(target) => {
                    field(b"l");
                    field(target.as_os_str().as_encoded_bytes());
                }
            }
        }
        hex::encode(hasher.finalize())
    }

    /// Refuses paths that leave the tree, by name or through a link.
    fn check(&self, path: &Path) -> Result<(), SnapshotError> {
        let through_link =
            || path.ancestors().any(|it| matches!(self.entries.get(it), Some(Entry::Symlink(_))));
        if is_plain(path) && !through_link() { Ok(()) } else { Err(SnapshotError::Outside(path.to_owned())) }
    }
}

/// Whether `path` is relative and only goes down, and not into a `.git`.
pub(crate) fn is_plain(path: &Path) -> bool {
    let plain = |part| matches!(part, Component::Normal(name) if !name.eq_ignore_ascii_case(".git"));
    path.components().next().is_some() && path.components().all(plain)
}

/// `path` relative to the canonical `root`, also where it is spelt through links; `None` if it lies elsewhere.
fn inside(root: &Path, path: &Path) -> Option<PathBuf> {
    let relative = match path.strip_prefix(root) {
        Ok(relative) => relative.to_owned(),
        Err(_) => {
            let parent = path.parent()?.canonicalize().ok()?;
            parent.join(path.file_name()?).strip_prefix(root).ok()?.to_owned()
        }
    };
    is_plain(&relative).then_some(relative)
}
