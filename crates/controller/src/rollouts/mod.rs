//! Rollouts that ended: what each waited for, in a histogram by cause and, where an endpoint is given, as a trace.
//!
//! The event loop names each generation of a parent that was told Ready for the first time. Its objects are then read live, as
//! the page and `rollcall explain --slow` read them: one rollout after the other, with a pause between two. What comes faster
//! is counted and left out, so that an onboarding of a fleet is a sample and no load. With neither option nothing is read.
//! What was read is kept for the page, and written to the history if there is one: nothing else remembers a rollout once the next
//! generation has begun.

mod ended_rollout;
mod history_entry;
mod rollout_task;
mod trace_exporter;
mod trace_json;

pub(crate) use ended_rollout::{EndedRollout, RolloutSender};
pub(crate) use rollout_task::RolloutTask;
pub(crate) use trace_exporter::TraceExporter;
