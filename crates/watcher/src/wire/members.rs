//! The fields of an object, each with a cursor in front of its value, on serde_json's own way through the text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::cursor::Cursor;

/// What a visitor of objects makes of everything else.
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

/// Calls back for each field of an object. What is no object has no fields.
pub(super) struct Members<F> {
    /// Fields that are long in many objects and of no use to any rule: not even their text is taken.
    pub(super) unread: &'static [&'static str],
    pub(super) each: F,
}

/// What the value was whose fields were asked for.
pub(super) enum Shape<'de> {
    Object,
    Text(Cow<'de, str>),
    Other,
}

/// A cursor in front of the value of the field whose key was read last.
pub(super) fn cursor<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Cursor<'de>, A::Error> {
    Ok(Cursor::new(map.next_value::<&RawValue>()?.get()))
}

impl<'de, F: FnMut(&str, &mut Cursor<'de>)> DeserializeSeed<'de> for Members<F> {
    type Value = Shape<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Shape<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: FnMut(&str, &mut Cursor<'de>)> Visitor<'de> for Members<F> {
    type Value = Shape<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Shape<'de>, A::Error> {
        while let Some(Key(key)) = map.next_key()? {
            if self.unread.contains(&&*key) {
                map.next_value::<IgnoredAny>()?;
            } else {
                (self.each)(&key, &mut cursor(&mut map)?);
            }
        }
        Ok(Shape::Object)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Shape<'de>, E> {
        Ok(Shape::Text(text.into()))
    }

    absent!(Shape::Other, text => Shape::Text(text.to_owned().into()));
}

/// The name of a field, whatever is in it: half a surrogate pair is none of a text, but no reason to lose an object.
pub(super) struct Key<'de>(pub(super) Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Key<'de>, E> {
        Ok(Key(str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Key<'de>, E> {
        Ok(Key(String::from_utf8_lossy(bytes).into_owned().into()))
    }
}
