//! The content-addressed store that snapshots read from: one read-only file per content, named by its
//! SHA-256, written to a temporary name and renamed.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Entry, SnapshotError};

/// A file changed less than this before it was read may change again with the same time stamp.
const RACY: Duration = Duration::from_secs(2);

/// A content-addressed directory.
#[derive(Clone, Debug)]
pub(super) struct Blobs {
    dir: PathBuf,
}

/// What identified a file's content when it was last read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Hashes of one tree's files as they were last read.
type Index = HashMap<PathBuf, (Stamp, String)>;

impl Stamp {
    fn of(metadata: &std::fs::Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    fn is_old(&self, now: SystemTime) -> bool {
        let newest = self.modified.max(self.changed).0;
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(newest).unwrap_or(0));
        now.duration_since(changed).is_ok_and(|age| age > RACY)
    }
}

impl Blobs {
    pub fn open(dir: &Path) -> Result<Self, SnapshotError> {
        std::fs::create_dir_all(dir).map_err(SnapshotError::io(dir))?;
        Ok(Self { dir: dir.to_owned() })
    }

    pub fn path(&self, hash: &[u8; 32]) -> PathBuf {
        let name = hex::encode(hash);
        self.dir.join(&name[..2]).join(&name[2..])
    }

    pub fn read(&self, hash: &[u8; 32]) -> Result<Arc<[u8]>, SnapshotError> {
        let path = self.path(hash);
        std::fs::read(&path).map(Into::into).map_err(SnapshotError::io(&path))
    }

    pub fn add(&self, content: &[u8]) -> Result<[u8; 32], SnapshotError> {
        self.add_from(&self.dir, content, content.len() as u64)
    }

    /// The entries of `paths` under `root`, in parallel; files that did not change since the last call are not
    /// read again.
    pub fn add_all(&self, root: &Path, paths: &[PathBuf]) -> Result<BTreeMap<PathBuf, Entry>, SnapshotError> {
        let index_file = self
            .dir
            .join(format!("index-{}", hex::encode(Sha256::digest(root.as_os_str().as_encoded_bytes()))));
        let old: Index = std::fs::read(&index_file)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = paths.len().div_ceil(threads).max(1);
        let parts: Vec<_> = std::thread::scope(|scope| {
            let workers: Vec<_> =
                paths.chunks(share).map(|paths| scope.spawn(|| self.add_part(root, paths, &old))).collect();
            workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
        });
        let (mut entries, mut index) = (BTreeMap::new(), Index::new());
        for part in parts {
            let Ok(part) = part else {
                return Err(SnapshotError::Io {
                    path: root.to_owned(),
                    source: std::io::Error::other("a thread that read files ended early"),
                });
            };
            let (some_entries, some_index) = part?;
            entries.extend(some_entries);
            index.extend(some_index);
        }
        if index != old {
            self.save(&index_file, &index);
        }
        Ok(entries)
    }

    #[allow(clippy::type_complexity, reason = "the two maps are taken apart by the only caller")]
    fn add_part(
        &self,
        root: &Path,
        paths: &[PathBuf],
        old: &Index,
    ) -> Result<(Vec<(PathBuf, Entry)>, Index), SnapshotError> {
        let (mut entries, mut index) = (Vec::new(), Index::new());
        let now = SystemTime::now();
        for relative in paths {
            let path = root.join(relative);
            let metadata = match std::fs::symlink_metadata(&path) {
                Ok(metadata) => metadata,
                // Gone since the walk: the person no longer sees it.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(SnapshotError::io(&path)(error)),
            };
            if metadata.is_symlink() {
                let target = std::fs::read_link(&path).map_err(SnapshotError::io(&path))?;
                entries.push((relative.clone(), Entry::Symlink(target)));
                continue;
            }
            if !metadata.is_file() {
                continue;
            }
            let stamp = Stamp::of(&metadata);
            let hash = match known(old, relative, &stamp).filter(|hash| self.path(hash).exists()) {
                Some(hash) => hash,
                None => {
                    let file = std::fs::File::open(&path).map_err(SnapshotError::io(&path))?;
                    self.add_from(&path, file, metadata.size())?
                }
            };
            if stamp.is_old(now) {
                index.insert(relative.clone(), (stamp, hex::encode(hash)));
            }
            let executable = metadata.permissions().mode() & 0o111 != 0;
            entries.push((relative.clone(), Entry::File { hash, executable }));
        }
        Ok((entries, index))
    }

    /// Streams `source` into the store; `path` is for errors.
    fn add_from(&self, path: &Path, source: impl Read, size: u64) -> Result<[u8; 32], SnapshotError> {
        const IN_MEMORY: u64 = 1 << 20;
        let mut source = source;
        let mut hasher = Sha256::new();
        if size <= IN_MEMORY {
            let mut content = Vec::with_capacity(size as usize);
            source.read_to_end(&mut content).map_err(SnapshotError::io(path))?;
            hasher.update(&content);
            let hash = hasher.finalize().into();
            let blob = self.path(&hash);
            let stored = std::fs::metadata(&blob).is_ok_and(|it| it.len() == content.len() as u64);
            if !stored {
                let mut file = self.temporary()?;
                file.write_all(&content).map_err(SnapshotError::io(&blob))?;
                place(file, &blob)?;
            }
            return Ok(hash);
        }
        let mut file = self.temporary()?;
        let mut chunk = vec![0; 1 << 18];
        loop {
            let count = source.read(&mut chunk).map_err(SnapshotError::io(path))?;
            if count == 0 {
                break;
            }
            hasher.update(&chunk[..count]);
            file.write_all(&chunk[..count]).map_err(SnapshotError::io(&self.dir))?;
        }
        let hash = hasher.finalize().into();
        place(file, &self.path(&hash))?;
        Ok(hash)
    }

    fn temporary(&self) -> Result<tempfile::NamedTempFile, SnapshotError> {
        tempfile::Builder::new().prefix("new-").tempfile_in(&self.dir).map_err(SnapshotError::io(&self.dir))
    }

    /// Keeps the index; losing it only costs time.
    fn save(&self, file: &Path, index: &Index) {
        let saved = serde_json::to_vec(index).map_err(std::io::Error::from).and_then(|bytes| {
            let mut temporary = tempfile::NamedTempFile::new_in(&self.dir)?;
            temporary.write_all(&bytes)?;
            temporary.persist(file).map(drop).map_err(std::io::Error::from)
        });
        if let Err(error) = saved {
            tracing::debug!(%error, "the index of the snapshot was not kept");
        }
    }
}

fn known(index: &Index, path: &Path, stamp: &Stamp) -> Option<[u8; 32]> {
    let (old, hash) = index.get(path)?;
    if old != stamp {
        return None;
    }
    hex::decode(hash).ok()?.try_into().ok()
}

fn place(file: tempfile::NamedTempFile, blob: &Path) -> Result<(), SnapshotError> {
    let error = SnapshotError::io(blob);
    let placed = (|| {
        if let Some(parent) = blob.parent() {
            std::fs::create_dir_all(parent)?;
        }
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o400))?;
        file.persist(blob).map(drop).map_err(std::io::Error::from)
    })();
    placed.map_err(error)
}
