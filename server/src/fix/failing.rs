//! Failing tests, one after the other: each verified patch is the ground for the next test, and what comes
//! back is their sum, graded once more against the tree that the person sees.

use std::collections::BTreeSet;
use std::sync::Arc;

use tasks::grade::TestChange;
use tasks::patch::Patch;
use tasks::runner::{Outcome as TestOutcome, Project, TestId, TestRun};
use tasks::snapshot::Snapshot;

use super::{Finished, FixError, Job, Outcome, Tally, named, select};
use crate::agent::{Problem, Progress};

/// Unsolved tests after which the others are not tried any more: failures often share one cause.
const PATIENCE: usize = 3;

/// Share of the progress bar that the run of the unchanged tree takes.
const BASELINE_SHARE: f32 = 0.15;

/// A project with its results, and the tests to mend in it.
struct Work {
    project: Project,
    baseline: TestRun,
    targets: Vec<TestId>,
}

impl Job<'_> {
    /// Fixes `wanted`, or every failing test if that is empty.
    pub(super) async fn fix_failing(&self, wanted: &[TestId]) -> Result<Finished, FixError> {
        let mut known = BTreeSet::new();
        let mut unmatched: Vec<&TestId> = wanted.iter().collect();
        let mut works = Vec::new();
        for project in &self.session.projects {
            if !wanted.is_empty() && unmatched.is_empty() {
                break;
            }
            (self.progress)(Progress::new(format!("running the tests of {}", named(project)), Some(0.02)));
            let baseline = self.session.baseline(&self.session.snapshot, project, self.cancel).await?;
            known.extend(baseline.results.keys().cloned());
            let targets = self.targets(&baseline, &mut unmatched);
            works.push(Work { project: project.clone(), baseline, targets });
        }
        if let Some(id) = unmatched.first() {
            return Err(unknown_test(id, &known));
        }
        self.fix_works(works, wanted.is_empty()).await
    }

    /// The tests of `baseline` to mend: those that fail, or of the wanted ones those that are there.
    fn targets(&self, baseline: &TestRun, unmatched: &mut Vec<&TestId>) -> Vec<TestId> {
        if unmatched.is_empty() {
            return failing(baseline);
        }
        let mut targets = Vec::new();
        unmatched.retain(|wanted| {
            let mut found = select::matching(&wanted.0, baseline.results.keys());
            if found.is_empty() && baseline.build_failure.is_some() {
                // Nothing could be listed: take the person's word for the id.
                found.push((*wanted).clone());
            }
            let unmatched = found.is_empty();
            targets.extend(found);
            unmatched
        });
        targets.retain(|id| {
            outcome(baseline, id) != TestOutcome::Passed && outcome(baseline, id) != TestOutcome::Skipped
        });
        targets
    }

    async fn fix_works(&self, works: Vec<Work>, all: bool) -> Result<Finished, FixError> {
        let mut tally = Tally::default();
        let mut notes = Vec::new();
        let mut tests = Vec::new();
        let mut patch = Patch::default();
        let (mut tried, mut solved) = (0, 0);
        for work in works {
            if work.targets.is_empty() {
                continue;
            }
            let (targets, flaky) = self
                .session
                .failing_again(&self.session.snapshot, &work.project, work.targets.clone(), self.cancel)
                .await?;
            if !flaky.is_empty() {
                notes.push(format!("flaky, passed when run again: {}", joined(&flaky)));
            }
            let (changes, fixed) = self.fix_project(&work, &targets, &mut tally).await?;
            tried += changes.len();
            solved += changes.iter().filter(|it| it.after == TestOutcome::Passed).count();
            tests.extend(changes);
            patch.files.extend(fixed.files);
        }
        let outcome = match (tried, solved) {
            (0, _) => Outcome::NothingToFix,
            (_, 0) => Outcome::NotFixed,
            (tried, solved) if solved < tried && !all => Outcome::NotFixed,
            _ => Outcome::Fixed,
        };
        if outcome == Outcome::Fixed && solved < tried {
            notes.push(format!("{solved} of {tried} failing tests are fixed by this patch"));
        }
        if outcome != Outcome::Fixed {
            patch = Patch::default();
        }
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        Ok(self.finished(outcome, tests, patch, tally, note))
    }

    /// Mends the targets of one project one by one; the changes of all targets and the verified sum.
    async fn fix_project(
        &self,
        work: &Work,
        targets: &[TestId],
        tally: &mut Tally,
    ) -> Result<(Vec<TestChange>, Patch), FixError> {
        let mut snapshot = self.session.snapshot.clone();
        let mut baseline = Arc::new(work.baseline.clone());
        let mut sum = Patch::default();
        let mut unsolved = 0;
        for (number, target) in targets.iter().enumerate() {
            if outcome(&baseline, target) == TestOutcome::Passed {
                continue;
            }
            if unsolved == PATIENCE {
                break;
            }
            let problem = self.problem(&snapshot, &work.project, &baseline, target);
            let (start, share) = (number as f32 / targets.len() as f32, 1.0 / targets.len() as f32);
            let step = |progress: Progress| {
                let within = start + share * progress.fraction.unwrap_or(0.0);
                let fraction = BASELINE_SHARE + (1.0 - BASELINE_SHARE) * within;
                (self.progress)(Progress::new(progress.message, Some(fraction)));
            };
            let Some(patch) = self.attempt(&problem, tally, &step).await? else {
                unsolved += 1;
                continue;
            };
            snapshot = snapshot.with(&patch)?;
            sum = self.session.snapshot.patch_to(&snapshot)?;
            if number + 1 < targets.len() {
                baseline = Arc::new(self.session.baseline(&snapshot, &work.project, self.cancel).await?);
            }
        }
        let change = |id: &TestId, after: TestOutcome| TestChange {
            id: id.clone(),
            before: outcome(&work.baseline, id),
            after,
        };
        if sum.is_empty() {
            let unchanged = targets.iter().map(|id| change(id, outcome(&work.baseline, id))).collect();
            return Ok((unchanged, Patch::default()));
        }
        (self.progress)(Progress::new("verifying the whole patch", Some(0.97)));
        self.verify(work, targets, &sum, tally).await
    }

    /// The sum graded against the person's own tree, for the targets that it claims to mend.
    async fn verify(
        &self,
        work: &Work,
        targets: &[TestId],
        sum: &Patch,
        tally: &mut Tally,
    ) -> Result<(Vec<TestChange>, Patch), FixError> {
        let all = self.grade(&work.project, &work.baseline, sum, targets, self.policy).await?;
        let mended: Vec<TestId> = all
            .tests
            .iter()
            .filter(|test| test.after == TestOutcome::Passed)
            .map(|test| test.id.clone())
            .collect();
        let verdict = if all.verified().is_some() || mended.is_empty() {
            all.clone()
        } else {
            self.grade(&work.project, &work.baseline, sum, &mended, self.policy).await?
        };
        tally.regressions = verdict.regressions.clone();
        let verified = verdict.verified().map(|it| it.patch().clone());
        Ok((all.tests, verified.unwrap_or_default()))
    }

    fn problem(
        &self,
        snapshot: &Snapshot,
        project: &Project,
        baseline: &Arc<TestRun>,
        target: &TestId,
    ) -> Problem {
        let message = baseline.results.get(target).map(|it| it.message.clone());
        let failure = message.filter(|it| !it.trim().is_empty()).or_else(|| baseline.build_failure.clone());
        Problem {
            statement: format!("The test {target} fails.\n\n{}", failure.unwrap_or_default()),
            snapshot: snapshot.clone(),
            project: project.clone(),
            baseline: Arc::clone(baseline),
            targets: vec![target.clone()],
            recent: tasks::snapshot::recently_changed(snapshot.root()),
            policy: self.policy,
            focus: None,
        }
    }
}

/// The tests that fail in `run`, in order.
pub(super) fn failing(run: &TestRun) -> Vec<TestId> {
    let failed = |it: &TestOutcome| matches!(it, TestOutcome::Failed | TestOutcome::Error);
    run.results.iter().filter(|(_, it)| failed(&it.outcome)).map(|(id, _)| id.clone()).collect()
}

fn outcome(run: &TestRun, id: &TestId) -> TestOutcome {
    run.results.get(id).map_or(TestOutcome::Missing, |it| it.outcome)
}

fn joined(ids: &[TestId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn unknown_test(id: &TestId, known: &BTreeSet<TestId>) -> FixError {
    let advice = match select::similar(&id.0, known.iter()).as_slice() {
        [] if known.is_empty() => "no tests were found at all".to_owned(),
        [] => format!("the {} tests that were found have no such name", known.len()),
        names => format!("did you mean {}?", names.join(" or ")),
    };
    FixError::Environment(format!("there is no test {id}; {advice}"))
}
