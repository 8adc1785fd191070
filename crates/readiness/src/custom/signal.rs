//! One readiness signal of an object: its meaning, its weight and the field that carries it.

use super::lexicon::WordSense;
use crate::facts::{ConditionFacts, CountField, LaggingField, StateField};

/// Weight of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SignalForce {
    /// About something owned by the object, or incidental.
    Hint,
    /// About a first step.
    Step,
    /// About a part of the object.
    Part,
    /// About the whole object, in one respect.
    Core,
    /// About the whole object.
    Verdict,
}

/// Field that carries a signal.
#[derive(Clone, Copy, Debug)]
pub(super) enum SignalSource<'a> {
    Condition(&'a ConditionFacts),
    /// A condition that is about another generation.
    Stale(&'a ConditionFacts),
    StateField(&'a StateField),
    /// Ready and wanted counts, with the names of their fields.
    Counts(&'a str, i64, &'a str, i64),
    /// A number of parts that are not well.
    Lacking(&'a CountField),
    /// A text that is not yet what another one says it is to be.
    Lag(&'a LaggingField),
}

/// Basis of a signal that something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignalBasis {
    /// A state word or a reason states it.
    Stated,
    /// The message for people suggests it.
    Message,
    /// The name of a condition that is not true suggests it.
    Name,
}

/// One signal in the status.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatusSignal<'a> {
    pub(super) sense: WordSense,
    pub(super) force: SignalForce,
    pub(super) basis: SignalBasis,
    pub(super) source: SignalSource<'a>,
}
