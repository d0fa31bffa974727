//! From what a person names to the ids that a framework reports.

use tasks::runner::TestId;

/// The known ids that `wanted` means: itself, or its parametrized cases and subtests, or everything in a
/// file, class or suite, or what ends with it, as a person leaves out the package (Rust, Go) or the directory of the
/// project (monorepos).
pub fn matching<'a>(wanted: &str, known: impl Iterator<Item = &'a TestId> + Clone) -> Vec<TestId> {
    if let Some(id) = known.clone().find(|id| id.0 == wanted) {
        return vec![id.clone()];
    }
    let beneath = |id: &TestId| id.0.strip_prefix(wanted).is_some_and(starts_a_part);
    let found: Vec<TestId> = known.clone().filter(|id| beneath(id)).cloned().collect();
    if !found.is_empty() {
        return found;
    }
    known
        .filter(|id| {
            id.0.strip_suffix(wanted)
                .is_some_and(|head| ["::", " > ", "/"].iter().any(|it| head.ends_with(it)))
        })
        .cloned()
        .collect()
}

/// At most three known ids that look like `wanted`, for an error message.
pub fn similar<'a>(wanted: &str, known: impl Iterator<Item = &'a TestId>) -> Vec<String> {
    let names: Vec<&str> = known.map(|id| id.0.as_str()).collect();
    similar::get_close_matches(wanted, &names, 3, 0.5).into_iter().map(str::to_owned).collect()
}

fn starts_a_part(rest: &str) -> bool {
    ["[", "::", "/", " > ", "#"].iter().any(|separator| rest.starts_with(separator))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(names: &[&str]) -> Vec<TestId> {
        names.iter().map(|name| TestId((*name).to_owned())).collect()
    }

    #[test]
    fn an_exact_id_means_itself_alone() {
        let known = ids(&["t.py::test_a", "t.py::test_a[1]"]);
        assert_eq!(matching("t.py::test_a", known.iter()), ids(&["t.py::test_a"]));
    }

    #[test]
    fn a_name_means_its_cases_but_not_a_longer_name() {
        let known = ids(&["t.py::test_a[1]", "t.py::test_a[2]", "t.py::test_ab"]);
        assert_eq!(matching("t.py::test_a", known.iter()), ids(&["t.py::test_a[1]", "t.py::test_a[2]"]));
    }

    #[test]
    fn a_rust_path_may_leave_out_its_binary() {
        let known = ids(&["shapes::area::tests::square", "cli::area::tests::square_root"]);
        assert_eq!(matching("area::tests::square", known.iter()), ids(&["shapes::area::tests::square"]));
    }

    #[test]
    fn a_path_may_leave_out_the_directory_of_its_project() {
        let known = ids(&["web/src/a.test.ts > adds", "web/src/b.test.ts > adds"]);
        assert_eq!(matching("src/a.test.ts > adds", known.iter()), ids(&["web/src/a.test.ts > adds"]));
    }

    #[test]
    fn a_misspelt_id_finds_its_neighbour() {
        let known = ids(&["tests/test_a.py::test_total", "tests/test_b.py::test_other"]);
        assert_eq!(similar("tests/test_a.py::test_totl", known.iter())[0], "tests/test_a.py::test_total");
    }
}
