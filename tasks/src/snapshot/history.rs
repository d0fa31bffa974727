//! What git knows about a tree, read only. libgit2 runs nothing of a repository; where it refuses one, the
//! answer is empty, which costs precision and nothing else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use git2::{Repository, RepositoryOpenFlags};

/// Commits that count as recent.
const RECENT_COMMITS: usize = 5;

fn open(root: &Path) -> Option<(Repository, PathBuf)> {
    let flags = RepositoryOpenFlags::empty();
    let repository = Repository::open_ext(root, flags, std::iter::empty::<&Path>()).ok()?;
    let prefix = root.strip_prefix(repository.workdir()?.canonicalize().ok()?).ok()?.to_owned();
    Some((repository, prefix))
}

/// Paths under `root` that git tracks, relative to it.
pub(super) fn tracked(root: &Path) -> Vec<PathBuf> {
    let Some((repository, prefix)) = open(root) else { return Vec::new() };
    let Ok(index) = repository.index() else { return Vec::new() };
    let paths = index.iter().filter_map(|entry| {
        let path = path_of(&entry.path)?;
        path.strip_prefix(&prefix).ok().map(Path::to_owned)
    });
    paths.collect()
}

/// Files under `root`, relative to it, that were changed lately, latest first: uncommitted changes, then
/// what the last few commits touched. Empty without git.
pub fn recently_changed(root: &Path) -> Vec<PathBuf> {
    let Some((repository, prefix)) = open(root) else { return Vec::new() };
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut add = |path: Option<PathBuf>| {
        let relative = path.and_then(|path| path.strip_prefix(&prefix).ok().map(Path::to_owned));
        found.extend(relative.filter(|path| seen.insert(path.clone())));
    };
    let mut options = git2::StatusOptions::new();
    options.include_untracked(true).recurse_untracked_dirs(true).include_ignored(false).update_index(false);
    if let Ok(statuses) = repository.statuses(Some(&mut options)) {
        statuses.iter().for_each(|status| add(path_of(status.path_bytes())));
    }
    for (old, new) in recent_trees(&repository) {
        let Ok(diff) = repository.diff_tree_to_tree(old.as_ref(), Some(&new), None) else { break };
        diff.deltas().for_each(|delta| add(delta.new_file().path().map(Path::to_owned)));
    }
    found
}

/// Trees of the last commits with those of their first parents.
fn recent_trees(repository: &Repository) -> Vec<(Option<git2::Tree<'_>>, git2::Tree<'_>)> {
    let mut trees = Vec::new();
    let mut next = repository.head().and_then(|head| head.peel_to_commit()).ok();
    while let Some(commit) = next.take().filter(|_| trees.len() < RECENT_COMMITS) {
        let Ok(tree) = commit.tree() else { break };
        next = commit.parent(0).ok();
        // The first commit of a history touches everything and says nothing.
        let Some(parent) = &next else { break };
        trees.push((parent.tree().ok(), tree));
    }
    trees
}

fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(bytes)))
}
