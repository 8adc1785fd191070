//! The branch of a user's rule that decided. Costs nothing until it is printed.

use std::fmt;

use crate::PeerProfile;

/// The branch that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleBranch<'r> {
    /// The observed generation is not the current one.
    Generation {
        /// `status.observedGeneration`.
        observed: i64,
        /// `metadata.generation`.
        generation: i64,
    },
    /// This `healthCheckExprs` expression is true: `current`, `inProgress` or `failed`.
    True(&'static str),
    /// No `healthCheckExprs` expression is true.
    NoneTrue,
    /// All `readyWhen` expressions are true.
    AllTrue,
    /// Index of the first `readyWhen` expression that is not true, from 0.
    NotTrue(usize),
    /// A script returned at this line.
    Script(&'r str, Option<u32>),
    /// The rules of a peer.
    Peer(PeerProfile),
    /// The rule could not be evaluated so far.
    RuleFailed,
}

impl fmt::Display for RuleBranch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleBranch::Generation { observed, generation } => {
                write!(f, "status.observedGeneration is {observed}, metadata.generation is {generation}")
            }
            RuleBranch::True(name) => write!(f, "{name} is true"),
            RuleBranch::NoneTrue => f.write_str("no expression is true"),
            RuleBranch::AllTrue => f.write_str("all of readyWhen are true"),
            RuleBranch::NotTrue(at) => write!(f, "readyWhen[{at}] is not true"),
            RuleBranch::Script(name, Some(line)) => write!(f, "{name} line {line}"),
            RuleBranch::Script(name, None) => f.write_str(name),
            RuleBranch::Peer(profile) => write!(f, "{profile}"),
            RuleBranch::RuleFailed => f.write_str("the rule failed"),
        }
    }
}
