//! Read, Write, Edit and Glob, on the workspace alone: no path leads out of it, by name or through a link.

use std::path::{Component, Path, PathBuf};

use globset::GlobBuilder;
use tasks::workspace::Workspace;

use super::tools::{Arguments, Refusal, cut};

/// Characters of a file that are shown.
const READ: usize = 20_000;

/// Paths that are listed.
const GLOB: usize = 1_000;

/// Largest file that is read or edited, in bytes.
const LARGEST: u64 = 8 << 20;

pub(super) fn read(workspace: &Workspace, arguments: &Arguments<'_>) -> Result<String, Refusal> {
    let (relative, path) = place(workspace, arguments.text("file_path")?)?;
    let text = text(&path, &relative)?;
    let offset = arguments.number("offset")?.unwrap_or(1).max(1) as usize;
    let limit = arguments.number("limit")?.map_or(usize::MAX, |it| it as usize);
    let lines = text.lines().enumerate().skip(offset - 1).take(limit);
    let numbered: String = lines.map(|(at, line)| format!("{}. {line}\n", at + 1)).collect();
    Ok(cut(&format!("{}\n{numbered}", relative.display()), READ))
}

pub(super) fn write(workspace: &Workspace, arguments: &Arguments<'_>) -> Result<String, Refusal> {
    let (relative, path) = place(workspace, arguments.text("file_path")?)?;
    let content = arguments.text("content")?;
    store(&path, content)?;
    Ok(format!("wrote {} ({} bytes)", relative.display(), content.len()))
}

pub(super) fn edit(workspace: &Workspace, arguments: &Arguments<'_>) -> Result<String, Refusal> {
    let (relative, path) = place(workspace, arguments.text("file_path")?)?;
    let (old, new) = (arguments.text("old_string")?, arguments.text("new_string")?);
    let text = text(&path, &relative)?;
    if old.is_empty() {
        return Err(Refusal::new("EditError", "old_string is empty; give the text to replace"));
    }
    if old == new {
        return Err(Refusal::new("EditError", "old_string and new_string are equal"));
    }
    // Models see and write plain line ends; the file keeps its own.
    let windows = text.contains("\r\n") && !old.contains("\r\n");
    let (old, new) = if windows {
        (old.replace('\n', "\r\n"), new.replace('\n', "\r\n"))
    } else {
        (old.to_owned(), new.to_owned())
    };
    let count = text.matches(&old).count();
    match count {
        0 => Err(Refusal::new("EditError", format!("old_string was not found in {}", relative.display()))),
        1 => Ok(()),
        _ if arguments.flag("replace_all") => Ok(()),
        many => Err(Refusal::new(
            "EditError",
            format!(
                "old_string occurs {many} times in {}; give more of the text around it, or replace_all",
                relative.display()
            ),
        )),
    }?;
    store(&path, &text.replace(&old, &new))?;
    Ok(format!("edited {} ({count} replacements)", relative.display()))
}

pub(super) fn glob(workspace: &Workspace, arguments: &Arguments<'_>) -> Result<String, Refusal> {
    let pattern = arguments.text("pattern")?;
    let (relative, base) = match arguments.optional("path").filter(|it| !it.is_empty()) {
        Some(path) => place(workspace, path)?,
        None => (PathBuf::new(), workspace.tree().to_owned()),
    };
    let pattern = pattern
        .strip_prefix(&*workspace.mount().to_string_lossy())
        .map_or(pattern, |it| it.trim_start_matches('/'));
    let matcher = GlobBuilder::new(pattern).literal_separator(true).build();
    let matcher = matcher.map_err(|error| Refusal::new("GlobError", error))?.compile_matcher();
    let walk = walkdir::WalkDir::new(&base).follow_links(false).into_iter();
    let visible =
        |entry: &walkdir::DirEntry| entry.file_name() != ".git" && entry.file_name() != "node_modules";
    let mut found: Vec<String> = walk
        .filter_entry(visible)
        .flatten()
        .filter(|entry| entry.file_type().is_file())
        .filter_map(|entry| entry.path().strip_prefix(&base).ok().map(Path::to_owned))
        .filter(|path| matcher.is_match(path))
        .map(|path| relative.join(path).to_string_lossy().into_owned())
        .collect();
    found.sort();
    if found.is_empty() {
        return Ok(format!("no files match {pattern}"));
    }
    let left_out = found.len().saturating_sub(GLOB);
    found.truncate(GLOB);
    let note = if left_out > 0 { format!("\n... [{left_out} paths left out]") } else { String::new() };
    Ok(found.join("\n") + &note)
}

/// A path that the model wrote, relative to the repository and on the host.
fn place(workspace: &Workspace, path: &str) -> Result<(PathBuf, PathBuf), Refusal> {
    let outside = || Refusal::new("PathError", format!("{path} is not inside of the repository"));
    let given = Path::new(path);
    let relative = match given.strip_prefix(workspace.mount()) {
        Ok(relative) => relative,
        Err(_) if given.is_absolute() => return Err(outside()),
        Err(_) => given,
    };
    let mut plain = PathBuf::new();
    for part in relative.components() {
        match part {
            Component::Normal(name) if name != ".git" => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir if plain.pop() => {}
            _ => return Err(outside()),
        }
    }
    let full = workspace.tree().join(&plain);
    // A command of the model may have planted a link.
    let linked = full.ancestors().take_while(|it| *it != workspace.tree()).any(Path::is_symlink);
    if linked { Err(outside()) } else { Ok((plain, full)) }
}

