//! A cursor over JSON text that is known to be valid. It cannot fail: a value of another type than requested is absent.
//!
//! Every reader consumes exactly one value, whatever it is. Nothing recurses.

use std::borrow::Cow;

use readiness::{Time, TruthValue};

/// A position in a JSON text, in front of a value.
#[derive(Clone, Debug)]
pub(super) struct JsonCursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> JsonCursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        JsonCursor { text, at: 0 }
    }

    /// The text that is still to be read.
    pub(super) fn text(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Returns the first byte of the value; 0 at the end of the text.
    pub(super) fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied().unwrap_or(0)
    }

    /// Calls back for each member of an object; returns `false` if the value is not an object. Values that the callback
    /// leaves are skipped.
    pub(super) fn each_member(&mut self, mut each: impl FnMut(&str, &mut Self)) -> bool {
        self.walk_items(b'{', b'}', |cursor| {
            let key = cursor.read_key();
            let before = cursor.at;
            each(&key, cursor);
            if cursor.at == before {
                cursor.skip_value();
            }
        })
    }

    /// Moves in front of the value of a member of an object; returns `false` if the object has none of that name, or is none. What
    /// comes after it is not read.
    pub(super) fn enter_member(&mut self, name: &str) -> bool {
        if self.peek() != b'{' {
            return false;
        }
        self.at += 1;
        while self.peek() == b'"' {
            if self.read_key() == name {
                return true;
            }
            self.skip_value();
            if self.peek() == b',' {
                self.at += 1;
            }
        }
        false
    }

    /// Reads the key of a member, up to its value.
    fn read_key(&mut self) -> Cow<'a, str> {
        let (key, escaped) = self.raw_string();
        if self.peek() == b':' {
            self.at += 1;
            self.peek();
        }
        if escaped { unescape_text(key) } else { Cow::Borrowed(key) }
    }

    /// Calls back for each element of a list; returns `false` if the value is not a list. Values that the callback
    /// leaves are skipped.
    pub(super) fn each_element(&mut self, mut each: impl FnMut(&mut Self)) -> bool {
        self.walk_items(b'[', b']', |cursor| {
            let before = cursor.at;
            each(cursor);
            if cursor.at == before {
                cursor.skip_value();
            }
        })
    }

    fn walk_items(&mut self, open: u8, close: u8, mut one: impl FnMut(&mut Self)) -> bool {
        if self.peek() != open {
            self.skip_value();
            return false;
        }
        self.at += 1;
        loop {
            match self.peek() {
                0 => return true,
                b',' => self.at += 1,
                byte if byte == close => {
                    self.at += 1;
                    return true;
                }
                _ => {
                    let before = self.at;
                    one(self);
                    // Text that is not valid JSON after all must not cause an endless loop.
                    self.at += usize::from(self.at == before);
                }
            }
        }
    }

    /// Skips one value.
    pub(super) fn skip_value(&mut self) {
        let bytes = self.text.as_bytes();
        match self.peek() {
            b'"' => self.at = (end_of_string(bytes, self.at + 1).0 + 1).min(bytes.len()),
            b'{' | b'[' => self.skip_nested(),
            _ => {
                let scalar = |b: &u8| !matches!(b, b',' | b'}' | b']' | b' ' | b'\n' | b'\t' | b'\r');
                self.at += bytes[self.at..].iter().take_while(|b| scalar(b)).count();
            }
        }
    }

    fn skip_nested(&mut self) {
        let bytes = self.text.as_bytes();
        let mut at = self.at;
        let mut depth = 0_usize;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'"' => at = end_of_string(bytes, at).0 + 1,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                _ => {}
            }
        }
        self.at = at.min(bytes.len());
    }

    /// Returns the text between the quotes, and whether it contains escapes.
    fn raw_string(&mut self) -> (&'a str, bool) {
        let bytes = self.text.as_bytes();
        if self.peek() != b'"' {
            return ("", false);
        }
        let start = self.at + 1;
        let (end, escaped) = end_of_string(bytes, start);
        let end = end.min(bytes.len());
        self.at = (end + 1).min(bytes.len());
        (self.text.get(start..end).unwrap_or(""), escaped)
    }

    /// Reads a string.
    pub(super) fn read_string(&mut self) -> Option<Cow<'a, str>> {
        if self.peek() != b'"' {
            self.skip_value();
            return None;
        }
        let (raw, escaped) = self.raw_string();
        Some(if escaped { unescape_text(raw) } else { Cow::Borrowed(raw) })
    }

    /// Reads the beginning of a string, at most `limit` bytes.
    pub(super) fn read_prefix(&mut self, limit: usize) -> Option<Cow<'a, str>> {
        if self.peek() != b'"' {
            self.skip_value();
            return None;
        }
        let (raw, escaped) = self.raw_string();
        if !escaped {
            return Some(Cow::Borrowed(&raw[..raw.floor_char_boundary(limit)]));
        }
        // An escape takes at most six times the bytes of its character.
        let mut text = unescape_text(&raw[..raw.floor_char_boundary(limit.saturating_mul(6))]).into_owned();
        text.truncate(text.floor_char_boundary(limit));
        Some(Cow::Owned(text))
    }

    /// Reads a string into a box; empty if the value is not a string.
    pub(super) fn read_boxed(&mut self) -> Box<str> {
        self.read_string().map_or_else(Box::default, Into::into)
    }

    /// Reads an integer, also one written as a string or with a fraction of zero.
    pub(super) fn read_integer(&mut self) -> Option<i64> {
        let text = match self.peek() {
            b'"' => self.read_string()?,
            b'-' | b'0'..=b'9' => {
                let start = self.at;
                self.skip_value();
                Cow::Borrowed(self.text.get(start..self.at)?)
            }
            _ => {
                self.skip_value();
                return None;
            }
        };
        let whole = text.trim().trim_end_matches(".0");
        whole.parse().ok()
    }

    /// Reads a truth value, also one written as a string.
    pub(super) fn read_truth(&mut self) -> TruthValue {
        match self.peek() {
            b't' | b'f' => {
                let truth = TruthValue::from(self.peek() == b't');
                self.skip_value();
                truth
            }
            b'"' => self.read_string().map_or(TruthValue::Absent, |text| TruthValue::from_text(text.trim())),
            _ => {
                self.skip_value();
                TruthValue::Absent
            }
        }
    }

    /// Reads a boolean; `None` if the value is neither true nor false.
    pub(super) fn read_flag(&mut self) -> Option<bool> {
        match self.read_truth() {
            TruthValue::True => Some(true),
            TruthValue::False => Some(false),
            TruthValue::Unknown | TruthValue::Absent => None,
        }
    }

    /// Reads an RFC 3339 timestamp.
    pub(super) fn read_time(&mut self) -> Option<Time> {
        Time::from_rfc3339(&self.read_string()?)
    }
}

