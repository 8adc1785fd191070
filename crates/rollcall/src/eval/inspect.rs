//! What is legal JSON and still not what its author meant: a key that is there twice, a number that others will round.

use std::fmt::Write;

/// What was found in one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// Paths of keys that are there twice.
    pub(super) twice: Vec<String>,
    /// Paths of integers beyond 2^53, with their digits.
    pub(super) long: Vec<(String, String)>,
    /// How deep it is nested.
    pub(super) depth: usize,
}

/// So many of a sort are kept.
const KEPT: usize = 8;
/// From here on not every integer has a place among floating-point numbers.
const EXACT: u64 = 1 << 53;

/// One list or object that is open.
struct Frame<'a> {
    keys: Option<Vec<&'a str>>,
    at: usize,
}

/// Looks through JSON text that is known to be valid, without recursion.
pub(super) fn inspect(json: &str) -> Findings {
    let bytes = json.as_bytes();
    let mut found = Findings::default();
    let mut open: Vec<Frame<'_>> = Vec::new();
    let (mut at, mut key) = (0, true);
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'{' | b'[' => {
                key = byte == b'{';
                open.push(Frame { keys: key.then(Vec::new), at: 0 });
                found.depth = found.depth.max(open.len());
            }
            b'}' | b']' => {
                let closed = open.pop();
                twice(closed, &open, &mut found);
                key = false;
            }
            b',' => {
                if let Some(frame) = open.last_mut() {
                    key = frame.keys.is_some();
                    frame.at += 1;
                }
            }
            b'"' => {
                at = end_of_string(bytes, at);
                if let (true, Some(Frame { keys: Some(keys), .. })) = (key, open.last_mut()) {
                    keys.push(&json[start + 1..at - 1]);
                    key = false;
                }
            }
            b'0'..=b'9' => {
                at += bytes[at..]
                    .iter()
                    .take_while(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
                    .count();
                long(&json[start..at], &open, &mut found);
            }
            _ => {}
        }
    }
    found
}

fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        at += if byte == b'\\' { 2 } else { 1 };
        if byte == b'"' {
            break;
        }
    }
    at.min(bytes.len())
}

fn twice(closed: Option<Frame<'_>>, open: &[Frame<'_>], found: &mut Findings) {
    let Some(mut keys) = closed.and_then(|frame| frame.keys) else { return };
    keys.sort_unstable();
    for pair in keys.windows(2).filter(|pair| pair[0] == pair[1]) {
        if found.twice.len() < KEPT {
            let above = path(open);
            found.twice.push(if above.is_empty() {
                pair[0].to_owned()
            } else {
                format!("{above}.{}", pair[0])
            });
        }
    }
}

fn long(digits: &str, open: &[Frame<'_>], found: &mut Findings) {
    if digits.len() < 16 || found.long.len() >= KEPT || digits.contains(['.', 'e', 'E']) {
        return;
    }
    if digits.parse::<u64>().map_or(true, |n| n > EXACT) {
        found.long.push((path(open), digits.to_owned()));
    }
}

/// The way to what is being read, as in `spec.ports[0].name`.
fn path(open: &[Frame<'_>]) -> String {
    let mut path = String::new();
    for frame in open {
        match &frame.keys {
            Some(keys) => {
                let dot = if path.is_empty() { "" } else { "." };
                path.extend([dot, keys.last().copied().unwrap_or_default()]);
            }
            None => {
                let _ = write!(path, "[{}]", frame.at);
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_what_is_there_twice_and_what_is_too_long() {
        let found = inspect(
            r#"{"a":{"b":1,"c\"":[1,{"b":2,"b":{"b":1}}],"b":3},"n":9007199254740993,"m":-9007199254740992,"x":"n",
            "o":[9007199254740992, 12345678901234567890.5], "p":{"q":[{}, {"r": 123456789012345678901234567890}]}}"#,
        );
        assert_eq!(found.twice, ["a.c\\\"[1].b", "a.b"]);
        let long: Vec<_> = found.long.iter().map(|(path, digits)| (path.as_str(), digits.as_str())).collect();
        assert_eq!(long, [("n", "9007199254740993"), ("p.q[1].r", "123456789012345678901234567890")]);
        assert_eq!(found.depth, 5);
    }

    #[test]
    fn plain_json_has_nothing_to_find() {
        assert_eq!(
            inspect(r#"{"a":"}{\"","b":[{"a":1},{"a":1}]}"#),
            Findings { depth: 3, ..Findings::default() }
        );
        assert_eq!(inspect("7"), Findings::default());
    }
}
