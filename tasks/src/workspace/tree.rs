//! Making a directory equal to a snapshot, and finding how it differs. What is in the directory may have been
//! written by a command of the model: links are looked at, never followed.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::patch::{FileChange, Patch};
use crate::snapshot::{Entry, Snapshot, SnapshotError, is_build_output, is_plain};

/// Makes `tree` equal to `snapshot`, apart from its `.git`.
pub(super) fn make_equal(tree: &Path, snapshot: &Snapshot) -> Result<(), SnapshotError> {
    if fs::symlink_metadata(tree).is_ok_and(|it| !it.is_dir()) {
        fs::remove_file(tree).map_err(SnapshotError::io(tree))?;
    }
    fs::create_dir_all(tree).map_err(SnapshotError::io(tree))?;
    let mut directories = BTreeSet::from([PathBuf::new()]);
    for path in snapshot.entries().keys() {
        directories.extend(path.ancestors().skip(1).map(Path::to_owned));
    }
    remove_extra(tree, Path::new(""), snapshot, &directories)?;
    for directory in &directories {
        let path = tree.join(directory);
        match fs::symlink_metadata(&path) {
            Ok(_) => {}
            Err(_) => fs::create_dir(&path).map_err(SnapshotError::io(&path))?,
        }
    }
    for (path, entry) in snapshot.entries() {
        let place = tree.join(path);
        if !equals(&place, entry, snapshot).map_err(SnapshotError::io(&place))? {
            put(&place, entry, snapshot).map_err(SnapshotError::io(&place))?;
        }
    }
    Ok(())
}

/// Removes what the snapshot does not have, or has as another kind.
fn remove_extra(
    tree: &Path,
    directory: &Path,
    snapshot: &Snapshot,
    directories: &BTreeSet<PathBuf>,
) -> Result<(), SnapshotError> {
    let here = tree.join(directory);
    make_accessible(&here).map_err(SnapshotError::io(&here))?;
    for entry in fs::read_dir(&here).map_err(SnapshotError::io(&here))? {
        let entry = entry.map_err(SnapshotError::io(&here))?;
        let (place, relative) = (entry.path(), directory.join(entry.file_name()));
        if relative == Path::new(".git") {
            continue;
        }
        let is_directory = entry.file_type().map_err(SnapshotError::io(&place))?.is_dir();
        match (is_directory, directories.contains(&relative), snapshot.entries().contains_key(&relative)) {
            (true, true, _) => remove_extra(tree, &relative, snapshot, directories)?,
            (false, _, true) => {}
            _ => remove(&place).map_err(SnapshotError::io(&place))?,
        }
    }
    Ok(())
}

/// A command may have taken its own rights away.
fn make_accessible(directory: &Path) -> io::Result<()> {
    let mode = fs::symlink_metadata(directory)?.permissions().mode();
    if mode & 0o700 != 0o700 {
        fs::set_permissions(directory, fs::Permissions::from_mode(mode | 0o700))?;
    }
    Ok(())
}

/// Removes a file, link or whole directory.
pub(super) fn remove(place: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(place) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !metadata.is_dir() {
        return fs::remove_file(place);
    }
    if fs::remove_dir_all(place).is_ok() {
        return Ok(());
    }
    let unlocked = walkdir::WalkDir::new(place).follow_links(false);
    for entry in unlocked.into_iter().flatten().filter(|it| it.file_type().is_dir()) {
        make_accessible(entry.path())?;
    }
    fs::remove_dir_all(place)
}

fn equals(place: &Path, entry: &Entry, snapshot: &Snapshot) -> io::Result<bool> {
    let Ok(metadata) = fs::symlink_metadata(place) else { return Ok(false) };
    Ok(match entry {
        Entry::Symlink(target) => metadata.is_symlink() && fs::read_link(place)? == *target,
        Entry::File { hash, executable } => {
            metadata.is_file()
                && metadata.permissions().mode() & 0o7777 == mode(*executable)
                && metadata.len() == fs::metadata(snapshot.blob(hash))?.len()
                && digest(place)? == *hash
        }
    })
}

/// Content is compared, not time stamps: a test can set those.
fn digest(place: &Path) -> io::Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    io::copy(&mut fs::File::open(place)?, &mut hasher)?;
    Ok(hasher.finalize().into())
}

