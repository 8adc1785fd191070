//! The branch of a rule that decided, for explain output. It borrows from the facts and costs nothing until printed.

use std::fmt;

use crate::facts::{ConditionFacts, ConditionLocation, LaggingField, StateField, UnreadyContainer};

/// The field and the value that decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Branch<'a> {
    /// A fact stated by the rule itself.
    Fact(&'static str),
    /// The observed generation differs from the current one.
    Generation {
        /// Condition that carries the observed generation; `None` for `status` itself.
        at: Option<&'a ConditionFacts>,
        /// Observed generation.
        observed: Option<i64>,
        /// Current generation, `metadata.generation`.
        generation: Option<i64>,
    },
    /// A condition or a boolean field.
    Condition(&'a ConditionFacts),
    /// A text field and its path.
    StateField(&'a StateField),
    /// A text under a fixed path.
    Text(&'static str, &'a str),
    /// Two numbers that should be equal, with their paths.
    Counts(&'a str, i64, &'a str, i64),
    /// A number that should be 0, with the name of its field.
    Number(&'a str, i64),
    /// A text that is not yet what another one says it is to be.
    Lag(&'a LaggingField),
    /// A container of a pod.
    Container(&'a UnreadyContainer),
    /// No field says anything about readiness.
    Nothing,
}

impl fmt::Display for Branch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Branch::Fact(fact) => f.write_str(fact),
            Branch::Generation { at, observed, generation } => {
                if let Some(condition) = at {
                    write_condition_path(f, condition)?;
                    f.write_str(".")?;
                } else {
                    f.write_str("status.")?;
                }
                match observed {
                    Some(observed) => write!(f, "observedGeneration is {observed}")?,
                    None => f.write_str("observedGeneration is absent")?,
                }
                match generation {
                    Some(generation) => write!(f, ", metadata.generation is {generation}"),
                    None => Ok(()),
                }
            }
            Branch::Condition(condition) => {
                write_condition_path(f, condition)?;
                write!(f, " is {}", condition.status.as_str())?;
                if condition.reason.is_empty() { Ok(()) } else { write!(f, " ({})", condition.reason) }
            }
            Branch::StateField(StateField { path, value: word }) if path.is_empty() => {
                write!(f, "status is {word:?}")
            }
            Branch::StateField(StateField { path, value: word }) if word.is_empty() => {
                write!(f, "status.{path} says nothing")
            }
            Branch::StateField(StateField { path, value: word }) => write!(f, "status.{path} is {word:?}"),
            Branch::Text(path, text) => write!(f, "{path} is {text:?}"),
            Branch::Counts(have, n, want, m) => write!(f, "{have} is {n}, {want} is {m}"),
            Branch::Number(name, n) => write!(f, "status.{name} is {n}"),
            Branch::Lag(lag) => {
                write!(
                    f,
                    "status.{} is {:?}, status.{} is {:?}",
                    lag.name, lag.value, lag.wanted_name, lag.wanted
                )
            }
            Branch::Container(c) => write_container(f, c),
            Branch::Nothing => f.write_str("no condition or field reports readiness"),
        }
    }
}

fn write_condition_path(f: &mut fmt::Formatter<'_>, condition: &ConditionFacts) -> fmt::Result {
    let name = &condition.name;
    match &condition.location {
        ConditionLocation::Conditions => write!(f, "conditions[{name}]"),
        ConditionLocation::Below(path) => write!(f, "{path}.conditions[{name}]"),
        ConditionLocation::Field(None) => write!(f, "status.{name}"),
        ConditionLocation::Field(Some(path)) => write!(f, "status.{path}.{name}"),
    }
}

fn write_container(f: &mut fmt::Formatter<'_>, c: &UnreadyContainer) -> fmt::Result {
    write!(f, "{}[{}]", if c.init { "initContainerStatuses" } else { "containerStatuses" }, c.name)?;
    match (&c.waiting, &c.ended) {
        (Some(reason), _) => write!(f, " is waiting ({reason})"),
        (None, Some(exit)) if exit.reason.is_empty() => write!(f, " ended with code {}", exit.code),
        (None, Some(exit)) => write!(f, " ended with code {} ({})", exit.code, exit.reason),
        (None, None) => f.write_str(" is not ready"),
    }
}
