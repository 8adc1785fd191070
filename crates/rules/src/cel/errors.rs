//! What can be wrong with an expression: before an object is there, and with one.

use std::fmt;

use super::tree::Unreadable;
use super::value::Fault;
use crate::lua::Limit;

/// Why an expression is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct CompileError {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// What is wrong there.
    pub message: String,
    /// Not wrong, but more than is taken.
    pub limit: bool,
}

impl CompileError {
    pub(super) fn new(line: u32, column: u32, message: String) -> CompileError {
        CompileError { line, column, message, limit: false }
    }
}

/// Why an expression has no value for this object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalError {
    /// In the words of cel-go, where it has some.
    pub message: String,
    /// A field is not there (yet).
    pub absent: bool,
    /// The bound that stopped it.
    pub limit: Option<Limit>,
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl EvalError {
    pub(super) fn of(fault: &Fault) -> EvalError {
        let limit = if let Fault::Limit(limit) = fault { Some(*limit) } else { None };
        let absent = match fault {
            Fault::NoKey(_) | Fault::NoField(_) => true,
            Fault::Words(words) => words.starts_with("index out of bounds"),
            _ => false,
        };
        EvalError { message: fault.to_string(), absent, limit }
    }

    pub(super) fn plain(message: impl Into<String>) -> EvalError {
        EvalError { message: message.into(), absent: false, limit: None }
    }

    pub(super) fn unreadable(why: Unreadable) -> EvalError {
        match why {
            Unreadable::TooDeep => {
                EvalError { limit: Some(Limit::Depth), ..EvalError::plain("the object is nested too deeply") }
            }
            Unreadable::Malformed(words) => EvalError::plain(format!("the object cannot be read: {words}")),
        }
    }
}
