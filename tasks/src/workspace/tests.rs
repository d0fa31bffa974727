#![allow(clippy::unwrap_used, reason = "a failing step fails the test")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::patch::FileChange;
use crate::snapshot::Buffers;

struct Bench {
    root: tempfile::TempDir,
    data: tempfile::TempDir,
    pool: Pool,
}

impl Bench {
    fn new(files: &[(&str, &str)]) -> Self {
        let (root, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let pool = Pool::open(&data.path().join("pool")).unwrap();
        Self { root, data, pool }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::capture(self.root.path(), &Buffers::new(), &self.data.path().join("store")).unwrap()
    }
}

#[test]
fn whatever_a_command_did_is_undone() {
    let bench = Bench::new(&[("a", "1"), ("dir/b", "2"), ("dir/c", "3")]);
    symlink("a", bench.root.path().join("link")).unwrap();
    let snapshot = bench.snapshot();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("precious"), "p").unwrap();
    let mut workspace = bench.pool.acquire(&snapshot).unwrap();
    let tree = workspace.tree().to_owned();
    fs::write(tree.join("a"), "X").unwrap();
    fs::set_permissions(tree.join("a"), fs::Permissions::from_mode(0o4777)).unwrap();
    fs::remove_dir_all(tree.join("dir")).unwrap();
    symlink(outside.path(), tree.join("dir")).unwrap();
    fs::remove_file(tree.join("link")).unwrap();
    fs::create_dir(tree.join("link")).unwrap();
    fs::write(tree.join("new"), "n").unwrap();
    fs::create_dir_all(tree.join("locked/in")).unwrap();
    fs::set_permissions(tree.join("locked"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::create_dir_all(tree.join(".git/hooks")).unwrap();
    fs::write(tree.join(".git/hooks/pre-commit"), "evil").unwrap();
    workspace.reset(&snapshot).unwrap();
    assert!(workspace.changes(&snapshot).unwrap().is_empty());
    assert_eq!(fs::read_to_string(tree.join("dir/b")).unwrap(), "2");
    assert_eq!(fs::read_link(tree.join("link")).unwrap(), Path::new("a"));
    assert_eq!(fs::metadata(tree.join("a")).unwrap().permissions().mode() & 0o7777, 0o644);
    assert!(
        !tree.join("new").exists()
            && !tree.join("locked").exists()
            && !tree.join(".git/hooks/pre-commit").exists()
    );
    assert_eq!(fs::read_to_string(outside.path().join("precious")).unwrap(), "p");
}

#[test]
fn what_did_not_change_keeps_its_time_stamp() {
    let bench = Bench::new(&[("a", "1"), ("b", "2")]);
    let snapshot = bench.snapshot();
    let mut workspace = bench.pool.acquire(&snapshot).unwrap();
    let stamp = |name: &str| fs::metadata(workspace.tree().join(name)).unwrap().modified().unwrap();
    let (a, b) = (stamp("a"), stamp("b"));
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::write(workspace.tree().join("b"), "3").unwrap();
    let changed = fs::metadata(workspace.tree().join("b")).unwrap().modified().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    workspace.reset(&snapshot).unwrap();
    let stamp = |name: &str| fs::metadata(workspace.tree().join(name)).unwrap().modified().unwrap();
    assert_eq!(stamp("a"), a);
    assert!(stamp("b") > changed && changed > b);
}

#[test]
fn two_at_once_are_two_and_a_freed_one_is_used_again() {
    let bench = Bench::new(&[("a", "1")]);
    let snapshot = bench.snapshot();
    let first = bench.pool.acquire(&snapshot).unwrap();
    let second = bench.pool.acquire(&snapshot).unwrap();
    assert_ne!(first.tree(), second.tree());
    fs::write(first.cache().join("kept"), "c").unwrap();
    let tree = first.tree().to_owned();
    drop(first);
    let third = bench.pool.acquire(&snapshot).unwrap();
    assert_eq!(third.tree(), tree);
    assert_eq!(fs::read_to_string(third.cache().join("kept")).unwrap(), "c");
}

#[test]
fn a_patch_is_applied_and_found_again() {
    let bench = Bench::new(&[("a", "1"), ("sub/b", "2")]);
    let snapshot = bench.snapshot();
    let workspace = bench.pool.acquire(&snapshot).unwrap();
    let mut patch = Patch::replace("a", b"1", b"one");
    patch.files.insert("sub/b".into(), FileChange { before: Some(b"2".as_slice().into()), after: None });
    patch.files.insert("x/y".into(), FileChange { before: None, after: Some(b"3".as_slice().into()) });
    workspace.apply(&patch).unwrap();
    fs::create_dir_all(workspace.tree().join("__pycache__")).unwrap();
    fs::write(workspace.tree().join("__pycache__/a.pyc"), "").unwrap();
    assert_eq!(workspace.changes(&snapshot).unwrap(), patch);
}

#[test]
fn a_patch_never_follows_a_link() {
    let bench = Bench::new(&[("a", "1")]);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("x"), "safe").unwrap();
    let workspace = bench.pool.acquire(&bench.snapshot()).unwrap();
    symlink(outside.path(), workspace.tree().join("d")).unwrap();
    symlink(outside.path().join("x"), workspace.tree().join("f")).unwrap();
    for path in ["d/x", "f", "../x", ".git/config"] {
        assert!(workspace.apply(&Patch::replace(path, b"", b"evil")).is_err(), "{path}");
    }
    assert_eq!(fs::read_to_string(outside.path().join("x")).unwrap(), "safe");
}

#[test]
fn the_copy_has_one_commit_and_is_clean() {
    let bench = Bench::new(&[(".gitignore", "*.log\n"), ("a", "1")]);
    let workspace = bench.pool.acquire(&bench.snapshot()).unwrap();
    let git = |args: &[&str]| {
        let output =
            std::process::Command::new("git").arg("-C").arg(workspace.tree()).args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(git(&["rev-list", "--all", "--count"]).trim(), "1");
    assert_eq!(git(&["status", "--porcelain"]), "");
    assert_eq!(git(&["remote"]), "");
}
