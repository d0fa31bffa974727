//! Breaking text into short lines.

/// Breaks text into lines of at most `width` characters where words allow it.
///
/// A word longer than the width gets a line of its own.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += length;
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Wraps text into as few lines as [`wrap`] needs, but of even length.
pub fn balance(text: &str, width: usize) -> Vec<String> {
    let fewest = wrap(text, width).len();
    (1..=width)
        .map(|narrower| wrap(text, narrower))
        .find(|lines| lines.len() <= fewest)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_lines_exactly() {
        assert_eq!(wrap("to be or not", 5), ["to be", "or", "not"]);
        assert_eq!(wrap("to be or not", 6), ["to be", "or not"]);
    }

    #[test]
    fn counts_characters_and_not_bytes() {
        assert_eq!(wrap("déjà été", 8), ["déjà été"]);
    }

    #[test]
    fn long_words_stand_alone() {
        assert_eq!(wrap("a wheelbarrow b", 5), ["a", "wheelbarrow", "b"]);
    }

    #[test]
    fn nothing_gives_no_lines() {
        assert!(wrap("  ", 10).is_empty());
    }

    #[test]
    fn balance_evens_out_lines() {
        assert_eq!(wrap("one two six ten", 11), ["one two six", "ten"]);
        assert_eq!(balance("one two six ten", 11), ["one two", "six ten"]);
    }
}
