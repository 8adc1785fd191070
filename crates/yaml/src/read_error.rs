//! Errors of reading YAML.

use std::fmt;

/// A YAML error and its position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct YamlReadError {
    /// 1-based line within the given text; 0 if unknown.
    pub line: u64,
    /// 1-based line and column at which the collection or text begins that could not be read to its end, if it is one.
    pub begin: Option<(u64, u64)>,
    /// Description, without the position.
    pub what: String,
}

impl YamlReadError {
    pub(crate) fn new(what: String) -> YamlReadError {
        YamlReadError { what, ..YamlReadError::default() }
    }

    pub(crate) fn at_line(self, line: u64) -> YamlReadError {
        YamlReadError { line: if self.line == 0 { line } else { self.line }, ..self }
    }
}

impl fmt::Display for YamlReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for YamlReadError {}
