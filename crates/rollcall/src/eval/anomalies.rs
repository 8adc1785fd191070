//! Finds legal JSON that is probably not intended: duplicate keys, and integers that other parsers would round.

use std::fmt::Write;

/// Anomalies of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct JsonAnomalies {
    /// Paths of duplicate keys.
    pub(super) duplicate_keys: Vec<String>,
    /// Paths of integers beyond 2^53, with their digits.
    pub(super) long_integers: Vec<(String, String)>,
    /// Nesting depth.
    pub(super) depth: usize,
}

/// Maximum number of anomalies kept of each sort.
const MAX_ANOMALIES_KEPT: usize = 8;
/// 2^53: beyond it not every integer has an exact floating-point value.
const MAX_EXACT_INTEGER: u64 = 1 << 53;

/// An open list or object.
struct JsonFrame<'a> {
    keys: Option<Vec<&'a str>>,
    at: usize,
}

/// Inspects JSON text that is known to be valid, without recursion.
pub(super) fn find_anomalies(json: &str) -> JsonAnomalies {
    let bytes = json.as_bytes();
    let mut found = JsonAnomalies::default();
    let mut open: Vec<JsonFrame<'_>> = Vec::new();
    let (mut at, mut key) = (0, true);
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'{' | b'[' => {
                key = byte == b'{';
                open.push(JsonFrame { keys: key.then(Vec::new), at: 0 });
                found.depth = found.depth.max(open.len());
            }
            b'}' | b']' => {
                let closed = open.pop();
                note_duplicate_keys(closed, &open, &mut found);
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
                if let (true, Some(JsonFrame { keys: Some(keys), .. })) = (key, open.last_mut()) {
                    keys.push(&json[start + 1..at - 1]);
                    key = false;
                }
            }
            b'0'..=b'9' => {
                at += bytes[at..]
                    .iter()
                    .take_while(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
                    .count();
                note_long_integer(&json[start..at], &open, &mut found);
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

fn note_duplicate_keys(closed: Option<JsonFrame<'_>>, open: &[JsonFrame<'_>], found: &mut JsonAnomalies) {
    let Some(mut keys) = closed.and_then(|frame| frame.keys) else { return };
    keys.sort_unstable();
    for pair in keys.windows(2).filter(|pair| pair[0] == pair[1]) {
        if found.duplicate_keys.len() < MAX_ANOMALIES_KEPT {
            let above = current_path(open);
            found.duplicate_keys.push(if above.is_empty() {
                pair[0].to_owned()
            } else {
                format!("{above}.{}", pair[0])
            });
        }
    }
}

fn note_long_integer(digits: &str, open: &[JsonFrame<'_>], found: &mut JsonAnomalies) {
    if digits.len() < 16
        || found.long_integers.len() >= MAX_ANOMALIES_KEPT
        || digits.contains(['.', 'e', 'E'])
    {
        return;
    }
    if digits.parse::<u64>().map_or(true, |n| n > MAX_EXACT_INTEGER) {
        found.long_integers.push((current_path(open), digits.to_owned()));
    }
}

/// Returns the path of the value being read, such as `spec.ports[0].name`.
fn current_path(open: &[JsonFrame<'_>]) -> String {
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
        let found = find_anomalies(
            r#"{"a":{"b":1,"c\"":[1,{"b":2,"b":{"b":1}}],"b":3},"n":9007199254740993,"m":-9007199254740992,"x":"n",
            "o":[9007199254740992, 12345678901234567890.5], "p":{"q":[{}, {"r": 123456789012345678901234567890}]}}"#,
        );
        assert_eq!(found.duplicate_keys, ["a.c\\\"[1].b", "a.b"]);
        let long: Vec<_> =
            found.long_integers.iter().map(|(path, digits)| (path.as_str(), digits.as_str())).collect();
        assert_eq!(long, [("n", "9007199254740993"), ("p.q[1].r", "123456789012345678901234567890")]);
        assert_eq!(found.depth, 5);
    }

    #[test]
    fn plain_json_has_nothing_to_find() {
        assert_eq!(
            find_anomalies(r#"{"a":"}{\"","b":[{"a":1},{"a":1}]}"#),
            JsonAnomalies { depth: 3, ..JsonAnomalies::default() }
        );
        assert_eq!(find_anomalies("7"), JsonAnomalies::default());
    }
}
