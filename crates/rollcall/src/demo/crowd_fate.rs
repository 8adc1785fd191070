//! What happens to the parents of the crowd: a function of the second, so that each run shows the same.

/// What a parent of the crowd goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ParentFate {
    /// All is well.
    Steady,
    /// A new version is rolled out now and then.
    RollsOut,
    /// A child is ready and not ready in turn.
    Flaps,
    /// A child fails now and then, and recovers.
    Fails,
    /// A child has failed for good.
    Failed,
    /// A child never gets beyond its first replica.
    Slow,
    /// It has no child.
    Childless,
    /// Its child is suspended.
    Suspended,
    /// Its child hangs in deletion.
    Held,
    /// Its operator has not handled its current generation.
    Unhandled,
    /// Nobody knows how its child is.
    Lost,
    /// It is being deleted itself, and a finalizer holds it.
    Leaving,
}

/// What the child that the fate is about looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildState {
    /// It does not exist.
    Absent,
    /// So many of its replicas are ready.
    Starting(i64),
    /// It is ready.
    Up,
    /// It has failed.
    Failed,
    /// Its node does not answer.
    Lost,
    /// It is suspended.
    Suspended,
    /// It is to be deleted, and a finalizer holds it.
    Held,
}

/// Replicas of each workload.
pub(super) const REPLICAS: i64 = 3;
/// Period of a rollout, and the time of one of its steps.
const ROLLOUT_PERIOD_SECONDS: u64 = 45;
const ROLLOUT_STEP_SECONDS: u64 = 4;
/// Period of a flapping child, of which it is not ready for a third.
const FLAP_PERIOD_SECONDS: u64 = 9;
/// Period of a child that fails, and the time until it recovers.
const FAILURE_PERIOD_SECONDS: u64 = 80;
const FAILURE_SECONDS: u64 = 30;

impl ParentFate {
    /// Returns the state of the child `second` seconds after the start. At 0, what is to fail or to hang is still well.
    pub(super) fn child_state(self, second: u64) -> ChildState {
        match self {
            ParentFate::Childless => ChildState::Absent,
            ParentFate::Suspended => ChildState::Suspended,
            ParentFate::Slow => ChildState::Starting(1),
            ParentFate::Held if second > 0 => ChildState::Held,
            ParentFate::Failed if second > 0 => ChildState::Failed,
            ParentFate::Lost if second > 0 => ChildState::Lost,
            ParentFate::RollsOut => {
                let steps = second % ROLLOUT_PERIOD_SECONDS / ROLLOUT_STEP_SECONDS;
                match i64::try_from(steps) {
                    Ok(ready) if ready < REPLICAS => ChildState::Starting(ready),
                    _ => ChildState::Up,
                }
            }
            ParentFate::Flaps if second % FLAP_PERIOD_SECONDS < FLAP_PERIOD_SECONDS / 3 => {
                ChildState::Starting(REPLICAS - 1)
            }
            ParentFate::Fails if second % FAILURE_PERIOD_SECONDS < FAILURE_SECONDS => ChildState::Failed,
            _ => ChildState::Up,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// States in the first ten minutes, without repetitions.
    fn states(fate: ParentFate) -> Vec<ChildState> {
        let mut states: Vec<_> = (0..600).map(|second| fate.child_state(second)).collect();
        states.dedup();
        states
    }

    #[test]
    fn a_rollout_goes_from_no_replica_to_all_of_them_again_and_again() {
        let rolled = states(ParentFate::RollsOut);
        let once =
            [ChildState::Starting(0), ChildState::Starting(1), ChildState::Starting(2), ChildState::Up];
        assert_eq!(rolled[..4], once);
        assert_eq!(rolled[4..8], once);
    }

    #[test]
    fn what_flaps_and_what_fails_recovers_each_time() {
        for fate in [ParentFate::Flaps, ParentFate::Fails] {
            let turned = states(fate);
            assert!(turned.len() >= 14, "{fate:?}: {turned:?}");
            assert!(turned.iter().skip(1).step_by(2).all(|state| *state == ChildState::Up), "{turned:?}");
        }
    }

    #[test]
    fn what_has_failed_or_hangs_stays_so() {
        assert_eq!(states(ParentFate::Failed), [ChildState::Up, ChildState::Failed]);
        assert_eq!(states(ParentFate::Held), [ChildState::Up, ChildState::Held]);
        assert_eq!(states(ParentFate::Slow), [ChildState::Starting(1)]);
    }
}
