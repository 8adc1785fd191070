//! The object as CEL sees it: borrowed JSON, reduced to the fields that the expressions name.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::fault::EvalFault;
use crate::json_key::JsonKey;
use crate::meter::CostMeter;
use crate::{CostLimit, ObjectJson};

/// Maximum nesting depth: more than any real object, and shallow enough for the stack of any thread.
const MAX_OBJECT_DEPTH: u16 = 300;

/// Number of fields for which room is made before they are charged.
const MAX_PRESIZED_FIELDS: usize = 32;

/// Number of fields up to which one is found faster by comparing all of them: most differ in their length.
const MAX_SCANNED_FIELDS: usize = 8;

/// A JSON value. The keys of a map are sorted and unique.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum JsonTree<'a> {
    Null,
    Bool(bool),
    /// An integer that fits is always signed, as in Kubernetes.
    Int(i64),
    Double(f64),
    Text(Cow<'a, str>),
    List(Vec<JsonTree<'a>>),
    Map(JsonFields<'a>),
}

/// The fields of a map, sorted by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct JsonFields<'a>(Vec<(Cow<'a, str>, JsonTree<'a>)>);

impl<'a> JsonFields<'a> {
    /// Sorts the fields; the last of duplicate keys wins.
    fn new(mut all: Vec<(Cow<'a, str>, JsonTree<'a>)>) -> Self {
        if !all.is_sorted_by(|a, b| a.0 < b.0) {
            all.reverse();
            all.sort_by(|a, b| a.0.cmp(&b.0));
            all.dedup_by(|later, first| later.0 == first.0);
        }
        JsonFields(all)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&JsonTree<'a>> {
        if self.0.len() <= MAX_SCANNED_FIELDS {
            return self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        }
        self.0.binary_search_by(|(key, _)| key.as_ref().cmp(name)).ok().map(|at| &self.0[at].1)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the name at an index in sorted order.
    pub(crate) fn name_at(&self, at: usize) -> &str {
        &self.0[at].0
    }
}

/// The parts of an object that a program reads: whole top-level fields, or some fields of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NeededFields {
    /// `true` if an expression uses the object itself as a value.
    pub(crate) whole: bool,
    /// Subfields by top-level field; `None` for the whole field.
    pub(crate) fields: BTreeMap<Box<str>, Option<BTreeSet<Box<str>>>>,
}

impl NeededFields {
    pub(crate) fn require_field(&mut self, field: &str) {
        self.fields.insert(field.into(), None);
    }

    pub(crate) fn require_subfield(&mut self, field: &str, part: &str) {
        let parts = self.fields.entry(field.into()).or_insert_with(|| Some(BTreeSet::new()));
        if let Some(parts) = parts {
            parts.insert(part.into());
        }
    }

    pub(crate) fn merge_needs(&mut self, other: &NeededFields) {
        self.whole |= other.whole;
        for (field, parts) in &other.fields {
            match parts {
                None => self.require_field(field),
                Some(parts) => parts.iter().for_each(|part| self.require_subfield(field, part)),
            }
        }
    }

    /// Returns the top-level fields; `None` for all of them.
    pub(crate) fn field_names(&self) -> Option<Vec<&str>> {
        (!self.whole).then(|| self.fields.keys().map(AsRef::as_ref).collect())
    }

    /// Reads the needed parts. Reading is charged like evaluation: first for the length of the text, then for every
    /// value of it that is kept.
    pub(crate) fn read_object<'a>(
        &self,
        object: ObjectJson<'a>,
        meter: &CostMeter,
    ) -> Result<JsonFields<'a>, ObjectReadError> {
        match object {
            ObjectJson::Tree(Value::Object(map)) => {
                let mut all = Vec::with_capacity(self.fields.len());
                for (key, value) in map {
                    charge_value(meter, key.len())?;
                    let wanted = self.wanted_part(key);
                    if wanted != WantedPart::Nothing {
                        all.push((Cow::Borrowed(key.as_str()), borrow_value(value, wanted, 0, meter)?));
                    }
                }
                Ok(JsonFields::new(all))
            }
            ObjectJson::Tree(_) => Err(ObjectReadError::Malformed("it is no map".to_owned())),
            ObjectJson::Text(text) => {
                meter.charge_scan(text.len())?;
                let mut json = serde_json::Deserializer::from_str(text);
                json.disable_recursion_limit();
                json.deserialize_map(TopLevelVisitor { needs: self, meter })
                    .map_err(|error| ObjectReadError::from_json_error(&error, meter))
            }
        }
    }

    fn wanted_part(&self, key: &str) -> WantedPart<'_> {
        match self.fields.get(key) {
            _ if self.whole => WantedPart::All,
            None => WantedPart::Nothing,
            Some(None) => WantedPart::All,
            Some(Some(parts)) => WantedPart::Parts(parts),
        }
    }
}

