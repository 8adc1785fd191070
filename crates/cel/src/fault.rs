//! Errors inside an evaluation.

use std::fmt;

use crate::CostLimit;
use crate::cel_type::CelType;

/// An evaluation error. Its text is formatted only when it is read: most errors are absorbed by `&&` and `||`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EvalFault {
    /// An absent field or key.
    NoKey(Box<str>),
    /// An absent top-level field.
    NoField(Box<str>),
    /// An operator or function that does not accept these types.
    NoOverload(&'static str, Vec<CelType>),
    /// Any other error.
    Message(Box<str>),
    /// A limit was reached.
    Limit(CostLimit),
}

impl EvalFault {
    pub(crate) fn from_message(words: impl Into<Box<str>>) -> EvalFault {
        EvalFault::Message(words.into())
    }
}

impl fmt::Display for EvalFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalFault::NoKey(key) => write!(f, "no such key: {key}"),
            EvalFault::NoField(field) => write!(f, "no such attribute(s): {field}"),
            EvalFault::NoOverload(name, types) => {
                let types: Vec<_> = types.iter().map(|ty| ty.name()).collect();
                write!(f, "no such overload: {name}({})", types.join(", "))
            }
            EvalFault::Message(words) => f.write_str(words),
            EvalFault::Limit(limit) => write!(f, "the expression was stopped: {limit}"),
        }
    }
}
