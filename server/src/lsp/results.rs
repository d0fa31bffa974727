//! Failing tests as diagnostics. A failure is shown as long as its test still reads as it did when it failed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tasks::runner::{Outcome, TestId, TestResult};
use tasks::syntax::TestItem;
use tower_lsp_server::gen_lsp_types::{
    Code, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location, Message, Position, Range,
};

use super::positions::Encoding;
use super::{documents, places};

/// Source of our diagnostics.
pub const SOURCE: &str = "tadpole";

/// Longest message, in characters; the test runner's output has the rest.
const LONGEST: usize = 2000;

/// A test that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    id: TestId,
    message: String,
    location: Option<(PathBuf, u32)>,
    /// Where the test stands: its id there (of all its cases) and its text when it failed.
    test: (TestId, String),
}

/// The failures of one repository by file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results(BTreeMap<PathBuf, Vec<Failure>>);

impl Results {
    /// Takes new results, which replace what was known of these tests; the files that changed.
    pub fn update(
        &mut self,
        ran: impl Iterator<Item = TestId>,
        failed: Vec<(PathBuf, Failure)>,
    ) -> Vec<PathBuf> {
        let ran: std::collections::BTreeSet<TestId> = ran.collect();
        let before = self.0.clone();
        for failures in self.0.values_mut() {
            failures.retain(|failure| !ran.contains(&failure.id));
        }
        for (path, failure) in failed {
            self.0.entry(path).or_default().push(failure);
        }
        self.0.retain(|_, failures| !failures.is_empty());
        let files = before.keys().chain(self.0.keys()).collect::<std::collections::BTreeSet<_>>();
        files.into_iter().filter(|path| before.get(*path) != self.0.get(*path)).cloned().collect()
    }

    /// The failures in `path`.
    pub fn of(&self, path: &Path) -> Vec<Failure> {
        self.0.get(path).cloned().unwrap_or_default()
    }
}

/// Finds the failed tests in the files where they may stand: those that failed in `repository`, as `read` shows it.
/// Reads files, so it is not for the session task.
pub fn locate<'a>(
    repository: &Path,
    asked_in: Option<&Path>,
    results: impl Iterator<Item = (&'a TestId, &'a TestResult)>,
    read: impl Fn(&Path) -> Option<String>,
) -> Vec<(PathBuf, Failure)> {
    let mut known: BTreeMap<PathBuf, (Vec<(TestId, TestItem)>, String)> = BTreeMap::new();
    let mut found = Vec::new();
    for (id, result) in results.filter(|(_, it)| matches!(it.outcome, Outcome::Failed | Outcome::Error)) {
        let named =
            id.0.split("::").next().and_then(|it| it.split(" > ").next()).map(|it| repository.join(it));
        let at = result.location.as_ref().map(|(path, _)| repository.join(path));
        for path in asked_in.map(Path::to_owned).into_iter().chain(named).chain(at) {
            if !known.contains_key(&path) {
                let Some(text) = read(&path) else { continue };
                known.insert(path.clone(), (places::tests(repository, &path, &text), text));
            }
            let (tests, text) = &known[&path];
            let Some((test, item)) = tests.iter().find(|(test, _)| is_case_of(id, test)) else { continue };
            found.push((
                path,
                Failure {
                    id: id.clone(),
                    message: result.message.clone(),
                    location: result.location.clone(),
                    test: (test.clone(), text[item.range.clone()].to_owned()),
                },
            ));
            break;
        }
    }
    found
}

/// Whether `id` is the test, or one of its parametrized cases or subtests.
fn is_case_of(id: &TestId, test: &TestId) -> bool {
    id.0.strip_prefix(&test.0)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '/']) || rest.starts_with("::"))
}

