//! The members of a JSON object.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A string, borrowed from the text where it contains no escapes.
#[derive(Debug, Deserialize)]
pub(super) struct BorrowedText<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// The members of an object, sorted by their keys; the last one of a repeated key.
///
/// Whoever writes an object chooses its keys: they are sorted, because they could be chosen so that a table of hashes
/// searches all of them for each.
#[derive(Clone, Debug, Default)]
pub struct JsonMembers<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> JsonMembers<'a> {
    fn new(mut all: Vec<(Cow<'a, str>, &'a RawValue)>) -> JsonMembers<'a> {
        if !all.is_sorted_by(|a, b| a.0 < b.0) {
            all.reverse();
            all.sort_by(|a, b| a.0.cmp(&b.0));
            all.dedup_by(|earlier, last| earlier.0 == last.0);
        }
        JsonMembers(all)
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        let at = self.0.binary_search_by(|(known, _)| known.as_ref().cmp(key)).ok()?;
        self.0.get(at).map(|(_, value)| *value)
    }

    /// Returns the members in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), *value))
    }

    /// Returns the keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_ref())
    }
}

impl<'de> Deserialize<'de> for JsonMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonMembers<'de>, D::Error> {
        struct AllMembers;

        impl<'de> Visitor<'de> for AllMembers {
            type Value = JsonMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonMembers<'de>, A::Error> {
                let mut all = Vec::new();
                while let Some(BorrowedText(key)) = map.next_key()? {
                    all.push((key, map.next_value()?));
                }
                Ok(JsonMembers::new(all))
            }
        }

        deserializer.deserialize_map(AllMembers)
    }
}

/// Reads one member of an object, the last one of a repeated key.
pub(super) struct MemberSeed<'k>(pub(super) &'k str);

impl<'de> DeserializeSeed<'de> for MemberSeed<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MemberSeed<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(BorrowedText(key)) = map.next_key()? {
            if key == self.0 {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
