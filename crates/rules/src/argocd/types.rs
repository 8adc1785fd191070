//! Whether an object converts to the Kubernetes type that Argo CD reads it as.
//!
//! Argo CD converts the whole object before it looks at one field, so a string where a number belongs anywhere in a
//! Pod's spec makes that Pod `Unknown`. `types.txt` lists the fields of those types (`oracle/engine/types` prints it);
//! what is not listed there is ignored, as Go ignores it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Number, Value};

use crate::rfc3339;

/// What a field accepts. Null is accepted everywhere.
#[derive(Debug)]
enum Shape {
    Text,
    Bool,
    Int,
    Float,
    Time,
    Quantity,
    IntOrText,
    Any,
    Bytes,
    List(Box<Shape>),
    Map(Box<Shape>),
    Struct(usize),
}

/// A struct's fields, sorted by name.
type Fields = Vec<(&'static str, Shape)>;

struct Types {
    fields: Vec<Fields>,
    index: BTreeMap<&'static str, usize>,
}

/// Where an object does not convert: a dotted path and what Go wanted there.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} is not {wanted}")]
pub(super) struct Mismatch {
    path: String,
    wanted: &'static str,
}

impl Mismatch {
    fn new(wanted: &'static str) -> Mismatch {
        Mismatch { path: String::new(), wanted }
    }

    fn within(mut self, step: &str) -> Mismatch {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.path = format!("{step}{dot}{}", self.path);
        self
    }
}

/// Checks `object` against the struct of this name in `types.txt`.
pub(super) fn check(object: &Value, name: &str) -> Result<(), Mismatch> {
    static TYPES: OnceLock<Types> = OnceLock::new();
    let types = TYPES.get_or_init(|| Types::parse(include_str!("types.txt")));
    match types.index.get(name) {
        Some(index) => types.fits(object, &Shape::Struct(*index)),
        None => Ok(()),
    }
}

impl Types {
    fn parse(text: &'static str) -> Types {
        let names = text.lines().filter_map(|line| line.split(' ').next());
        let index: BTreeMap<_, _> = names.enumerate().map(|(at, name)| (name, at)).collect();
        let fields = text.lines().map(|line| {
            let pairs = line.split(' ').skip(1).filter_map(|pair| pair.split_once(':'));
            let mut fields: Fields = pairs.map(|(name, code)| (name, shape(code, &index))).collect();
            fields.sort_by_key(|(name, _)| *name);
            fields
        });
        Types { fields: fields.collect(), index }
    }

    fn fits(&self, value: &Value, shape: &Shape) -> Result<(), Mismatch> {
        match (shape, value) {
            (_, Value::Null) => Ok(()),
            (Shape::List(of), Value::Array(items)) => {
                items.iter().try_for_each(|item| self.fits(item, of).map_err(|e| e.within("[]")))
            }
            (Shape::Map(of), Value::Object(map)) => {
                map.iter().try_for_each(|(key, item)| self.fits(item, of).map_err(|e| e.within(key)))
            }
            (Shape::Struct(index), Value::Object(map)) => {
                let fields = &self.fields[*index];
                map.iter().try_for_each(|(key, item)| {
                    match fields.binary_search_by_key(&key.as_str(), |f| f.0) {
                        Ok(at) => self.fits(item, &fields[at].1).map_err(|e| e.within(key)),
                        Err(_) => Ok(()),
                    }
                })
            }
            _ if shape.holds(value) => Ok(()),
            _ => Err(Mismatch::new(shape.wanted())),
        }
    }
}

impl Shape {
    /// For shapes without parts.
    fn holds(&self, value: &Value) -> bool {
        match (self, value) {
            (Shape::Any, _)
            | (Shape::Text | Shape::IntOrText, Value::String(_))
            | (Shape::Bool, Value::Bool(_))
            | (Shape::Float | Shape::Quantity, Value::Number(_)) => true,
            (Shape::Int, Value::Number(number)) => whole(number),
            (Shape::IntOrText, Value::Number(number)) => fits_32_bits(number),
            (Shape::Time, Value::String(text)) => rfc3339::parse(text).is_some(),
            (Shape::Quantity, Value::String(text)) => quantity(text),
            (Shape::Bytes, Value::String(text)) => base64(text),
            (Shape::Bytes, Value::Array(items)) => {
                items.iter().all(|item| item.is_null() || item.as_number().is_some_and(whole))
            }
            _ => false,
        }
    }

    fn wanted(&self) -> &'static str {
        match self {
            Shape::Text => "a string",
            Shape::Bool => "a boolean",
            Shape::Int => "an integer",
            Shape::Float => "a number",
            Shape::Time => "a time",
            Shape::Quantity => "a quantity",
            Shape::IntOrText => "a 32 bit integer or a string",
            Shape::Any => "anything",
            Shape::Bytes => "base64",
            Shape::List(_) => "a list",
            Shape::Map(_) | Shape::Struct(_) => "a map",
        }
    }
}

