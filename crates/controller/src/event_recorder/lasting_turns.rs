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
    to: ParentReason,
    /// When the parent began to turn, and what it said before.
    begun: Time,
    before: Option<ParentReason>,
    due: Time,
}

impl WaitingTurn {
    /// The parent says again what it said before it began to turn, and rests: there is nothing to tell.
    fn is_taken_back(&self) -> bool {
        self.before == Some(self.to) && self.due < self.begun + MAX_TURNING
    }
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
    /// It took the place of an earlier one.
    Folds,
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
        } else if self.waiting.len() >= MAX_QUEUED_EVENTS {
            return TurnFate::NoRoom;
        }
        let fate = if earlier.is_some() { TurnFate::Folds } else { TurnFate::Waits };
        let (begun, before) =
            earlier.map_or((now, transition.from), |earlier| (earlier.begun, earlier.before));
        let due = (now + LASTING).min(begun + MAX_TURNING);
        self.due.insert((due, key.clone()));
        self.waiting.insert(key, WaitingTurn { notice, at: now, to: transition.to, begun, before, due });
        fate
    }

    /// Takes a turn whose time is over: the notice of it, unless it took others back, and the time of it.
    pub(super) fn take_due(&mut self, now: Time) -> Option<(Option<EventNotice>, Time)> {
        let (due, _) = self.due.first()?;
        if *due > now {
            return None;
        }
        let (_, key) = self.due.pop_first()?;
        let turn = self.waiting.remove(&key)?;
        let is_taken_back = turn.is_taken_back();
        Some(((!is_taken_back).then_some(turn.notice), turn.at))
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
                told.extend(notice.map(|notice| (second, notice.reason)));
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
        assert_eq!(play(&turns, 30), (vec![TurnFate::Waits, TurnFate::Folds], Vec::new()));
    }

    #[test]
    fn of_turns_in_a_row_the_last_is_told() {
        let turns = [(1, ChildrenProgressing), (3, ChildrenFailed)];
        let fates = vec![TurnFate::Waits, TurnFate::Folds];
        assert_eq!(play(&turns, 30), (fates, vec![(8, "ChildrenFailed")]));
    }

    #[test]
    fn who_never_rests_is_told_of_once_a_minute() {
        for never in [[ChildrenProgressing, ChildrenFailed], [ChildrenProgressing, AllChildrenReady]] {
            let turns: Vec<_> = (1..120).step_by(3).zip(never.into_iter().cycle()).collect();
            let (_, told) = play(&turns, 200);
            let seconds: Vec<_> = told.iter().map(|(second, _)| *second).collect();
            assert!(seconds.first() == Some(&61) && seconds.len() <= 2, "{told:?}");
            assert!(seconds.iter().all(|second| *second <= 124), "{told:?}");
        }
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
