//! Reads, edits and measures timed captions.
//!
//! A sheet is a list of [`Cue`]s: a span of time and the text shown during it.

pub mod edit;
pub mod parse;
pub mod stats;
pub mod time;
pub mod wrap;

pub use parse::{parse, ParseError};
pub use time::Timestamp;

/// A text and the span of time during which it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cue {
    pub start: Timestamp,
    pub end: Timestamp,
    pub text: String,
}

impl Cue {
    /// Makes a cue from times in milliseconds.
    pub fn new(start: u64, end: u64, text: &str) -> Self {
        Cue {
            start: Timestamp::from_millis(start),
            end: Timestamp::from_millis(end),
            text: text.to_string(),
        }
    }

    /// How long the cue is shown, in milliseconds.
    pub fn duration(&self) -> u64 {
        self.end.millis().saturating_sub(self.start.millis())
    }
}
