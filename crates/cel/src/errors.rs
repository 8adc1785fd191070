//! Errors of expressions: at compile time and at evaluation.

use std::fmt;

use crate::CostLimit;
use crate::fault::EvalFault;
use crate::json_tree::ObjectReadError;

/// An expression that does not compile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct CompileError {
    /// 1-based line.
    pub line: u32,
    /// 1-based column, in characters.
    pub column: u32,
    /// Description of the error.
    pub message: String,
    /// `true` if the expression is valid but exceeds a limit.
    pub limit: bool,
}

impl CompileError {
    pub(crate) fn new(line: u32, column: u32, message: String) -> CompileError {
        CompileError { line, column, message, limit: false }
    }
}

/// An expression without a value for this object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalError {
    /// The message of cel-go, if it has one for this error.
    pub message: String,
    /// `true` if a field is absent (yet).
    pub absent: bool,
    /// The limit that stopped the evaluation.
    pub limit: Option<CostLimit>,
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl EvalError {
    pub(crate) fn from_fault(fault: &EvalFault) -> EvalError {
        let limit = if let EvalFault::Limit(limit) = fault { Some(*limit) } else { None };
        let absent = match fault {
            EvalFault::NoKey(_) | EvalFault::NoField(_) => true,
            EvalFault::Message(words) => words.starts_with("index out of bounds"),
            _ => false,
        };
        EvalError { message: fault.to_string(), absent, limit }
    }

    pub(crate) fn with_message(message: impl Into<String>) -> EvalError {
        EvalError { message: message.into(), absent: false, limit: None }
    }

    pub(crate) fn from_read_error(why: ObjectReadError) -> EvalError {
        match why {
            ObjectReadError::TooDeep => EvalError {
                limit: Some(CostLimit::Depth),
                ..EvalError::with_message("the object is nested too deeply")
            },
            ObjectReadError::Limit(limit) => EvalError::from_fault(&EvalFault::Limit(limit)),
            ObjectReadError::Malformed(words) => {
                EvalError::with_message(format!("the object cannot be read: {words}"))
            }
        }
    }
}
