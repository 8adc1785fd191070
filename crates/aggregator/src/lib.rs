//! Who else changes: which parents a child counts for, what they are to be told, and when.
//!
//! Pure, sans-IO: the driver says what it saw and what time it is ([`Engine::observe`]), asks what is to be told
//! ([`Engine::poll`], [`Engine::offer`]), reports what became of it ([`Engine::settle`]), and sleeps until
//! [`Engine::next_deadline`].
//!
//! The engine owns edges, tallies and an ordered set of what is not ready, by small integers. Names, owners and
//! verdicts in words belong to the reflector.

mod delivery;
mod engine;
mod graph;
mod judge;
mod roll;
mod standing;
mod types;

pub use delivery::{Decision, Outcome};
pub use engine::{ChildOf, Counts, Draft, Engine, RollState, Trouble};
pub use types::{
    Answer, AnswerView, Digest, Evidence, Group, KindId, KindState, Link, ObjectId, ParentView, Policy,
    PolicyId, Quorum, Role, RollId, SelectorId, Source, Target, Told, View,
};
