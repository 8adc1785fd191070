//! Parsing and writing of JSON, for objects nested deeper than serde_json's own limit.

use serde::de::Deserialize;
use serde_json::Value;

/// Largest nesting depth of an object. The real server accepts 10,000 levels; 500 is the most that two megabytes of
/// stack bear in an unoptimised build.
const MAX_JSON_DEPTH: usize = 500;

/// Parses one JSON document; the error is a message.
pub(crate) fn parse_json(bytes: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    if nesting_depth(bytes) > MAX_JSON_DEPTH {
        return Err("exceeded max depth".into());
    }
    let mut input = serde_json::Deserializer::from_str(text);
    input.disable_recursion_limit();
    let value = Value::deserialize(&mut input).map_err(|error| error.to_string())?;
    input.end().map_err(|error| error.to_string())?;
    Ok(value)
}

/// Returns the deepest nesting of brackets outside strings.
fn nesting_depth(bytes: &[u8]) -> usize {
    let (mut now, mut most, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => now += 1,
            b'}' | b']' if !quoted => now = now.saturating_sub(1),
            _ => {}
        }
        most = most.max(now);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> Vec<u8> {
        let mut text = "{\"a\":".repeat(levels);
        text.push_str("\"}{\"");
        text.push_str(&"}".repeat(levels));
        text.into_bytes()
    }

    #[test]
    fn two_hundred_levels_survive_the_round_trip() {
        let value = parse_json(&nested(200)).unwrap();
        assert_eq!(value.to_string().into_bytes(), nested(200));
    }

    #[test]
    fn the_deepest_object_fits_on_a_test_threads_stack() {
        let copy = parse_json(&nested(MAX_JSON_DEPTH)).unwrap().clone();
        assert_eq!(copy.to_string().into_bytes(), nested(MAX_JSON_DEPTH));
        assert_eq!(parse_json(&nested(MAX_JSON_DEPTH + 1)), Err("exceeded max depth".into()));
    }

    #[test]
    fn what_is_no_json_says_so() {
        for bad in [&b"{bad"[..], b"", b"{} {}", b"{\"a\":\xff}"] {
            assert!(parse_json(bad).is_err(), "{bad:?}");
        }
    }
}
