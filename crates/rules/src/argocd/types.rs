//! Checks that an object converts to the Kubernetes type that Argo CD reads it as.
//!
//! Argo CD converts the whole object before it reads any field, so a string in place of a number anywhere in a Pod's
//! spec makes that Pod `Unknown`. `types.txt` lists the fields of those types (`oracle/engine/types` prints it); fields
//! that are not listed there are ignored, as in Go.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use readiness::Time;
use serde_json::{Number, Value};

/// The values that a field accepts. Null is accepted everywhere.
#[derive(Debug)]
enum FieldShape {
    Text,
    Bool,
    Int,
    Float,
    Time,
    Quantity,
    IntOrText,
    Any,
    Bytes,
    List(Box<FieldShape>),
    Map(Box<FieldShape>),
    Struct(usize),
}

/// A struct's fields, sorted by name.
type StructFields = Vec<(&'static str, FieldShape)>;

struct GoTypeTable {
    fields: Vec<StructFields>,
    index: BTreeMap<&'static str, usize>,
}

/// A failed conversion: a dotted path and the type Go expected there.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} is not {wanted}")]
pub(super) struct TypeMismatch {
    path: String,
    wanted: &'static str,
}

impl TypeMismatch {
    fn new(wanted: &'static str) -> TypeMismatch {
        TypeMismatch { path: String::new(), wanted }
    }

    fn within_field(mut self, step: &str) -> TypeMismatch {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.path = format!("{step}{dot}{}", self.path);
        self
    }
}

/// Checks `object` against the struct of this name in `types.txt`.
pub(super) fn check_type(object: &Value, name: &str) -> Result<(), TypeMismatch> {
    static GO_TYPES: OnceLock<GoTypeTable> = OnceLock::new();
    let types = GO_TYPES.get_or_init(|| GoTypeTable::parse_table(include_str!("types.txt")));
    match types.index.get(name) {
        Some(index) => types.check_value(object, &FieldShape::Struct(*index)),
        None => Ok(()),
    }
}

impl GoTypeTable {
    fn parse_table(text: &'static str) -> GoTypeTable {
        let names = text.lines().filter_map(|line| line.split(' ').next());
        let index: BTreeMap<_, _> = names.enumerate().map(|(at, name)| (name, at)).collect();
        let fields = text.lines().map(|line| {
            let pairs = line.split(' ').skip(1).filter_map(|pair| pair.split_once(':'));
            let mut fields: StructFields =
                pairs.map(|(name, code)| (name, parse_shape(code, &index))).collect();
            fields.sort_by_key(|(name, _)| *name);
            fields
        });
        GoTypeTable { fields: fields.collect(), index }
    }

    fn check_value(&self, value: &Value, shape: &FieldShape) -> Result<(), TypeMismatch> {
        match (shape, value) {
            (_, Value::Null) => Ok(()),
            (FieldShape::List(of), Value::Array(items)) => {
                items.iter().try_for_each(|item| self.check_value(item, of).map_err(|e| e.within_field("[]")))
            }
            (FieldShape::Map(of), Value::Object(map)) => map
                .iter()
                .try_for_each(|(key, item)| self.check_value(item, of).map_err(|e| e.within_field(key))),
            (FieldShape::Struct(index), Value::Object(map)) => {
                let fields = &self.fields[*index];
                map.iter().try_for_each(|(key, item)| {
                    match fields.binary_search_by_key(&key.as_str(), |f| f.0) {
                        Ok(at) => self.check_value(item, &fields[at].1).map_err(|e| e.within_field(key)),
                        Err(_) => Ok(()),
                    }
                })
            }
            _ if shape.accepts_value(value) => Ok(()),
            _ => Err(TypeMismatch::new(shape.expected_text())),
        }
    }
}

impl FieldShape {
    /// Returns `true` if a shape without parts accepts the value.
    fn accepts_value(&self, value: &Value) -> bool {
        match (self, value) {
            (FieldShape::Any, _)
            | (FieldShape::Text | FieldShape::IntOrText, Value::String(_))
            | (FieldShape::Bool, Value::Bool(_))
            | (FieldShape::Float | FieldShape::Quantity, Value::Number(_)) => true,
            (FieldShape::Int, Value::Number(number)) => is_whole(number),
            (FieldShape::IntOrText, Value::Number(number)) => fits_32_bits(number),
            (FieldShape::Time, Value::String(text)) => Time::from_rfc3339(text).is_some(),
            (FieldShape::Quantity, Value::String(text)) => is_quantity(text),
            (FieldShape::Bytes, Value::String(text)) => is_base64(text),
            (FieldShape::Bytes, Value::Array(items)) => {
                items.iter().all(|item| item.is_null() || item.as_number().is_some_and(is_whole))
            }
            _ => false,
        }
    }

    fn expected_text(&self) -> &'static str {
        match self {
            FieldShape::Text => "a string",
            FieldShape::Bool => "a boolean",
            FieldShape::Int => "an integer",
            FieldShape::Float => "a number",
            FieldShape::Time => "a time",
            FieldShape::Quantity => "a quantity",
            FieldShape::IntOrText => "a 32 bit integer or a string",
            FieldShape::Any => "anything",
            FieldShape::Bytes => "base64",
            FieldShape::List(_) => "a list",
            FieldShape::Map(_) | FieldShape::Struct(_) => "a map",
        }
    }
}

