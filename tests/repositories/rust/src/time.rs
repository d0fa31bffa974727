//! Points in time, kept as whole milliseconds.

use std::fmt;
use std::str::FromStr;

/// The time since the start of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

/// The error for text that is not a timestamp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidTimestamp(pub String);

impl Timestamp {
    pub fn from_millis(millis: u64) -> Self {
        Timestamp(millis)
    }

    pub fn millis(self) -> u64 {
        self.0
    }

    /// Moves the timestamp by an offset, stopping at zero.
    pub fn offset(self, millis: i64) -> Self {
        if millis < 0 {
            Timestamp(self.0.saturating_sub(millis.unsigned_abs()))
        } else {
            Timestamp(self.0 + millis.unsigned_abs())
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.0 / 1000, self.0 % 1000);
        let (minutes, seconds) = (seconds / 60, seconds % 60);
        let (hours, minutes) = (minutes / 60, minutes % 60);
        write!(f, "{hours:02}:{minutes:02}:{seconds:02}.{millis:03}")
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    /// Reads `[hours:]minutes:seconds[.fraction]`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidTimestamp(text.to_string());
        let (clock, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        if fraction.len() > 3 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
            return Err(invalid());
        }
        let millis: u64 = format!("{fraction:0<3}").parse().map_err(|_| invalid())?;
        let parts: Vec<&str> = clock.split(':').collect();
        if parts.len() < 2 || parts.len() > 3 {
            return Err(invalid());
        }
        let mut seconds = 0;
        for (index, part) in parts.iter().enumerate() {
            let value: u64 = part.parse().map_err(|_| invalid())?;
            if index > 0 && value >= 60 {
                return Err(invalid());
            }
            seconds = seconds * 60 + value;
        }
        Ok(Timestamp(seconds * 1000 + millis))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(text: &str) -> u64 {
        text.parse::<Timestamp>().unwrap().millis()
    }

    #[test]
    fn reads_hours_minutes_and_seconds() {
        assert_eq!(millis("01:02:03.004"), 3_723_004);
        assert_eq!(millis("02:05"), 125_000);
    }

    #[test]
    fn reads_a_short_fraction() {
        assert_eq!(millis("00:01.5"), 1_500);
        assert_eq!(millis("00:01.05"), 1_050);
    }

    #[test]
    fn rejects_sixty_seconds() {
        assert!("00:60".parse::<Timestamp>().is_err());
        assert!("00:59".parse::<Timestamp>().is_ok());
    }

    #[test]
    fn rejects_other_text() {
        for text in ["", "12", "1:2:3:4", "00:0x", "00:01.1234"] {
            assert_eq!(text.parse::<Timestamp>(), Err(InvalidTimestamp(text.to_string())));
        }
    }

    #[test]
    fn shows_all_parts() {
        assert_eq!(Timestamp::from_millis(3_723_004).to_string(), "01:02:03.004");
    }

    #[test]
    fn offset_stops_at_zero() {
        assert_eq!(Timestamp::from_millis(500).offset(-800).millis(), 0);
        assert_eq!(Timestamp::from_millis(500).offset(250).millis(), 750);
    }
}
