//! JSON: one value after the other, or a list of them; what stands before a fault is still handed on.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The first value is 1.
    pub(super) value: usize,
    /// 1-based.
    pub(super) line: usize,
    pub(super) what: String,
}

/// Hands each value of `text` to `each`, with its number, and the number of its element where the text is one list.
pub(super) fn read<'a>(
    text: &'a str,
    mut each: impl FnMut(usize, Option<usize>, &'a RawValue),
) -> Result<(), Wrong> {
    let wrong = |value, error: &serde_json::Error| Wrong { value, line: error.line(), what: words(error) };
    if text.trim_start().starts_with('[') {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let list = Elements(|at, element| each(1, Some(at), element)).deserialize(&mut deserializer);
        return list.and_then(|()| deserializer.end()).map_err(|error| wrong(1, &error));
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>().zip(1..);
    values.try_for_each(|(value, at)| {
        let value = value.map_err(|error| wrong(at, &error))?;
        if value.get().starts_with('[') {
            elements(value, |element_at, element| each(at, Some(element_at), element));
        } else {
            each(at, None, value);
        }
        Ok(())
    })
}

/// Each element of a list; nothing where it is none. The first is 1.
pub(super) fn elements<'a>(list: &'a RawValue, each: impl FnMut(usize, &'a RawValue)) {
    let mut deserializer = serde_json::Deserializer::from_str(list.get());
    // It is known to be JSON.
    let _ = Elements(each).deserialize(&mut deserializer);
}

/// The error without the place that serde_json puts behind it.
fn words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    format!("not JSON: {}", text.split(" at line ").next().unwrap_or(&text))
}

struct Elements<F>(F);

impl<'de, F: FnMut(usize, &'de RawValue)> DeserializeSeed<'de> for Elements<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(usize, &'de RawValue)> Visitor<'de> for Elements<F> {
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

    fn all(text: &str) -> (Seen, Result<(), Wrong>) {
        let mut seen = Vec::new();
        let done = read(text, |at, element, raw| seen.push((at, element, raw.get().to_owned())));
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
