//! The commands, and the queue of the jobs that they start: one job at a time has the model, the others know their place.

use std::collections::VecDeque;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tasks::runner::TestId;
use tokio_util::sync::CancellationToken;
use tower_lsp_server::gen_lsp_types::Uri;

use super::progress::Reporter;

/// Names of the commands.
pub const COMMANDS: [&str; 8] = [
    "tadpole.fixTest",
    "tadpole.fixAllFailing",
    "tadpole.fixDiagnostic",
    "tadpole.fixIssue",
    "tadpole.runTest",
    "tadpole.cancel",
    "tadpole.status",
    "tadpole.trust",
];

/// Number of a job, unique in this process.
pub type JobId = u64;

/// A command with its arguments.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    /// Starts a job.
    Start {
        /// A file, which says which repository is meant; may be left out where there is only one.
        uri: Option<Uri>,
        /// What to do.
        work: Work,
    },
    /// Stops one job, or all.
    Cancel(Option<JobId>),
    /// Says what goes on.
    Status,
    /// Trusts the repository of a file.
    Trust(Option<Uri>),
}

/// What a job does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Fixes one test.
    FixTest(TestId),
    /// Fixes all failing tests.
    FixAll,
    /// Fixes what a tool reports at a line (0-based, as in the protocol).
    FixDiagnostic {
        /// The line.
        line: u32,
        /// What the tool says.
        message: String,
    },
    /// Solves an issue.
    FixIssue(String),
    /// Runs one test.
    RunTest(TestId),
}

impl Work {
    /// For people.
    pub fn title(&self) -> String {
        match self {
            Self::FixTest(id) => format!("Fix {id}"),
            Self::FixAll => "Fix all failing tests".into(),
            Self::FixDiagnostic { message, .. } => format!("Fix: {}", first_line(message)),
            Self::FixIssue(text) => format!("Solve: {}", first_line(text)),
            Self::RunTest(id) => format!("Run {id}"),
        }
    }
}

/// The first line of `text`, shortened.
pub fn first_line(text: &str) -> String {
    const LONGEST: usize = 60;
    let line = text.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[derive(Default, Deserialize)]
struct Arguments {
    uri: Option<Uri>,
    test: Option<String>,
    text: Option<String>,
    line: Option<u32>,
    message: Option<String>,
    job: Option<JobId>,
}

impl Command {
    /// The command `name` with the arguments of `workspace/executeCommand`: one object.
    ///
    /// # Errors
    /// One line that says what is missing.
    pub fn parse(name: &str, arguments: Option<Vec<Value>>) -> Result<Self, String> {
        let given = arguments.unwrap_or_default().into_iter().next().unwrap_or(Value::Null);
        let given: Arguments = match given {
            Value::Null => Arguments::default(),
            // What an empty table of Lua is sent as.
            Value::Array(none) if none.is_empty() => Arguments::default(),
            given => {
                serde_json::from_value(given).map_err(|error| format!("{name}: wrong arguments: {error}"))?
            }
        };
        let missing = |what: &str| format!("{name} needs an argument {{{what}}}");
        let test = || given.test.clone().map(TestId).ok_or_else(|| missing("\"uri\", \"test\""));
        let work = match name {
            "tadpole.cancel" => return Ok(Self::Cancel(given.job)),
            "tadpole.status" => return Ok(Self::Status),
            "tadpole.trust" => return Ok(Self::Trust(given.uri)),
            "tadpole.fixTest" => Work::FixTest(test()?),
            "tadpole.runTest" => Work::RunTest(test()?),
            "tadpole.fixAllFailing" => Work::FixAll,
            "tadpole.fixIssue" => match given.text.filter(|text| !text.trim().is_empty()) {
                Some(text) => Work::FixIssue(text),
                None => return Err(missing("\"text\"")),
            },
            "tadpole.fixDiagnostic" => match (given.line, given.message) {
                (Some(line), Some(message)) => Work::FixDiagnostic { line, message },
                _ => return Err(missing("\"uri\", \"line\", \"message\"")),
            },
            _ => return Err(format!("{name} is no command of tadpole; there are {}", COMMANDS.join(", "))),
        };
        Ok(Self::Start { uri: given.uri, work })
    }
}

/// A job that waits or runs.
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// The repository.
    pub repository: PathBuf,
    /// The file that it was asked for in.
    pub file: Option<PathBuf>,
    /// What it does.
    pub work: Work,
    /// Stops it.
    pub cancel: CancellationToken,
    /// Shows its progress.
    pub reporter: Reporter,
}

