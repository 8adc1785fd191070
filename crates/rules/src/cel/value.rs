//! Values while an expression runs: cheap to copy, borrowed from the object wherever they can be.

use std::net::IpAddr;
use std::ops::Deref;
use std::rc::Rc;

use super::functions::net::Cidr;
use super::functions::quantity::Quantity;
use super::functions::semver::Semver;
use super::functions::url::Url;
use super::tree::{Fields, Tree};
use crate::lua::Limit;

/// A value of CEL.
#[derive(Clone, Debug)]
pub(super) enum Val<'t> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'t>),
    Bytes(Rc<[u8]>),
    List(List<'t>),
    Map(Map<'t>),
    Moment(Moment),
    /// Nanoseconds.
    Span(i64),
    /// A type, by its name.
    Type(&'static str),
    Optional(Option<Rc<Val<'t>>>),
    Quantity(Rc<Quantity>),
    Ip(IpAddr),
    Cidr(Cidr),
    Url(Rc<Url>),
    Semver(Rc<Semver>),
}

/// What the checker knows of a value before it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ty {
    /// Nothing.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    List,
    Map,
    Moment,
    Span,
    Type,
    Optional,
    Quantity,
    Ip,
    Cidr,
    Url,
    Semver,
}

impl Ty {
    /// As CEL calls it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Ty::Dyn => "dyn",
            Ty::Null => "null_type",
            Ty::Bool => "bool",
            Ty::Int => "int",
            Ty::Uint => "uint",
            Ty::Double => "double",
            Ty::Text => "string",
            Ty::Bytes => "bytes",
            Ty::List => "list",
            Ty::Map => "map",
            Ty::Moment => "google.protobuf.Timestamp",
            Ty::Span => "google.protobuf.Duration",
            Ty::Type => "type",
            Ty::Optional => "optional_type",
            Ty::Quantity => "kubernetes.Quantity",
            Ty::Ip => "net.IP",
            Ty::Cidr => "net.CIDR",
            Ty::Url => "kubernetes.URL",
            Ty::Semver => "kubernetes.Semver",
        }
    }

    /// Could a value of this type stand where `other` is wanted?
    pub(super) fn fits(self, other: Ty) -> bool {
        self == Ty::Dyn || other == Ty::Dyn || self == other
    }

    pub(super) const fn number(self) -> bool {
        matches!(self, Ty::Int | Ty::Uint | Ty::Double)
    }

    /// The type of a value that is of one or the other.
    pub(super) fn or(self, other: Ty) -> Ty {
        if self == other { self } else { Ty::Dyn }
    }
}

/// Nanoseconds since the Unix epoch, in two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub(super) seconds: i64,
    pub(super) nanos: u32,
}

/// A text, borrowed or shared.
#[derive(Clone, Debug)]
pub(super) enum Text<'t> {
    Lent(&'t str),
    Made(Rc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Lent(text) => text,
            Text::Made(text) => text,
        }
    }
}

/// A list of the object, or one that was made.
#[derive(Clone, Debug)]
pub(super) enum List<'t> {
    Lent(&'t [Tree<'t>]),
    Made(Rc<[Val<'t>]>),
}

impl<'t> List<'t> {
    pub(super) fn len(&self) -> usize {
        match self {
            List::Lent(items) => items.len(),
            List::Made(items) => items.len(),
        }
    }

    pub(super) fn get(&self, at: usize) -> Option<Val<'t>> {
        match self {
            List::Lent(items) => items.get(at).map(Val::lent),
            List::Made(items) => items.get(at).cloned(),
        }
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = Val<'t>> {
        (0..self.len()).filter_map(|at| self.get(at))
    }
}

/// A map of the object, or one that was made.
#[derive(Clone, Debug)]
pub(super) enum Map<'t> {
    Lent(&'t Fields<'t>),
    Made(Rc<[(Val<'t>, Val<'t>)]>),
}

impl<'t> Map<'t> {
    pub(super) fn len(&self) -> usize {
        match self {
            Map::Lent(fields) => fields.len(),
            Map::Made(entries) => entries.len(),
        }
    }

