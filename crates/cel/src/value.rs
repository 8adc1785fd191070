//! Values at run time: cheap to copy, borrowed from the object where possible.

use std::cmp::Ordering;
use std::net::IpAddr;
use std::ops::Deref;
use std::rc::Rc;

use crate::cel_type::CelType;
use crate::json_tree::{JsonFields, JsonTree};
use crate::kube_types::{CidrBlock, ParsedUrl, ResourceQuantity, SemanticVersion};
use crate::timestamp::CelTimestamp;

/// A CEL value.
#[derive(Clone, Debug)]
pub(crate) enum CelValue<'t> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(CelText<'t>),
    Bytes(Rc<[u8]>),
    List(CelList<'t>),
    Map(CelMap<'t>),
    Timestamp(CelTimestamp),
    /// A duration in nanoseconds.
    Duration(i64),
    /// A type, by its name.
    Type(&'static str),
    Optional(Option<Rc<CelValue<'t>>>),
    Quantity(Rc<ResourceQuantity>),
    Ip(IpAddr),
    Cidr(CidrBlock),
    Url(Rc<ParsedUrl>),
    Semver(Rc<SemanticVersion>),
}

/// A string, borrowed or shared.
#[derive(Clone, Debug)]
pub(crate) enum CelText<'t> {
    Borrowed(&'t str),
    Shared(Rc<str>),
}

impl Deref for CelText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            CelText::Borrowed(text) => text,
            CelText::Shared(text) => text,
        }
    }
}

/// A list of the object, or a constructed one.
#[derive(Clone, Debug)]
pub(crate) enum CelList<'t> {
    Borrowed(&'t [JsonTree<'t>]),
    Shared(Rc<[CelValue<'t>]>),
}

impl<'t> CelList<'t> {
    pub(crate) fn len(&self) -> usize {
        match self {
            CelList::Borrowed(items) => items.len(),
            CelList::Shared(items) => items.len(),
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<CelValue<'t>> {
        match self {
            CelList::Borrowed(items) => items.get(at).map(CelValue::from_tree),
            CelList::Shared(items) => items.get(at).cloned(),
        }
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = CelValue<'t>> {
        (0..self.len()).filter_map(|at| self.get(at))
    }
}

/// A map of the object, or a constructed one.
#[derive(Clone, Debug)]
pub(crate) enum CelMap<'t> {
    Borrowed(&'t JsonFields<'t>),
    Shared(Rc<[(CelValue<'t>, CelValue<'t>)]>),
}

impl<'t> CelMap<'t> {
    pub(crate) fn len(&self) -> usize {
        match self {
            CelMap::Borrowed(fields) => fields.len(),
            CelMap::Shared(entries) => entries.len(),
        }
    }

    pub(crate) fn key_at(&self, at: usize) -> Option<CelValue<'t>> {
        match self {
            CelMap::Borrowed(fields) => {
                (at < fields.len()).then(|| CelValue::Text(CelText::Borrowed(fields.name_at(at))))
            }
            CelMap::Shared(entries) => entries.get(at).map(|(key, _)| key.clone()),
        }
    }
}

/// Returns `true` if two scalars are the same key. Numbers are compared across their types.
pub(crate) fn is_same_key(a: &CelValue<'_>, b: &CelValue<'_>) -> bool {
    match (a, b) {
        (CelValue::Text(a), CelValue::Text(b)) => **a == **b,
        (CelValue::Bool(a), CelValue::Bool(b)) => a == b,
        _ => numeric_order(a, b).is_some_and(Ordering::is_eq),
    }
}

impl<'t> CelValue<'t> {
    /// Returns a part of the object as a value.
    pub(crate) fn from_tree(tree: &'t JsonTree<'t>) -> CelValue<'t> {
        match tree {
            JsonTree::Null => CelValue::Null,
            JsonTree::Bool(flag) => CelValue::Bool(*flag),
            JsonTree::Int(number) => CelValue::Int(*number),
            JsonTree::Double(number) => CelValue::Double(*number),
            JsonTree::Text(text) => CelValue::Text(CelText::Borrowed(text)),
            JsonTree::List(items) => CelValue::List(CelList::Borrowed(items)),
            JsonTree::Map(fields) => CelValue::Map(CelMap::Borrowed(fields)),
        }
    }

    pub(crate) fn from_text(text: &str) -> CelValue<'t> {
        CelValue::Text(CelText::Shared(text.into()))
    }

    pub(crate) fn from_items(items: Vec<CelValue<'t>>) -> CelValue<'t> {
        CelValue::List(CelList::Shared(items.into()))
    }

    pub(crate) fn from_entries(entries: Vec<(CelValue<'t>, CelValue<'t>)>) -> CelValue<'t> {
        CelValue::Map(CelMap::Shared(entries.into()))
    }

    pub(crate) fn into_optional(self) -> CelValue<'t> {
        CelValue::Optional(Some(Rc::new(self)))
    }

    pub(crate) const fn cel_type(&self) -> CelType {
        match self {
            CelValue::Null => CelType::Null,
            CelValue::Bool(_) => CelType::Bool,
            CelValue::Int(_) => CelType::Int,
            CelValue::Uint(_) => CelType::Uint,
            CelValue::Double(_) => CelType::Double,
            CelValue::Text(_) => CelType::Text,
            CelValue::Bytes(_) => CelType::Bytes,
            CelValue::List(_) => CelType::List,
            CelValue::Map(_) => CelType::Map,
            CelValue::Timestamp(_) => CelType::Timestamp,
            CelValue::Duration(_) => CelType::Duration,
            CelValue::Type(_) => CelType::Type,
            CelValue::Optional(_) => CelType::Optional,
            CelValue::Quantity(_) => CelType::Quantity,
            CelValue::Ip(_) => CelType::Ip,
            CelValue::Cidr(_) => CelType::Cidr,
            CelValue::Url(_) => CelType::Url,
            CelValue::Semver(_) => CelType::Semver,
        }
    }
}

/// Compares two numbers across their types; `None` if one is no number or NaN.
pub(crate) fn numeric_order(a: &CelValue<'_>, b: &CelValue<'_>) -> Option<Ordering> {
    use CelValue::{Double, Int, Uint};
    match (a, b) {
        (Int(a), Int(b)) => Some(a.cmp(b)),
        (Uint(a), Uint(b)) => Some(a.cmp(b)),
        (Double(a), Double(b)) => a.partial_cmp(b),
        (Int(a), Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Uint(a), Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Int(a), Double(b)) => compare_integer_to_double(i128::from(*a), *b),
        (Uint(a), Double(b)) => compare_integer_to_double(i128::from(*a), *b),
        (Double(a), Int(b)) => compare_integer_to_double(i128::from(*b), *a).map(Ordering::reverse),
        (Double(a), Uint(b)) => compare_integer_to_double(i128::from(*b), *a).map(Ordering::reverse),
        _ => None,
    }
}

/// Compares an integer with a double without rounding the integer.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates, far outside the range of integers")]
fn compare_integer_to_double(whole: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    // The cast saturates, far outside the range of CEL's integers.
    let floor = double.floor();
    Some(whole.cmp(&(floor as i128)).then(if double > floor { Ordering::Less } else { Ordering::Equal }))
}
