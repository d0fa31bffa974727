//! Copies of the sample repositories with one of their seeded bugs.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::{repository, tool};

/// A seeded bug, as `tests/repositories/*.bugs.toml` describes it.
#[derive(Clone, Debug, Deserialize)]
pub struct Bug {
    pub name: String,
    pub kind: String,
    pub file: PathBuf,
    pub before: String,
    pub after: String,
    /// Tests that fail with it; for Rust without the crate's name.
    pub fails: Vec<String>,
}

#[derive(Deserialize)]
struct Bugs {
    bug: Vec<Bug>,
}

/// The bugs of the sample repository `name` (`python`, `rust`, `typescript`, `go`).
pub fn bugs(name: &str) -> Vec<Bug> {
    let file = repository().join("tests/repositories").join(format!("{name}.bugs.toml"));
    toml::from_str::<Bugs>(&std::fs::read_to_string(file).unwrap()).unwrap().bug
}

/// The bug of that name.
pub fn bug(repository: &str, name: &str) -> Bug {
    bugs(repository).into_iter().find(|it| it.name == name).expect("the bug is in the list")
}

/// A repository of its own in a temporary directory.
pub struct Sample {
    pub dir: TempDir,
}

impl Sample {
    /// A copy of the sample repository `name`, with what its tests need.
    pub fn new(name: &str) -> Self {
        // A space in the path, as people have them.
        let sample = Self { dir: tempfile::Builder::new().prefix("sample ").tempdir().unwrap() };
        copy(&repository().join("tests/repositories").join(name), &sample.root());
        if name == "typescript" {
            copy(&tool("node/node_modules"), &sample.root().join("node_modules"));
        }
        sample
    }

    /// A copy with that bug.
    pub fn with_bug(name: &str, bug_name: &str) -> Self {
        let sample = Self::new(name);
        sample.seed(&bug(name, bug_name));
        sample
    }

    /// An empty directory with these files.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let sample = Self { dir: tempfile::Builder::new().prefix("sample ").tempdir().unwrap() };
        for (path, text) in files {
            sample.write(path, text);
        }
        sample
    }

    /// A small Python project with one fault that a small model mends.
    pub fn cart() -> Self {
        Self::of(&[
            (
                "cart.py",
                "def total(prices):\n    \"\"\"The sum of all prices.\"\"\"\n    result = 0\n    for price in prices:\n        result -= price\n    return result\n",
            ),
            (
                "tests/test_cart.py",
                "from cart import total\n\n\ndef test_total():\n    assert total([1, 2, 3]) == 6\n\n\ndef test_nothing():\n    assert total([]) == 0\n",
            ),
            ("pyproject.toml", "[tool.pytest.ini_options]\npythonpath = [\".\"]\n"),
        ])
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root().join(path)
    }

    pub fn read(&self, path: impl AsRef<Path>) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    pub fn write(&self, path: impl AsRef<Path>, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Puts a bug in.
    pub fn seed(&self, bug: &Bug) {
        let source = self.read(&bug.file);
        assert_eq!(source.matches(&bug.before).count(), 1, "{} names one place", bug.name);
        self.write(&bug.file, &source.replace(&bug.before, &bug.after));
    }

    /// A hash over every path, mode and content.
    pub fn hash(&self) -> String {
        use std::os::unix::fs::MetadataExt;
        let mut hash = Sha256::new();
        for entry in walkdir::WalkDir::new(self.root()).sort_by_file_name() {
            let entry = entry.unwrap();
            hash.update(entry.path().as_os_str().as_encoded_bytes());
            let data = entry.metadata().unwrap();
            hash.update(data.mode().to_le_bytes());
            if data.is_file() {
                hash.update(std::fs::read(entry.path()).unwrap());
            }
        }
        hex::encode(hash.finalize())
    }
}

/// Copies a tree; links stay links.
fn copy(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry.unwrap();
        let target = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
        } else if entry.file_type().is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(entry.path()).unwrap(), &target).unwrap();
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}
