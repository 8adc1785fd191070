//! The critical path of a rollout: what a parent waited for, one thing after the other, from the change of its spec until it
//! was told ready.
//!
//! It is walked back from the end. What an object was last waiting for is the child, or the step of its own, that ended last; before
//! that child began, it waited for what had ended last by then; and so on. What lies between is the object's own time: its
//! operator's or controller's, or Rollcall's settling. The parts therefore touch each other and sum up to the whole.

mod critical_path;
mod object_moments;
mod pod_steps;
mod rollout_end;
mod rollout_object;
mod rollout_step;
#[cfg(test)]
mod tests;

pub use critical_path::{PathPart, critical_path};
pub use object_moments::{member_changed_at, members_changed_at, spec_changed_at, told_ready_at};
pub use rollout_end::{RolloutDamping, RolloutEnd};
pub use rollout_object::RolloutObject;
pub use rollout_step::{RolloutStep, WaitCause};
