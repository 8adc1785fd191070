//! A pod that crashes again and again, by its own fields.
//!
//! Between two crashes its container runs, and without a probe it is ready then: what its workload counts moves each time,
//! and no limit of what stands still is ever reached. The pod keeps how often it has crashed.

use std::time::Duration;

use crate::Time;
use crate::facts::{Facts, UnreadyContainer};

/// A container that has run for so long is started again without a delay: the kubelet resets its back-off after twice the
/// longest one, which is 5 min by default.
const FORGIVEN_AFTER: Duration = Duration::from_mins(10);
/// Fewer restarts are no loop: what a pod depends on may have come a moment later.
const FEWEST_RESTARTS: u32 = 3;

/// Since when a container of this pod has been crashing. `None` where it is not, and where a pod has run well for long before:
/// when it began then is kept nowhere in it.
pub fn crash_loop_since(pod: &Facts) -> Option<Time> {
    let began = pod.status.started.or(pod.created)?;
    pod.status.containers.troubled.iter().any(|container| crashes_since(container, began)).then_some(began)
}

/// Its crashes since `began` are so many that not one run on average was long enough for them to be forgotten.
fn crashes_since(container: &UnreadyContainer, began: Time) -> bool {
    let Some(exit) = &container.ended else { return false };
    let (Some(started), Some(finished)) = (exit.started, exit.finished) else { return false };
    let is_crash = exit.code != 0 || container.waiting.as_deref() == Some("CrashLoopBackOff");
    let is_short = finished - started < FORGIVEN_AFTER;
    let runs = FORGIVEN_AFTER.saturating_mul(container.restarts);
    is_crash && is_short && container.restarts >= FEWEST_RESTARTS && finished - began <= runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{ContainerExit, PodContainers, StatusFacts};

    const BEGAN: Time = Time(1_800_000_000_000);

    fn minutes(minutes: u64) -> Time {
        BEGAN + Duration::from_mins(minutes)
    }

    /// A pod whose container ended last between these minutes of its life, after so many restarts.
    fn pod(restarts: u32, (started, finished): (u64, u64), exit: i64) -> Facts {
        let ended = ContainerExit {
            code: exit,
            started: Some(minutes(started)),
            finished: Some(minutes(finished)),
            ..ContainerExit::default()
        };
        let waiting = Some("CrashLoopBackOff".into()).filter(|_| exit == 0);
        let container =
            UnreadyContainer { restarts, waiting, ended: Some(ended), ..UnreadyContainer::default() };
        let containers = PodContainers { troubled: vec![container], ..PodContainers::default() };
        let status = StatusFacts { started: Some(BEGAN), containers, ..StatusFacts::default() };
        Facts { status, ..Facts::default() }
    }

    #[test]
    fn a_pod_loops_from_its_start_where_no_run_of_it_was_long() {
        for (restarts, last, exit, loops, why) in [
            (3, (4, 5), 1, true, "thrice within five minutes"),
            (40, (239, 240), 1, true, "for hours, each delay five minutes"),
            (3, (4, 5), 0, true, "it ends well, and is not meant to end"),
            (2, (4, 5), 1, false, "it may have waited for something"),
            (3, (59, 60), 1, false, "it ran well for long before: when this began is not known"),
            (9, (30, 41), 1, false, "the last run was long"),
        ] {
            assert_eq!(crash_loop_since(&pod(restarts, last, exit)), loops.then_some(BEGAN), "{why}");
        }
        let mut unknown = pod(9, (1, 2), 1);
        unknown.status.started = None;
        assert_eq!(crash_loop_since(&unknown), None, "nothing tells when it began");
        unknown.created = Some(minutes(1));
        assert_eq!(crash_loop_since(&unknown), Some(minutes(1)));
    }
}
