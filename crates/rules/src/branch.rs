//! Which branch of a user's rule decided, for a person who asks. It costs nothing until printed.

use std::fmt;

use crate::Profile;

/// The branch that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Branch<'r> {
    /// What was observed is not the generation that is.
    Generation {
        /// `status.observedGeneration`.
        observed: i64,
        /// `metadata.generation`.
        generation: i64,
    },
    /// This expression of Flux's shape is true: `current`, `inProgress` or `failed`.
    True(&'static str),
    /// None of Flux's expressions is true.
    NoneTrue,
    /// All of kro's expressions are true.
    AllTrue,
    /// The first of kro's expressions that is not true, by its place from 0.
    NotTrue(usize),
    /// A script returned at this line.
    Script(&'r str, Option<u32>),
    /// A peer's own rules.
    Peer(Profile),
    /// The rule did not get as far.
    Trouble,
}

impl fmt::Display for Branch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Branch::Generation { observed, generation } => {
                write!(f, "status.observedGeneration is {observed}, metadata.generation is {generation}")
            }
            Branch::True(name) => write!(f, "{name} is true"),
            Branch::NoneTrue => f.write_str("no expression is true"),
            Branch::AllTrue => f.write_str("all of readyWhen are true"),
            Branch::NotTrue(at) => write!(f, "readyWhen[{at}] is not true"),
            Branch::Script(name, Some(line)) => write!(f, "{name} line {line}"),
            Branch::Script(name, None) => f.write_str(name),
            Branch::Peer(profile) => write!(f, "{profile}"),
            Branch::Trouble => f.write_str("the rule failed"),
        }
    }
}