fn text(path: &Path, relative: &Path) -> Result<String, Refusal> {
    let failed = |error: std::io::Error| {
        let kind =
            if error.kind() == std::io::ErrorKind::NotFound { "FileNotFoundError" } else { "ReadError" };
        Refusal::new(kind, format!("{}: {error}", relative.display()))
    };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Err(Refusal::new(
            "IsADirectoryError",
            format!("{} is a directory; use Glob to list it", relative.display()),
        ));
    }
    if metadata.len() > LARGEST || !metadata.is_file() {
        return Err(Refusal::new(
            "ReadError",
            format!("{} is too large; use Bash to look at parts of it", relative.display()),
        ));
    }
    String::from_utf8(std::fs::read(path).map_err(failed)?)
        .map_err(|_| Refusal::new("ReadError", format!("{} is not a text file", relative.display())))
}

fn store(path: &Path, content: &str) -> Result<(), Refusal> {
    let write = || {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, content)
    };
    write().map_err(|error: std::io::Error| Refusal::new("WriteError", error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tasks::snapshot::Snapshot;
    use tasks::workspace::Pool;

    struct Place {
        _dir: tempfile::TempDir,
        workspace: Workspace,
    }

    fn workspace(files: &[(&str, &str)]) -> Place {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("repo");
        for (path, content) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let snapshot = Snapshot::capture(&root, &Default::default(), &dir.path().join("store")).unwrap();
        let workspace = Pool::open(&dir.path().join("pool")).unwrap().acquire(&snapshot).unwrap();
        Place { _dir: dir, workspace }
    }

    fn call(
        tool: impl Fn(&Workspace, &Arguments<'_>) -> Result<String, Refusal>,
        place: &Place,
        arguments: Value,
    ) -> String {
        tool(&place.workspace, &Arguments(arguments.as_object().unwrap())).unwrap_or_else(|refusal| refusal.0)
    }

    #[test]
    fn reading_shows_the_path_and_numbered_lines() {
        let place = workspace(&[("src/a.py", "x = 1\ny = 2\nz = 3\n")]);
        let shown = call(read, &place, json!({ "file_path": "src/a.py", "offset": 2, "limit": 1 }));
        assert_eq!(shown, "src/a.py\n2. y = 2\n");
        let absolute = place.workspace.mount().join("src/a.py");
        assert!(call(read, &place, json!({ "file_path": absolute })).ends_with("3. z = 3\n"));
        assert!(call(read, &place, json!({ "file_path": "b.py" })).starts_with("FileNotFoundError: b.py"));
    }

    #[test]
    fn an_edit_must_be_unique_and_keeps_windows_line_ends() {
        let place = workspace(&[("a.py", "x = 1\r\ny = 1\r\n")]);
        let twice = json!({ "file_path": "a.py", "old_string": " = 1", "new_string": " = 2" });
        assert!(call(edit, &place, twice).starts_with("EditError: old_string occurs 2 times"));
        let once = json!({ "file_path": "a.py", "old_string": "x = 1\ny", "new_string": "x = 2\ny" });
        assert_eq!(call(edit, &place, once), "edited a.py (1 replacements)");
        let all =
            json!({ "file_path": "a.py", "old_string": " = ", "new_string": "=", "replace_all": "true" });
        assert_eq!(call(edit, &place, all), "edited a.py (2 replacements)");
        assert_eq!(std::fs::read_to_string(place.workspace.tree().join("a.py")).unwrap(), "x=2\r\ny=1\r\n");
    }

    #[test]
    fn no_path_leads_out_of_the_workspace() {
        let place = workspace(&[("a.py", "x")]);
        std::os::unix::fs::symlink("/etc", place.workspace.tree().join("link")).unwrap();
        for path in ["/etc/passwd", "../x", "a/../../x", "link/passwd", ".git/config"] {
            let shown = call(read, &place, json!({ "file_path": path }));
            assert!(shown.starts_with("PathError"), "{path}: {shown}");
            let written = call(write, &place, json!({ "file_path": path, "content": "x" }));
            assert!(written.starts_with("PathError"), "{path}: {written}");
        }
        assert_eq!(
            call(write, &place, json!({ "file_path": "new/b.py", "content": "é" })),
            "wrote new/b.py (2 bytes)"
        );
    }

    #[test]
    fn a_pattern_lists_sorted_paths() {
        let place = workspace(&[("b/x.py", ""), ("a.py", ""), ("c.txt", "")]);
        assert_eq!(call(glob, &place, json!({ "pattern": "**/*.py" })), "a.py\nb/x.py");
        assert_eq!(call(glob, &place, json!({ "pattern": "*.py", "path": "b" })), "b/x.py");
        assert_eq!(call(glob, &place, json!({ "pattern": "*.rs" })), "no files match *.rs");
    }
}