/// Charges a value, or a key, that is kept.
fn charge_value(meter: &CostMeter, text: usize) -> Result<(), ObjectReadError> {
    Ok(meter.charge_scan(text).and_then(|()| meter.charge_kept_value(size_of::<JsonTree<'_>>()))?)
}

/// The part of a value that is needed.
#[derive(Clone, Copy, PartialEq)]
enum WantedPart<'n> {
    Nothing,
    Parts(&'n BTreeSet<Box<str>>),
    All,
}

impl WantedPart<'_> {
    fn wants_field(self, name: &str) -> bool {
        match self {
            WantedPart::Nothing => false,
            WantedPart::Parts(parts) => parts.contains(name),
            WantedPart::All => true,
        }
    }

    /// Largest number of fields that are kept of a map with `all` of them.
    fn count_of(self, all: usize) -> usize {
        match self {
            WantedPart::Nothing => 0,
            WantedPart::Parts(parts) => parts.len(),
            WantedPart::All => all,
        }
    }
}

/// An object that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ObjectReadError {
    Malformed(String),
    TooDeep,
    /// The limit that the reading reached.
    Limit(CostLimit),
}

impl From<EvalFault> for ObjectReadError {
    fn from(fault: EvalFault) -> Self {
        match fault {
            EvalFault::Limit(limit) => ObjectReadError::Limit(limit),
            other => ObjectReadError::Malformed(other.to_string()),
        }
    }
}

impl ObjectReadError {
    fn from_json_error(error: &serde_json::Error, meter: &CostMeter) -> ObjectReadError {
        if let Some(limit) = meter.spent_limit() {
            return ObjectReadError::Limit(limit);
        }
        let words = error.to_string();
        if words.starts_with(TOO_DEEP_MESSAGE) {
            return ObjectReadError::TooDeep;
        }
        // The words of the parser may quote what it found.
        let (what, line, column) = (error.classify(), error.line(), error.column());
        ObjectReadError::Malformed(match what {
            Category::Data => "it is no map".to_owned(),
            Category::Eof => "it ends too early".to_owned(),
            _ => format!("no JSON at line {line} column {column}"),
        })
    }
}

const TOO_DEEP_MESSAGE: &str = "nested too deeply";

fn borrow_value<'a>(
    value: &'a Value,
    wanted: WantedPart<'_>,
    depth: u16,
    meter: &CostMeter,
) -> Result<JsonTree<'a>, ObjectReadError> {
    if depth > MAX_OBJECT_DEPTH {
        return Err(ObjectReadError::TooDeep);
    }
    charge_value(meter, 0)?;
    Ok(match value {
        Value::Null => JsonTree::Null,
        Value::Bool(flag) => JsonTree::Bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => JsonTree::Int(whole),
            None => JsonTree::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => JsonTree::Text(Cow::Borrowed(text)),
        Value::Array(items) => JsonTree::List(
            items
                .iter()
                .map(|item| borrow_value(item, WantedPart::All, depth + 1, meter))
                .collect::<Result<_, _>>()?,
        ),
        Value::Object(map) => {
            let mut all = Vec::with_capacity(wanted.count_of(map.len()).min(MAX_PRESIZED_FIELDS));
            for (key, value) in map {
                meter.charge_scan(key.len())?;
                if wanted.wants_field(key) {
                    let value = borrow_value(value, WantedPart::All, depth + 1, meter)?;
                    all.push((Cow::Borrowed(key.as_str()), value));
                }
            }
            JsonTree::Map(JsonFields::new(all))
        }
    })
}

struct TopLevelVisitor<'n> {
    needs: &'n NeededFields,
    meter: &'n CostMeter,
}

impl<'de> Visitor<'de> for TopLevelVisitor<'_> {
    type Value = JsonFields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<JsonFields<'de>, A::Error> {
        let mut all = Vec::with_capacity(self.needs.fields.len());
        while let Some(key) = fields.next_key_seed(JsonKey)? {
            match self.needs.wanted_part(&key) {
                // Skipped without decoding or recursion.
                WantedPart::Nothing => drop(fields.next_value::<&RawValue>()?),
                wanted => {
                    let seed = JsonTreeSeed { wanted, depth: 0, meter: self.meter };
                    all.push((key, fields.next_value_seed(seed)?));
                }
            }
        }
        Ok(JsonFields::new(all))
    }
}

/// Reads a value from text.
#[derive(Clone, Copy)]
struct JsonTreeSeed<'n> {
    wanted: WantedPart<'n>,
    depth: u16,
    meter: &'n CostMeter,
}

impl<'n> JsonTreeSeed<'n> {
    fn nested_seed<E: Error>(self) -> Result<JsonTreeSeed<'n>, E> {
        if self.depth == MAX_OBJECT_DEPTH {
            return Err(E::custom(TOO_DEEP_MESSAGE));
        }
        Ok(JsonTreeSeed { wanted: WantedPart::All, depth: self.depth + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for JsonTreeSeed<'_> {
    type Value = JsonTree<'de>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<JsonTree<'de>, D::Error> {
        // The words do not matter: the meter knows the limit.
        self.meter.charge_kept_value(size_of::<JsonTree<'_>>()).map_err(D::Error::custom)?;
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonTreeSeed<'_> {
    type Value = JsonTree<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<JsonTree<'de>, E> {
        Ok(JsonTree::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<JsonTree<'de>, E> {
        Ok(JsonTree::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<JsonTree<'de>, E> {
        Ok(JsonTree::Int(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<JsonTree<'de>, E> {
        Ok(i64::try_from(value)
            .map_or(JsonTree::Double(crate::number_conversions::double_from_uint(value)), JsonTree::Int))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<JsonTree<'de>, E> {
        Ok(JsonTree::Double(value))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<JsonTree<'de>, E> {
        Ok(JsonTree::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<JsonTree<'de>, E> {
        Ok(JsonTree::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<JsonTree<'de>, A::Error> {
        let inner = self.nested_seed()?;
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            all.push(item);
        }
        Ok(JsonTree::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<JsonTree<'de>, A::Error> {
        let inner = self.nested_seed()?;
        let mut all = Vec::with_capacity(8);
        while let Some(key) = fields.next_key_seed(JsonKey)? {
            if self.wanted.wants_field(&key) {
                all.push((key, fields.next_value_seed(inner)?));
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(JsonTree::Map(JsonFields::new(all)))
    }
}
