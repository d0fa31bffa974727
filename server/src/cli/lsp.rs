//! `tadpole lsp`: the language server on standard input and output.

use std::process::ExitCode;

use super::{CliError, Run};

/// Arguments of `tadpole lsp`.
#[derive(clap::Args)]
pub struct Args {
    /// Accepted because many editors pass it; standard input and output are the only transport.
    #[arg(long, hide = true)]
    stdio: bool,
}

/// Runs `tadpole lsp` until the client leaves or a signal comes.
pub async fn run(args: Args, run: Run) -> Result<ExitCode, CliError> {
    let Args { stdio: _ } = args;
    tokio::select! {
        () = crate::lsp::serve(run.context, tokio::io::stdin(), tokio::io::stdout()) => {}
        () = run.cancel.cancelled() => {}
    }
    Ok(ExitCode::SUCCESS)
}
