//! Which repositories the person trusts. Nothing in an untrusted repository is ever run, not even in the
//! sandbox.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The stored decisions: one file of canonical directories.
#[derive(Clone, Debug)]
pub struct Trust {
    file: PathBuf,
}

impl Trust {
    /// The decisions stored in `file`.
    pub fn new(file: PathBuf) -> Self {
        Self { file }
    }

    /// Whether `directory` or one above it is trusted. An unreadable file trusts nothing.
    pub fn contains(&self, directory: &Path) -> bool {
        let Ok(directory) = directory.canonicalize() else { return false };
        let trusted = self.read();
        directory.ancestors().any(|ancestor| trusted.contains(ancestor))
    }

    /// Trusts `directory` from now on.
    ///
    /// # Errors
    /// If it does not exist or the decision cannot be stored.
    pub fn add(&self, directory: &Path) -> std::io::Result<()> {
        let mut trusted = self.read();
        if !trusted.insert(directory.canonicalize()?) {
            return Ok(());
        }
        let parent = self.file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent)?;
        let mut file = tempfile::NamedTempFile::new_in(parent)?;
        file.write_all(serde_json::to_string_pretty(&trusted)?.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.file)?;
        Ok(())
    }

    fn read(&self) -> BTreeSet<PathBuf> {
        std::fs::read(&self.file)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_covers_what_lies_beneath_and_nothing_beside() -> std::io::Result<()> {
        let home = tempfile::tempdir()?;
        let (project, beside) = (home.path().join("a/project"), home.path().join("b"));
        std::fs::create_dir_all(project.join("inner"))?;
        std::fs::create_dir_all(&beside)?;
        let trust = Trust::new(home.path().join("data/trust.json"));
        assert!(!trust.contains(&project));
        trust.add(&project)?;
        assert!(trust.contains(&project) && trust.contains(&project.join("inner")));
        assert!(!trust.contains(&beside) && !trust.contains(home.path()));
        Ok(())
    }

    #[test]
    fn a_link_to_a_trusted_directory_does_not_lend_its_trust_elsewhere() -> std::io::Result<()> {
        let home = tempfile::tempdir()?;
        let (trusted, other) = (home.path().join("trusted"), home.path().join("other"));
        std::fs::create_dir_all(&trusted)?;
        std::fs::create_dir_all(&other)?;
        let trust = Trust::new(home.path().join("trust.json"));
        trust.add(&trusted)?;
        std::os::unix::fs::symlink(&other, trusted.join("link"))?;
        assert!(!trust.contains(&trusted.join("link")));
        Ok(())
    }
}