/// What `tadpole.status` says of a job.
#[derive(Serialize)]
pub struct JobStatus {
    job: JobId,
    title: String,
    message: String,
    percentage: Option<u32>,
    /// Jobs before it; 0 for the one that runs.
    place: usize,
}

/// The jobs.
#[derive(Default)]
pub struct Jobs {
    last: JobId,
    running: Option<Job>,
    waiting: VecDeque<Job>,
}

impl Jobs {
    /// A number for a new job.
    pub fn number(&mut self) -> JobId {
        self.last += 1;
        self.last
    }

    /// Puts a job at the end of the queue.
    pub fn push(&mut self, job: Job) {
        self.waiting.push_back(job);
        self.tell_places();
    }

    /// The next job, if none runs.
    pub fn start(&mut self) -> Option<&Job> {
        if self.running.is_some() {
            return None;
        }
        self.running = self.waiting.pop_front();
        self.tell_places();
        self.running.as_ref()
    }

    /// Takes out a job that has ended.
    pub fn end(&mut self, id: JobId) -> Option<Job> {
        self.running.take_if(|job| job.id == id)
    }

    /// Stops a job, or all; those that were still waiting are returned.
    pub fn cancel(&mut self, id: Option<JobId>) -> Vec<Job> {
        let meant = |job: &Job| id.is_none_or(|id| job.id == id);
        if let Some(job) = self.running.as_ref().filter(|job| meant(job)) {
            job.cancel.cancel();
        }
        let (cancelled, waiting): (Vec<Job>, Vec<Job>) = self.waiting.drain(..).partition(meant);
        self.waiting = waiting.into();
        self.tell_places();
        cancelled
    }

    /// The job whose progress has this token.
    pub fn with_token(&self, token: &str) -> Option<JobId> {
        self.running.iter().chain(&self.waiting).find(|job| job.reporter.token() == token).map(|job| job.id)
    }

    /// What goes on.
    pub fn status(&self) -> Vec<JobStatus> {
        let waiting_from = usize::from(self.running.is_some());
        let running = self.running.iter().map(|job| (0, job));
        let waiting = self.waiting.iter().enumerate().map(|(index, job)| (waiting_from + index, job));
        let status = |(place, job): (usize, &Job)| {
            let (message, percentage) = job.reporter.last();
            JobStatus { job: job.id, title: job.work.title(), message, percentage, place }
        };
        running.chain(waiting).map(status).collect()
    }

    fn tell_places(&self) {
        let ahead = usize::from(self.running.is_some());
        for (index, job) in self.waiting.iter().enumerate() {
            let before = ahead + index;
            if before > 0 {
                job.reporter.report(format!("waiting, {before} before it"), None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_checked_by_name() {
        let parsed =
            Command::parse("tadpole.fixTest", Some(vec![json!({ "uri": "file:///a.py", "test": "a::b" })]));
        let work = Work::FixTest(TestId("a::b".into()));
        assert_eq!(parsed, Ok(Command::Start { uri: Some(Uri("file:///a.py".into())), work }));
        let missing = Command::parse("tadpole.fixIssue", Some(vec![json!({ "text": " " })])).unwrap_err();
        assert_eq!(missing, "tadpole.fixIssue needs an argument {\"text\"}");
        assert!(Command::parse("tadpole.dance", None).unwrap_err().contains("tadpole.fixAllFailing"));
        assert_eq!(Command::parse("tadpole.cancel", None), Ok(Command::Cancel(None)));
    }

    #[test]
    fn every_command_that_is_offered_is_understood() {
        let everything = json!({ "uri": "file:///a", "test": "t", "text": "x", "line": 0, "message": "m" });
        for name in COMMANDS {
            assert!(Command::parse(name, Some(vec![everything.clone()])).is_ok(), "{name}");
        }
    }

    #[test]
    fn one_job_runs_and_the_others_wait_their_turn() {
        let mut jobs = Jobs::default();
        for _ in 0..3 {
            let id = jobs.number();
            jobs.push(Job {
                id,
                repository: "/r".into(),
                file: None,
                work: Work::FixAll,
                cancel: CancellationToken::new(),
                reporter: Reporter::silent(),
            });
        }
        assert_eq!(jobs.start().map(|job| job.id), Some(1));
        assert!(jobs.start().is_none());
        assert_eq!(jobs.status().iter().map(|it| it.place).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(jobs.cancel(Some(2)).len(), 1);
        assert!(jobs.end(3).is_none() && jobs.end(1).is_some());
        assert_eq!(jobs.start().map(|job| job.id), Some(3));
    }
}
