//! Turns of parents that have not lasted yet. Only what a parent goes on to say is worth an Event.
//!
//! No clock and no I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use readiness::Time;
use readiness::rollup::ParentReason;

use super::correlator::MAX_QUEUED_EVENTS;
use super::event_notice::EventNotice;
use crate::transitions::Transition;

/// Time for which a parent has to say the same before an Event tells it. 5 s.
const LASTING: Duration = Duration::from_secs(5);
/// Time after which an Event tells of a parent that keeps turning, whatever it says then. 1 min.
const MAX_TURNING: Duration = Duration::from_mins(1);

/// Uid of a parent, and the policy.
type TurnKey = (Box<str>, Box<str>);

/// Turn that waits.
#[derive(Debug)]
struct WaitingTurn {
    notice: EventNotice,
    at: Time,
    /// When the parent began to turn, and what it said before.
    begun: Time,
    before: Option<ParentReason>,
    due: Time,
}

/// Turns that wait until they have lasted; see the module.
#[derive(Debug, Default)]
pub(super) struct LastingTurns {
    waiting: BTreeMap<TurnKey, WaitingTurn>,
    due: BTreeSet<(Time, TurnKey)>,
}

/// What became of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnFate {
    /// It waits.
    Waits,
    /// It took the place of so many earlier ones, itself included where the parent says again what it said before them.
    Folded(u64),
    /// Too many wait.
    NoRoom,
}

impl LastingTurns {
    /// Takes in a turn that is worth an Event once it has lasted.
    pub(super) fn admit_turn(&mut self, transition: &Transition, notice: EventNotice, now: Time) -> TurnFate {
        let key: TurnKey = (notice.uid.as_str().into(), transition.policy.as_str().into());
        let earlier = self.waiting.remove(&key);
        if let Some(earlier) = &earlier {
            self.due.remove(&(earlier.due, key.clone()));
            if earlier.before == Some(transition.to) {
                return TurnFate::Folded(2);
            }
        } else if self.waiting.len() >= MAX_QUEUED_EVENTS {
            return TurnFate::NoRoom;
        }
        let fate = if earlier.is_some() { TurnFate::Folded(1) } else { TurnFate::Waits };
        let (begun, before) =
            earlier.map_or((now, transition.from), |earlier| (earlier.begun, earlier.before));
        let due = (now + LASTING).min(begun + MAX_TURNING);
        self.due.insert((due, key.clone()));
        self.waiting.insert(key, WaitingTurn { notice, at: now, begun, before, due });
        fate
    }

    /// Takes a turn that has lasted, with the time of it.
    pub(super) fn take_due(&mut self, now: Time) -> Option<(EventNotice, Time)> {
        let (due, _) = self.due.first()?;
        if *due > now {
            return None;
        }
        let (_, key) = self.due.pop_first()?;
        self.waiting.remove(&key).map(|turn| (turn.notice, turn.at))
    }

    /// Time of the next turn that will have lasted.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.due.first().map(|(due, _)| *due)
    }
}

#[cfg(test)]
mod tests {
    use readiness::rollup::ParentReason::{AllChildrenReady, ChildrenFailed, ChildrenProgressing};

    use super::*;
    use crate::transitions::ObjectRef;

    fn turn(from: ParentReason, to: ParentReason) -> Transition {
        Transition {
            at: Time(0),
            policy: "shops".to_owned(),
            parent: ObjectRef::default(),
            version: String::new(),
            uid: "u".to_owned(),
            generation: None,
            from: Some(from),
            to,
            message: String::new(),
            causes: Vec::new(),
            shadow: false,
            kind: aggregator::KindId(0),
        }
    }

    /// Lets a parent turn at these seconds; the fates of its turns, and which are told at which second until the end.
    fn play(turns: &[(u64, ParentReason)], end: u64) -> (Vec<TurnFate>, Vec<(u64, &'static str)>) {
        let (mut waiting, mut said) = (LastingTurns::default(), AllChildrenReady);
        let (mut fates, mut told) = (Vec::new(), Vec::new());
        for second in 0..end {
            let now = Time(0) + Duration::from_secs(second);
            for (_, to) in turns.iter().filter(|(at, _)| *at == second) {
                let transition = turn(said, *to);
                said = *to;
                let notice = EventNotice::from_transition(&transition).unwrap();
                fates.push(waiting.admit_turn(&transition, notice, now));
            }
            while let Some((notice, _)) = waiting.take_due(now) {
                told.push((second, notice.reason));
            }
        }
        assert!(waiting.next_due().is_none() && waiting.waiting.is_empty());
        (fates, told)
    }

    #[test]
    fn what_lasts_is_told() {
        let turns = [(1, ChildrenProgressing), (10, AllChildrenReady)];
        let told = vec![(6, "ChildrenProgressing"), (15, "AllChildrenReady")];
        assert_eq!(play(&turns, 30), (vec![TurnFate::Waits; 2], told));
    }

    #[test]
    fn who_comes_back_at_once_has_not_turned() {
        let turns = [(1, ChildrenProgressing), (3, AllChildrenReady)];
        assert_eq!(play(&turns, 30), (vec![TurnFate::Waits, TurnFate::Folded(2)], Vec::new()));
    }

    #[test]
    fn of_turns_in_a_row_the_last_is_told() {
        let turns = [(1, ChildrenProgressing), (3, ChildrenFailed)];
        let fates = vec![TurnFate::Waits, TurnFate::Folded(1)];
        assert_eq!(play(&turns, 30), (fates, vec![(8, "ChildrenFailed")]));
    }

    #[test]
    fn who_never_rests_is_told_of_once_a_minute() {
        let never = [ChildrenProgressing, ChildrenFailed];
        let turns: Vec<_> = (1..120).step_by(3).zip(never.into_iter().cycle()).collect();
        let (_, told) = play(&turns, 200);
        let seconds: Vec<_> = told.iter().map(|(second, _)| *second).collect();
        assert_eq!(seconds.len(), 2, "{told:?}");
        assert!(seconds[0] == 61 && seconds[1] <= 124, "{told:?}");
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut waiting = LastingTurns::default();
        let fates = (0..10_000).map(|at| {
            let transition = Transition { uid: format!("u{at}"), ..turn(AllChildrenReady, ChildrenFailed) };
            let notice = EventNotice::from_transition(&transition).unwrap();
            waiting.admit_turn(&transition, notice, Time(0))
        });
        assert_eq!(fates.filter(|fate| *fate == TurnFate::NoRoom).count(), 10_000 - MAX_QUEUED_EVENTS);
    }
}
