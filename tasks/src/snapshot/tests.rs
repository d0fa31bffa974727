#![allow(clippy::unwrap_used, reason = "a failing step fails the test")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::Builder::new().prefix("a tree ").tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn capture(root: &Path, buffers: &Buffers) -> (Snapshot, tempfile::TempDir) {
    let store = tempfile::tempdir().unwrap();
    (Snapshot::capture(root, buffers, store.path()).unwrap(), store)
}

fn names(snapshot: &Snapshot) -> Vec<String> {
    snapshot.entries().keys().map(|path| path.to_string_lossy().into_owned()).collect()
}

fn commit_all(root: &Path) {
    let repository = git2::Repository::init(root).unwrap();
    let mut index = repository.index().unwrap();
    index.add_all(["*"], git2::IndexAddOption::FORCE, None).unwrap();
    index.write().unwrap();
    let id = index.write_tree().unwrap();
    let author = git2::Signature::now("a", "a@b").unwrap();
    let parent = repository.head().ok().and_then(|head| head.peel_to_commit().ok());
    {
        let parents: Vec<_> = parent.iter().collect();
        let content = repository.find_tree(id).unwrap();
        repository.commit(Some("HEAD"), &author, &author, "m", &content, &parents).unwrap();
    }
}

#[test]
fn ignore_rules_hold_with_and_without_git() {
    let dir = tree(&[
        (".gitignore", "*.log\nbuild/\n"),
        ("a.py", "1"),
        ("x.log", "2"),
        ("build/b", "3"),
        (".hidden", "4"),
    ]);
    assert_eq!(names(&capture(dir.path(), &Buffers::new()).0), [".gitignore", ".hidden", "a.py"]);
    git2::Repository::init(dir.path()).unwrap();
    assert_eq!(names(&capture(dir.path(), &Buffers::new()).0), [".gitignore", ".hidden", "a.py"]);
}

#[test]
fn a_tracked_file_stays_though_a_rule_ignores_it() {
    let dir = tree(&[(".gitignore", "*.log\n"), ("kept.log", "1")]);
    commit_all(dir.path());
    fs::write(dir.path().join("other.log"), "2").unwrap();
    assert_eq!(names(&capture(dir.path(), &Buffers::new()).0), [".gitignore", "kept.log"]);
}

#[test]
fn unsaved_buffers_win_and_add_files_also_by_another_spelling_of_the_root() {
    let dir = tree(&[("a.py", "old\n")]);
    let link_home = tempfile::tempdir().unwrap();
    let link = link_home.path().join("link");
    symlink(dir.path(), &link).unwrap();
    let buffers = Buffers::from([
        (link.join("a.py"), "new\r\n".to_owned()),
        (dir.path().canonicalize().unwrap().join("b.py"), "b".to_owned()),
        ("/elsewhere/c.py".into(), "c".to_owned()),
        (dir.path().join(".git/config"), "evil".to_owned()),
    ]);
    let (snapshot, _store) = capture(&link, &buffers);
    assert_eq!(names(&snapshot), ["a.py", "b.py"]);
    assert_eq!(&*snapshot.read(Path::new("a.py")).unwrap(), b"new\r\n");
    assert_eq!(fs::read(dir.path().join("a.py")).unwrap(), b"old\n");
}

#[test]
fn links_stay_links_and_loops_end() {
    let dir = tree(&[("real/a", "1")]);
    symlink("..", dir.path().join("real/up")).unwrap();
    symlink("/etc/passwd", dir.path().join("out")).unwrap();
    let (snapshot, _store) = capture(dir.path(), &Buffers::new());
    assert_eq!(names(&snapshot), ["out", "real/a", "real/up"]);
    assert_eq!(snapshot.entries()[Path::new("out")], Entry::Symlink("/etc/passwd".into()));
}

#[test]
fn environments_are_named_and_not_copied() {
    let dir = tree(&[
        ("a.py", ""),
        (".venv/pyvenv.cfg", ""),
        (".venv/x", ""),
        ("web/node_modules/m/i.js", ""),
        ("__pycache__/a.pyc", ""),
    ]);
    let (snapshot, _store) = capture(dir.path(), &Buffers::new());
    assert_eq!(names(&snapshot), ["a.py"]);
    let root = snapshot.root();
    assert_eq!(snapshot.dependencies(), [root.join(".venv"), root.join("web/node_modules")]);
}

