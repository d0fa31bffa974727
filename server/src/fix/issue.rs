//! An issue in words. A test has to say when it is solved: one that fails already and is meant by the
//! text, or one that the model writes from the text and that fails on the unchanged tree. It is part of
//! the patch, so the person sees what was taken as the meaning of the issue.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tasks::grade::{EditPolicy, FileKind, kind};
use tasks::patch::{FileChange, Patch};
use tasks::runner::{Framework, Outcome as TestOutcome, Project, TestId, TestRun};
use tasks::snapshot::Snapshot;
use tasks::syntax::{self, Language};
use tokio::sync::mpsc;

use super::failing::failing;
use super::{Finished, FixError, Job, Outcome, Tally};
use crate::agent::{Problem, Progress, prose};
use crate::model::{Message, Priority, Request as ModelRequest, Role, Sampling};

/// Reproduction tests that are sampled.
const REPRODUCTIONS: usize = 8;

/// Longest example of an existing test file in the prompt, in bytes.
const EXAMPLE: usize = 3_000;

/// A test that the model wrote from the issue and that fails on the unchanged tree.
struct Reproduction {
    patch: Patch,
    run: TestRun,
    targets: Vec<TestId>,
}

impl Job<'_> {
    /// Solves an issue given in words.
    pub(super) async fn fix_issue(&self, text: &str) -> Result<Finished, FixError> {
        let mut tally = Tally::default();
        let Some(project) = self.session.projects.first() else {
            return Err(FixError::Environment("no tests found".into()));
        };
        (self.progress)(Progress::new("running the tests", Some(0.02)));
        let baseline = self.session.baseline(&self.session.snapshot, project, self.cancel).await?;
        let meant = meant_by(text, &baseline);
        if !meant.is_empty() {
            let problem = self.issue_problem(text, &self.session.snapshot, project, baseline, meant);
            return self.solve(project, problem, Patch::default(), tally).await;
        }
        let Some(reproduction) = self.reproduce(text, project, &baseline, &mut tally).await? else {
            let note = "no failing test is meant by this text, and the model wrote none that shows the fault; \
                        write a test that fails and run `tadpole fix`";
            return Ok(self.finished(
                Outcome::NotFixed,
                Vec::new(),
                Patch::default(),
                tally,
                Some(note.into()),
            ));
        };
        let snapshot = self.session.snapshot.with(&reproduction.patch)?;
        let problem = self.issue_problem(text, &snapshot, project, reproduction.run, reproduction.targets);
        self.solve(project, problem, reproduction.patch, tally).await
    }

    fn issue_problem(
        &self,
        text: &str,
        snapshot: &Snapshot,
        project: &Project,
        baseline: TestRun,
        targets: Vec<TestId>,
    ) -> Problem {
        Problem {
            statement: text.to_owned(),
            snapshot: snapshot.clone(),
            project: project.clone(),
            baseline: Arc::new(baseline),
            targets,
            recent: tasks::snapshot::recently_changed(snapshot.root()),
            policy: self.policy,
            focus: None,
        }
    }

    async fn solve(
        &self,
        project: &Project,
        problem: Problem,
        reproduction: Patch,
        mut tally: Tally,
    ) -> Result<Finished, FixError> {
        let Some(patch) = self.attempt(&problem, &mut tally, self.progress).await? else {
            return Ok(self.finished(Outcome::NotFixed, Vec::new(), Patch::default(), tally, None));
        };
        let own_test = !reproduction.is_empty();
        let after = problem.snapshot.with(&patch)?;
        let whole = self.session.snapshot.patch_to(&after)?;
        let policy = EditPolicy { tests: self.policy.tests || own_test, ..self.policy };
        let verdict = self.grade(project, &problem.baseline, &whole, &problem.targets, policy).await?;
        let outcome = if verdict.verified().is_some() { Outcome::Fixed } else { Outcome::NotFixed };
        let patch = verdict.verified().map(|it| it.patch().clone()).unwrap_or_default();
        let note = own_test.then(|| "the test in this patch was written by the model from the text: check that it means what you mean".to_owned());
        Ok(self.finished(outcome, verdict.tests, patch, tally, note))
    }

    /// A test that the model writes from `text`, and that fails by its assertion on the unchanged tree.
    async fn reproduce(
        &self,
        text: &str,
        project: &Project,
        baseline: &TestRun,
        tally: &mut Tally,
    ) -> Result<Option<Reproduction>, FixError> {
        let Some((example, path)) = self.place(project) else { return Ok(None) };
        (self.progress)(Progress::new("writing a test that shows the fault", Some(0.1)));
        let request = self.reproduction_request(text, &example, &path)?;
        let (events, mut unread) = mpsc::channel(64);
        let drain = tokio::spawn(async move { while unread.recv().await.is_some() {} });
        let response = self.model.generate(request, events, self.cancel.clone()).await?;
        drain.abort();
        tally.prompt_tokens += u64::from(response.prompt_tokens);
        tally.generated_tokens += u64::from(response.generated_tokens);
        let mut seen = BTreeSet::new();
        for sequence in response.sequences {
            let Some(code) = prose::code_block(&sequence.text) else { continue };
            if !seen.insert(code.clone()) {
                continue;
            }
            (self.progress)(Progress::new("running the test that the model wrote", Some(0.2)));
            let change = FileChange { before: None, after: Some(code.as_bytes().into()) };
            let patch = Patch { files: [(path.clone(), change)].into() };
            let snapshot = self.session.snapshot.with(&patch)?;
            let run = self.session.baseline(&snapshot, project, self.cancel).await?;
            if run.build_failure.is_some() {
                continue;
            }
            let new = |id: &TestId| !baseline.results.contains_key(id);
            let shows = |id: &TestId| {
                new(id) && run.results.get(id).is_some_and(|it| it.outcome == TestOutcome::Failed)
            };
            let targets: Vec<TestId> = run.results.keys().filter(|id| shows(id)).cloned().collect();
            if !targets.is_empty() {
                return Ok(Some(Reproduction { patch, run, targets }));
            }
        }
        Ok(None)
    }

    /// An existing test file as the example, and where the new one goes: beside it.
    fn place(&self, project: &Project) -> Option<(PathBuf, PathBuf)> {
        let inside = |path: &&PathBuf| {
            path.starts_with(&project.dir)
                && kind(path) == FileKind::Test
                && Language::of(path).is_some_and(|language| self.has_tests(language, path))
        };
        let example = self.session.snapshot.entries().keys().find(inside)?.clone();
        let extension = example.extension()?.to_string_lossy().into_owned();
        let name = match project.framework {
            Framework::Pytest | Framework::Unittest => "test_reported_issue.py".to_owned(),
            Framework::Cargo | Framework::Nextest => "reported_issue.rs".to_owned(),
            Framework::Go => "reported_issue_test.go".to_owned(),
            Framework::Vitest | Framework::Jest | Framework::Node => {
                format!("reported-issue.test.{extension}")
            }
        };
        let path = example.with_file_name(name);
        (!self.session.snapshot.entries().contains_key(&path)).then_some((example, path))
    }

    fn has_tests(&self, language: Language, path: &Path) -> bool {
        let Ok(source) = self.session.snapshot.read(path) else { return false };
        std::str::from_utf8(&source).is_ok_and(|source| !syntax::tests(language, path, source).is_empty())
    }

    fn reproduction_request(
        &self,
        text: &str,
        example: &Path,
        path: &Path,
    ) -> Result<ModelRequest, FixError> {
        let source = self.session.snapshot.read(example)?;
        let source = String::from_utf8_lossy(&source);
        let end = source.char_indices().map(|(at, _)| at).take_while(|&at| at <= EXAMPLE).last().unwrap_or(0);
        let source = if source.len() <= EXAMPLE { &source } else { &source[..end] };
        let prompt = format!(
            "Issue:\n{text}\n\nAn existing test file, {example}:\n```\n{source}\n```\n\n\
             Write the file {path} with one test that fails because of this issue and passes once it is \
             fixed. Use the same imports and style. Answer with one code block that holds the whole file.",
            example = example.display(),
            path = path.display(),
        );
        let info = self.model.info();
        let samples = (0..REPRODUCTIONS as u64).map(|seed| match seed {
            0 => Sampling::GREEDY,
            seed => Sampling { seed, ..info.sampling },
        });
        Ok(ModelRequest {
            messages: vec![Message::new(Role::User, prompt)],
            tools: Vec::new(),
            thinking: false,
            prefill: String::new(),
            samples: samples.collect(),
            max_tokens: 512,
            stop: Vec::new(),
            grammar: None,
            adapter: None,
            priority: Priority::Person,
            cache_key: self.session.snapshot.root().to_string_lossy().into_owned(),
        })
    }
}

/// The failing tests whose name or message shares an identifier with `text`.
fn meant_by(text: &str, baseline: &TestRun) -> Vec<TestId> {
    let words = identifiers(text);
    let names_one = |id: &TestId| {
        let message = baseline.results.get(id).map(|it| it.message.as_str()).unwrap_or_default();
        let own = identifiers(&format!("{id} {message}"));
        words.intersection(&own).next().is_some()
    };
    failing(baseline).into_iter().filter(names_one).collect()
}

/// Words of `text` that look like names in code: with an underscore, a capital inside, or called.
fn identifiers(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, word) in words(text) {
        let inner_capital =
            word.chars().skip(1).any(char::is_uppercase) && word.chars().any(char::is_lowercase);
        let called = text[at + word.len()..].starts_with('(');
        if word.len() > 2 && (word.contains('_') || inner_capital || called) {
            found.insert(word.trim_start_matches("test_").to_owned());
        }
    }
    found
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    parts.map(move |word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_code_are_told_from_plain_words() {
        let found = identifiers("Calling merge() on a HashRing loses last_item; it should not.");
        assert_eq!(found, ["HashRing", "last_item", "merge"].map(str::to_owned).into());
    }
}
