//! What a plain word of YAML stands for, by the rules of YAML 1.1 as kubectl applies them.
//!
//! `yes`, `on`, `y` and their opposites are booleans, `0644` and `0x1f` are numbers, a date is a text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Wrong;

/// The standard tags that change what a word stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// None: the word itself says.
    Plain,
    Text,
    Integer,
    Float,
    Boolean,
    Null,
    Binary,
}

/// What a word stands for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Boolean(bool),
    /// Its digits in JSON.
    Number(String),
    Text,
    /// What was encoded; as Go's JSON has it, what is no UTF-8 is replaced.
    Bytes(String),
}

impl Tag {
    /// The tag of a scalar; anything that is not of the standard set leaves a text a text.
    pub(super) fn of(tag: Option<&str>, plain: bool) -> Tag {
        match tag.map(|tag| tag.trim_start_matches("tag:yaml.org,2002:")) {
            None if plain => Tag::Plain,
            Some("int") => Tag::Integer,
            Some("float") => Tag::Float,
            Some("bool") => Tag::Boolean,
            Some("null") => Tag::Null,
            Some("binary") => Tag::Binary,
            _ => Tag::Text,
        }
    }
}

/// Reads a word under a tag.
pub(super) fn read(word: &str, tag: Tag) -> Result<Scalar, Wrong> {
    if tag == Tag::Text {
        return Ok(Scalar::Text);
    }
    if tag == Tag::Binary {
        let lines: String = word.split(['\r', '\n']).collect();
        let bytes =
            STANDARD.decode(lines).map_err(|error| Wrong::new(format!("!!binary is not base64: {error}")))?;
        return Ok(Scalar::Bytes(String::from_utf8_lossy(&bytes).into_owned()));
    }
    let scalar = plain(word)?;
    let fits = match (tag, &scalar) {
        (Tag::Plain, _)
        | (Tag::Null, Scalar::Null)
        | (Tag::Boolean, Scalar::Boolean(_))
        | (Tag::Float, Scalar::Number(_)) => true,
        (Tag::Integer, Scalar::Number(digits)) => !digits.contains(['.', 'e']),
        _ => false,
    };
    if fits { Ok(scalar) } else { Err(Wrong::new(format!("{word:?} is not of the type that its tag names"))) }
}

fn plain(word: &str) -> Result<Scalar, Wrong> {
    match word {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Scalar::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Ok(Scalar::Boolean(true));
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Ok(Scalar::Boolean(false));
        }
        _ => {}
    }
    let number = match word.as_bytes()[0] {
        b'.' | b'+' | b'-' if infinite(word) => {
            return Err(Wrong::new(format!("{word} is a number that JSON does not have")));
        }
        b'.' => float(word),
        b'+' | b'-' | b'0'..=b'9' => {
            let word = word.replace('_', "");
            integer(&word).or_else(|| float(&word))
        }
        _ => None,
    };
    Ok(number.map_or(Scalar::Text, Scalar::Number))
}

fn infinite(word: &str) -> bool {
    let word = word.trim_start_matches(['+', '-']);
    matches!(word, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN")
}

/// An integer of 64 bits, decimal or with a prefix: `0x`, `0o`, `0b`, and `0` alone for octal.
fn integer(word: &str) -> Option<String> {
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
    // What the standard library would take beside digits.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = i128::from_str_radix(digits, radix).ok()?;
    let value = if minus { -magnitude } else { magnitude };
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&value).then(|| value.to_string())
}

/// A fraction, or an integer too long for 64 bits, as Go's JSON writes it: without a point where it is whole.
fn float(word: &str) -> Option<String> {
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
        let read = |word| match plain(word).unwrap() {
            Scalar::Null => "null".to_owned(),
            Scalar::Boolean(value) => value.to_string(),
            Scalar::Number(digits) => digits,
            Scalar::Text | Scalar::Bytes(_) => format!("{word:?}"),
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
        assert!(plain(".inf").is_err() && plain("-.INF").is_err() && plain(".NaN").is_err());
    }

    #[test]
    fn a_tag_goes_before_the_word() {
        let read = |word, tag| read(word, Tag::of(Some(tag), true)).ok();
        assert_eq!(read("yes", "tag:yaml.org,2002:str"), Some(Scalar::Text));
        assert_eq!(read("12", "tag:yaml.org,2002:int"), Some(Scalar::Number("12".to_owned())));
        assert_eq!(read("x", "tag:yaml.org,2002:int"), None);
        assert_eq!(read("12", "!mine"), Some(Scalar::Text));
        let bytes = |text: &str| Some(Scalar::Bytes(text.to_owned()));
        assert_eq!(read("UmVhZHk=", "tag:yaml.org,2002:binary"), bytes("Ready"));
        assert_eq!(read("UmVh\nZHk=\n", "tag:yaml.org,2002:binary"), bytes("Ready"));
        assert_eq!(read("/w==", "tag:yaml.org,2002:binary"), bytes("\u{fffd}"));
        assert_eq!(read("Ready?", "tag:yaml.org,2002:binary"), None);
        assert_eq!(super::read("yes", Tag::of(None, false)).ok(), Some(Scalar::Text));
    }
}
