//! The workspace folders, and which repository a file belongs to.

use std::path::{Path, PathBuf};

use tower_lsp_server::gen_lsp_types::{InitializeParams, WorkspaceFolder, WorkspaceFolders};

use super::documents;

/// The workspace folders, as paths.
#[derive(Clone, Debug, Default)]
pub struct Folders(Vec<PathBuf>);

impl Folders {
    /// Those that the client starts with.
    pub fn new(params: &InitializeParams) -> Self {
        let folders = match &params.workspace_folders_initialize_params.workspace_folders {
            Some(WorkspaceFolders::WorkspaceFolderList(folders)) => {
                folders.iter().filter_map(|folder| documents::path(&folder.uri)).collect()
            }
            _ => Vec::new(),
        };
        if !folders.is_empty() {
            return Self(folders);
        }
        #[expect(deprecated, reason = "older clients send nothing else")]
        let root = params.root_uri.as_ref().and_then(documents::path);
        Self(root.into_iter().collect())
    }

    /// Takes the client's change.
    pub fn change(&mut self, added: &[WorkspaceFolder], removed: &[WorkspaceFolder]) {
        let removed: Vec<PathBuf> = removed.iter().filter_map(|it| documents::path(&it.uri)).collect();
        self.0.retain(|folder| !removed.contains(folder));
        self.0.extend(added.iter().filter_map(|it| documents::path(&it.uri)));
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(PathBuf::as_path)
    }

    /// The innermost folder that holds `path`.
    pub fn of(&self, path: &Path) -> Option<&Path> {
        self.iter().filter(|folder| path.starts_with(folder)).max_by_key(|folder| folder.components().count())
    }

    /// The repository of `path`: the innermost directory with a `.git` between it and its folder, else the folder. Of a file in no
    /// folder, its git repository, and nothing where there is none: a lone file's surroundings are not ours to read.
    pub fn repository(&self, path: &Path) -> Option<PathBuf> {
        let folder = self.of(path);
        let above =
            path.ancestors().skip(1).take_while(|dir| folder.is_none_or(|folder| dir.starts_with(folder)));
        let git = above.into_iter().find(|dir| dir.join(".git").exists());
        git.or(folder).map(Path::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_inside_a_folder_is_found_and_else_the_folder_counts() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        let (inner, plain) = (root.path().join("inner"), root.path().join("plain"));
        std::fs::create_dir_all(inner.join(".git"))?;
        std::fs::create_dir_all(inner.join("src"))?;
        std::fs::create_dir_all(&plain)?;
        let folders = Folders(vec![root.path().to_owned()]);
        assert_eq!(folders.repository(&inner.join("src/a.py")), Some(inner));
        assert_eq!(folders.repository(&plain.join("a.py")).as_deref(), Some(root.path()));
        Ok(())
    }

    #[test]
    fn a_lone_file_has_no_repository() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        assert_eq!(Folders::default().repository(&root.path().join("a.py")), None);
        Ok(())
    }
}
