//! Virtual time: the events to come, and the report of what has happened: log, counts, the first violated invariant.

mod invariant_failure;
mod policy_event;
mod sim_event;
mod sim_timeline;
mod simulation_counts;

pub use invariant_failure::InvariantFailure;
pub(crate) use policy_event::{ClaimWrite, ListStep, ListedSet, OtherReleaseStep, PolicyEvent};
pub(crate) use sim_event::SimEvent;
pub(crate) use sim_timeline::SimTimeline;
pub use simulation_counts::SimulationCounts;
