//! Puts llama.cpp's libraries, with one CPU back end for each kind of processor, beside the binary, and makes the binary look
//! for them there: what is shipped is one directory, and the best kernels are chosen when it runs.

use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    let backends = PathBuf::from(std::env::var("DEP_LLAMA_BACKENDS_DIR")?);
    let libraries = backends.with_file_name("lib");
    // OUT_DIR is PROFILE/build/server-HASH/out.
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let profile = out.ancestors().nth(3).ok_or("an unexpected layout of the target directory")?;
    for directory in [&backends, &libraries] {
        for entry in std::fs::read_dir(directory)? {
            place(&entry?.path(), profile)?;
        }
    }
    for place in ["$ORIGIN", "$ORIGIN/.."] {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{place}");
    }
    Ok(())
}

/// Copies a shared library under the name that the loader asks for: a major version at most.
fn place(library: &Path, directory: &Path) -> std::io::Result<()> {
    let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Some((_, version)) = name.split_once(".so") else { return Ok(()) };
    let unversioned_link = version.is_empty() && library.is_symlink();
    if version.matches('.').count() > 1 || unversioned_link {
        return Ok(());
    }
    let target = directory.join(&name);
    // A rename, as a running process may have the old one mapped.
    let new = directory.join(format!(".{name}.new"));
    std::fs::copy(library, &new)?;
    std::fs::rename(new, target)
}
