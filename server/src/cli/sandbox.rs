//! `tadpole sandbox`: one command, run exactly as the agent's would run.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use super::{CliError, Run};
use crate::fix;

/// Arguments of `tadpole sandbox`.
#[derive(clap::Args)]
pub struct Args {
    /// The repository: any directory, with git or without.
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo: PathBuf,
    /// Trust the repository for this run.
    #[arg(long)]
    trust: bool,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs `tadpole sandbox`.
pub async fn run(args: Args, run: Run) -> Result<ExitCode, CliError> {
    if args.trust {
        run.context.trust_for_this_run(&args.repo);
    }
    let output = fix::run_command(&run.context, &args.repo, args.command, &run.cancel).await?;
    let _ = std::io::stdout().write_all(&output.stdout);
    let _ = std::io::stderr().write_all(&output.stderr);
    use tasks::sandbox::Exit;
    let code = match output.exit {
        Exit::Code(code) => u8::try_from(code).unwrap_or(1),
        Exit::Signal(signal) => u8::try_from(128 + signal).unwrap_or(1),
        Exit::Cancelled => return Err(CliError::Interrupted),
        Exit::TimedOut => return Err(CliError::Usage("stopped at the time limit".into())),
        Exit::Limit(limit) => return Err(CliError::Usage(format!("stopped at the limit of {limit}"))),
    };
    Ok(ExitCode::from(code))
}
