//! Bytes to JSON and back, for objects nested deeper than serde_json's own limit.

use serde::de::Deserialize;
use serde_json::Value;

/// How deep an object may be nested. The real server takes 10,000 levels; this is what two megabytes of stack bear in
/// an unoptimised build.
const DEEPEST: usize = 500;

/// Parses one JSON document; the error says what is wrong in words.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    if depth(bytes) > DEEPEST {
        return Err("exceeded max depth".into());
    }
    let mut input = serde_json::Deserializer::from_str(text);
    input.disable_recursion_limit();
    let value = Value::deserialize(&mut input).map_err(|error| error.to_string())?;
    input.end().map_err(|error| error.to_string())?;
    Ok(value)
}

/// The deepest nesting of brackets outside strings.
fn depth(bytes: &[u8]) -> usize {
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
        let value = parse(&nested(200)).unwrap();
        assert_eq!(value.to_string().into_bytes(), nested(200));
    }

    #[test]
    fn the_deepest_object_fits_on_a_test_threads_stack() {
        let copy = parse(&nested(DEEPEST)).unwrap().clone();
        assert_eq!(copy.to_string().into_bytes(), nested(DEEPEST));
        assert_eq!(parse(&nested(DEEPEST + 1)), Err("exceeded max depth".into()));
    }

    #[test]
    fn what_is_no_json_says_so() {
        for bad in [&b"{bad"[..], b"", b"{} {}", b"{\"a\":\xff}"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
