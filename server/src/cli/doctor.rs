//! `tadpole doctor`: what works on this machine, what does not, how to mend it, and which configuration is
//! in force.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use tasks::snapshot::Buffers;

use super::{CliError, Run};
use crate::config::{self, REPOSITORY_FILE};
use crate::fix::{self, Context};

/// Arguments of `tadpole doctor`.
#[derive(clap::Args)]
pub struct Args {
    /// The repository to look at.
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Whether one JSON object is wanted.
    pub fn json(&self) -> bool {
        self.json
    }
}

/// How well one thing is.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Warning,
    Problem,
}

/// One finding: what was looked at, how it is, and what to do about it.
#[derive(Serialize)]
struct Finding {
    topic: &'static str,
    state: State,
    detail: String,
}

/// Runs `tadpole doctor`; exit code 2 if something has to be mended before `tadpole fix` can work.
pub async fn run(args: Args, run: Run) -> Result<ExitCode, CliError> {
    let findings = examine(&run.context, &args.repo).await;
    if args.json {
        println!("{}", serde_json::json!({ "findings": findings }));
    } else {
        for Finding { topic, state, detail } in &findings {
            let mark = match state {
                State::Ok => "ok     ",
                State::Warning => "warning",
                State::Problem => "problem",
            };
            println!("{mark}  {topic:<13} {detail}");
        }
    }
    let broken = findings.iter().any(|finding| finding.state == State::Problem);
    Ok(if broken { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

async fn examine(context: &Context, repo: &Path) -> Vec<Finding> {
    let mut findings = vec![
        Finding { topic: "data", state: State::Ok, detail: context.home.root().display().to_string() },
        configuration(repo),
        model(context).await,
    ];
    match context.sandbox().await {
        Ok(sandbox) => findings.extend(sandbox.guarantees().iter().map(|it| Finding {
            topic: "sandbox",
            state: if it.kept { State::Ok } else { State::Warning },
            detail: format!("{}: {}", it.name, it.detail),
        })),
        Err(error) => {
            findings.push(Finding { topic: "sandbox", state: State::Problem, detail: error.to_string() })
        }
    }
    findings.push(trust(context, repo));
    findings.extend(projects(context, repo).await);
    findings
}

fn configuration(repo: &Path) -> Finding {
    let files = [config::user_file(), Some(repo.join(REPOSITORY_FILE))];
    let present: Vec<String> =
        files.into_iter().flatten().filter(|it| it.exists()).map(|it| it.display().to_string()).collect();
    let detail =
        if present.is_empty() { "defaults (no configuration file)".into() } else { present.join(", ") };
    Finding { topic: "configuration", state: State::Ok, detail }
}

async fn model(context: &Context) -> Finding {
    let (state, detail) = match context.model().await {
        Ok(model) => {
            let info = model.info();
            let place = if info.remote { "another machine: code leaves this one" } else { "this machine" };
            (State::Ok, format!("{} ({} tokens) on {place}", info.name, info.window))
        }
        Err(error) => (State::Problem, error.to_string()),
    };
    Finding { topic: "model", state, detail }
}

fn trust(context: &Context, repo: &Path) -> Finding {
    if context.trusted(repo) {
        return Finding {
            topic: "trust",
            state: State::Ok,
            detail: format!("{} is trusted", repo.display()),
        };
    }
    let detail = format!(
        "{} is not trusted: its tests are not run; trust it in the editor, or pass --trust for one run",
        repo.display()
    );
    Finding { topic: "trust", state: State::Warning, detail }
}

/// The projects and the toolchains that were found for them. Nothing of the repository is run.
async fn projects(context: &Context, repo: &Path) -> Vec<Finding> {
    let problem = |detail: String| vec![Finding { topic: "tests", state: State::Problem, detail }];
    match fix::projects(context, repo, &Buffers::new()).await {
        Ok(projects) => projects
            .iter()
            .map(|project| Finding {
                topic: "tests",
                state: State::Ok,
                detail: format!(
                    "{:?} in {}: {}",
                    project.framework,
                    repo.join(&project.dir).display(),
                    project.environment.description
                ),
            })
            .collect(),
        Err(error) => problem(error.to_string()),
    }
}
