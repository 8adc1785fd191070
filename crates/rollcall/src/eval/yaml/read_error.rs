//! Errors of reading YAML.

/// A YAML error and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::eval) struct YamlReadError {
    /// 1-based line within the given text; 0 if unknown.
    pub(in crate::eval) line: u64,
    pub(in crate::eval) what: String,
}

impl YamlReadError {
    pub(super) fn new(what: String) -> YamlReadError {
        YamlReadError { line: 0, what }
    }

    pub(super) fn at_line(self, line: u64) -> YamlReadError {
        YamlReadError { line: if self.line == 0 { line } else { self.line }, ..self }
    }
}
