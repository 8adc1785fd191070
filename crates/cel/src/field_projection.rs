//! The fields of an object that an expression reads, and the object reduced to them.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::json_key::JsonKey;

/// Fields of an object, as a tree of their names. Lists have no level of their own: what is named of a list is named of each of
/// its elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldProjection {
    /// The whole value is read.
    whole: bool,
    /// Its elements are looked at, one after the other: a map, whose elements are its keys, is kept whole.
    iterated: bool,
    fields: BTreeMap<Box<str>, FieldProjection>,
}

/// Maximum nesting of what is reduced: lists of lists may be nested deeper than fields are named.
const MAX_NESTING: u16 = 100;

/// An object whose named fields are too large, or nested too deeply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProjectionError;

impl fmt::Display for ProjectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the fields that are read of it are too large or nested too deeply")
    }
}

impl std::error::Error for ProjectionError {}

impl FieldProjection {
    /// Returns the field at the end of a path, as read in part: whether it exists.
    pub(crate) fn field_at(&mut self, path: &[Box<str>]) -> &mut FieldProjection {
        path.iter().fold(self, |at, name| at.fields.entry(name.clone()).or_default())
    }

    /// The whole value is read.
    pub(crate) fn require_whole(&mut self) {
        (self.whole, self.fields) = (true, BTreeMap::new());
    }

    /// The elements of the value are looked at, one after the other.
    pub(crate) fn require_elements(&mut self) {
        self.iterated = true;
    }

    /// Adds what another one reads.
    pub fn merge_fields(&mut self, other: &FieldProjection) {
        if self.whole || other.whole {
            return self.require_whole();
        }
        self.iterated |= other.iterated;
        for (name, field) in &other.fields {
            self.fields.entry(name.clone()).or_default().merge_fields(field);
        }
    }

    /// Returns the JSON text of an object reduced to these fields, if it has at most `most_bytes`.
    pub fn project_object(&self, object: &RawValue, most_bytes: usize) -> Result<String, ProjectionError> {
        let mut reduced = ReducedText { text: String::new(), most_bytes };
        reduced.write_value((self, 0), object)?;
        Ok(reduced.text)
    }
}

struct ReducedText {
    text: String,
    most_bytes: usize,
}

impl ReducedText {
    fn push(&mut self, text: &str) -> Result<(), ProjectionError> {
        if self.text.len() + text.len() > self.most_bytes {
            return Err(ProjectionError);
        }
        self.text.push_str(text);
        Ok(())
    }

    fn write_value(
        &mut self,
        (fields, depth): (&FieldProjection, u16),
        value: &RawValue,
    ) -> Result<(), ProjectionError> {
        let is_reduced = match value.get().as_bytes().first() {
            Some(b'{') => !fields.whole && !fields.iterated,
            Some(b'[') => !fields.whole,
            _ => false,
        };
        if !is_reduced {
            return self.push(value.get());
        }
        if depth == MAX_NESTING {
            return Err(ProjectionError);
        }
        let mut json = serde_json::Deserializer::from_str(value.get());
        json.disable_recursion_limit();
        let visitor = ReducingVisitor { reduced: self, fields, depth: depth + 1 };
        json.deserialize_any(visitor).map_err(|_| ProjectionError)
    }
}

/// Writes the fields of a map, or of the elements of a list.
struct ReducingVisitor<'r> {
    reduced: &'r mut ReducedText,
    fields: &'r FieldProjection,
    depth: u16,
}

impl<'de> Visitor<'de> for ReducingVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let ReducingVisitor { reduced, fields, depth } = self;
        let mut between = "{";
        while let Some(key) = members.next_key_seed(JsonKey)? {
            // Skipped without decoding or recursion.
            let value = members.next_value::<&RawValue>()?;
            let Some(field) = fields.fields.get(&*key) else { continue };
            let name = serde_json::to_string(&key).map_err(A::Error::custom)?;
            let start = [between, &name, ":"];
            start.iter().try_for_each(|part| reduced.push(part)).map_err(A::Error::custom)?;
            reduced.write_value((field, depth), value).map_err(A::Error::custom)?;
            between = ",";
        }
        let end = if between == "{" { "{}" } else { "}" };
        reduced.push(end).map_err(A::Error::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let ReducingVisitor { reduced, fields, depth } = self;
        let mut between = "[";
        while let Some(element) = elements.next_element::<&RawValue>()? {
            reduced.push(between).map_err(A::Error::custom)?;
            reduced.write_value((fields, depth), element).map_err(A::Error::custom)?;
            between = ",";
        }
        let end = if between == "[" { "[]" } else { "]" };
        reduced.push(end).map_err(A::Error::custom)
    }
}
