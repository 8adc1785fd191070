//! Names and phrases as lower-case words: `ReadyToUse`, `ready_to_use`, `READY-TO-USE` and `ready to use` are the same.

/// One word, in lower case; what is longer than any word that we know is cut.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Token {
    bytes: [u8; Token::LIMIT],
    len: usize,
}

impl Token {
    const LIMIT: usize = 24;

    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or("")
    }

    fn push(&mut self, byte: u8) {
        if self.len < Token::LIMIT {
            self.bytes[self.len] = byte.to_ascii_lowercase();
            self.len += 1;
        }
    }
}

/// The words of a name or a phrase.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = Token> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while bytes.get(at).is_some_and(|b| !is_letter(*b)) {
            at += 1;
        }
        let start = at;
        let mut token = Token::default();
        while let Some(&byte) = bytes.get(at) {
            if !is_letter(byte) || (at > start && begins(bytes, at)) {
                break;
            }
            // "can't", "doesn't": one word each.
            token.push(byte);
            at += 1;
            if bytes.get(at) == Some(&b'\'') {
                at += 1;
            }
        }
        (token.len > 0).then_some(token)
    })
}

/// The last word.
pub(super) fn last(text: &str) -> Token {
    tokens(text).last().unwrap_or_default()
}

/// The first word.
pub(super) fn first(text: &str) -> Token {
    tokens(text).next().unwrap_or_default()
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

/// Does a new word begin here: `aB`, or the last capital in `HTTPReady`?
fn begins(bytes: &[u8], at: usize) -> bool {
    let upper = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_uppercase);
    let lower = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_lowercase);
    upper(at) && (!upper(at - 1) || lower(at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_give_the_same_words() {
        let words = |text| tokens(text).map(|t| t.as_str().to_owned()).collect::<Vec<_>>().join(" ");
        for text in ["NotReadyYet", "not_ready_yet", "NOT-READY-YET", "not ready: yet!", "notReadyYet"] {
            assert_eq!(words(text), "not ready yet", "{text}");
        }
        assert_eq!(words("HTTPReady"), "http ready");
        assert_eq!(words("OOMKilled"), "oom killed");
        assert_eq!(words("DNSRecordsIPv4"), "dns records i pv4");
        assert_eq!(words("can't, über"), "cant ber");
        assert_eq!(words(""), "");
    }
}
