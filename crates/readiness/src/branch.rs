//! Which branch of a rule decided, for a person who asks. It borrows from the facts and costs nothing until printed.

use std::fmt;

use crate::facts::{Condition, Container, Place, Word};

/// The field and the word that decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Branch<'a> {
    /// A fact, said by the rule itself.
    Fact(&'static str),
    /// What was observed is not the generation that is.
    Generation {
        /// Where it was observed; `None` for `status` itself.
        at: Option<&'a Condition>,
        /// What was observed.
        observed: Option<i64>,
        /// What is.
        generation: Option<i64>,
    },
    /// A condition, or a boolean field.
    Condition(&'a Condition),
    /// A text, and where it is.
    Word(&'a Word),
    /// A text under a fixed path.
    Text(&'static str, &'a str),
    /// Two numbers that should be equal, with their paths.
    Counts(&'a str, i64, &'a str, i64),
    /// A container of a pod.
    Container(&'a Container),
    /// Nothing was found that says anything.
    Nothing,
}

impl fmt::Display for Branch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Branch::Fact(fact) => f.write_str(fact),
            Branch::Generation { at, observed, generation } => {
                if let Some(condition) = at {
                    place(f, condition)?;
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
                place(f, condition)?;
                write!(f, " is {}", condition.status.word())?;
                if condition.reason.is_empty() { Ok(()) } else { write!(f, " ({})", condition.reason) }
            }
            Branch::Word(Word { path, word }) if path.is_empty() => write!(f, "status is {word:?}"),
            Branch::Word(Word { path, word }) => write!(f, "status.{path} is {word:?}"),
            Branch::Text(path, text) => write!(f, "{path} is {text:?}"),
            Branch::Counts(have, n, want, m) => write!(f, "{have} is {n}, {want} is {m}"),
            Branch::Container(c) => container(f, c),
            Branch::Nothing => f.write_str("no condition or field says anything"),
        }
    }
}

fn place(f: &mut fmt::Formatter<'_>, condition: &Condition) -> fmt::Result {
    let name = &condition.name;
    match &condition.place {
        Place::Conditions => write!(f, "conditions[{name}]"),
        Place::Below(path) => write!(f, "{path}.conditions[{name}]"),
        Place::Field(None) => write!(f, "status.{name}"),
        Place::Field(Some(path)) => write!(f, "status.{path}.{name}"),
    }
}

fn container(f: &mut fmt::Formatter<'_>, c: &Container) -> fmt::Result {
    write!(f, "{}[{}]", if c.init { "initContainerStatuses" } else { "containerStatuses" }, c.name)?;
    match (&c.waiting, &c.ended) {
        (Some(reason), _) => write!(f, " is waiting ({reason})"),
        (None, Some(exit)) => write!(f, " ended with code {} ({})", exit.code, exit.reason),
        (None, None) => f.write_str(" is not ready"),
    }
}