fn shape(code: &'static str, index: &BTreeMap<&'static str, usize>) -> Shape {
    if let Some(of) = code.strip_prefix("[]") {
        return Shape::List(Box::new(shape(of, index)));
    }
    if let Some(of) = code.strip_prefix("{}") {
        return Shape::Map(Box::new(shape(of, index)));
    }
    match code {
        "s" => Shape::Text,
        "b" => Shape::Bool,
        "i" | "l" => Shape::Int,
        "f" => Shape::Float,
        "T" => Shape::Time,
        "Q" => Shape::Quantity,
        "I" => Shape::IntOrText,
        "@" => Shape::Bytes,
        name => index.get(name).map_or(Shape::Any, |at| Shape::Struct(*at)),
    }
}

/// An integer, or a fraction with nothing behind the point: Go converts that too.
fn whole(number: &Number) -> bool {
    number.is_i64() || number.as_f64().is_some_and(|f| f.fract() == 0.0)
}

fn fits_32_bits(number: &Number) -> bool {
    // A fraction with nothing behind the point is written as an integer before it is read again.
    whole(number) && number.as_f64().is_some_and(|n| (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&n))
}

const SUFFIXES: [&str; 16] =
    ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The grammar of Kubernetes quantities: sign, digits, a fraction, a suffix or an exponent.
fn quantity(text: &str) -> bool {
    let text = text.trim();
    let number = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let after = &number[digits(number)..];
    let suffix = match after.strip_prefix('.') {
        Some(fraction) => &fraction[digits(fraction)..],
        None => after,
    };
    let exponent = suffix.strip_prefix(['e', 'E']).is_some_and(|exponent| exponent.parse::<i64>().is_ok());
    !text.is_empty() && (SUFFIXES.contains(&suffix) || exponent)
}

/// Standard base64 with padding; line breaks do not count.
fn base64(text: &str) -> bool {
    let bytes: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'\r' | b'\n')).collect();
    let padding = bytes.iter().rev().take_while(|b| **b == b'=').count();
    let plain = &bytes[..bytes.len() - padding];
    bytes.len().is_multiple_of(4)
        && padding <= 2
        && plain.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_name_in_the_table_is_known() {
        let types = Types::parse(include_str!("types.txt"));
        let unknown: Vec<_> = types
            .fields
            .iter()
            .flatten()
            .filter(|(name, shape)| matches!(shape, Shape::Any) && *name != "fieldsV1")
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn one_wrong_type_anywhere_spoils_the_object() {
        let pod = json!({"spec": {"containers": [{"ports": [{"containerPort": "80"}]}]}});
        let mismatch = check(&pod, "core/v1.Pod").unwrap_err();
        assert_eq!(mismatch.to_string(), "spec.containers.[].ports.[].containerPort is not an integer");
    }

    #[test]
    fn unknown_fields_nulls_and_whole_fractions_are_fine() {
        let object =
            json!({"spec": {"replicas": 3.0, "paused": null, "colour": 7}, "status": null, "extra": []});
        assert_eq!(check(&object, "apps/v1.Deployment"), Ok(()));
    }

    #[test]
    fn quantities_follow_their_grammar() {
        for good in ["1", "0.5", "100m", "1Gi", "1e3", "1E", "-2.5k", "12e-3", " 1 ", ".5", "+"] {
            assert!(quantity(good), "{good}");
        }
        for bad in ["", "one", "1 Gi", "1GiB", "1e", "0x1", "1.2.3"] {
            assert!(!quantity(bad), "{bad}");
        }
    }
}
