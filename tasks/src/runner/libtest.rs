//! The text that Rust's test harness prints for people, as `cargo test` shows it.

use std::collections::BTreeMap;

use super::{Outcome, TestId, TestResult, report};

/// What one test binary reported.
#[derive(Default)]
pub(super) struct Parsed {
    /// Results by id.
    pub results: BTreeMap<TestId, TestResult>,
    /// Whether the last binary came to its end.
    pub complete: bool,
}

/// Reads the merged output of `cargo test`. `binary` gives the id of the test binary at a path as cargo prints it.
pub(super) fn parse(text: &str, binary: impl Fn(&str) -> Option<String>) -> Parsed {
    let mut parsed = Parsed { complete: true, ..Parsed::default() };
    let mut current: Option<String> = None;
    let mut message: Option<(TestId, String)> = None;
    for line in text.lines() {
        if let Some(path) = running(line) {
            keep(&mut parsed, message.take());
            current = binary(path);
            parsed.complete = false;
            continue;
        }
        if line.trim_start().starts_with("Doc-tests ") {
            current = None;
            continue;
        }
        let Some(binary) = &current else { continue };
        let id = |name: &str| TestId(format!("{binary}::{name}"));
        if let Some(name) = line.strip_prefix("---- ").and_then(|it| it.strip_suffix(" stdout ----")) {
            keep(&mut parsed, message.take());
            message = Some((id(name), String::new()));
        } else if line == "failures:" || line.starts_with("test result: ") {
            keep(&mut parsed, message.take());
            parsed.complete |= line.starts_with("test result: ");
        } else if let Some((_, text)) = &mut message {
            text.push_str(line);
            text.push('\n');
        } else if let Some((name, outcome)) = result(line) {
            let text = if outcome == Outcome::Error { "the test did not end" } else { "" };
            parsed.results.insert(id(name), report::unreported(outcome, text));
        }
    }
    keep(&mut parsed, message.take());
    parsed
}

/// The path in `Running unittests src/lib.rs (target/debug/deps/a-0123)`.
fn running(line: &str) -> Option<&str> {
    let line = line.trim_start().strip_prefix("Running ")?;
    line.strip_suffix(')')?.rsplit_once('(').map(|(_, path)| path)
}

/// Name and outcome in `test a::b ... ok`.
fn result(line: &str) -> Option<(&str, Outcome)> {
    let line = line.strip_prefix("test ")?;
    if let Some((name, _)) = line.split_once(" has been running for over ") {
        return Some((name, Outcome::Error));
    }
    let (name, rest) = line.rsplit_once(" ... ")?;
    let outcome = match rest {
        "ok" => Outcome::Passed,
        "FAILED" => Outcome::Failed,
        rest if rest.starts_with("ignored") => Outcome::Skipped,
        _ => return None,
    };
    Some((name.strip_suffix(" - should panic").unwrap_or(name), outcome))
}

fn keep(parsed: &mut Parsed, message: Option<(TestId, String)>) {
    let Some((id, text)) = message else { return };
    if let Some(result) = parsed.results.get_mut(&id) {
        result.message = report::shortened(text.trim().to_owned());
    }
}

/// File and line of the panic in a message: `panicked at src/lib.rs:12:5:`.
pub(super) fn panic_place(message: &str) -> Option<(String, u32)> {
    let place = message.split("panicked at ").nth(1)?.lines().next()?.trim_end_matches(':');
    let mut parts = place.rsplitn(3, ':');
    let (_column, line, file) = (parts.next()?, parts.next()?, parts.next()?);
    // Before Rust 1.73 the message came first, in quotes.
    let file = file.rsplit(", ").next().unwrap_or(file);
    Some((file.to_owned(), line.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
   Compiling shapes v0.1.0
     Running unittests src/lib.rs (target/debug/deps/shapes-0a1b)

running 3 tests
test area::tests::square ... FAILED
test area::tests::circle ... ok
test slow - should panic ... ok

failures:

---- area::tests::square stdout ----

thread 'area::tests::square' panicked at src/area.rs:12:9:
assertion `left == right` failed
  left: 3
 right: 4

failures:
    area::tests::square

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/all.rs (target/debug/deps/all-77)

running 2 tests
test whole ... ignored, slow
";

    fn parsed(text: &str) -> Parsed {
        parse(text, |path| Some(path.rsplit('/').next()?.split('-').next()?.to_owned()))
    }

    #[test]
    fn results_carry_their_binary_and_their_panic() {
        let parsed = parsed(OUTPUT);
        let outcome = |id: &str| parsed.results.get(&TestId(id.to_owned())).map(|it| it.outcome);
        assert_eq!(outcome("shapes::area::tests::square"), Some(Outcome::Failed));
        assert_eq!(outcome("shapes::area::tests::circle"), Some(Outcome::Passed));
        assert_eq!(outcome("shapes::slow"), Some(Outcome::Passed));
        assert_eq!(outcome("all::whole"), Some(Outcome::Skipped));
        let message = &parsed.results[&TestId("shapes::area::tests::square".to_owned())].message;
        assert_eq!(panic_place(message), Some(("src/area.rs".to_owned(), 12)));
    }

    #[test]
    fn a_binary_without_its_summary_is_incomplete() {
        assert!(!parsed(OUTPUT).complete);
        assert!(parsed(OUTPUT.split("     Running tests").next().unwrap()).complete);
    }
}
