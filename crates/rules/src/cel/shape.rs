//! A look at the source before it is parsed: what is sure to be refused for its depth does not get to the parser, which
//! takes its time over such things.

use super::CompileError;
use super::lower::DEPTH;

/// Brackets in brackets; the parser itself gives up before.
const BRACKETS: usize = 2 * DEPTH;

/// Within one pair of brackets: how long the chains are that make a tree as deep as they are long.
#[derive(Clone, Copy, Default)]
struct Chains {
    /// `.a.b(c)[d]`
    postfix: usize,
    /// `a * b / c`
    product: usize,
    /// `a + b - c`
    sum: usize,
    /// `a < b == c`
    relation: usize,
}

impl Chains {
    fn longest(&self) -> usize {
        self.postfix.max(self.product).max(self.sum).max(self.relation)
    }

    /// An operator that binds less than these ends them. `ends` says whether an operand ended before it: a sign is none.
    fn operator(&mut self, operator: u8, ends: bool) {
        let Chains { product, sum, relation, .. } = *self;
        *self = match operator {
            b'*' | b'/' | b'%' => Chains { product: product + 1, sum, relation, postfix: 0 },
            b'+' | b'-' if ends => Chains { sum: sum + 1, relation, ..Chains::default() },
            b'<' | b'>' | b'=' if ends => Chains { relation: relation + 1, ..Chains::default() },
            b'!' | b'-' | b'=' => Chains { postfix: 0, ..*self },
            _ => Chains::default(),
        };
    }
}

/// Refuses what is nested or chained deeper than any expression that is taken.
pub(super) fn check(source: &str) -> Result<(), CompileError> {
    let bytes = source.as_bytes();
    let mut open = Vec::new();
    let mut here = Chains::default();
    // Did an operand end just before?
    let (mut at, mut ends) = (0, false);
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'"' | b'\'' => (at, ends) = (after_text(bytes, start), true),
            b'/' if bytes.get(at) == Some(&b'/') => {
                at += bytes[at..].iter().position(|b| *b == b'\n').unwrap_or(bytes.len() - at);
            }
            b'(' | b'[' | b'{' => {
                here.postfix += usize::from(ends && byte == b'[');
                open.push(here);
                (here, ends) = (Chains::default(), false);
            }
            b')' | b']' | b'}' => (here, ends) = (open.pop().unwrap_or_default(), true),
            b'.' if ends => (here.postfix, ends) = (here.postfix + 1, false),
            b'*' | b'/' | b'%' | b'+' | b'-' | b'<' | b'>' | b'=' | b'!' | b'&' | b'|' | b'?' | b':'
            | b',' => {
                here.operator(byte, ends);
                ends = false;
            }
            byte if byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii() => ends = true,
            _ => {}
        }
        if open.len() > BRACKETS || here.longest() > DEPTH {
            return Err(too_deep(source, start));
        }
    }
    Ok(())
}

fn too_deep(source: &str, at: usize) -> CompileError {
    let before = &source[..source.floor_char_boundary(at)];
    let (line, column) = before
        .chars()
        .fold((1, 1), |(line, column), c| if c == '\n' { (line + 1, 1) } else { (line, column + 1) });
    CompileError {
        limit: true,
        ..CompileError::new(line, column, format!("nested deeper than {DEPTH} levels"))
    }
}

/// Where the text that begins with this quote is over; the end of all where it never is.
fn after_text(bytes: &[u8], start: usize) -> usize {
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
            // Shallow, however long.
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
            assert_eq!(check(&source).is_err(), refused, "{source}");
        }
    }

    #[test]
    fn it_says_where() {
        let error = check(&format!("true &&\n ä{}", ".a".repeat(101))).expect_err("too deep");
        assert_eq!((error.line, error.column), (2, 203));
    }
}
