//! The `tadpole` binary: the command line, or, called by ourselves, the helper inside the sandbox.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if args.get(1).is_some_and(|first| first == tasks::sandbox::INNER) {
        tasks::sandbox::inner_main(&args[2..]);
    }
    server::cli::main()
}
