//! The command line: every capability without an editor. A command is a file: arguments, calls, output.
//!
//! Exit code 0: done (for `fix`, verified). 1: tried, not solved, nothing changed. 2: usage, configuration or environment,
//! with one line that says what is wrong and what to do. 130: interrupted. Progress goes to standard
//! error, results to standard output.

mod apply;
mod console;
mod doctor;
mod engine;
mod fix;
mod lsp;
mod models;
mod sandbox;

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::config::{self, Config};
use crate::fix::{Context, FixError};
use crate::home::Home;

/// A language server with a local coding agent that fixes failing tests and verifies what it did.
#[derive(Parser)]
#[command(name = "tadpole", version, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Say more on standard error (twice: everything).
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
}

#[derive(Subcommand)]
enum Command {
    /// Fix failing tests; only a change that the tests have verified comes back.
    Fix(fix::FixArgs),
    /// Solve an issue given in words, verified by a test.
    Issue(fix::IssueArgs),
    /// List, download and choose models.
    Models(models::Args),
    /// Say what works on this machine, what does not, and how to mend it.
    Doctor(doctor::Args),
    /// Run a command exactly as the agent's would run; its exit code is ours.
    Sandbox(sandbox::Args),
    /// Run the language server on standard input and output.
    Lsp(lsp::Args),
    /// The process that owns the model; started on demand.
    #[command(hide = true)]
    Engine(engine::Args),
}

/// Why a command stopped, which decides the exit code.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Usage, configuration or environment.
    #[error("{0}")]
    Usage(String),
    /// Interrupted by the person.
    #[error("interrupted; nothing was changed")]
    Interrupted,
}

impl CliError {
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Interrupted => ExitCode::from(130),
        }
    }
}

impl From<FixError> for CliError {
    fn from(error: FixError) -> Self {
        match error {
            FixError::Cancelled => Self::Interrupted,
            other => Self::Usage(other.to_string()),
        }
    }
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let (json, result) = match cli.command {
        Command::Engine(args) => return engine::run(args, cli.verbose),
        Command::Fix(args) => (args.json(), started(cli.verbose, |it| fix::fix(args, it))),
        Command::Issue(args) => (args.json(), started(cli.verbose, |it| fix::issue(args, it))),
        Command::Models(args) => (args.json(), started(cli.verbose, |it| models::run(args, it))),
        Command::Doctor(args) => (args.json(), started(cli.verbose, |it| doctor::run(args, it))),
        Command::Lsp(args) => (false, started(cli.verbose, |it| lsp::run(args, it))),
        Command::Sandbox(args) => (false, started(cli.verbose, |it| sandbox::run(args, it))),
    };
    result.unwrap_or_else(|error| {
        if json {
            println!("{}", json!({ "error": error.to_string() }));
        }
        eprintln!("tadpole: {error}");
        error.exit_code()
    })
}

/// What every command is given.
struct Run {
    context: Arc<Context>,
    /// Cancelled by the first Ctrl-C or termination signal.
    cancel: CancellationToken,
}

/// Sets up logging, data directory, configuration and signals, and runs `command` to its end.
fn started<F>(verbose: u8, command: impl FnOnce(Run) -> F) -> Result<ExitCode, CliError>
where
    F: Future<Output = Result<ExitCode, CliError>>,
{
    log_to_stderr(verbose);
    let runtime =
        tokio::runtime::Runtime::new().map_err(|error| CliError::Usage(format!("cannot start: {error}")))?;
    let result = runtime.block_on(async {
        let home = Home::open().map_err(|error| CliError::Usage(error.to_string()))?;
        let config: Config = match config::user_file() {
            Some(file) => config::load(&file).map_err(CliError::Usage)?,
            None => Config::default(),
        };
        let context = Arc::new(Context::new(home, config)?);
        let cancel = CancellationToken::new();
        tokio::spawn(cancel_on_signal(cancel.clone()));
        command(Run { context, cancel }).await
    });
    // A blocking task that is still reading files must not keep an interrupted process alive.
    runtime.shutdown_background();
    result
}

async fn cancel_on_signal(cancel: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut hangup)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup()))
    else {
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    cancel.cancel();
}

/// Logs go to standard error; by default only warnings, and never code.
fn log_to_stderr(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("TADPOLE_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level));
    // A second initialization can only be a test's own; its subscriber stays.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .without_time()
        .try_init();
}
