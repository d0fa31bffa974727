//! Between byte offsets in UTF-8 text and the client's positions.

use tower_lsp_server::gen_lsp_types::{Position, PositionEncodingKind, Range};

/// How the client counts columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// UTF-16 code units, the protocol's default.
    #[default]
    Utf16,
    /// Characters.
    Utf32,
}

impl Encoding {
    /// The best of what the client offers: UTF-8 if it can, as nothing has to be converted then.
    pub fn negotiate(offered: Option<&[PositionEncodingKind]>) -> Self {
        let offered = offered.unwrap_or_default();
        if offered.contains(&PositionEncodingKind::UTF8) {
            Self::Utf8
        } else if offered.contains(&PositionEncodingKind::UTF16) || offered.is_empty() {
            Self::Utf16
        } else if offered.contains(&PositionEncodingKind::UTF32) {
            Self::Utf32
        } else {
            Self::Utf16
        }
    }

    /// Its name in the protocol.
    pub fn kind(self) -> PositionEncodingKind {
        match self {
            Self::Utf8 => PositionEncodingKind::UTF8,
            Self::Utf16 => PositionEncodingKind::UTF16,
            Self::Utf32 => PositionEncodingKind::UTF32,
        }
    }

    fn width(self, character: char) -> usize {
        match self {
            Self::Utf8 => character.len_utf8(),
            Self::Utf16 => character.len_utf16(),
            Self::Utf32 => 1,
        }
    }

    /// The byte offset of `position`: beyond a line's end it means the line's end (before its terminator), beyond the last
    /// line the end of the text, inside of a character its start.
    pub fn offset(self, text: &str, position: Position) -> usize {
        let Some(start) = line_start(text, position.line as usize) else { return text.len() };
        let mut column = 0;
        for (index, character) in text[start..].char_indices() {
            if matches!(character, '\n' | '\r')
                || column + self.width(character) > position.character as usize
            {
                return start + index;
            }
            column += self.width(character);
        }
        text.len()
    }

    /// The position of byte `offset`, which is clamped to the text and to the start of a character.
    pub fn position(self, text: &str, offset: usize) -> Position {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let (mut line, mut start) = (0, 0);
        for next in line_starts(text).skip(1) {
            if next > offset {
                break;
            }
            line += 1;
            start = next;
        }
        let column: usize = text[start..offset].chars().map(|it| self.width(it)).sum();
        Position { line, character: u32::try_from(column).unwrap_or(u32::MAX) }
    }

    /// The range of bytes `range`.
    pub fn range(self, text: &str, range: std::ops::Range<usize>) -> Range {
        Range { start: self.position(text, range.start), end: self.position(text, range.end) }
    }
}

/// Where lines start; lines end with `\n`, `\r\n` or `\r`.
fn line_starts(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    let ends_a_line = move |index: usize| match bytes[index] {
        b'\n' => true,
        b'\r' => bytes.get(index + 1) != Some(&b'\n'),
        _ => false,
    };
    std::iter::once(0).chain((0..bytes.len()).filter(move |&index| ends_a_line(index)).map(|index| index + 1))
}

fn line_start(text: &str, line: usize) -> Option<usize> {
    line_starts(text).nth(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a\u{1F600}b\r\n\tx = \"\u{e9}\"\r\nlast";

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn an_emoji_is_two_utf16_units_four_bytes_and_one_character() {
        let b = TEXT.find('b').unwrap_or_default();
        assert_eq!(Encoding::Utf16.position(TEXT, b), at(0, 3));
        assert_eq!(Encoding::Utf8.position(TEXT, b), at(0, 5));
        assert_eq!(Encoding::Utf32.position(TEXT, b), at(0, 2));
    }

    #[test]
    fn every_boundary_survives_the_way_there_and_back() {
        for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
            for (offset, character) in TEXT.char_indices() {
                // Between `\r` and `\n` there is no position.
                if character == '\n' {
                    continue;
                }
                assert_eq!(encoding.offset(TEXT, encoding.position(TEXT, offset)), offset, "{encoding:?}");
            }
            assert_eq!(encoding.offset(TEXT, encoding.position(TEXT, TEXT.len())), TEXT.len());
        }
    }

    #[test]
    fn positions_outside_are_clamped_and_a_surrogate_pair_is_never_split() {
        assert_eq!(Encoding::Utf16.offset(TEXT, at(0, 99)), TEXT.find('\r').unwrap_or_default());
        assert_eq!(Encoding::Utf16.offset(TEXT, at(99, 0)), TEXT.len());
        assert_eq!(Encoding::Utf16.offset(TEXT, at(0, 2)), 1);
    }

    #[test]
    fn a_tab_is_one_unit() {
        assert_eq!(Encoding::Utf16.position(TEXT, TEXT.find('x').unwrap_or_default()), at(1, 1));
    }

    #[test]
    fn utf8_is_taken_when_offered_and_utf16_when_nothing_is() {
        let offered = [PositionEncodingKind::UTF16, PositionEncodingKind::UTF8];
        assert_eq!(Encoding::negotiate(Some(&offered)), Encoding::Utf8);
        assert_eq!(Encoding::negotiate(None), Encoding::Utf16);
        assert_eq!(Encoding::negotiate(Some(&[PositionEncodingKind::UTF32])), Encoding::Utf32);
    }
}
