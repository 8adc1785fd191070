//! Reads JSON: a sequence of values, or a list of values. Values before a syntax error are still delivered.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A JSON syntax error and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JsonReadError {
    /// Number of the value, from 1.
    pub(super) value: usize,
    /// 1-based line.
    pub(super) line: usize,
    pub(super) what: String,
}

/// Calls `each` with each value of `text` and its number, and with the element's number if the text is one list.
pub(super) fn read_values<'a>(
    text: &'a str,
    mut each: impl FnMut(usize, Option<usize>, &'a RawValue),
) -> Result<(), JsonReadError> {
    let wrong = |value, error: &serde_json::Error| JsonReadError {
        value,
        line: error.line(),
        what: error_text(error),
    };
    if text.trim_start().starts_with('[') {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let list = ElementVisitor(|at, element| each(1, Some(at), element)).deserialize(&mut deserializer);
        return list.and_then(|()| deserializer.end()).map_err(|error| wrong(1, &error));
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>().zip(1..);
    values.try_for_each(|(value, at)| {
        let value = value.map_err(|error| wrong(at, &error))?;
        if value.get().starts_with('[') {
            for_each_element(value, |element_at, element| each(at, Some(element_at), element));
        } else {
            each(at, None, value);
        }
        Ok(())
    })
}

/// Calls `each` with the elements of a list, numbered from 1; not at all if the value is no list.
pub(super) fn for_each_element<'a>(list: &'a RawValue, each: impl FnMut(usize, &'a RawValue)) {
    let mut deserializer = serde_json::Deserializer::from_str(list.get());
    // The text is known to be valid JSON.
    let _ = ElementVisitor(each).deserialize(&mut deserializer);
}

/// Returns the error's text without the position that serde_json appends.
fn error_text(error: &serde_json::Error) -> String {
    let text = error.to_string();
    format!("not JSON: {}", text.split(" at line ").next().unwrap_or(&text))
}

struct ElementVisitor<F>(F);

impl<'de, F: FnMut(usize, &'de RawValue)> DeserializeSeed<'de> for ElementVisitor<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(usize, &'de RawValue)> Visitor<'de> for ElementVisitor<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let mut at = 0;
        while let Some(element) = list.next_element::<&RawValue>()? {
            at += 1;
            (self.0)(at, element);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Seen = Vec<(usize, Option<usize>, String)>;

    fn all(text: &str) -> (Seen, Result<(), JsonReadError>) {
        let mut seen = Vec::new();
        let done = read_values(text, |at, element, raw| seen.push((at, element, raw.get().to_owned())));
        (seen, done)
    }

    #[test]
    fn values_and_lists_are_taken_apart() {
        let (seen, done) = all(" {\"a\":1}\n[2, {\"b\":3}] {} ");
        assert_eq!(done, Ok(()));
        let seen: Vec<_> = seen.iter().map(|(at, element, raw)| (*at, *element, raw.as_str())).collect();
        assert_eq!(
            seen,
            [(1, None, "{\"a\":1}"), (2, Some(1), "2"), (2, Some(2), "{\"b\":3}"), (3, None, "{}")]
        );
    }

    #[test]
    fn what_stands_before_a_fault_is_handed_on() {
        let (seen, done) = all("[{\"a\":1},\n{\"b\":2},\n{\"c\" 3}]");
        assert_eq!(seen.len(), 2);
        assert_eq!(done.unwrap_err().line, 3);
        let (seen, done) = all("{\"a\":1}\n{\"b\"");
        assert_eq!(seen.len(), 1);
        let wrong = done.unwrap_err();
        assert_eq!((wrong.value, wrong.line), (2, 2));
    }
}
