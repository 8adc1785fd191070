//! Splits Lua source into the tokens that the dialect translation needs: words, labels and other characters, with their
//! positions.

/// One token. Comments are no tokens, and nothing inside a string is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LuaToken<'a> {
    pub(super) kind: TokenKind<'a>,
    /// Byte offset of its first character.
    pub(super) start: usize,
    /// Byte offset after its last character.
    pub(super) end: usize,
    /// 1-based line.
    pub(super) line: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind<'a> {
    /// A name or a keyword.
    Word(&'a str),
    /// `::`
    Colons,
    /// `.` or a single `:`: the following word is a field, never a keyword.
    Access,
    /// `;`
    Semicolon,
    /// A string or a number.
    Literal,
    /// Any other character.
    Other(u8),
}

/// Splits `source` into tokens. An unterminated string or comment ends with the source; the compiler reports it.
pub(super) fn scan_tokens(source: &str) -> Vec<LuaToken<'_>> {
    let mut scanner = TokenScanner { bytes: source.as_bytes(), at: 0, line: 1 };
    let mut all = Vec::new();
    while let Some(token) = scanner.next_token(source) {
        all.push(token);
    }
    all
}

struct TokenScanner<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u32,
}

impl TokenScanner<'_> {
    fn next_token<'a>(&mut self, source: &'a str) -> Option<LuaToken<'a>> {
        self.skip_blank();
        let (start, line) = (self.at, self.line);
        let first = *self.bytes.get(start)?;
        let kind = match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                self.skip_while(|b| b.is_ascii_alphanumeric() || b == b'_');
                TokenKind::Word(&source[start..self.at])
            }
            b'0'..=b'9' => {
                self.skip_while(|b| b.is_ascii_alphanumeric() || b == b'.');
                TokenKind::Literal
            }
            b'"' | b'\'' => {
                self.skip_quoted(first);
                TokenKind::Literal
            }
            b'[' if self.long_bracket(start).is_some() => {
                self.skip_long_bracket(start);
                TokenKind::Literal
            }
            b':' if self.peek_byte(1) == Some(b':') => self.take_token(2, TokenKind::Colons),
            b'.' if self.peek_byte(1) == Some(b'.') => self.take_token(2, TokenKind::Other(b'.')),
            b'.' | b':' => self.take_token(1, TokenKind::Access),
            b';' => self.take_token(1, TokenKind::Semicolon),
            other => self.take_token(1, TokenKind::Other(other)),
        };
        Some(LuaToken { kind, start, end: self.at, line })
    }

    fn peek_byte(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn take_token<'a>(&mut self, bytes: usize, kind: TokenKind<'a>) -> TokenKind<'a> {
        self.at += bytes;
        kind
    }

    fn advance_byte(&mut self) {
        self.line += u32::from(self.bytes[self.at] == b'\n');
        self.at += 1;
    }

    fn skip_while(&mut self, more: impl Fn(u8) -> bool) {
        while self.peek_byte(0).is_some_and(&more) {
            self.advance_byte();
        }
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) {
        loop {
            self.skip_while(|b| b.is_ascii_whitespace());
            if self.peek_byte(0) != Some(b'-') || self.peek_byte(1) != Some(b'-') {
                return;
            }
            self.at += 2;
            if self.peek_byte(0) == Some(b'[') && self.long_bracket(self.at).is_some() {
                self.skip_long_bracket(self.at);
            } else {
                self.skip_while(|b| b != b'\n');
            }
        }
    }

    fn skip_quoted(&mut self, quote: u8) {
        self.advance_byte();
        while let Some(byte) = self.peek_byte(0) {
            self.advance_byte();
            match byte {
                b'\\' if self.peek_byte(0).is_some() => self.advance_byte(),
                b'\n' => return,
                byte if byte == quote => return,
                _ => {}
            }
        }
    }

    /// Returns the number of `=` in the long bracket that opens at `at`.
    fn long_bracket(&self, at: usize) -> Option<usize> {
        let level = self.bytes[at + 1..].iter().take_while(|b| **b == b'=').count();
        (self.bytes.get(at + 1 + level) == Some(&b'[')).then_some(level)
    }

    fn skip_long_bracket(&mut self, at: usize) {
        let level = self.long_bracket(at).unwrap_or(0);
        let close: Vec<u8> = [b"]".as_slice(), &b"=".repeat(level), b"]"].concat();
        while self.at < self.bytes.len() && !self.bytes[self.at..].starts_with(&close) {
            self.advance_byte();
        }
        self.at = (self.at + close.len()).min(self.bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<&str> {
        let word = |token: LuaToken<'static>| match token.kind {
            TokenKind::Word(word) => Some(word),
            _ => None,
        };
        scan_tokens(Box::leak(source.to_owned().into_boxed_str())).into_iter().filter_map(word).collect()
    }

    #[test]
    fn strings_and_comments_hold_no_words() {
        let source = "a -- goto x\n b --[[ goto\n y ]] c 'goto \\' z' d \"end\" e [==[ goto ]] ]==] f --[=[ x ]] ]=] g";
        assert_eq!(words(source), ["a", "b", "c", "d", "e", "f", "g"]);
    }

    #[test]
    fn lines_are_counted_through_long_strings() {
        let all = scan_tokens("local s = [[\n\n]]\nreturn s");
        assert_eq!(all.iter().map(|t| t.line).collect::<Vec<_>>(), [1, 1, 1, 1, 4, 4]);
    }

    #[test]
    fn what_never_ends_ends_with_the_source() {
        for source in ["\"abc", "[[abc", "--[[ abc", "'a\\", "[=", "-"] {
            let _ = scan_tokens(source);
        }
    }
}
