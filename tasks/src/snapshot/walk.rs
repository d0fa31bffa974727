//! Which files belong to what the user sees.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

/// Directories that tools make and that are neither source nor input of a test.
const BUILD_OUTPUT: &[&str] = &[
    "target",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
    ".tox",
    ".nox",
    ".vite",
    ".vitest",
    ".nyc_output",
    "coverage",
];

/// How deep virtual environments and `node_modules` are looked for.
const DEPENDENCY_DEPTH: usize = 4;

/// What a walk found.
pub(super) struct Found {
    /// Files and links, relative to the root.
    pub paths: Vec<PathBuf>,
    /// Absolute directories that tests need but nobody edits.
    pub dependencies: Vec<PathBuf>,
}

/// Whether a directory of this name holds the output of tools. A `target` counts only beside a `Cargo.toml` (or inside of our
/// own workspaces, which have that too), `coverage` only where it holds a report.
pub fn is_build_output(directory: &Path) -> bool {
    let Some(name) = directory.file_name().and_then(|name| name.to_str()) else { return false };
    match name {
        "target" => {
            directory.with_file_name("Cargo.toml").exists() || directory.join("CACHEDIR.TAG").exists()
        }
        "coverage" => directory.join("lcov.info").exists() || directory.join("coverage-final.json").exists(),
        name => BUILD_OUTPUT.contains(&name),
    }
}

fn is_dependency(directory: &Path) -> bool {
    directory.file_name().is_some_and(|name| name == "node_modules") || directory.join("pyvenv.cfg").is_file()
}

/// Walks the canonical directory `root`.
pub(super) fn walk(root: &Path) -> Found {
    let mut builder = WalkBuilder::new(root);
    builder.hidden(false).require_git(false).follow_links(false).ignore(true);
    builder.filter_entry(|entry| {
        let directory = entry.file_type().is_some_and(|it| it.is_dir());
        let git = entry.file_name() == ".git";
        !git && !(directory
            && entry.depth() > 0
            && (is_build_output(entry.path()) || is_dependency(entry.path())))
    });
    let mut paths = BTreeSet::new();
    for entry in builder.build() {
        match entry {
            Ok(entry) if entry.file_type().is_some_and(|it| it.is_file() || it.is_symlink()) => {
                if let Ok(relative) = entry.path().strip_prefix(root) {
                    paths.insert(relative.to_owned());
                }
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "left out of the snapshot"),
        }
    }
    paths.extend(super::history::tracked(root).into_iter().filter(|path| is_visible(root, path)));
    Found { paths: paths.into_iter().collect(), dependencies: dependencies(root) }
}

/// Whether a tracked path lies in no directory that is left out.
fn is_visible(root: &Path, path: &Path) -> bool {
    super::is_plain(path)
        && path.ancestors().skip(1).filter(|it| !it.as_os_str().is_empty()).all(|it| {
            let directory = root.join(it);
            !directory.is_symlink() && !is_build_output(&directory) && !is_dependency(&directory)
        })
}

fn dependencies(root: &Path) -> Vec<PathBuf> {
    let walk = walkdir::WalkDir::new(root).min_depth(1).max_depth(DEPENDENCY_DEPTH).follow_links(false);
    let mut found = Vec::new();
    let mut entries = walk.into_iter();
    while let Some(entry) = entries.next() {
        let Ok(entry) = entry else { continue };
        if !entry.file_type().is_dir() {
            // A linked environment (`.venv -> elsewhere`) is one too.
            if entry.path_is_symlink() && is_dependency(entry.path()) {
                found.push(entry.into_path());
            }
            continue;
        }
        if is_dependency(entry.path()) {
            entries.skip_current_dir();
            found.push(entry.into_path());
        } else if entry.file_name() == ".git" || is_build_output(entry.path()) {
            entries.skip_current_dir();
        }
    }
    found.sort();
    found
}
