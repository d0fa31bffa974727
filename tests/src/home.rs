//! Data directories for tests.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Where the models were downloaded to: the data directory of whoever runs the tests.
pub fn models() -> PathBuf {
    let home = std::env::var_os("TADPOLE_HOME").map(PathBuf::from).unwrap_or_else(|| {
        let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
        data.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".local/share"))
            .join("tadpole")
    });
    home.join("models")
}

/// A model's file.
///
/// # Panics
/// If it was not downloaded.
pub fn model(name: &str) -> PathBuf {
    let file = models().join(format!("{name}.gguf"));
    assert!(file.is_file(), "{name} is missing; run `make models` first");
    file
}

/// A data directory of its own, with the downloaded models and its own engine.
pub struct Home {
    dir: TempDir,
}

impl Home {
    /// With the downloaded models.
    pub fn new() -> Self {
        let home = Self::without_models();
        std::os::unix::fs::symlink(models(), home.path().join("models")).unwrap();
        home
    }

    /// Without any model.
    pub fn without_models() -> Self {
        // Short, as the path of a socket has a limit.
        Self { dir: tempfile::Builder::new().prefix("td-").tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes the person's configuration.
    pub fn configure(&self, text: &str) {
        let directory = self.path().join("config/tadpole");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("tadpole.toml"), text).unwrap();
    }

    /// Process ids of the engines that serve this directory.
    pub fn engines(&self) -> Vec<i32> {
        let mark = self.path().as_os_str().as_encoded_bytes();
        processes(|command, environment| {
            let engine = command.split(|it| *it == 0).nth(1) == Some(b"engine".as_slice());
            engine && environment.windows(mark.len()).any(|it| it == mark)
        })
    }
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for id in self.engines() {
            // SAFETY: a signal to a process of this test's own.
            unsafe { libc::kill(id, libc::SIGKILL) };
        }
    }
}

/// Ids of the processes whose command line and environment a test asks for.
pub fn processes(wanted: impl Fn(&[u8], &[u8]) -> bool) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|it| it.parse().ok()) else { continue };
        let read = |name| std::fs::read(entry.path().join(name)).unwrap_or_default();
        let command = read("cmdline");
        if !command.is_empty() && wanted(&command, &read("environ")) {
            found.push(id);
        }
    }
    found
}

/// Ids of the processes whose command line names `path`: the sandboxes of a repository.
pub fn processes_of(path: &Path) -> Vec<i32> {
    let mark = path.as_os_str().as_encoded_bytes();
    processes(|command, _| command.windows(mark.len()).any(|it| it == mark))
}

/// Waits until `holds`, at most for `limit`; whether it did.
pub fn wait_until(limit: Duration, holds: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
