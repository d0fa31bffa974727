//! The text of one sequence as it grows: whole characters only, and nothing of a stop string.

/// Bytes so far, and how far they were given out.
#[derive(Debug, Default)]
pub(super) struct Text {
    bytes: Vec<u8>,
    given: usize,
    stopped: Option<usize>,
}

impl Text {
    /// Adds the bytes of a token; the new text that can be given out now. `stop` strings end the text where they begin.
    pub fn push(&mut self, bytes: &[u8], stop: &[String]) -> String {
        let longest = stop.iter().map(String::len).max().unwrap_or(0);
        let search_from = self.bytes.len().saturating_sub(longest);
        self.bytes.extend_from_slice(bytes);
        let found = stop
            .iter()
            .filter(|it| !it.is_empty())
            .filter_map(|it| find(&self.bytes[search_from..], it.as_bytes()));
        if let Some(at) = found.min() {
            self.stopped = Some(search_from + at);
        }
        self.give(stop)
    }

    /// Whether a stop string has come.
    pub fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// The whole text.
    pub fn into_string(self) -> String {
        let end = self.stopped.unwrap_or(self.bytes.len());
        String::from_utf8_lossy(&self.bytes[..end]).into_owned()
    }

    fn give(&mut self, stop: &[String]) -> String {
        let mut end = self.stopped.unwrap_or_else(|| self.bytes.len() - self.beginning_of(stop));
        if self.stopped.is_none() {
            // A character whose last bytes have not come yet waits.
            if let Err(error) = std::str::from_utf8(&self.bytes[self.given..end.max(self.given)])
                && error.error_len().is_none()
            {
                end = self.given + error.valid_up_to();
            }
        }
        if end <= self.given {
            return String::new();
        }
        let text = String::from_utf8_lossy(&self.bytes[self.given..end]).into_owned();
        self.given = end;
        text
    }

    /// Length of the longest end of the text that may be the beginning of a stop string.
    fn beginning_of(&self, stop: &[String]) -> usize {
        let ends = stop.iter().flat_map(|it| (1..it.len()).map(move |length| &it.as_bytes()[..length]));
        ends.filter(|beginning| self.bytes.ends_with(beginning)).map(<[u8]>::len).max().unwrap_or(0)
    }
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_pieces_the_given_text_is_the_same() {
        let stop = vec!["</stop>".to_owned()];
        let whole = "añ <b> </sto 🐸 end</stop>rest".as_bytes();
        for size in 1..9 {
            let mut text = Text::default();
            let mut given = String::new();
            for piece in whole.chunks(size) {
                given += &text.push(piece, &stop);
                if text.is_stopped() {
                    break;
                }
            }
            assert_eq!(given, "añ <b> </sto 🐸 end", "{size}");
            assert_eq!(text.into_string(), given);
        }
    }
}
