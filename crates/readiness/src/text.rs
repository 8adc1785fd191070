//! Text from other components inside a verdict: bounded, on one line, and unchanged while nothing happens.

use std::fmt;
use std::ops::Deref;

/// Longest text from another component that is kept, in bytes.
const MAX_TEXT_BYTES: usize = 160;

/// A short text behind one thin pointer, so that a verdict stays small.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BoundedText(Box<Box<str>>);

impl BoundedText {
    /// Creates a text of Rollcall's own or from a token of the API, truncated to the limit. Line breaks and other control
    /// characters, which no token should have, become spaces.
    pub fn new(text: &str) -> BoundedText {
        let text = truncate_to(text, MAX_TEXT_BYTES);
        let one_line = text.contains(is_line_break).then(|| text.replace(is_line_break, " "));
        BoundedText(Box::new(one_line.map_or_else(|| text.into(), Into::into)))
    }

    /// Creates a text whose length is already bounded.
    pub(crate) fn from_bounded(text: &str) -> BoundedText {
        BoundedText(Box::new(text.into()))
    }

    /// Creates a text from a message that another component wrote for people: on one line, with changing numbers and
    /// ages replaced.
    ///
    /// "retry 5 in 30s" would otherwise be a different message at each retry, and each a write to the parent.
    pub fn from_foreign(message: &str) -> BoundedText {
        let mut text = String::with_capacity(message.len().min(MAX_TEXT_BYTES));
        for word in message.split_whitespace() {
            if text.len() >= MAX_TEXT_BYTES {
                break;
            }
            if !text.is_empty() {
                text.push(' ');
            }
            push_without_numbers(&mut text, word);
        }
        BoundedText::new(&text)
    }
}

/// Appends a word; a number, duration or timestamp becomes `#`, with the brackets and commas around it kept.
fn push_without_numbers(text: &mut String, word: &str) {
    let inner = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    if !is_ticking(inner) {
        text.push_str(word);
        return;
    }
    let start = word.find(inner).unwrap_or(0);
    text.push_str(&word[..start]);
    text.push('#');
    text.push_str(&word[start + inner.len()..]);
}

fn is_ticking(word: &str) -> bool {
    let numeric = |b: u8| b.is_ascii_digit() || b"smhdnuTZ:.,+-/%".contains(&b);
    let address_or_version = word.split('.').count() > 2 && !word.contains(':');
    word.starts_with(|c: char| c.is_ascii_digit()) && word.bytes().all(numeric) && !address_or_version
}

/// Returns `true` for what would end a line, or change how the rest of it is read.
pub fn is_line_break(letter: char) -> bool {
    // Marks, overrides and isolates of direction show what follows in another order.
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Truncates to at most `limit` bytes at a character boundary.
fn truncate_to(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

impl Deref for BoundedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BoundedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_with_line_breaks_stays_on_one_line() {
        let token = BoundedText::new("Ready\n---\r\u{1b}[2J\u{2028}x\u{85}");
        assert_eq!(&*token, "Ready ---  [2J x ");
        assert_eq!(&*BoundedText::new("Failed \u{202e}ydaeR\u{2066}\u{200f}größe"), "Failed  ydaeR  größe");
    }

    #[test]
    fn what_ticks_by_itself_is_left_out_of_foreign_text() {
        let text = |s| BoundedText::from_foreign(s).to_string();
        assert_eq!(
            text("back-off 5m0s restarting failed container"),
            "back-off # restarting failed container"
        );
        assert_eq!(text("retry 5/10 in 30s,\n giving up (3)"), "retry # in #, giving up (#)");
        assert_eq!(text("at 2026-01-02T03:04:05Z: refused by 10.0.0.1"), "at #: refused by 10.0.0.1");
        assert_eq!(text("db-0 and web2 and 2nd"), "db-0 and web2 and #");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(BoundedText::new(&"ä".repeat(200)).len(), 160);
        assert_eq!(BoundedText::new(&format!("x{}", "ä".repeat(200))).len(), 159);
    }
}
