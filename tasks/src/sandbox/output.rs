//! Output that is read without end and kept at both ends.

use std::collections::VecDeque;

/// Keeps the first and the last bytes of a stream.
#[derive(Debug)]
pub(super) struct HeadTail {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    cut: u64,
}

impl HeadTail {
    /// Keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { half: (limit / 2).max(1), head: Vec::new(), tail: VecDeque::new(), cut: 0 }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let room = (self.half - self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        let rest = &bytes[room..];
        self.tail.extend(&rest[rest.len().saturating_sub(self.half)..]);
        self.cut += rest.len().saturating_sub(self.half) as u64;
        let excess = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..excess);
        self.cut += excess as u64;
    }

    /// What was kept, with a line that says how much was not.
    pub fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.head;
        if self.cut > 0 {
            bytes.extend(format!("\n[... {} bytes left out ...]\n", self.cut).into_bytes());
        }
        bytes.extend(self.tail);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_kept_whole_whatever_the_pieces() {
        for size in 1..12 {
            let mut kept = HeadTail::new(10);
            b"0123456789".chunks(size).for_each(|piece| kept.push(piece));
            assert_eq!(kept.into_bytes(), b"0123456789");
        }
    }

    #[test]
    fn long_output_keeps_both_ends_and_says_what_is_missing() {
        for size in [1, 3, 100] {
            let mut kept = HeadTail::new(4);
            b"ab0123456789yz".chunks(size).for_each(|piece| kept.push(piece));
            assert_eq!(String::from_utf8_lossy(&kept.into_bytes()), "ab\n[... 10 bytes left out ...]\nyz");
        }
    }
}