    /// The value of a field; of a map that was made the entries are walked.
    pub(super) fn field(&self, name: &str) -> Option<Val<'t>> {
        match self {
            Map::Lent(fields) => fields.get(name).map(Val::lent),
            Map::Made(entries) => entries
                .iter()
                .find(|(key, _)| matches!(key, Val::Text(text) if **text == *name))
                .map(|(_, value)| value.clone()),
        }
    }

    /// The value of a key of any type.
    pub(super) fn find(&self, key: &Val<'t>) -> Option<Val<'t>> {
        match (self, key) {
            (_, Val::Text(name)) => self.field(name),
            (Map::Lent(_), _) => None,
            (Map::Made(entries), _) => {
                entries.iter().find(|(known, _)| same_key(known, key)).map(|(_, value)| value.clone())
            }
        }
    }

    pub(super) fn key(&self, at: usize) -> Option<Val<'t>> {
        match self {
            Map::Lent(fields) => (at < fields.len()).then(|| Val::Text(Text::Lent(fields.name(at)))),
            Map::Made(entries) => entries.get(at).map(|(key, _)| key.clone()),
        }
    }
}

/// Are two scalars the same key? Numbers are compared across their types.
pub(super) fn same_key(a: &Val<'_>, b: &Val<'_>) -> bool {
    match (a, b) {
        (Val::Text(a), Val::Text(b)) => **a == **b,
        (Val::Bool(a), Val::Bool(b)) => a == b,
        _ => super::ops::numeric_order(a, b).is_some_and(std::cmp::Ordering::is_eq),
    }
}

impl<'t> Val<'t> {
    /// A part of the object as a value.
    pub(super) fn lent(tree: &'t Tree<'t>) -> Val<'t> {
        match tree {
            Tree::Null => Val::Null,
            Tree::Bool(flag) => Val::Bool(*flag),
            Tree::Int(number) => Val::Int(*number),
            Tree::Double(number) => Val::Double(*number),
            Tree::Text(text) => Val::Text(Text::Lent(text)),
            Tree::List(items) => Val::List(List::Lent(items)),
            Tree::Map(fields) => Val::Map(Map::Lent(fields)),
        }
    }

    pub(super) fn text(text: &str) -> Val<'t> {
        Val::Text(Text::Made(text.into()))
    }

    pub(super) fn list(items: Vec<Val<'t>>) -> Val<'t> {
        Val::List(List::Made(items.into()))
    }

    pub(super) fn map(entries: Vec<(Val<'t>, Val<'t>)>) -> Val<'t> {
        Val::Map(Map::Made(entries.into()))
    }

    pub(super) fn some(self) -> Val<'t> {
        Val::Optional(Some(Rc::new(self)))
    }

    pub(super) const fn ty(&self) -> Ty {
        match self {
            Val::Null => Ty::Null,
            Val::Bool(_) => Ty::Bool,
            Val::Int(_) => Ty::Int,
            Val::Uint(_) => Ty::Uint,
            Val::Double(_) => Ty::Double,
            Val::Text(_) => Ty::Text,
            Val::Bytes(_) => Ty::Bytes,
            Val::List(_) => Ty::List,
            Val::Map(_) => Ty::Map,
            Val::Moment(_) => Ty::Moment,
            Val::Span(_) => Ty::Span,
            Val::Type(_) => Ty::Type,
            Val::Optional(_) => Ty::Optional,
            Val::Quantity(_) => Ty::Quantity,
            Val::Ip(_) => Ty::Ip,
            Val::Cidr(_) => Ty::Cidr,
            Val::Url(_) => Ty::Url,
            Val::Semver(_) => Ty::Semver,
        }
    }
}

/// Why there is no value. Words are joined only when somebody reads them: most errors are absorbed by `&&` and `||`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A field or key that is not there.
    NoKey(Box<str>),
    /// A top-level field that is not there.
    NoField(Box<str>),
    /// An operator or function for which these types do not do.
    NoOverload(&'static str, Vec<Ty>),
    /// Anything else.
    Words(Box<str>),
    /// A bound was reached.
    Limit(Limit),
}

impl Fault {
    pub(super) fn words(words: impl Into<Box<str>>) -> Fault {
        Fault::Words(words.into())
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fault::NoKey(key) => write!(f, "no such key: {key}"),
            Fault::NoField(field) => write!(f, "no such attribute(s): {field}"),
            Fault::NoOverload(name, types) => {
                let types: Vec<_> = types.iter().map(|ty| ty.name()).collect();
                write!(f, "no such overload: {name}({})", types.join(", "))
            }
            Fault::Words(words) => f.write_str(words),
            Fault::Limit(limit) => write!(f, "the expression was stopped: {limit}"),
        }
    }
}
