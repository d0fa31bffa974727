//! Writing a verified patch into the person's tree, when they asked for it with `--apply`.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use tasks::patch::{FileChange, Patch};

use super::CliError;

/// Applies `patch` under `root`: every file must still be what the patch was made for, or none is changed.
///
/// # Errors
/// If a file has changed meanwhile or cannot be written.
pub fn apply(root: &Path, patch: &Patch) -> Result<(), CliError> {
    for (path, change) in &patch.files {
        let now = read(&root.join(path))?;
        if now.as_deref() != change.before.as_deref() {
            return Err(CliError::Usage(format!(
                "{} has changed since the fix was verified; nothing was applied, run the command again",
                path.display()
            )));
        }
    }
    let mut done: Vec<(&Path, &FileChange)> = Vec::new();
    for (path, change) in &patch.files {
        if let Err(error) = write(&root.join(path), change.after.as_deref()) {
            for (path, change) in done {
                // The first error is the one to report; a second one here leaves a verified file in place.
                let _ = write(&root.join(path), change.before.as_deref());
            }
            return Err(CliError::Usage(format!(
                "cannot write {}: {error}; nothing was applied",
                path.display()
            )));
        }
        done.push((path, change));
    }
    Ok(())
}

fn read(path: &Path) -> Result<Option<Arc<[u8]>>, CliError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes.into())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CliError::Usage(format!("cannot read {}: {error}", path.display()))),
    }
}

/// Replaces a file at once (temporary file, rename), keeping its permissions.
fn write(path: &Path, content: Option<&[u8]>) -> std::io::Result<()> {
    let Some(content) = content else {
        return std::fs::remove_file(path);
    };
    let parent = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent)?;
    let mut file = tempfile::Builder::new().prefix(".tadpole-").tempfile_in(parent)?;
    file.write_all(content)?;
    let permissions = match std::fs::metadata(path) {
        Ok(metadata) => metadata.permissions(),
        Err(_) => std::os::unix::fs::PermissionsExt::from_mode(0o644),
    };
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_stops_the_whole_patch() -> Result<(), Box<dyn std::error::Error>> {
        let root = tempfile::tempdir()?;
        std::fs::write(root.path().join("a"), "1\n")?;
        std::fs::write(root.path().join("b"), "changed\n")?;
        let mut patch = Patch::replace("a", b"1\n", b"2\n");
        patch.files.extend(Patch::replace("b", b"1\n", b"2\n").files);
        assert!(apply(root.path(), &patch).is_err());
        assert_eq!(std::fs::read_to_string(root.path().join("a"))?, "1\n");
        Ok(())
    }

    #[test]
    fn permissions_stay_and_new_files_appear() -> Result<(), Box<dyn std::error::Error>> {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir()?;
        let script = root.path().join("run.sh");
        std::fs::write(&script, "a\n")?;
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755))?;
        let mut patch = Patch::replace("run.sh", b"a\n", b"b\n");
        patch.files.insert("new/x".into(), FileChange { before: None, after: Some(b"x".as_slice().into()) });
        apply(root.path(), &patch)?;
        assert_eq!(std::fs::metadata(&script)?.permissions().mode() & 0o777, 0o755);
        assert_eq!(std::fs::read(root.path().join("new/x"))?, b"x");
        Ok(())
    }
}
