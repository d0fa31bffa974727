//! `tadpole engine`: the process that owns the model. Started by the others.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::engine::process::{self, Settings};

/// Arguments of `tadpole engine`.
#[derive(clap::Args)]
pub struct Args {
    /// The GGUF file.
    #[arg(long)]
    model: PathBuf,
    /// Where to listen.
    #[arg(long)]
    socket: PathBuf,
    /// Tokens of all sequences together.
    #[arg(long)]
    window: u32,
    /// Seconds without a request after which it ends.
    #[arg(long)]
    idle: u64,
}

/// Runs `tadpole engine`.
pub fn run(args: Args, verbose: u8) -> ExitCode {
    super::log_to_stderr(verbose);
    process::run(Settings {
        model: args.model,
        socket: args.socket,
        window: args.window,
        idle: Duration::from_secs(args.idle),
    })
}
