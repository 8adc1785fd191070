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

/// A name of so many bytes and words is read without memory of its own.
const SHORT: usize = 64;
const WORDS: usize = 12;

/// Reads all words of a name or a short phrase at once.
pub(super) fn words<R>(text: &str, read: impl FnOnce(&[&str]) -> R) -> R {
    let mut letters = [0; SHORT];
    let mut ends = [0; WORDS];
    let Some((length, count)) = split(text.as_bytes(), &mut letters, &mut ends) else {
        let words: Vec<Token> = tokens(text).collect();
        return read(&words.iter().map(Token::as_str).collect::<Vec<_>>());
    };
    let letters = std::str::from_utf8(&letters[..length]).unwrap_or("");
    let mut words = [""; WORDS];
    let mut start = 0;
    for (word, end) in words.iter_mut().zip(&ends[..count]) {
        *word = letters.get(start..(start + Token::LIMIT).min(*end)).unwrap_or("");
        start = *end;
    }
    read(&words[..count])
}

/// The letters of all words in lower case, and where each word ends among them: how many that are. `None` where there is
/// no room.
fn split(text: &[u8], letters: &mut [u8; SHORT], ends: &mut [usize; WORDS]) -> Option<(usize, usize)> {
    if text.len() > SHORT {
        return None;
    }
    let (mut length, mut count, mut at) = (0, 0, 0);
    while at < text.len() {
        let start = length;
        while let Some(&byte) = text.get(at) {
            if !is_letter(byte) || (length > start && begins(text, at)) {
                break;
            }
            letters[length] = byte.to_ascii_lowercase();
            length += 1;
            at += 1;
            at += usize::from(text.get(at) == Some(&b'\''));
        }
        if length == start {
            at += 1;
            continue;
        }
        *ends.get_mut(count)? = length;
        count += 1;
    }
    Some((length, count))
}

/// The last word.
pub(super) fn last<'a>(words: &[&'a str]) -> &'a str {
    words.last().copied().unwrap_or("")
}

/// The first word.
pub(super) fn first<'a>(words: &[&'a str]) -> &'a str {
    words.first().copied().unwrap_or("")
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
        let spelled = |text: &str| {
            let one_by_one: Vec<_> = tokens(text).map(|t| t.as_str().to_owned()).collect();
            words(text, |at_once| assert_eq!(at_once, one_by_one, "{text}"));
            one_by_one.join(" ")
        };
        for text in ["NotReadyYet", "not_ready_yet", "NOT-READY-YET", "not ready: yet!", "notReadyYet"] {
            assert_eq!(spelled(text), "not ready yet", "{text}");
        }
        assert_eq!(spelled("HTTPReady"), "http ready");
        assert_eq!(spelled("OOMKilled"), "oom killed");
        assert_eq!(spelled("DNSRecordsIPv4"), "dns records i pv4");
        assert_eq!(spelled("can't, über"), "cant ber");
        assert_eq!(spelled(""), "");
        assert_eq!(spelled(&"ab ".repeat(20)).len(), 59);
        assert_eq!(spelled(&"x".repeat(60)).len(), 24);
        assert_eq!(spelled(&"Word".repeat(40)).len(), 199);
        assert_eq!(spelled("'a' ''b'c''"), "a bc");
    }
}
