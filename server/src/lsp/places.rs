//! From tests as they stand in a source file to the ids that their framework reports.

use std::path::{Component, Path};

use tasks::runner::TestId;
use tasks::syntax::{self, Language, TestItem};

/// Larger files (generated, minified) get no lenses and no actions on tests.
const LARGEST: usize = 1 << 20;

/// The tests of a file with their ids. Ids are relative to `repository`, which must hold `path`.
pub fn tests(repository: &Path, path: &Path, text: &str) -> Vec<(TestId, TestItem)> {
    let Some(language) = Language::of(path).filter(|_| text.len() <= LARGEST) else { return Vec::new() };
    let Ok(relative) = path.strip_prefix(repository) else { return Vec::new() };
    let items = syntax::tests(language, path, text);
    if items.is_empty() {
        return Vec::new();
    }
    let prefix = prefix(language, repository, relative);
    let separator = match language {
        Language::Python | Language::Rust | Language::Go => "::",
        Language::JavaScript | Language::TypeScript | Language::Tsx => " > ",
    };
    let id = |item: &TestItem| TestId(format!("{prefix}{separator}{}", item.path.join(separator)));
    items.into_iter().map(|item| (id(&item), item)).collect()
}

/// What comes before the test's own name: the file, package, or crate and module.
fn prefix(language: Language, repository: &Path, relative: &Path) -> String {
    let slashed = |path: &Path| path.to_string_lossy().replace('\\', "/");
    match language {
        Language::Go => match relative.parent().map(slashed) {
            Some(dir) if !dir.is_empty() => format!("./{dir}"),
            _ => ".".to_owned(),
        },
        Language::Rust => rust_module(repository, relative),
        Language::Python | Language::JavaScript | Language::TypeScript | Language::Tsx => slashed(relative),
    }
}

/// `package::module` of a library, `package::bin/name::module` of a program, `package::file` of an integration test.
fn rust_module(repository: &Path, relative: &Path) -> String {
    let manifest = |dir: &&Path| repository.join(dir).join("Cargo.toml").is_file();
    let root = relative.ancestors().skip(1).find(manifest).unwrap_or(Path::new(""));
    let package = package_name(&repository.join(root)).unwrap_or_default();
    let inside = relative.strip_prefix(root).unwrap_or(relative).with_extension("");
    let parts: Vec<_> = inside
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    let named = match parts.as_slice() {
        ["src", "lib"] => vec![package],
        ["src", "main"] => vec![package.clone(), format!("bin/{package}")],
        ["src", "bin", name] | ["src", "bin", name, "main"] => vec![package, format!("bin/{name}")],
        ["src", modules @ ..] => {
            let modules = modules.strip_suffix(&["mod"]).unwrap_or(modules);
            std::iter::once(package).chain(modules.iter().map(|it| (*it).to_owned())).collect()
        }
        ["tests", name] | ["tests", name, "main"] => vec![package, (*name).to_owned()],
        other => std::iter::once(package).chain(other.iter().map(|it| (*it).to_owned())).collect(),
    };
    named.join("::")
}

fn package_name(dir: &Path) -> Option<String> {
    let manifest = std::fs::read_to_string(dir.join("Cargo.toml")).ok()?;
    let manifest: toml::Table = manifest.parse().ok()?;
    Some(manifest.get("package")?.get("name")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(repository: &Path, path: &str, text: &str) -> Vec<String> {
        tests(repository, &repository.join(path), text).into_iter().map(|(id, _)| id.0).collect()
    }

    #[test]
    fn ids_are_spelt_as_the_frameworks_spell_them() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        let root = root.path();
        let python = "class TestA:\n    def test_b(self):\n        pass\n\ndef test_c():\n    pass\n";
        assert_eq!(
            ids(root, "tests/test_a.py", python),
            ["tests/test_a.py::TestA::test_b", "tests/test_a.py::test_c"]
        );
        let go = "package a\n\nfunc TestSum(t *testing.T) {}\n";
        assert_eq!(ids(root, "sum_test.go", go), [".::TestSum"]);
        assert_eq!(ids(root, "pkg/sum_test.go", go), ["./pkg::TestSum"]);
        let typescript = "describe('sheet', () => {\n  test('adds', () => {});\n});\n";
        assert_eq!(ids(root, "test/a.test.ts", typescript), ["test/a.test.ts > sheet > adds"]);
        Ok(())
    }

    #[test]
    fn rust_ids_carry_package_binary_and_module() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        let root = root.path();
        std::fs::create_dir(root.join("crate"))?;
        std::fs::write(root.join("crate/Cargo.toml"), "[package]\nname = \"shapes\"\n")?;
        let unit = "mod tests {\n    #[test]\n    fn square() {}\n}\n";
        assert_eq!(ids(root, "crate/src/area.rs", unit), ["shapes::area::tests::square"]);
        assert_eq!(ids(root, "crate/src/lib.rs", unit), ["shapes::tests::square"]);
        assert_eq!(ids(root, "crate/src/area/mod.rs", unit), ["shapes::area::tests::square"]);
        assert_eq!(ids(root, "crate/src/main.rs", unit), ["shapes::bin/shapes::tests::square"]);
        assert_eq!(ids(root, "crate/tests/api.rs", "#[test]\nfn works() {}\n"), ["shapes::api::works"]);
        Ok(())
    }
}