#[test]
fn a_second_capture_sees_an_edit_of_the_same_size_and_executables_stay_so() {
    let dir = tree(&[("run.sh", "one")]);
    fs::set_permissions(dir.path().join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let (first, store) = capture(dir.path(), &Buffers::new());
    fs::write(dir.path().join("run.sh"), "two").unwrap();
    let second = Snapshot::capture(dir.path(), &Buffers::new(), store.path()).unwrap();
    assert_ne!(first.id(), second.id());
    assert!(matches!(second.entries()[Path::new("run.sh")], Entry::File { executable: true, .. }));
    assert_eq!(&*second.read(Path::new("run.sh")).unwrap(), b"two");
    assert_eq!(&*first.read(Path::new("run.sh")).unwrap(), b"one");
}

#[test]
fn a_patch_and_its_way_back() {
    let dir = tree(&[("a", "1"), ("b", "2")]);
    let (before, _store) = capture(dir.path(), &Buffers::new());
    let mut patch = Patch::replace("a", b"1", b"one");
    patch.files.insert("b".into(), FileChange { before: Some(b"2".as_slice().into()), after: None });
    patch.files.insert("c/d".into(), FileChange { before: None, after: Some(b"3".as_slice().into()) });
    let after = before.with(&patch).unwrap();
    assert_eq!(names(&after), ["a", "c/d"]);
    assert_eq!(before.patch_to(&after).unwrap(), patch);
}

#[test]
fn a_patch_cannot_leave_the_tree() {
    let dir = tree(&[("a", "1")]);
    symlink("/tmp", dir.path().join("link")).unwrap();
    let (snapshot, _store) = capture(dir.path(), &Buffers::new());
    for path in ["../x", "/etc/x", "link/x", ".git/config", "sub/.GIT/hooks/x"] {
        let patch = Patch::replace(path, b"", b"x");
        assert!(matches!(snapshot.with(&patch), Err(SnapshotError::Outside(_))), "{path}");
    }
}

#[test]
fn nothing_of_the_user_is_written() {
    let dir = tree(&[("a.py", "1"), ("sub/b.py", "2")]);
    commit_all(dir.path());
    let state = || -> Vec<_> {
        let walk = walkdir::WalkDir::new(dir.path()).sort_by_file_name().into_iter();
        walk.flatten()
            .map(|it| {
                (it.path().to_owned(), it.metadata().unwrap().modified().unwrap(), fs::read(it.path()).ok())
            })
            .collect()
    };
    let before = state();
    capture(dir.path(), &Buffers::new());
    recently_changed(dir.path());
    assert_eq!(before, state());
}

#[test]
fn what_changed_lately_comes_first() {
    let dir = tree(&[("a.py", "1"), ("b.py", "1"), ("c.py", "1")]);
    commit_all(dir.path());
    fs::write(dir.path().join("b.py"), "2").unwrap();
    commit_all(dir.path());
    fs::write(dir.path().join("c.py"), "22").unwrap();
    assert_eq!(recently_changed(dir.path()), [PathBuf::from("c.py"), PathBuf::from("b.py")]);
}

#[test]
fn a_missing_root_and_a_file_as_root_are_refused() {
    let dir = tree(&[("a", "1")]);
    let store = tempfile::tempdir().unwrap();
    for root in [dir.path().join("a"), dir.path().join("none")] {
        let error = Snapshot::capture(&root, &Buffers::new(), store.path()).unwrap_err();
        assert!(error.to_string().ends_with("is not a directory"), "{error}");
    }
}

#[test]
fn names_that_are_not_text_survive() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tree(&[]);
    let name = std::ffi::OsStr::from_bytes(b"odd \xff name");
    fs::write(dir.path().join(name), "1").unwrap();
    let (snapshot, _store) = capture(dir.path(), &Buffers::new());
    assert!(snapshot.entries().contains_key(Path::new(name)));
}
