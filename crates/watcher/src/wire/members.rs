//! The fields of an object, each with a cursor in front of its value, found by serde_json's own parser.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::cursor::JsonCursor;

/// Implements the visitor methods for values that are not objects.
macro_rules! absent {
    ($absent:expr, $text:ident => $of_text:expr) => {
        fn visit_str<E>(self, $text: &str) -> Result<Self::Value, E> {
            Ok($of_text)
        }
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($absent)
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($absent)
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($absent)
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($absent)
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($absent)
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok($absent)
        }
    };
}
pub(super) use absent;

/// Calls back for each field of an object. A value that is not an object has no fields.
pub(super) struct MembersVisitor<F> {
    /// Fields that are long in many objects and that no rule reads: not even their text is taken.
    pub(super) unread: &'static [&'static str],
    pub(super) each: F,
}

/// Type of the visited value.
pub(super) enum VisitedShape<'de> {
    Object,
    Text(Cow<'de, str>),
    Other,
}

/// Returns a cursor in front of the value of the key that was read last.
pub(super) fn value_cursor<'de, A: MapAccess<'de>>(map: &mut A) -> Result<JsonCursor<'de>, A::Error> {
    Ok(JsonCursor::new(map.next_value::<&RawValue>()?.get()))
}

impl<'de, F: FnMut(&str, &mut JsonCursor<'de>)> DeserializeSeed<'de> for MembersVisitor<F> {
    type Value = VisitedShape<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<VisitedShape<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: FnMut(&str, &mut JsonCursor<'de>)> Visitor<'de> for MembersVisitor<F> {
    type Value = VisitedShape<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<VisitedShape<'de>, A::Error> {
        while let Some(FieldKey(key)) = map.next_key()? {
            if self.unread.contains(&&*key) {
                map.next_value::<IgnoredAny>()?;
            } else {
                (self.each)(&key, &mut value_cursor(&mut map)?);
            }
        }
        Ok(VisitedShape::Object)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<VisitedShape<'de>, E> {
        Ok(VisitedShape::Text(text.into()))
    }

    absent!(VisitedShape::Other, text => VisitedShape::Text(text.to_owned().into()));
}

/// Name of a field, with any content: half a surrogate pair is not valid text, but no reason to lose an object.
pub(super) struct FieldKey<'de>(pub(super) Cow<'de, str>);

impl<'de> Deserialize<'de> for FieldKey<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(FieldKeyVisitor)
    }
}

struct FieldKeyVisitor;

impl<'de> Visitor<'de> for FieldKeyVisitor {
    type Value = FieldKey<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<FieldKey<'de>, E> {
        Ok(FieldKey(str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<FieldKey<'de>, E> {
        Ok(FieldKey(String::from_utf8_lossy(bytes).into_owned().into()))
    }
}
