//! The data directory: everything Tadpole keeps lies in it, readable by its owner only.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The data directory of a person (`TADPOLE_HOME`, or the platform's own place).
#[derive(Clone, Debug)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// The data directory of this process, created when missing.
    ///
    /// # Errors
    /// One sentence with the path and what to do.
    pub fn open() -> Result<Self, String> {
        let root = match std::env::var_os("TADPOLE_HOME").filter(|it| !it.is_empty()) {
            Some(root) => PathBuf::from(root),
            None => directories::ProjectDirs::from("", "", "tadpole")
                .ok_or("no home directory is known; set TADPOLE_HOME to a directory of yours")?
                .data_dir()
                .to_owned(),
        };
        Self::at(&root)
    }

    /// The data directory at `root`, created when missing.
    ///
    /// # Errors
    /// One sentence with the path and what to do.
    pub fn at(root: &Path) -> Result<Self, String> {
        let unusable = |error| {
            format!(
                "cannot use the data directory {}: {error}; set TADPOLE_HOME to a directory that can be written",
                root.display()
            )
        };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(unusable)?;
        // Canonical, as the sandbox refuses what is reached through links.
        Ok(Self { root: root.canonicalize().map_err(unusable)? })
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Downloaded models.
    pub fn models(&self) -> PathBuf {
        self.root.join("models")
    }

    /// Content of snapshots.
    pub fn store(&self) -> PathBuf {
        self.root.join("store")
    }

    /// Workspaces.
    pub fn pool(&self) -> PathBuf {
        self.root.join("pool")
    }

    /// Sockets and locks of running processes.
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// What is shown once and may be thrown away.
    pub fn scratch(&self) -> PathBuf {
        self.root.join("scratch")
    }

    /// Logs.
    pub fn log(&self) -> PathBuf {
        self.root.join("log")
    }
}
