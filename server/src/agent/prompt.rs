//! What `repair` asks. The test and its failure come first and are the same for all suspects, so that the engine computes
//! them once.

use tasks::syntax::{self, Language};

use super::edit::EditFormat;
use super::localize::{self, FailingTest, Suspect};
use super::{Problem, prose};
use crate::model::{Message, Role};

/// Most bytes of the failing test's source.
const TEST: usize = 2_000;

/// Most bytes of the failure.
const FAILURE: usize = 1_500;

/// Most bytes of the code around the suspect.
const AROUND: usize = 1_200;

const SYSTEM: &str = "You are an expert programmer. You fix bugs. You answer with code only.";

/// The chat that asks for `suspect` to be written again.
pub fn messages(
    problem: &Problem,
    test: &FailingTest,
    suspect: &Suspect,
    format: EditFormat,
) -> Vec<Message> {
    let fence = fence(suspect.language);
    let mut text = String::new();
    if test.source.is_empty() {
        text += &format!("Problem:\n{}\n\n", prose::head(problem.statement.trim(), FAILURE));
    } else {
        text += &format!(
            "This test in {} fails:\n```{fence}\n{}\n```\n\n",
            test.path.display(),
            prose::head(&test.source, TEST)
        );
    }
    let failure = localize::shown_failure(problem, FAILURE);
    if !test.source.is_empty() || !problem.statement.contains(&failure) {
        text += &format!("Failure:\n```\n{}\n```\n\n", failure.trim());
    }
    let around = around(suspect);
    if !around.is_empty() {
        text += &format!("Part of {}:\n```{fence}\n{around}\n```\n\n", suspect.path.display());
    }
    let path = suspect.path.display().to_string();
    text += &format.ask(&path, &suspect.source, &suspect.piece, fence);
    vec![Message::new(Role::System, SYSTEM), Message::new(Role::User, text)]
}

/// A language's name after the marks of a block of code.
pub fn fence(language: Language) -> &'static str {
    match language {
        Language::Python => "python",
        Language::Rust => "rust",
        Language::JavaScript => "javascript",
        Language::TypeScript | Language::Tsx => "typescript",
        Language::Go => "go",
    }
}

/// What the suspect needs to be understood: the head of the file (imports, constants), and of a method its
/// class's first lines and constructor.
fn around(suspect: &Suspect) -> String {
    let source = &suspect.source;
    let functions = syntax::functions(suspect.language, source);
    let first = functions.iter().map(|it| it.range.start).min().unwrap_or(source.len());
    let end = first.min(suspect.piece.range.start);
    let head_end = source[..end].rfind('\n').map_or(0, |at| at + 1);
    let mut text = prose::head(source[..head_end].trim_end(), AROUND / 2).to_owned();
    let scope = suspect.name.rsplit_once(['.', ':']).map(|(scope, _)| scope.trim_end_matches(':'));
    let constructor = functions.iter().find(|it| {
        let owner = it.qualified_name.rsplit_once(['.', ':']).map(|(scope, _)| scope.trim_end_matches(':'));
        let makes = matches!(it.name.as_str(), "__init__" | "constructor" | "new");
        scope.is_some() && owner == scope && makes && it.range != suspect.piece.range
    });
    if let Some(constructor) = constructor {
        let own = source.get(constructor.range.clone()).unwrap_or_default();
        text += &format!("\n...\n{}", prose::head(own, AROUND / 2));
    }
    text.trim_matches('\n').replace("\r\n", "\n")
}