/// The diagnostics of a file whose text is now `text`.
pub fn diagnostics(
    repository: &Path,
    path: &Path,
    text: &str,
    failures: &[Failure],
    encoding: Encoding,
) -> Vec<Diagnostic> {
    if failures.is_empty() {
        return Vec::new();
    }
    let tests = places::tests(repository, path, text);
    let shown = failures.iter().filter_map(|failure| {
        let (_, item) = tests.iter().find(|(id, _)| *id == failure.test.0)?;
        (text[item.range.clone()] == failure.test.1)
            .then(|| diagnostic(repository, failure, encoding.range(text, item.name_range.clone())))
    });
    shown.collect()
}

fn diagnostic(repository: &Path, failure: &Failure, range: Range) -> Diagnostic {
    let related = failure.location.as_ref().map(|(path, line)| {
        let start = Position { line: line.saturating_sub(1), character: 0 };
        let location =
            Location { uri: documents::uri(&repository.join(path)), range: Range { start, end: start } };
        vec![DiagnosticRelatedInformation { location, message: format!("{} fails here", failure.id) }]
    });
    let message = failure.message.trim();
    let message = match message.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None if message.is_empty() => format!("{} fails", failure.id),
        None => message.to_owned(),
    };
    Diagnostic {
        range,
        severity: Some(DiagnosticSeverity::Error),
        code: Some(Code::String("failing-test".into())),
        code_description: None,
        source: Some(SOURCE.into()),
        message: Message::String(message),
        tags: None,
        related_information: related,
        data: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "def test_a():\n    assert 1 == 2\n\n\ndef test_b():\n    pass\n";

    fn result(outcome: Outcome) -> TestResult {
        TestResult { outcome, message: "assert 1 == 2".into(), location: Some(("test_x.py".into(), 2)) }
    }

    fn failed() -> Vec<(PathBuf, Failure)> {
        let results = [
            (TestId("test_x.py::test_a[1]".into()), result(Outcome::Failed)),
            (TestId("test_x.py::test_b".into()), result(Outcome::Passed)),
        ];
        let read = |path: &Path| (path == Path::new("/r/test_x.py")).then(|| TEXT.to_owned());
        locate(Path::new("/r"), None, results.iter().map(|(id, result)| (id, result)), read)
    }

    #[test]
    fn a_failing_case_is_shown_at_its_test_with_the_place_of_the_assertion() {
        let failures: Vec<Failure> = failed().into_iter().map(|it| it.1).collect();
        let path = Path::new("/r/test_x.py");
        let shown = diagnostics(Path::new("/r"), path, TEXT, &failures, Encoding::Utf16);
        assert_eq!(shown.len(), 1);
        assert_eq!((shown[0].range.start.line, shown[0].range.start.character), (0, 4));
        let related = shown[0].related_information.as_ref().unwrap();
        assert_eq!(
            (related[0].location.uri.0.as_str(), related[0].location.range.start.line),
            ("file:///r/test_x.py", 1)
        );
    }

    #[test]
    fn it_moves_with_its_test_and_vanishes_when_the_test_changes() {
        let failures: Vec<Failure> = failed().into_iter().map(|it| it.1).collect();
        let path = Path::new("/r/test_x.py");
        let moved = format!("# above\n{TEXT}");
        let shown = diagnostics(Path::new("/r"), path, &moved, &failures, Encoding::Utf16);
        assert_eq!(shown[0].range.start.line, 1);
        let changed = TEXT.replace("1 == 2", "1 == 1");
        assert!(diagnostics(Path::new("/r"), path, &changed, &failures, Encoding::Utf16).is_empty());
    }

    #[test]
    fn a_test_that_passes_again_is_forgotten() {
        let mut results = Results::default();
        let id = || std::iter::once(TestId("test_x.py::test_a[1]".into()));
        assert_eq!(results.update(id(), failed()), [PathBuf::from("/r/test_x.py")]);
        assert_eq!(results.update(id(), Vec::new()), [PathBuf::from("/r/test_x.py")]);
        assert!(results.of(Path::new("/r/test_x.py")).is_empty());
    }
}
