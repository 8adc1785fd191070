//! The limits that stop an evaluation.

use std::fmt;

/// The limit that an evaluation reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CostLimit {
    /// Too many loop iterations and calls.
    Steps,
    /// Too much time.
    Time,
    /// Too much memory.
    Memory,
    /// Calls nested too deeply for the stack.
    Depth,
    /// A pattern, string or result that is too large.
    Size,
}

impl fmt::Display for CostLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CostLimit::Steps => "it took too many steps",
            CostLimit::Time => "it ran for too long",
            CostLimit::Memory => "it used too much memory",
            CostLimit::Depth => "it called itself too deeply",
            CostLimit::Size => "it worked on too large a text",
        })
    }
}