fn parse_shape(code: &'static str, index: &BTreeMap<&'static str, usize>) -> FieldShape {
    if let Some(of) = code.strip_prefix("[]") {
        return FieldShape::List(Box::new(parse_shape(of, index)));
    }
    if let Some(of) = code.strip_prefix("{}") {
        return FieldShape::Map(Box::new(parse_shape(of, index)));
    }
    match code {
        "s" => FieldShape::Text,
        "b" => FieldShape::Bool,
        "i" | "l" => FieldShape::Int,
        "f" => FieldShape::Float,
        "T" => FieldShape::Time,
        "Q" => FieldShape::Quantity,
        "I" => FieldShape::IntOrText,
        "@" => FieldShape::Bytes,
        name => index.get(name).map_or(FieldShape::Any, |at| FieldShape::Struct(*at)),
    }
}

/// Returns `true` for an integer, or a fraction with only zeros behind the point: Go converts that too.
fn is_whole(number: &Number) -> bool {
    number.is_i64() || number.as_f64().is_some_and(|f| f.fract() == 0.0)
}

fn fits_32_bits(number: &Number) -> bool {
    // A fraction with only zeros behind the point is written as an integer before it is read again.
    is_whole(number)
        && number.as_f64().is_some_and(|n| (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&n))
}

const QUANTITY_SUFFIXES: [&str; 16] =
    ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Returns `true` for a Kubernetes quantity: sign, digits, a fraction, a suffix or an exponent.
fn is_quantity(text: &str) -> bool {
    let text = text.trim();
    let number = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let after = &number[digits(number)..];
    let suffix = match after.strip_prefix('.') {
        Some(fraction) => &fraction[digits(fraction)..],
        None => after,
    };
    let exponent = suffix.strip_prefix(['e', 'E']).is_some_and(|exponent| exponent.parse::<i64>().is_ok());
    !text.is_empty() && (QUANTITY_SUFFIXES.contains(&suffix) || exponent)
}

/// Returns `true` for standard base64 with padding; line breaks are ignored.
fn is_base64(text: &str) -> bool {
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
        let types = GoTypeTable::parse_table(include_str!("types.txt"));
        let unknown: Vec<_> = types
            .fields
            .iter()
            .flatten()
            .filter(|(name, shape)| matches!(shape, FieldShape::Any) && *name != "fieldsV1")
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn one_wrong_type_anywhere_spoils_the_object() {
        let pod = json!({"spec": {"containers": [{"ports": [{"containerPort": "80"}]}]}});
        let mismatch = check_type(&pod, "core/v1.Pod").unwrap_err();
        assert_eq!(mismatch.to_string(), "spec.containers.[].ports.[].containerPort is not an integer");
    }

    #[test]
    fn unknown_fields_nulls_and_whole_fractions_are_fine() {
        let object =
            json!({"spec": {"replicas": 3.0, "paused": null, "colour": 7}, "status": null, "extra": []});
        assert_eq!(check_type(&object, "apps/v1.Deployment"), Ok(()));
    }

    #[test]
    fn quantities_follow_their_grammar() {
        for good in ["1", "0.5", "100m", "1Gi", "1e3", "1E", "-2.5k", "12e-3", " 1 ", ".5", "+"] {
            assert!(is_quantity(good), "{good}");
        }
        for bad in ["", "one", "1 Gi", "1GiB", "1e", "0x1", "1.2.3"] {
            assert!(!is_quantity(bad), "{bad}");
        }
    }
}
