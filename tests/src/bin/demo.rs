//! The main job on the sample repositories: a bug is put into a copy of each, and `tadpole fix` mends it.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the demonstration")]

use std::process::{Command, ExitCode};

use tests::sample::Sample;
use tests::{tadpole, tool};

/// Repository, bug, and the program without which it is left out.
const CASES: [(&str, &str, &str); 4] = [
    ("python", "period-days", "python3"),
    ("rust", "short-fraction", "cargo"),
    ("typescript", "range-first-row", "node"),
    ("go", "scale-factor", "go"),
];

fn main() -> ExitCode {
    let mut fixed = 0;
    let mut tried = 0;
    for (repository, bug, program) in CASES {
        if Command::new(program).arg("version").output().is_err() {
            println!("\n== {repository}: left out, as {program} is not installed");
            continue;
        }
        let sample = Sample::with_bug(repository, bug);
        println!("\n== {repository}: a copy of the sample with the bug {bug}");
        let mut command = Command::new(tadpole());
        command.args(["fix", "--trust", "--repo"]).arg(sample.root()).env("VIRTUAL_ENV", tool("python"));
        tried += 1;
        fixed += usize::from(command.status().unwrap().success());
    }
    println!("\n{fixed} of {tried} fixed and verified");
    if fixed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