fn put(place: &Path, entry: &Entry, snapshot: &Snapshot) -> io::Result<()> {
    remove(place)?;
    match entry {
        Entry::Symlink(target) => std::os::unix::fs::symlink(target, place),
        Entry::File { hash, executable } => {
            let mut from = fs::File::open(snapshot.blob(hash))?;
            let mut to = fs::File::options().write(true).create_new(true).open(place)?;
            io::copy(&mut from, &mut to)?;
            to.set_permissions(fs::Permissions::from_mode(mode(*executable)))
        }
    }
}

fn mode(executable: bool) -> u32 {
    if executable { 0o755 } else { 0o644 }
}

/// Writes or removes one file of a patch.
pub(super) fn write(tree: &Path, path: &Path, content: Option<&[u8]>) -> Result<(), SnapshotError> {
    let place = tree.join(path);
    let error = SnapshotError::io(&place);
    if !is_plain(path) {
        return Err(SnapshotError::Outside(path.to_owned()));
    }
    let mut directory = tree.to_owned();
    for part in path.parent().unwrap_or(Path::new("")).components() {
        directory.push(part);
        match fs::symlink_metadata(&directory) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Err(SnapshotError::Outside(path.to_owned())),
            Err(_) if content.is_none() => return Ok(()),
            Err(_) => fs::create_dir(&directory).map_err(SnapshotError::io(&directory))?,
        }
    }
    let old: Option<Metadata> = fs::symlink_metadata(&place).ok();
    if old.as_ref().is_some_and(|it| it.is_dir() || it.is_symlink()) {
        return Err(SnapshotError::Outside(path.to_owned()));
    }
    let Some(content) = content else {
        return if old.is_some() { fs::remove_file(&place).map_err(error) } else { Ok(()) };
    };
    let executable = old.is_some_and(|it| it.permissions().mode() & 0o111 != 0);
    let written = (|| {
        let mut file = tempfile::NamedTempFile::new_in(&directory)?;
        file.write_all(content)?;
        file.as_file().set_permissions(fs::Permissions::from_mode(mode(executable)))?;
        file.persist(&place).map(drop).map_err(io::Error::from)
    })();
    written.map_err(error)
}

/// How `tree` differs from `snapshot`.
pub(super) fn changes(tree: &Path, snapshot: &Snapshot) -> Result<Patch, SnapshotError> {
    let mut patch = Patch::default();
    let mut seen = BTreeSet::new();
    let walk =
        walkdir::WalkDir::new(tree).follow_links(false).min_depth(1).into_iter().filter_entry(|entry| {
            let git = entry.depth() == 1 && entry.file_name() == ".git";
            !git && !(entry.file_type().is_dir()
                && (is_build_output(entry.path()) || is_dependency(entry.path(), tree, snapshot)))
        });
    for entry in walk.flatten().filter(|it| it.file_type().is_file()) {
        let Ok(relative) = entry.path().strip_prefix(tree) else { continue };
        seen.insert(relative.to_owned());
        let known = snapshot.entries().get(relative);
        let content = |hash: &[u8; 32]| fs::read(snapshot.blob(hash)).map(Arc::from);
        let place = entry.path();
        let before = match known {
            Some(Entry::File { hash, .. }) if digest(place).map_err(SnapshotError::io(place))? == *hash => {
                continue;
            }
            Some(Entry::File { hash, .. }) => Some(content(hash).map_err(SnapshotError::io(place))?),
            Some(Entry::Symlink(_)) => continue,
            None if is_byproduct(relative) => continue,
            None => None,
        };
        let after = Some(fs::read(place).map_err(SnapshotError::io(place))?.into());
        patch.files.insert(relative.to_owned(), FileChange { before, after });
    }
    for (path, entry) in snapshot.entries() {
        let Entry::File { .. } = entry else { continue };
        if !seen.contains(path) {
            patch.files.insert(path.clone(), FileChange { before: Some(snapshot.read(path)?), after: None });
        }
    }
    Ok(patch)
}

/// A directory of the person that the sandbox binds over the tree.
fn is_dependency(place: &Path, tree: &Path, snapshot: &Snapshot) -> bool {
    let Ok(relative) = place.strip_prefix(tree) else { return false };
    snapshot.dependencies().contains(&snapshot.root().join(relative))
}

/// New files that tools leave beside sources.
fn is_byproduct(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let byproducts = [".pyc", ".pyo", "~", ".swp", ".orig", ".rej"];
    byproducts.iter().any(|it| name.ends_with(it)) || name == ".coverage"
}
