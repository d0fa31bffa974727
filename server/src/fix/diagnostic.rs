//! A diagnostic of any tool, mended where it points, and verified by the tests that cover the file.

use std::path::Path;
use std::sync::Arc;

use tasks::runner::{Outcome as TestOutcome, Project, TestId, TestRun};
use tasks::syntax::{self, Language};

use super::failing::failing;
use super::{Finished, FixError, Job, Outcome, Tally, named};
use crate::agent::{Focus, Problem, Progress};

/// Covering tests that are targets; the others are still run to find regressions.
const COVERING: usize = 20;

impl Job<'_> {
    /// Mends what a tool reports at 1-based `line` of `path`.
    pub(super) async fn fix_diagnostic(
        &self,
        path: &Path,
        line: u32,
        message: &str,
    ) -> Result<Finished, FixError> {
        let Some(project) = self.project_of(path) else {
            return Err(FixError::Environment(format!("no tests cover {}", path.display())));
        };
        (self.progress)(Progress::new(format!("running the tests of {}", named(project)), Some(0.02)));
        let baseline = self.session.baseline(&self.session.snapshot, project, self.cancel).await?;
        let targets = self.covering(path, project, &baseline);
        if targets.is_empty() {
            return Err(FixError::Environment(format!(
                "no test covers {}, so a change to it could not be verified; write one first",
                path.display()
            )));
        }
        let problem = Problem {
            statement: format!("{}:{line}: {message}", path.display()),
            snapshot: self.session.snapshot.clone(),
            project: project.clone(),
            baseline: Arc::new(baseline),
            targets,
            recent: Vec::new(),
            policy: self.policy,
            focus: Some(Focus { path: path.to_owned(), line }),
        };
        let mut tally = Tally::default();
        let patch = self.attempt(&problem, &mut tally, self.progress).await?;
        let Some(patch) = patch else {
            return Ok(self.finished(Outcome::NotFixed, Vec::new(), Default::default(), tally, None));
        };
        let verdict = self.grade(project, &problem.baseline, &patch, &problem.targets, self.policy).await?;
        let outcome = if verdict.verified().is_some() { Outcome::Fixed } else { Outcome::NotFixed };
        let patch = verdict.verified().map(|it| it.patch().clone()).unwrap_or_default();
        Ok(self.finished(outcome, verdict.tests, patch, tally, None))
    }

    /// The innermost project that holds `path`.
    pub(super) fn project_of(&self, path: &Path) -> Option<&Project> {
        let holding = self.session.projects.iter().filter(|project| path.starts_with(&project.dir));
        holding.max_by_key(|project| project.dir.components().count())
    }

    /// Tests that fail now, else those in files that import or name `path`'s module, else any that pass.
    fn covering(&self, path: &Path, project: &Project, baseline: &TestRun) -> Vec<TestId> {
        let failing = failing(baseline);
        if baseline.build_failure.is_some() && !failing.is_empty() {
            return failing;
        }
        let passing = || {
            let passed = baseline.results.iter().filter(|(_, it)| it.outcome == TestOutcome::Passed);
            passed.map(|(id, _)| id)
        };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let files = self.importers(&stem, project);
        let covers =
            |id: &&TestId| id.0.contains(&stem) || files.iter().any(|file| id.0.contains(file.as_str()));
        let near: Vec<TestId> = passing().filter(covers).take(COVERING).cloned().collect();
        if near.is_empty() { passing().take(COVERING).cloned().collect() } else { near }
    }

    /// Names of source files in the project that import a module called `stem`, as test ids spell them.
    fn importers(&self, stem: &str, project: &Project) -> Vec<String> {
        let snapshot = &self.session.snapshot;
        let imports_it = |path: &&std::path::PathBuf| {
            let Some(language) = Language::of(path) else { return false };
            let Ok(source) = snapshot.read(path) else { return false };
            let Ok(source) = std::str::from_utf8(&source) else { return false };
            syntax::imports(language, source).iter().any(|import| {
                import.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').any(|part| part == stem)
            })
        };
        let inside = snapshot.entries().keys().filter(|path| path.starts_with(&project.dir));
        let test_stem = |path: &std::path::PathBuf| Some(path.file_stem()?.to_string_lossy().into_owned());
        inside.filter(imports_it).filter_map(test_stem).collect()
    }
}
