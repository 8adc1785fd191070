//! Resolves plain YAML scalars by the rules of YAML 1.1, as kubectl does.
//!
//! `yes`, `on`, `y` and their opposites are booleans, `0644` and `0x1f` are numbers, a date is a string.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::read_error::YamlReadError;

/// The standard tags that change the type of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarTag {
    /// No tag: the type follows from the text.
    Plain,
    Text,
    Integer,
    Float,
    Boolean,
    Null,
    Binary,
}

/// The value of a scalar.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum YamlScalar {
    Null,
    Boolean(bool),
    /// The number's digits in JSON.
    Number(String),
    Text,
    /// Decoded binary data. Invalid UTF-8 is replaced, as in Go's JSON.
    Bytes(String),
}

impl ScalarTag {
    /// Returns the tag of a scalar; a non-standard tag leaves a string a string.
    pub(crate) fn from_tag(tag: Option<&str>, plain: bool) -> ScalarTag {
        match tag.map(|tag| tag.trim_start_matches("tag:yaml.org,2002:")) {
            None if plain => ScalarTag::Plain,
            Some("int") => ScalarTag::Integer,
            Some("float") => ScalarTag::Float,
            Some("bool") => ScalarTag::Boolean,
            Some("null") => ScalarTag::Null,
            Some("binary") => ScalarTag::Binary,
            _ => ScalarTag::Text,
        }
    }
}

/// Reads a scalar under a tag.
pub(crate) fn read_scalar(word: &str, tag: ScalarTag) -> Result<YamlScalar, YamlReadError> {
    if tag == ScalarTag::Text {
        return Ok(YamlScalar::Text);
    }
    if tag == ScalarTag::Binary {
        let lines: String = word.split(['\r', '\n']).collect();
        let bytes = STANDARD
            .decode(lines)
            .map_err(|error| YamlReadError::new(format!("!!binary is not base64: {error}")))?;
        return Ok(YamlScalar::Bytes(String::from_utf8_lossy(&bytes).into_owned()));
    }
    let scalar = read_plain(word)?;
    let fits = match (tag, &scalar) {
        (ScalarTag::Plain, _)
        | (ScalarTag::Null, YamlScalar::Null)
        | (ScalarTag::Boolean, YamlScalar::Boolean(_))
        | (ScalarTag::Float, YamlScalar::Number(_)) => true,
        (ScalarTag::Integer, YamlScalar::Number(digits)) => !digits.contains(['.', 'e']),
        _ => false,
    };
    if fits {
        Ok(scalar)
    } else {
        Err(YamlReadError::new(format!("{word:?} is not of the type that its tag names")))
    }
}

fn read_plain(word: &str) -> Result<YamlScalar, YamlReadError> {
    match word {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(YamlScalar::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Ok(YamlScalar::Boolean(true));
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Ok(YamlScalar::Boolean(false));
        }
        _ => {}
    }
    let number = match word.as_bytes()[0] {
        b'.' | b'+' | b'-' if is_infinite_word(word) => {
            return Err(YamlReadError::new(format!("{word} is a number that JSON does not have")));
        }
        b'.' => parse_float(word),
        b'+' | b'-' | b'0'..=b'9' => {
            let word = word.replace('_', "");
            parse_integer(&word).or_else(|| parse_float(&word))
        }
        _ => None,
    };
    Ok(number.map_or(YamlScalar::Text, YamlScalar::Number))
}

