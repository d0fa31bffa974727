//! The one-commit repository of a workspace: tools that ask git get an answer, and there is no history in which
//! a fix could be looked up.

use std::path::Path;

use git2::{IndexAddOption, Repository, RepositoryInitOptions, Signature, Time};

use super::tree::remove;
use crate::snapshot::{Snapshot, SnapshotError};

/// Above this many files the commit is left empty: adding them would cost more than it helps.
const MOST_FILES: usize = 20_000;

/// Name of the file, beside the tree, that says which snapshot the repository was made for and how it looked.
const MARK: &str = "git-mark";

/// Makes `.git` of `tree` one commit of `snapshot`, unless it is that already.
pub(super) fn one_commit(tree: &Path, snapshot: &Snapshot) -> Result<(), SnapshotError> {
    let git = tree.join(".git");
    let mark = tree.with_file_name(MARK);
    let wanted = snapshot.id();
    if std::fs::read_to_string(&mark).is_ok_and(|it| it == format!("{wanted} {}", state(&git))) {
        return Ok(());
    }
    // Whatever a command planted there (hooks, configuration, objects) goes with the directory.
    remove(&git).map_err(SnapshotError::io(&git))?;
    commit(tree, snapshot.entries().len() <= MOST_FILES)
        .map_err(|error| SnapshotError::io(&git)(std::io::Error::other(error)))?;
    std::fs::write(&mark, format!("{wanted} {}", state(&git))).map_err(SnapshotError::io(&mark))
}

fn commit(tree: &Path, with_files: bool) -> Result<(), git2::Error> {
    let mut options = RepositoryInitOptions::new();
    options.external_template(false).initial_head("main").no_reinit(true);
    let repository = Repository::init_opts(tree, &options)?;
    let mut index = repository.index()?;
    if with_files {
        index.add_all(["*"], IndexAddOption::FORCE, None)?;
    }
    index.write()?;
    let content = repository.find_tree(index.write_tree()?)?;
    let author = Signature::new("tadpole", "tadpole@localhost", &Time::new(0, 0))?;
    repository.commit(Some("HEAD"), &author, &author, "snapshot", &content, &[])?;
    Ok(())
}

/// Names, sizes and time stamps of everything under `.git`: any write changes it.
fn state(git: &Path) -> String {
    use sha2::{Digest, Sha256};
    use std::os::unix::fs::MetadataExt;
    let mut hasher = Sha256::new();
    for entry in walkdir::WalkDir::new(git).follow_links(false).sort_by_file_name().into_iter().flatten() {
        hasher.update(entry.path().as_os_str().as_encoded_bytes());
        if let Ok(it) = entry.metadata() {
            for number in [it.mode().into(), it.size(), it.ctime() as u64, it.ctime_nsec() as u64, it.ino()] {
                hasher.update(number.to_le_bytes());
            }
        }
    }
    hex::encode(hasher.finalize())
}
