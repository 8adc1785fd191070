//! Why: the closed set of reasons a verdict carries.

use std::fmt;

/// Why an object has its level. `token()` is for machines, `Display` for people.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// It is ready, and there is nothing more to say.
    Ready,
    /// It says nothing that any rule understands.
    NoSignal,
    /// Expected, but there is no such object.
    Missing,
    /// The code that judges it crashed; only this object is affected.
    RuleCrashed,
}

impl Reason {
    /// The CamelCase token of JSON output, logs and metrics.
    pub const fn token(&self) -> &'static str {
        match self {
            Reason::Ready => "Ready",
            Reason::NoSignal => "NoSignal",
            Reason::Missing => "Missing",
            Reason::RuleCrashed => "RuleCrashed",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.token())
    }
}
