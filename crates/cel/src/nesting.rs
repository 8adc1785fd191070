//! Checks the source before it is parsed: text that would be refused for its depth does not reach the parser, which is
//! slow on it.

use crate::CompileError;

/// Maximum depth of an expression; evaluation recurses this deep.
pub(crate) const MAX_EXPRESSION_DEPTH: usize = 100;

/// Maximum nesting of brackets; the parser's own limit is lower.
const MAX_BRACKET_DEPTH: usize = 2 * MAX_EXPRESSION_DEPTH;

/// Lengths of the chains within one pair of brackets, each of which makes a tree as deep as it is long.
#[derive(Clone, Copy, Default)]
struct ChainLengths {
    /// `.a.b(c)[d]`
    postfix: usize,
    /// `a * b / c`
    product: usize,
    /// `a + b - c`
    sum: usize,
    /// `a < b == c`
    relation: usize,
}

impl ChainLengths {
    fn longest_chain(&self) -> usize {
        self.postfix.max(self.product).max(self.sum).max(self.relation)
    }

    /// Ends the chains of tighter-binding operators. `ends` is `true` if an operand ended before the operator;
    /// otherwise it is a sign.
    fn count_operator(&mut self, operator: u8, ends: bool) {
        let ChainLengths { product, sum, relation, .. } = *self;
        *self = match operator {
            b'*' | b'/' | b'%' => ChainLengths { product: product + 1, sum, relation, postfix: 0 },
            b'+' | b'-' if ends => ChainLengths { sum: sum + 1, relation, ..ChainLengths::default() },
            b'<' | b'>' | b'=' if ends => ChainLengths { relation: relation + 1, ..ChainLengths::default() },
            b'!' | b'-' | b'=' => ChainLengths { postfix: 0, ..*self },
            _ => ChainLengths::default(),
        };
    }
}

/// Refuses source that is nested or chained deeper than the depth limit.
pub(crate) fn check_nesting(source: &str) -> Result<(), CompileError> {
    let bytes = source.as_bytes();
    let mut open = Vec::new();
    let mut here = ChainLengths::default();
    // `ends` is `true` if an operand has just ended.
    let (mut at, mut ends) = (0, false);
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'"' | b'\'' => (at, ends) = (end_of_text(bytes, start), true),
            b'/' if bytes.get(at) == Some(&b'/') => {
                at += bytes[at..].iter().position(|b| *b == b'\n').unwrap_or(bytes.len() - at);
            }
            b'(' | b'[' | b'{' => {
                here.postfix += usize::from(ends && byte == b'[');
                open.push(here);
                (here, ends) = (ChainLengths::default(), false);
            }
            b')' | b']' | b'}' => (here, ends) = (open.pop().unwrap_or_default(), true),
            b'.' if ends => (here.postfix, ends) = (here.postfix + 1, false),
            b'*' | b'/' | b'%' | b'+' | b'-' | b'<' | b'>' | b'=' | b'!' | b'&' | b'|' | b'?' | b':'
            | b',' => {
                here.count_operator(byte, ends);
                ends = false;
            }
            byte if byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii() => ends = true,
            _ => {}
        }
        if open.len() > MAX_BRACKET_DEPTH || here.longest_chain() > MAX_EXPRESSION_DEPTH {
            return Err(too_deep_error(source, start));
        }
    }
    Ok(())
}

fn too_deep_error(source: &str, at: usize) -> CompileError {
    let before = &source[..source.floor_char_boundary(at)];
    let (line, column) = before
        .chars()
        .fold((1, 1), |(line, column), c| if c == '\n' { (line + 1, 1) } else { (line, column + 1) });
    CompileError {
        limit: true,
        ..CompileError::new(line, column, format!("nested deeper than {MAX_EXPRESSION_DEPTH} levels"))
    }
}

/// Returns the index behind the text literal that begins at this quote; the length of the source if it is unterminated.
fn end_of_text(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let raw = start.checked_sub(1).is_some_and(|before| matches!(bytes[before], b'r' | b'R'));
    let triple = bytes[start..].starts_with(&[quote; 3]);
    let end = if triple { 3 } else { 1 };
    let mut at = start + end;
    while at < bytes.len() {
        if bytes[at] == b'\\' && !raw {
            at += 2;
        } else if bytes[at..].starts_with(&[quote; 3][..end]) {
            return at + end;
        } else {
            at += 1;
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_makes_a_tree_deeper_than_any_is_refused() {
        let chain = |part: &str, times: usize| part.repeat(times);
        for (source, refused) in [
            (format!("a{}", chain(".a", 101)), true),
            (format!("a{}", chain(".a", 99)), false),
            (format!("a{}", chain("[0]", 101)), true),
            (format!("a{}", chain(".b()", 101)), true),
            (format!("1{}", chain(" + 1", 101)), true),
            (format!("1{}", chain(" * 1", 101)), true),
            // Shallow, although long.
            (format!("[{}1]", chain("1 + 1, a.b.c, ", 200)), false),
            (format!("true{}", chain(" && 1 + 1 < 3", 200)), false),
            (format!("1{}", chain(" * 2 + 1", 90)), false),
            (format!("'{}' == \"{}\"", chain(".a", 200), chain("+1", 200)), false),
            (format!("'''{}\\''''", chain("'.a", 200)), false),
            (format!("r'\\' + '{}'", chain("(", 300)), false),
            (format!("true // {}", chain("(", 300)), false),
            (format!("{}1", chain("-", 300)), false),
            (format!("{}true", chain("!", 300)), false),
            (format!("a{}", chain(" - -1", 50)), false),
            (format!("{}1{}", chain("(", 300), chain(")", 300)), true),
            (format!("{}1", chain("[", 300)), true),
        ] {
            assert_eq!(check_nesting(&source).is_err(), refused, "{source}");
        }
    }

    #[test]
    fn it_says_where() {
        let error = check_nesting(&format!("true &&\n ä{}", ".a".repeat(101))).expect_err("too deep");
        assert_eq!((error.line, error.column), (2, 203));
    }
}
