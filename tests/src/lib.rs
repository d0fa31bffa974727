//! What the end-to-end tests and benchmarks share. They drive the built binary from outside, as a person or an editor
//! would, on real repositories with the real (small) models.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a step that fails ends the test or benchmark"
)]

pub mod bench;
pub mod cli;
pub mod home;
pub mod lsp;
pub mod sample;

use std::path::{Path, PathBuf};

/// The built `tadpole`, which lies beside the directory of the test binaries.
///
/// # Panics
/// If it was not built.
pub fn tadpole() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let path = own.ancestors().skip(1).map(|it| it.join("tadpole")).find(|it| it.is_file());
    path.expect("tadpole is not built; run `make build` first")
}

/// The repository of Tadpole itself.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A tool that `.ci/tools` installed, such as `python/bin/nvim`.
///
/// # Panics
/// If it was not installed.
pub fn tool(path: &str) -> PathBuf {
    let tool = repository().join("target/tools").join(path);
    assert!(tool.exists(), "{} is missing; run `make tools` first", tool.display());
    tool
}
