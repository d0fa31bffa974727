//! Bash: a command in the sandbox.

use std::ffi::OsString;
use std::time::Duration;

use tasks::grade::GradeError;
use tasks::runner::{self, RunError};
use tasks::sandbox::{Exit, Output};

use super::super::AgentError;
use super::tools::{Arguments, Refusal, Toolbox, cut};

/// Seconds that a command gets where the model says nothing, and at most.
const DEFAULT: u64 = 120;
const MOST: u64 = 600;

/// Characters that are shown.
const SHOWN: usize = 30_000;

pub(super) async fn run(
    toolbox: &Toolbox<'_>,
    arguments: &Arguments<'_>,
) -> Result<Result<String, Refusal>, AgentError> {
    let (text, seconds) = match (arguments.text("command"), arguments.number("timeout")) {
        (Ok(text), Ok(seconds)) => (text, seconds.unwrap_or(DEFAULT)),
        (Err(refusal), _) | (_, Err(refusal)) => return Ok(Err(refusal)),
    };
    // Models that think in milliseconds are known.
    let seconds = if seconds > 1_000 { seconds / 1_000 } else { seconds }.clamp(1, MOST);
    let argv: Vec<OsString> = vec!["bash".into(), "-c".into(), text.into()];
    let mut command = runner::command(toolbox.workspace, toolbox.project, argv);
    command.limits.wall = Duration::from_secs(seconds);
    let output = toolbox.sandbox.run(&command, toolbox.cancel).await;
    let output = output.map_err(|error| GradeError::Run(RunError::Sandbox(error)))?;
    if output.exit == Exit::Cancelled {
        return Err(AgentError::Cancelled);
    }
    Ok(Ok(cut(&observation(&output, seconds), SHOWN)))
}

fn observation(output: &Output, seconds: u64) -> String {
    let end = match &output.exit {
        Exit::Code(code) => format!("exit code: {code}"),
        Exit::Signal(signal) => format!("ended by signal {signal}"),
        Exit::TimedOut => format!("timed out after {seconds} seconds; this was printed until then"),
        Exit::Limit(limit) => format!("stopped at the limit of {limit}"),
        Exit::Cancelled => "cancelled".to_owned(),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    format!("{end}\nSTDOUT:\n{}\nSTDERR:\n{}", text(&output.stdout), text(&output.stderr))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observation_has_its_three_sections() {
        let output = Output {
            exit: Exit::Code(3),
            stdout: b"out\n".to_vec(),
            stderr: b"bad \xff\n".to_vec(),
            elapsed: Duration::ZERO,
        };
        assert_eq!(observation(&output, 120), "exit code: 3\nSTDOUT:\nout\nSTDERR:\nbad \u{fffd}");
    }
}