/// Returns the position of the closing quote of a string whose content starts at `at`, and whether the string contains
/// escapes. Eight bytes at a time: most of an object is strings, and most of those are skipped.
#[inline]
fn end_of_string(bytes: &[u8], mut at: usize) -> (usize, bool) {
    let mut escaped = false;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let word = u64::from_le_bytes(*chunk);
        let found = matching_bytes(word, b'"') | matching_bytes(word, b'\\');
        if found == 0 {
            at += 8;
            continue;
        }
        at += found.trailing_zeros() as usize / 8;
        if bytes.get(at) == Some(&b'"') {
            return (at, escaped);
        }
        escaped = true;
        at += 2;
    }
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => break,
            b'\\' => {
                escaped = true;
                at += 2;
            }
            _ => at += 1,
        }
    }
    (at, escaped)
}

/// Returns the highest bit of each byte of `word` that equals `byte`; above the first match, also of some others.
const fn matching_bytes(word: u64, byte: u8) -> u64 {
    const LOW_BITS: u64 = u64::MAX / 255;
    let zero_where_equal = word ^ (LOW_BITS * byte as u64);
    zero_where_equal.wrapping_sub(LOW_BITS) & !zero_where_equal & (LOW_BITS << 7)
}

/// Unescapes a string; half a surrogate pair becomes the replacement character.
fn unescape_text(raw: &str) -> Cow<'_, str> {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(escape) = rest.chars().next() else { break };
        rest = &rest[escape.len_utf8()..];
        match escape {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            'u' => {
                let (character, after) = read_unicode_escape(rest);
                text.push(character);
                rest = after;
            }
            other => text.push(other),
        }
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// Reads the character of four hexadecimal digits, or of two times four with `\u` between them.
fn read_unicode_escape(text: &str) -> (char, &str) {
    let unit = |text: &str| text.get(..4).and_then(|hex| u16::from_str_radix(hex, 16).ok());
    let Some(first) = unit(text) else { return (char::REPLACEMENT_CHARACTER, text) };
    let after = &text[4..];
    let second = after.strip_prefix("\\u").and_then(|low| unit(low).map(|unit| (unit, &low[4..])));
    if let Some((second, after)) = second.filter(|_| (0xD800..0xDC00).contains(&first))
        && let Some(Ok(character)) = char::decode_utf16([first, second]).next()
    {
        return (character, after);
    }
    (char::from_u32(first.into()).unwrap_or(char::REPLACEMENT_CHARACTER), after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_string_is_found_wherever_it_stands() {
        for length in 0..40 {
            for escape in 0..length {
                let mut text = vec![b'a'; length];
                text.splice(escape..escape, *b"\\\"");
                let end = text.len();
                text.extend(*b"\", \"more\"");
                assert_eq!(end_of_string(&text, 0), (end, true), "{}", String::from_utf8_lossy(&text));
            }
            let (end, escaped) = end_of_string(&vec![b'a'; length], 0);
            assert!(end >= length && !escaped, "it never ends");
        }
    }

    #[test]
    fn strings_are_read_whatever_is_in_them() {
        let read = |json| JsonCursor::new(json).read_string().map(Cow::into_owned);
        assert_eq!(read(r#""plain""#).as_deref(), Some("plain"));
        assert_eq!(read(r#""a\"b\\c\n\u00e4\ud83d\ude00""#).as_deref(), Some("a\"b\\c\nä😀"));
        assert_eq!(read(r#""\ud83d alone""#).as_deref(), Some("\u{fffd} alone"));
        assert_eq!(read(r#""\udc00\ud800\u0041""#).as_deref(), Some("\u{fffd}\u{fffd}A"));
        assert_eq!(read("17"), None);
    }

    #[test]
    fn a_member_is_entered_whatever_stands_before_it_and_after_it() {
        let enter = |json, path: &[&str]| {
            let mut cursor = JsonCursor::new(json);
            path.iter().all(|name| cursor.enter_member(name)).then(|| cursor.read_integer()).flatten()
        };
        let text = r#"{ "n": [{"b": 9}, "}"], "\u0061" : {"x":"{", "b": 7 , "c"#;
        assert_eq!(enter(text, &["a", "b"]), Some(7));
        assert_eq!(enter(text, &["a", "d"]), None);
        assert_eq!(enter(text, &["n", "b"]), None);
        for none in ["{}", "[]", "", "{", r#"{"b""#, r#"{"b":"#, r#"{,"b":1}"#, "17"] {
            assert_eq!(enter(none, &["b"]), None, "{none}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(JsonCursor::new(r#""ääää""#).read_prefix(3).as_deref(), Some("ä"));
        assert_eq!(JsonCursor::new(r#""\u00e4\u00e4\n""#).read_prefix(3).as_deref(), Some("ä"));
    }

    #[test]
    fn numbers_may_be_texts() {
        let read = |json| JsonCursor::new(json).read_integer();
        assert_eq!(read("-12"), Some(-12));
        assert_eq!(read("\"3\""), Some(3));
        assert_eq!(read("3.0"), Some(3));
        for none in ["3.5", "1e400", "true", "null", "\"x\"", "[1]", "99999999999999999999"] {
            assert_eq!(read(none), None, "{none}");
        }
    }

    #[test]
    fn what_is_not_asked_for_is_passed_over() {
        let json = r#" { "a" : { "x": [1, {"y": "}]"}] } , "b" : "\"}" , "c" : 7 } "#;
        let mut seen = Vec::new();
        let mut number = None;
        JsonCursor::new(json).each_member(|key, value| {
            seen.push(key.to_owned());
            if key == "c" {
                number = value.read_integer();
            }
        });
        assert_eq!((seen.concat(), number), ("abc".to_owned(), Some(7)));
    }

    #[test]
    fn broken_text_ends_the_walk() {
        for json in
            ["{", "{\"a\"", "{\"a\":", "[1,", "[[[", "{\"a\":\"", "{a:1}", "\"\\", "\"\\u12", "}{", ""]
        {
            let mut cursor = JsonCursor::new(json);
            cursor.each_member(|_, value| {
                value.each_element(|_| {});
            });
            JsonCursor::new(json).each_element(JsonCursor::skip_value);
            _ = JsonCursor::new(json).read_string();
        }
    }
}
