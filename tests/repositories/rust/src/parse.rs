//! The text format: blocks of a time line and text lines, split by empty lines.

use crate::time::Timestamp;
use crate::Cue;

/// What is wrong with a sheet, with the number of the line, counted from one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParseError {
    MissingArrow(usize),
    InvalidTime(usize),
    EndsBeforeStart(usize),
}

/// Reads a sheet.
///
/// Lines that begin with `#` are comments and may stand anywhere.
pub fn parse(input: &str) -> Result<Vec<Cue>, ParseError> {
    let mut cues = Vec::new();
    let mut current: Option<Cue> = None;
    for (index, line) in input.lines().enumerate() {
        let number = index + 1;
        let line = line.trim();
        if line.starts_with('#') {
            continue;
        }
        if line.is_empty() {
            cues.extend(current.take());
            continue;
        }
        match current.as_mut() {
            None => current = Some(time_line(line, number)?),
            Some(cue) => {
                if !cue.text.is_empty() {
                    cue.text.push('\n');
                }
                cue.text.push_str(line);
            }
        }
    }
    cues.extend(current);
    Ok(cues)
}

fn time_line(line: &str, number: usize) -> Result<Cue, ParseError> {
    let (start, end) = line.split_once("-->").ok_or(ParseError::MissingArrow(number))?;
    let read = |text: &str| {
        text.parse::<Timestamp>()
            .map_err(|_| ParseError::InvalidTime(number))
    };
    let (start, end) = (read(start)?, read(end)?);
    if end < start {
        return Err(ParseError::EndsBeforeStart(number));
    }
    Ok(Cue { start, end, text: String::new() })
}

/// Writes cues in the format that [`parse`] reads.
pub fn write(cues: &[Cue]) -> String {
    let blocks: Vec<String> = cues
        .iter()
        .map(|cue| format!("{} --> {}\n{}\n", cue.start, cue.end, cue.text))
        .collect();
    blocks.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_several_cues() {
        let cues = parse("00:01 --> 00:02\nHello\n\n00:03 --> 00:04.5\nthere\n").unwrap();
        assert_eq!(cues, [Cue::new(1_000, 2_000, "Hello"), Cue::new(3_000, 4_500, "there")]);
    }

    #[test]
    fn joins_lines_of_text() {
        let cues = parse("00:01 --> 00:02\nHello\n  there").unwrap();
        assert_eq!(cues[0].text, "Hello\nthere");
    }

    #[test]
    fn skips_comments_and_extra_lines() {
        let cues = parse("# title\n\n\n00:01 --> 00:02\n# note\nHello\n\n\n").unwrap();
        assert_eq!(cues, [Cue::new(1_000, 2_000, "Hello")]);
    }

    #[test]
    fn reports_the_line_of_a_mistake() {
        assert_eq!(parse("\nHello\n"), Err(ParseError::MissingArrow(2)));
        assert_eq!(parse("00:01 --> later"), Err(ParseError::InvalidTime(1)));
    }

    #[test]
    fn a_cue_cannot_end_before_it_starts() {
        assert_eq!(parse("00:02 --> 00:01\nHello"), Err(ParseError::EndsBeforeStart(1)));
        assert!(parse("00:02 --> 00:02\nHello").is_ok());
    }
}
