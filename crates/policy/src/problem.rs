//! What is wrong with a policy.

use std::fmt;

/// Problem with a field of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyProblem {
    /// Path of the field, such as `spec.children[1].quorum`.
    pub field: String,
    /// Description of the problem, and its remedy.
    pub what: String,
    /// Line and column, from 1, in the text of a field that holds a rule.
    pub at: Option<(u32, u32)>,
}

impl PolicyProblem {
    /// All of these problems in one line.
    pub(crate) fn join_all(problems: &[PolicyProblem]) -> String {
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.at.map_or(String::new(), |(line, column)| format!("line {line}, column {column}: "));
        write!(f, "{}: {place}{}", self.field, self.what)
    }
}
