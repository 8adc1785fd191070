//! The end of a rollout: an answer that turned since then says nothing of it.

use std::time::Duration;

use readiness::{Time, saturating_millis};
use serde_json::Value;

use super::object_moments::moment;
use super::rollout_object::RolloutObject;

/// Component that writes Rollcall's Events, and the reason of those that say True.
const EVENT_COMPONENT: &str = "rollcall.dev/controller";
const READY_REASON: &str = "AllChildrenReady";
/// Timestamps of conditions have whole seconds, and an Event is written beside its condition. 2 s.
const SAME_MOMENT: Duration = Duration::from_secs(2);
/// Time that a write may take, with retries, beyond what the policy waits for. 1 min.
const WRITE_MARGIN: Duration = Duration::from_mins(1);

/// How long a policy waits after the last child before it says True.
#[derive(Clone, Copy, Debug, Default)]
pub struct RolloutDamping(pub Duration);

/// When a rollout ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolloutEnd {
    /// Time at which it was told ready first, or, where nothing tells that, at which its last child was.
    pub at: Time,
    /// Time at which it was told ready last, where the rollout does not explain that it was so late.
    pub told_later: Option<Time>,
    /// An Event tells that it was told ready before.
    pub is_first_known: bool,
}

impl RolloutEnd {
    /// Finds the end of a rollout that began at `from`, of an object that was `told` ready last at this time. Events expire: the
    /// first that is left need not be the first that there was.
    pub fn find(
        root: &RolloutObject,
        (from, told): (Time, Time),
        events: &[Value],
        damping: RolloutDamping,
    ) -> RolloutEnd {
        let is_after =
            |at: Time, before: Time, by: Duration| at.0 > before.0.saturating_add(saturating_millis(by));
        let first = events.iter().filter_map(told_ready_by).filter(|at| *at >= from).min();
        let first = first.filter(|first| is_after(told, *first, SAME_MOMENT));
        let end = first.unwrap_or(told).max(from);
        let before = root.children.iter().filter_map(RolloutObject::ready_since).filter(|at| *at <= end);
        let last = before.max().map(|last| last.max(from));
        match last.filter(|last| is_after(end, *last, 2 * damping.0 + WRITE_MARGIN)) {
            Some(last) => RolloutEnd { at: last, told_later: Some(told), is_first_known: false },
            None => RolloutEnd { at: end, told_later: first.map(|_| told), is_first_known: first.is_some() },
        }
    }
}

/// Time at which one of Rollcall's Events said True first.
fn told_ready_by(event: &Value) -> Option<Time> {
    let is_ready = event["reportingComponent"] == EVENT_COMPONENT && event["reason"] == READY_REASON;
    moment(&event["eventTime"]).filter(|_| is_ready)
}
