//! What a model writes around code.

/// The content of the first fenced code block in `text`; an unclosed one reaches to the end. Without any fence, the
/// whole text if it looks like nothing but code.
pub fn code_block(text: &str) -> Option<String> {
    let Some((_, after)) = text.split_once("```") else {
        let plain = text.trim_matches(['\n', '\r']);
        let prose = plain.lines().next().is_some_and(|line| line.ends_with(['.', ':', '!']));
        return (!plain.trim().is_empty() && !prose).then(|| format!("{plain}\n"));
    };
    // What follows the fence on its line names the language.
    let (_, body) = after.split_once('\n')?;
    let end = body.find("\n```").map(|at| at + 1).or_else(|| body.starts_with("```").then_some(0));
    let code = body[..end.unwrap_or(body.len())].replace("\r\n", "\n");
    let code = code.trim_end().trim_start_matches('\n');
    (!code.trim().is_empty()).then(|| format!("{code}\n"))
}

/// `text` cut at a line's end so that at most `limit` bytes of its beginning stay.
pub fn head(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].rfind('\n').map_or(&text[..end], |at| &text[..at])
}

/// `text` cut at a line's beginning so that at most `limit` bytes of its end stay.
pub fn tail(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let mut start = text.len() - limit;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].find('\n').map_or(&text[start..], |at| &text[start + at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_found_with_and_without_its_end() {
        assert_eq!(code_block("Here:\n```python\nx = 1\n```\nDone.").unwrap(), "x = 1\n");
        assert_eq!(code_block("```\nx = 1\ny = 2").unwrap(), "x = 1\ny = 2\n");
    }

    #[test]
    fn text_without_code_is_none() {
        assert_eq!(code_block("I cannot see the bug."), None);
        assert_eq!(code_block("```python\n```"), None);
        assert_eq!(code_block("  "), None);
    }

    #[test]
    fn indentation_and_line_ends_of_the_code_stay() {
        assert_eq!(code_block("```go\r\n\tx := 1\r\n```").unwrap(), "\tx := 1\n");
    }

    #[test]
    fn cuts_are_made_at_line_ends_and_never_inside_a_character() {
        assert_eq!(head("ab\ncd\nef", 6), "ab\ncd");
        assert_eq!(tail("ab\ncd\nef", 6), "cd\nef");
        assert_eq!(tail("ab\ncd\nef", 4), "ef");
        assert_eq!(head("ééé", 3), "é");
        assert_eq!(tail("short", 10), "short");
    }
}
