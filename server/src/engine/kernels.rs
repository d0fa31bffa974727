//! Which CPU kernels are used: llama.cpp takes the best that the CPU names, but a virtual machine may name instructions that
//! it does not keep its promise on (AMX tiles lost between two instructions, seen on Sapphire Rapids guests). Such a process
//! dies by SIGILL; then this machine goes on with plainer kernels from there on, until the next version of Tadpole.

use std::os::fd::IntoRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};

use llama_cpp_2::llama_backend::{load_backends, load_backends_from_path};

use crate::model::ModelError;

/// Kernels that are left out, one level after the other.
const LEVELS: [&[&str]; 4] = [
    &[],
    &["sapphirerapids"],
    &["sapphirerapids", "zen4", "cooperlake", "icelake", "cascadelake", "cannonlake", "skylakex"],
    &[
        "sapphirerapids",
        "zen4",
        "cooperlake",
        "icelake",
        "cascadelake",
        "cannonlake",
        "skylakex",
        "alderlake",
        "haswell",
        "piledriver",
        "ivybridge",
        "sandybridge",
    ],
];

/// Exit code of an engine that died of an instruction.
const ILLEGAL: i32 = 132;

/// File to which the signal handler writes the next level.
static NEXT_LEVEL: AtomicI32 = AtomicI32::new(-1);

/// Where the level of this machine is kept. It has one byte for every level that failed.
pub fn file(run: &Path) -> PathBuf {
    run.join(concat!("kernels-", env!("CARGO_PKG_VERSION")))
}

/// The level of this machine: 0 uses whatever the CPU names.
pub(super) fn level(file: &Path) -> usize {
    std::fs::metadata(file).map_or(0, |it| it.len() as usize).min(LEVELS.len() - 1)
}

/// Loads the best kernels of this machine's level, which `file` holds.
///
/// # Errors
/// If they cannot be put together.
pub fn load(file: &Path) -> Result<(), ModelError> {
    // Beside the binary where it is installed; in the build's own place otherwise.
    let beside = std::env::current_exe().ok().and_then(|it| it.parent().map(Path::to_owned));
    let installed = beside.filter(|it| it.to_str().is_some() && !kernels(it).is_empty());
    let left_out = LEVELS[level(file)];
    match installed {
        Some(directory) if left_out.is_empty() => load_backends_from_path(&directory),
        Some(directory) => load_backends_from_path(&selected(&directory, file, left_out)?),
        None => load_backends(),
    }
    Ok(())
}

/// A directory with links to the kernels in `directory` that are not left out: llama.cpp can only be given a directory.
fn selected(directory: &Path, file: &Path, left_out: &[&str]) -> Result<PathBuf, ModelError> {
    let selected = file.with_extension("selected");
    let failed = |error: std::io::Error| {
        ModelError::Unavailable(format!(
            "the CPU kernels cannot be selected in {}: {error}",
            selected.display()
        ))
    };
    match std::fs::remove_dir_all(&selected) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => std::fs::create_dir_all(&selected).map_err(failed)?,
    }
    for name in kernels(directory) {
        if !left_out.iter().any(|it| name.contains(it)) {
            std::os::unix::fs::symlink(directory.join(&name), selected.join(&name)).map_err(failed)?;
        }
    }
    Ok(selected)
}

fn kernels(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|it| it.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("libggml-cpu")).collect()
}

/// From now on an illegal instruction ends this process with a note in `file` for the next one.
pub(super) fn watch(file: &Path) {
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(file);
    let Ok(opened) = opened else { return };
    NEXT_LEVEL.store(opened.into_raw_fd(), Ordering::Relaxed);
    let handler: extern "C" fn(libc::c_int) = on_illegal_instruction;
    // SAFETY: the handler calls only `pause`, `write` and `_exit`, which are async-signal-safe (POSIX.1, signal-safety(7)).
    unsafe { libc::signal(libc::SIGILL, handler as libc::sighandler_t) };
}

extern "C" fn on_illegal_instruction(_: libc::c_int) {
    const MESSAGE: &[u8] =
        b"this machine refuses a CPU instruction that it names; plainer kernels are used from now on\n";
    // SAFETY: all are async-signal-safe; the buffers are constant and the descriptor stays open for the life of the process.
    unsafe {
        let file = NEXT_LEVEL.swap(-1, Ordering::Relaxed);
        if file < 0 {
            // Another thread is at it, as several compute at once: one refused instruction is one level.
            loop {
                libc::pause();
            }
        }
        libc::write(file, b"x".as_ptr().cast(), 1);
        libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(ILLEGAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_leaves_out_more_and_the_plainest_kernels_always_stay()
    -> Result<(), Box<dyn std::error::Error>> {
        let root = tempfile::tempdir()?;
        let names = [
            "libggml-cpu-sapphirerapids.so",
            "libggml-cpu-icelake.so",
            "libggml-cpu-haswell.so",
            "libggml-cpu-x64.so",
        ];
        for name in names.iter().chain(&["libggml-base.so"]) {
            std::fs::write(root.path().join(name), "")?;
        }
        let file = file(root.path());
        for (failed, expected) in [(1, &names[1..]), (2, &names[2..]), (3, &names[3..]), (9, &names[3..])] {
            std::fs::write(&file, "x".repeat(failed))?;
            let directory = selected(root.path(), &file, LEVELS[level(&file)])?;
            let mut left = kernels(&directory);
            left.sort_by_key(|name| names.iter().position(|it| it == name));
            assert_eq!(left, expected);
        }
        Ok(())
    }
}
