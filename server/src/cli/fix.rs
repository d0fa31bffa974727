//! `tadpole fix` and `tadpole issue`.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tasks::grade::EditPolicy;
use tasks::runner::TestId;

use super::console::Console;
use super::{CliError, Run, apply};
use crate::config::Edit;
use crate::fix::{self, Outcome, Report, Request, Target};

/// What both commands take.
#[derive(Args)]
struct Common {
    /// The repository: any directory, with git or without.
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo: PathBuf,
    /// Write the verified change into the repository.
    #[arg(long)]
    apply: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Trust the repository for this run: its tests are run (in the sandbox).
    #[arg(long)]
    trust: bool,
    /// What the change may touch (default: code).
    #[arg(long, value_enum)]
    edit: Option<Edit>,
    /// Answers to sample for one failing test (default: 16).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    samples: Option<u16>,
}

/// Arguments of `tadpole fix`.
#[derive(Args)]
pub struct FixArgs {
    /// The failing test as its framework names it; may be given several times (default: all that fail).
    #[arg(long, value_name = "ID")]
    test: Vec<String>,
    #[command(flatten)]
    common: Common,
}

/// Arguments of `tadpole issue`.
#[derive(Args)]
pub struct IssueArgs {
    /// The issue's text.
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    text: Option<String>,
    /// A file that holds the issue's text, or `-` for standard input.
    #[arg(long, value_name = "F")]
    file: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

impl FixArgs {
    /// Whether one JSON object is wanted.
    pub fn json(&self) -> bool {
        self.common.json
    }
}

impl IssueArgs {
    /// Whether one JSON object is wanted.
    pub fn json(&self) -> bool {
        self.common.json
    }
}

/// Runs `tadpole fix`.
pub async fn fix(args: FixArgs, run: Run) -> Result<ExitCode, CliError> {
    let target = match args.test.as_slice() {
        [] => Target::AllFailing,
        tests => Target::Tests(tests.iter().cloned().map(TestId).collect()),
    };
    solve(args.common, target, run).await
}

/// Runs `tadpole issue`.
pub async fn issue(args: IssueArgs, run: Run) -> Result<ExitCode, CliError> {
    let text = match (args.text, args.file) {
        (Some(text), _) => text,
        (None, Some(file)) => read(&file)?,
        (None, None) => return Err(CliError::Usage("give the issue's text, or --file F".into())),
    };
    if text.trim().is_empty() {
        return Err(CliError::Usage("the issue's text is empty; describe what goes wrong".into()));
    }
    solve(args.common, Target::Issue(text), run).await
}

fn read(file: &std::path::Path) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let read = if file == std::path::Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes).map(|_| ())
    } else {
        std::fs::read(file).map(|content| bytes = content)
    };
    read.map_err(|error| CliError::Usage(format!("cannot read {}: {error}", file.display())))?;
    String::from_utf8(bytes).map_err(|_| CliError::Usage(format!("{} is not UTF-8 text", file.display())))
}

async fn solve(common: Common, target: Target, run: Run) -> Result<ExitCode, CliError> {
    if common.trust {
        run.context.trust_for_this_run(&common.repo);
    }
    let request = Request {
        repo: common.repo,
        buffers: Default::default(),
        target,
        policy: common.edit.map(EditPolicy::from),
        samples: common.samples.map(usize::from),
    };
    let console = Console::stderr();
    let finished = fix::fix(&run.context, request, &|progress| console.show(progress), &run.cancel).await;
    console.finish();
    let finished = finished?;
    let solved = finished.report.outcome == Outcome::Fixed;
    if common.apply && solved {
        apply::apply(finished.snapshot.root(), &finished.patch)?;
    }
    let text = if common.json { json(&finished.report)? } else { human(&finished.report, common.apply) };
    // A reader that closed the pipe has seen what it wanted.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(match finished.report.outcome {
        Outcome::NotFixed => ExitCode::from(1),
        Outcome::Fixed | Outcome::NothingToFix => ExitCode::SUCCESS,
    })
}

fn json(report: &Report) -> Result<String, CliError> {
    let text = serde_json::to_string(report).map_err(|error| CliError::Usage(error.to_string()))?;
    Ok(text + "\n")
}

fn human(report: &Report, applied: bool) -> String {
    let mut text = String::new();
    for test in &report.tests {
        let (before, after) = (format!("{:?}", test.before), format!("{:?}", test.after));
        text += &format!("{}: {} → {}\n", test.id, before.to_lowercase(), after.to_lowercase());
    }
    if !report.patch.is_empty() {
        text += &format!("\n{}\n", report.patch);
    }
    if let Some(note) = &report.note {
        text += &format!("note: {note}\n");
    }
    let cost = format!(
        "{} answers of {}, {} tokens read, {} written, {:.1} s",
        report.samples, report.model, report.prompt_tokens, report.generated_tokens, report.seconds
    );
    text += &match report.outcome {
        Outcome::NothingToFix => "No failing test: nothing to fix.\n".to_owned(),
        Outcome::NotFixed => format!("Not fixed, nothing was changed ({cost}).\n"),
        Outcome::Fixed if applied => format!("Fixed, verified and applied ({cost}).\n"),
        Outcome::Fixed => format!("Fixed and verified; run again with --apply to write it ({cost}).\n"),
    };
    text
}