fn is_infinite_word(word: &str) -> bool {
    let word = word.trim_start_matches(['+', '-']);
    matches!(word, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN")
}

/// Parses a 64-bit integer: decimal, with a prefix `0x`, `0o` or `0b`, or octal with a leading `0`.
fn parse_integer(word: &str) -> Option<String> {
    let (minus, digits) = match word.as_bytes().first()? {
        b'-' => (true, &word[1..]),
        b'+' => (false, &word[1..]),
        _ => (false, word),
    };
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (&digits[2..], 16),
        [b'0', b'o' | b'O', _, ..] => (&digits[2..], 8),
        [b'0', b'b' | b'B', _, ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    // The standard library would also accept a sign here.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = i128::from_str_radix(digits, radix).ok()?;
    let value = if minus { -magnitude } else { magnitude };
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&value).then(|| value.to_string())
}

/// Parses a fraction, or an integer beyond 64 bits, and writes it as Go's JSON does: without a decimal point if it is
/// whole.
fn parse_float(word: &str) -> Option<String> {
    let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
    let shape = digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
        && digits.bytes().any(|b| b.is_ascii_digit())
        && !digits.starts_with(['e', 'E', '+', '-']);
    let value: f64 = if shape { word.parse().ok()? } else { return None };
    if !value.is_finite() {
        return None;
    }
    let whole = value.fract() == 0.0 && value.abs() < 1e21;
    Some(if whole { format!("{value:.0}") } else { serde_json::Number::from_f64(value)?.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_for_what_kubectl_takes_them_for() {
        let read = |word| match read_plain(word).unwrap() {
            YamlScalar::Null => "null".to_owned(),
            YamlScalar::Boolean(value) => value.to_string(),
            YamlScalar::Number(digits) => digits,
            YamlScalar::Text | YamlScalar::Bytes(_) => format!("{word:?}"),
        };
        let cases = [
            ("yes", "true"),
            ("On", "true"),
            ("y", "true"),
            ("off", "false"),
            ("N", "false"),
            ("nO", "\"nO\""),
            ("~", "null"),
            ("", "null"),
            ("0644", "420"),
            ("0x1F", "31"),
            ("0b101", "5"),
            ("0o17", "15"),
            ("-0x10", "-16"),
            ("089", "89"),
            ("1_000", "1000"),
            ("1.0", "1"),
            ("-1.5", "-1.5"),
            (".5", "0.5"),
            ("1e3", "1000"),
            ("9007199254740993", "9007199254740993"),
            ("18446744073709551615", "18446744073709551615"),
            ("18446744073709551616", "18446744073709551616"),
            ("2026-08-14", "\"2026-08-14\""),
            ("12:30:45", "\"12:30:45\""),
            ("10.0.0.1", "\"10.0.0.1\""),
            ("1.2.3", "\"1.2.3\""),
            ("+", "\"+\""),
            ("-", "\"-\""),
            ("1e", "\"1e\""),
            ("0x", "\"0x\""),
            ("10Gi", "\"10Gi\""),
            ("80%", "\"80%\""),
            ("running", "\"running\""),
        ];
        for (word, expected) in cases {
            assert_eq!(read(word), expected, "{word}");
        }
        assert!(read_plain(".inf").is_err() && read_plain("-.INF").is_err() && read_plain(".NaN").is_err());
    }

    #[test]
    fn a_tag_goes_before_the_word() {
        let read = |word, tag| read_scalar(word, ScalarTag::from_tag(Some(tag), true)).ok();
        assert_eq!(read("yes", "tag:yaml.org,2002:str"), Some(YamlScalar::Text));
        assert_eq!(read("12", "tag:yaml.org,2002:int"), Some(YamlScalar::Number("12".to_owned())));
        assert_eq!(read("x", "tag:yaml.org,2002:int"), None);
        assert_eq!(read("12", "!mine"), Some(YamlScalar::Text));
        let bytes = |text: &str| Some(YamlScalar::Bytes(text.to_owned()));
        assert_eq!(read("UmVhZHk=", "tag:yaml.org,2002:binary"), bytes("Ready"));
        assert_eq!(read("UmVh\nZHk=\n", "tag:yaml.org,2002:binary"), bytes("Ready"));
        assert_eq!(read("/w==", "tag:yaml.org,2002:binary"), bytes("\u{fffd}"));
        assert_eq!(read("Ready?", "tag:yaml.org,2002:binary"), None);
        assert_eq!(super::read_scalar("yes", ScalarTag::from_tag(None, false)).ok(), Some(YamlScalar::Text));
    }
}
