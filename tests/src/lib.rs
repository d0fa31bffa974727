//! What the end-to-end tests share. They drive the built binary from outside, as a person or an editor would.

use std::path::PathBuf;

/// The built `tadpole`, which lies beside the directory of the test binaries.
///
/// # Panics
/// If it was not built.
pub fn tadpole() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let path = own.ancestors().skip(1).map(|it| it.join("tadpole")).find(|it| it.is_file());
    assert!(path.is_some(), "tadpole is not built; run `cargo build --release` first");
    path.unwrap_or_default()
}
