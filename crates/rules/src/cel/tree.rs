//! The object as CEL sees it: JSON, borrowed from where it lies, and of it only what the expressions name.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::key::Key;
use crate::lua::Object;

/// Deeper than any object that means something, and shallow enough for the stack of any thread.
const DEPTH: u16 = 300;

/// JSON. Keys of a map are sorted, and none is there twice.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree<'a> {
    Null,
    Bool(bool),
    /// Every integer that fits is one, as in Kubernetes: never unsigned.
    Int(i64),
    Double(f64),
    Text(Cow<'a, str>),
    List(Vec<Tree<'a>>),
    Map(Fields<'a>),
}

/// The fields of a map, sorted by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fields<'a>(Vec<(Cow<'a, str>, Tree<'a>)>);

impl<'a> Fields<'a> {
    /// Of a key that is there twice the last one counts, as everywhere.
    fn new(mut all: Vec<(Cow<'a, str>, Tree<'a>)>) -> Self {
        if !all.is_sorted_by(|a, b| a.0 < b.0) {
            all.reverse();
            all.sort_by(|a, b| a.0.cmp(&b.0));
            all.dedup_by(|later, first| later.0 == first.0);
        }
        Fields(all)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Tree<'a>> {
        self.0.binary_search_by(|(key, _)| key.as_ref().cmp(name)).ok().map(|at| &self.0[at].1)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The name at a place in their order.
    pub(super) fn name(&self, at: usize) -> &str {
        &self.0[at].0
    }
}

/// What a program reads of an object: by top-level field all of it, or only some fields of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// The object itself is a value of the expression.
    pub(super) whole: bool,
    /// By top-level field; `None` for all of it.
    pub(super) fields: BTreeMap<Box<str>, Option<Vec<Box<str>>>>,
}

impl Needs {
    pub(super) fn all_of(&mut self, field: &str) {
        self.fields.insert(field.into(), None);
    }

    pub(super) fn part_of(&mut self, field: &str, part: &str) {
        let parts = self.fields.entry(field.into()).or_insert_with(|| Some(Vec::new()));
        if let Some(parts) = parts
            && !parts.iter().any(|known| &**known == part)
        {
            parts.push(part.into());
        }
    }

    pub(super) fn add(&mut self, other: &Needs) {
        self.whole |= other.whole;
        for (field, parts) in &other.fields {
            match parts {
                None => self.all_of(field),
                Some(parts) => parts.iter().for_each(|part| self.part_of(field, part)),
            }
        }
    }

    /// The top-level fields; `None` for all of them.
    pub(super) fn names(&self) -> Option<Vec<&str>> {
        (!self.whole).then(|| self.fields.keys().map(AsRef::as_ref).collect())
    }

    /// Reads what is needed.
    pub(super) fn read<'a>(&self, object: Object<'a>) -> Result<Fields<'a>, Unreadable> {
        match object {
            Object::Tree(Value::Object(map)) => {
                let mut all = Vec::with_capacity(self.fields.len());
                for (key, value) in map {
                    let wanted = self.wants(key);
                    if wanted != Wanted::Nothing {
                        all.push((Cow::Borrowed(key.as_str()), borrowed(value, wanted, 0)?));
                    }
                }
                Ok(Fields::new(all))
            }
            Object::Tree(_) => Err(Unreadable::Malformed("it is no map".to_owned())),
            Object::Text(text) => {
                let mut json = serde_json::Deserializer::from_str(text);
                json.disable_recursion_limit();
                json.deserialize_map(TopLevel(self)).map_err(|error| Unreadable::of(&error))
            }
        }
    }

    fn wants(&self, key: &str) -> Wanted<'_> {
        match self.fields.get(key) {
            _ if self.whole => Wanted::All,
            None => Wanted::Nothing,
            Some(None) => Wanted::All,
            Some(Some(parts)) => Wanted::Parts(parts),
        }
    }
}

/// How much of a value is needed.
#[derive(Clone, Copy, PartialEq)]
enum Wanted<'n> {
    Nothing,
    Parts(&'n [Box<str>]),
    All,
}

impl Wanted<'_> {
    fn part(self, name: &str) -> bool {
        match self {
            Wanted::Nothing => false,
            Wanted::Parts(parts) => parts.iter().any(|part| **part == *name),
            Wanted::All => true,
        }
    }
}

/// Why an object could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    Malformed(String),
    TooDeep,
}

impl Unreadable {
    fn of(error: &serde_json::Error) -> Unreadable {
        let words = error.to_string();
        if words.starts_with(TOO_DEEP) { Unreadable::TooDeep } else { Unreadable::Malformed(words) }
    }
}

const TOO_DEEP: &str = "nested too deeply";

fn borrowed<'a>(value: &'a Value, wanted: Wanted<'_>, depth: u16) -> Result<Tree<'a>, Unreadable> {
    if depth > DEPTH {
        return Err(Unreadable::TooDeep);
    }
    Ok(match value {
        Value::Null => Tree::Null,
        Value::Bool(flag) => Tree::Bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Tree::Int(whole),
            None => Tree::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Tree::Text(Cow::Borrowed(text)),
        Value::Array(items) => Tree::List(
            items.iter().map(|item| borrowed(item, Wanted::All, depth + 1)).collect::<Result<_, _>>()?,
        ),
        Value::Object(map) => {
            let mut all = Vec::with_capacity(if wanted == Wanted::All { map.len() } else { 4 });
            for (key, value) in map.iter().filter(|(key, _)| wanted.part(key)) {
                all.push((Cow::Borrowed(key.as_str()), borrowed(value, Wanted::All, depth + 1)?));
            }
            Tree::Map(Fields::new(all))
        }
    })
}

struct TopLevel<'n>(&'n Needs);

impl<'de> Visitor<'de> for TopLevel<'_> {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Fields<'de>, A::Error> {
        let mut all = Vec::with_capacity(self.0.fields.len());
        while let Some(key) = fields.next_key_seed(Key)? {
            match self.0.wants(&key) {
                // Skipped without being looked at, and without recursion.
                Wanted::Nothing => drop(fields.next_value::<&RawValue>()?),
                wanted => all.push((key, fields.next_value_seed(Read { wanted, depth: 0 })?)),
            }
        }
        Ok(Fields::new(all))
    }
}

/// Reads a value from text.
#[derive(Clone, Copy)]
struct Read<'n> {
    wanted: Wanted<'n>,
    depth: u16,
}

impl Read<'_> {
    fn deeper<E: Error>(self) -> Result<Read<'static>, E> {
        if self.depth == DEPTH {
            return Err(E::custom(TOO_DEEP));
        }
        Ok(Read { wanted: Wanted::All, depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for Read<'_> {
    type Value = Tree<'de>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Tree<'de>, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Read<'_> {
    type Value = Tree<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Tree<'de>, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Tree<'de>, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Tree<'de>, E> {
        Ok(Tree::Int(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Tree<'de>, E> {
        Ok(i64::try_from(value).map_or(Tree::Double(value as f64), Tree::Int))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Tree<'de>, E> {
        Ok(Tree::Double(value))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree<'de>, A::Error> {
        let inner = self.deeper()?;
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            all.push(item);
        }
        Ok(Tree::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Tree<'de>, A::Error> {
        let inner = self.deeper()?;
        let mut all = Vec::with_capacity(8);
        while let Some(key) = fields.next_key_seed(Key)? {
            if self.wanted.part(&key) {
                all.push((key, fields.next_value_seed(inner)?));
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Tree::Map(Fields::new(all)))
    }
}
