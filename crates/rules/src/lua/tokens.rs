//! Lua source cut into what the dialect bridge needs to see: words, labels and everything else, with their places.

/// One token. Strings and comments are none: nothing inside them can be code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind<'a>,
    /// Byte offset of its first character.
    pub(super) start: usize,
    /// Byte offset behind its last character.
    pub(super) end: usize,
    /// 1-based line.
    pub(super) line: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// A name or a keyword.
    Word(&'a str),
    /// `::`
    Colons,
    /// `.` or a single `:`: the word behind it is a field, never a keyword.
    Access,
    /// `;`
    Semicolon,
    /// A string or a number: a value, whatever it holds.
    Literal,
    /// Any other character.
    Other(u8),
}

/// Cuts `source`. An unfinished string or comment ends with the source; the compiler says more about it.
pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut scanner = Scanner { bytes: source.as_bytes(), at: 0, line: 1 };
    let mut all = Vec::new();
    while let Some(token) = scanner.next(source) {
        all.push(token);
    }
    all
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u32,
}

impl Scanner<'_> {
    fn next<'a>(&mut self, source: &'a str) -> Option<Token<'a>> {
        self.skip_blank();
        let (start, line) = (self.at, self.line);
        let first = *self.bytes.get(start)?;
        let kind = match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                self.skip_while(|b| b.is_ascii_alphanumeric() || b == b'_');
                Kind::Word(&source[start..self.at])
            }
            b'0'..=b'9' => {
                self.skip_while(|b| b.is_ascii_alphanumeric() || b == b'.');
                Kind::Literal
            }
            b'"' | b'\'' => {
                self.skip_quoted(first);
                Kind::Literal
            }
            b'[' if self.long_bracket(start).is_some() => {
                self.skip_long(start);
                Kind::Literal
            }
            b':' if self.peek(1) == Some(b':') => self.take(2, Kind::Colons),
            b'.' if self.peek(1) == Some(b'.') => self.take(2, Kind::Other(b'.')),
            b'.' | b':' => self.take(1, Kind::Access),
            b';' => self.take(1, Kind::Semicolon),
            other => self.take(1, Kind::Other(other)),
        };
        Some(Token { kind, start, end: self.at, line })
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn take<'a>(&mut self, bytes: usize, kind: Kind<'a>) -> Kind<'a> {
        self.at += bytes;
        kind
    }

    fn step(&mut self) {
        self.line += u32::from(self.bytes[self.at] == b'\n');
        self.at += 1;
    }

    fn skip_while(&mut self, more: impl Fn(u8) -> bool) {
        while self.peek(0).is_some_and(&more) {
            self.step();
        }
    }

    /// White space and comments.
    fn skip_blank(&mut self) {
        loop {
            self.skip_while(|b| b.is_ascii_whitespace());
            if self.peek(0) != Some(b'-') || self.peek(1) != Some(b'-') {
                return;
            }
            self.at += 2;
            if self.peek(0) == Some(b'[') && self.long_bracket(self.at).is_some() {
                self.skip_long(self.at);
            } else {
                self.skip_while(|b| b != b'\n');
            }
        }
    }

    fn skip_quoted(&mut self, quote: u8) {
        self.step();
        while let Some(byte) = self.peek(0) {
            self.step();
            match byte {
                b'\\' if self.peek(0).is_some() => self.step(),
                b'\n' => return,
                byte if byte == quote => return,
                _ => {}
            }
        }
    }

    /// How many `=` the long bracket that opens at `at` has.
    fn long_bracket(&self, at: usize) -> Option<usize> {
        let level = self.bytes[at + 1..].iter().take_while(|b| **b == b'=').count();
        (self.bytes.get(at + 1 + level) == Some(&b'[')).then_some(level)
    }

    fn skip_long(&mut self, at: usize) {
        let level = self.long_bracket(at).unwrap_or(0);
        let close: Vec<u8> = [b"]".as_slice(), &b"=".repeat(level), b"]"].concat();
        while self.at < self.bytes.len() && !self.bytes[self.at..].starts_with(&close) {
            self.step();
        }
        self.at = (self.at + close.len()).min(self.bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<&str> {
        let word = |token: Token<'static>| match token.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        };
        tokens(Box::leak(source.to_owned().into_boxed_str())).into_iter().filter_map(word).collect()
    }

    #[test]
    fn strings_and_comments_hold_no_words() {
        let source = "a -- goto x\n b --[[ goto\n y ]] c 'goto \\' z' d \"end\" e [==[ goto ]] ]==] f --[=[ x ]] ]=] g";
        assert_eq!(words(source), ["a", "b", "c", "d", "e", "f", "g"]);
    }

    #[test]
    fn lines_are_counted_through_long_strings() {
        let all = tokens("local s = [[\n\n]]\nreturn s");
        assert_eq!(all.iter().map(|t| t.line).collect::<Vec<_>>(), [1, 1, 1, 1, 4, 4]);
    }

    #[test]
    fn what_never_ends_ends_with_the_source() {
        for source in ["\"abc", "[[abc", "--[[ abc", "'a\\", "[=", "-"] {
            let _ = tokens(source);
        }
    }
}
