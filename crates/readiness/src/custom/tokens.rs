//! Splits names and phrases into lower-case words: `ReadyToUse`, `ready_to_use`, `READY-TO-USE` and `ready to use` are
//! the same.

/// One word in lower case, cut if it is longer than every word of the lexicon.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WordToken {
    bytes: [u8; WordToken::MAX_TOKEN_BYTES],
    len: usize,
}

impl WordToken {
    const MAX_TOKEN_BYTES: usize = 24;

    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or("")
    }

    fn push_byte(&mut self, byte: u8) {
        if self.len < WordToken::MAX_TOKEN_BYTES {
            self.bytes[self.len] = byte.to_ascii_lowercase();
            self.len += 1;
        }
    }
}

/// Splits a name or a phrase into words.
pub(super) fn split_tokens(text: &str) -> impl Iterator<Item = WordToken> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while bytes.get(at).is_some_and(|b| !is_letter(*b)) {
            at += 1;
        }
        let start = at;
        let mut token = WordToken::default();
        while let Some(&byte) = bytes.get(at) {
            if !is_letter(byte) || (at > start && begins_word(bytes, at)) {
                break;
            }
            // "can't" and "doesn't" are one word each.
            token.push_byte(byte);
            at += 1;
            if bytes.get(at) == Some(&b'\'') {
                at += 1;
            }
        }
        token.len = word_bytes(&token.bytes[..token.len]);
        (token.len > 0).then_some(token)
    })
}

/// Longest name, in bytes, that is split without allocating.
const MAX_INLINE_BYTES: usize = 64;
const MAX_INLINE_WORDS: usize = 12;

/// Splits a name or a short phrase and passes all of its words to `read` at once.
pub(super) fn with_words<R>(text: &str, read: impl FnOnce(&[&str]) -> R) -> R {
    let mut letters = [0; MAX_INLINE_BYTES];
    let mut ends = [0; MAX_INLINE_WORDS];
    let Some((length, count)) = split_words_inline(text.as_bytes(), &mut letters, &mut ends) else {
        let words: Vec<WordToken> = split_tokens(text).collect();
        return read(&words.iter().map(WordToken::as_str).collect::<Vec<_>>());
    };
    let letters = std::str::from_utf8(&letters[..length]).unwrap_or("");
    let mut words = [""; MAX_INLINE_WORDS];
    let mut start = 0;
    for (word, end) in words.iter_mut().zip(&ends[..count]) {
        *word = letters.get(start..(start + WordToken::MAX_TOKEN_BYTES).min(*end)).unwrap_or("");
        start = *end;
    }
    read(&words[..count])
}

/// Writes the letters of all words in lower case and the end of each word among them; returns the two counts. `None` if
/// the buffers are too small.
fn split_words_inline(
    text: &[u8],
    letters: &mut [u8; MAX_INLINE_BYTES],
    ends: &mut [usize; MAX_INLINE_WORDS],
) -> Option<(usize, usize)> {
    if text.len() > MAX_INLINE_BYTES {
        return None;
    }
    let (mut start, mut length, mut count) = (0, 0, 0);
    let (mut after_letter, mut after_upper, mut after_digit) = (false, false, false);
    for (at, &byte) in text.iter().enumerate() {
        let lower = LOWER_CASE[usize::from(byte)];
        let (is_letter, is_upper) = (lower != NO_LETTER, lower != byte && lower != NO_LETTER);
        // The apostrophe of "can't" ends no word.
        let is_end = !(is_letter || after_letter && byte == b'\'');
        let is_begin = is_upper && (!after_upper || text.get(at + 1).is_some_and(u8::is_ascii_lowercase));
        // Digits end a word in front of them and one behind them: `http500error`.
        let is_begin = is_begin || after_digit && is_letter && !byte.is_ascii_digit();
        if (is_end || is_begin) && length > start {
            length = start + word_bytes(&letters[start..length]);
            *ends.get_mut(count)? = length;
            (start, count) = (length, count + 1);
        }
        if is_letter {
            letters[length] = lower;
            length += 1;
        }
        (after_letter, after_upper, after_digit) = (is_letter, is_upper, byte.is_ascii_digit());
    }
    if length > start {
        length = start + word_bytes(&letters[start..length]);
        *ends.get_mut(count)? = length;
        count += 1;
    }
    Some((length, count))
}

/// Entry of [`LOWER_CASE`] for a byte that belongs to no word.
const NO_LETTER: u8 = 0;

/// Each letter in lower case, and each digit. Every name of every object is looked up here, byte by byte.
const LOWER_CASE: [u8; 256] = {
    let mut table = [NO_LETTER; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        if byte.is_ascii_alphanumeric() {
            table[byte as usize] = byte.to_ascii_lowercase();
        }
        byte += 1;
    }
    table
};

/// Returns the length of a word without the digits behind it, which hide it: `Error500`. A number stays whole.
fn word_bytes(word: &[u8]) -> usize {
    // Most words end in a letter, and every name of every object is split.
    if !word.last().is_some_and(u8::is_ascii_digit) {
        return word.len();
    }
    let digits = word.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == word.len() { digits } else { word.len() - digits }
}

/// Returns the name of a condition without the domain in front of it, which says whose it is: `example.com/Ready`.
pub(super) fn without_domain(condition: &str) -> &str {
    condition.rsplit_once('/').map_or(condition, |(_, name)| name)
}

/// Returns the last word.
pub(super) fn last_word<'a>(words: &[&'a str]) -> &'a str {
    words.last().copied().unwrap_or("")
}

/// Returns the first word.
pub(super) fn first_word<'a>(words: &[&'a str]) -> &'a str {
    words.first().copied().unwrap_or("")
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

/// Returns `true` if a new word begins here: `aB`, the last capital in `HTTPReady`, or the first letter behind digits.
fn begins_word(bytes: &[u8], at: usize) -> bool {
    let upper = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_uppercase);
    let lower = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_lowercase);
    let after_digit = bytes[at - 1].is_ascii_digit() && !bytes[at].is_ascii_digit();
    after_digit || upper(at) && (!upper(at - 1) || lower(at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_give_the_same_words() {
        let spelled = |text: &str| {
            let one_by_one: Vec<_> = split_tokens(text).map(|t| t.as_str().to_owned()).collect();
            with_words(text, |at_once| assert_eq!(at_once, one_by_one, "{text}"));
            one_by_one.join(" ")
        };
        for text in ["NotReadyYet", "not_ready_yet", "NOT-READY-YET", "not ready: yet!", "notReadyYet"] {
            assert_eq!(spelled(text), "not ready yet", "{text}");
        }
        assert_eq!(spelled("HTTPReady"), "http ready");
        assert_eq!(spelled("OOMKilled"), "oom killed");
        assert_eq!(spelled("DNSRecordsIPv4"), "dns records i pv");
        assert_eq!(spelled("Error500 404 2xx 3"), "error 404 2 xx 3");
        for text in ["http500error", "HTTP500Error", "http-500-error", "Http500error2"] {
            assert_eq!(spelled(text).replace(" 500", ""), "http error", "{text}");
        }
        assert_eq!(spelled("can't, über"), "cant ber");
        assert_eq!(spelled(""), "");
        assert_eq!(spelled(&"ab ".repeat(20)).len(), 59);
        assert_eq!(spelled(&"x".repeat(60)).len(), 24);
        assert_eq!(spelled(&"Word".repeat(40)).len(), 199);
        assert_eq!(spelled("'a' ''b'c''"), "a bc");
    }
}
