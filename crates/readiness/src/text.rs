//! Words of others inside a verdict: bounded, on one line, and still while nothing happens.

use std::fmt;
use std::ops::Deref;

/// So many bytes of foreign text are kept.
const LIMIT: usize = 160;

/// A short text, behind one thin pointer so that a verdict stays small.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Text(Box<Box<str>>);

impl Text {
    /// Our own words, or a token of the API's: kept as they are, but for their length.
    pub fn new(text: &str) -> Text {
        Text(Box::new(cut(text, LIMIT).into()))
    }

    /// Our own words, whose length was seen to before.
    pub(crate) fn whole(text: &str) -> Text {
        Text(Box::new(text.into()))
    }

    /// A message that somebody wrote for people: on one line, without the numbers that count or age.
    ///
    /// "retry 5 in 30s" would be another message at each retry, and each a write to the parent.
    pub fn foreign(message: &str) -> Text {
        let mut text = String::with_capacity(message.len().min(LIMIT));
        for word in message.split_whitespace() {
            if text.len() >= LIMIT {
                break;
            }
            if !text.is_empty() {
                text.push(' ');
            }
            still(&mut text, word);
        }
        Text::new(&text)
    }
}

/// Adds a word; one that is a number, a duration or a moment as `#`, with the brackets and commas around it.
fn still(text: &mut String, word: &str) {
    let inner = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    if !ticks(inner) {
        text.push_str(word);
        return;
    }
    let start = word.find(inner).unwrap_or(0);
    text.push_str(&word[..start]);
    text.push('#');
    text.push_str(&word[start + inner.len()..]);
}

fn ticks(word: &str) -> bool {
    let numeric = |b: u8| b.is_ascii_digit() || b"smhdnuTZ:.,+-/%".contains(&b);
    let address_or_version = word.split('.').count() > 2 && !word.contains(':');
    word.starts_with(|c: char| c.is_ascii_digit()) && word.bytes().all(numeric) && !address_or_version
}

/// The first `limit` bytes at most, never half a character.
fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ticks_by_itself_is_left_out_of_foreign_text() {
        let text = |s| Text::foreign(s).to_string();
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
        assert_eq!(Text::new(&"ä".repeat(200)).len(), 160);
        assert_eq!(Text::new(&format!("x{}", "ä".repeat(200))).len(), 159);
    }
}
