//! What one parent is to be told now, and when that changes by itself.

use std::mem::take;

use readiness::rollup::{ParentReason, Status, Tally};
use readiness::{Level, Time};

use crate::roll::{Roll, Waits};
use crate::standing::Standing;
use crate::types::{Answer, Evidence, KindState, Policy};

/// What the lists and watches of a policy's kinds allow to be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// A kind was not listed yet: nothing is said.
    Closed,
    /// The same, and some of what was said before rests on a rule that is another one now: that is taken back, and
    /// nothing else is said.
    Withdrawn,
    /// Everything was seen.
    Open,
    /// A kind is blind in this way: at most Unknown.
    Blind(KindState),
}

impl Gate {
    /// Not everything that the policy rests on was listed.
    pub(crate) fn awaits_a_list(self) -> bool {
        matches!(self, Gate::Closed | Gate::Withdrawn)
    }

    /// The gate of a policy whose kinds are in these states.
    pub(crate) fn over(states: impl Iterator<Item = KindState>) -> Gate {
        let mut gate = Gate::Open;
        for state in states {
            match (state, gate) {
                (KindState::Listing, _) => return Gate::Closed,
                (KindState::Forbidden, _) => gate = Gate::Blind(KindState::Forbidden),
                (KindState::Stale, Gate::Open) => gate = Gate::Blind(KindState::Stale),
                _ => {}
            }
        }
        gate
    }
}

/// An answer, and the moment at which it has to be asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Judged {
    answer: Option<Answer>,
    again: Option<Time>,
}

/// What a judgement has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct News {
    /// How it weighs may have moved.
    pub(crate) moved: bool,
    /// Those above may have been waiting for it.
    pub(crate) awaited: bool,
    /// Its words may have moved.
    pub(crate) reworded: bool,
    /// Nothing is written of it.
    pub(crate) silent: bool,
    /// Others have moved something.
    pub(crate) provoked: bool,
    /// Where it stood in a queue until now.
    pub(crate) waited: Waits,
    /// When it is to be judged again.
    pub(crate) again: Option<Time>,
}

impl Roll {
    /// Judges it, and notes that it was.
    pub(crate) fn renew(&mut self, policy: &Policy, gate: Gate, now: Time) -> News {
        let Judged { answer, again } = judge(self, policy, gate, now);
        let again = again.filter(|_| self.view.is_some());
        self.touched.fire(now);
        let news = News {
            moved: take(&mut self.doubted) || self.answer != answer,
            awaited: take(&mut self.held) || !self.judged,
            reworded: take(&mut self.reworded),
            silent: policy.shadow || self.view.as_ref().is_some_and(|v| v.owned),
            provoked: take(&mut self.provoked),
            waited: take(&mut self.waits),
            again,
        };
        self.waits.date = again.is_some();
        self.answer = answer;
        self.judged |= !gate.awaits_a_list();
        self.withdrawn = gate == Gate::Withdrawn;
        news
    }
}

fn say(reason: ParentReason, tally: &Tally) -> Answer {
    let well = matches!(reason, ParentReason::AllChildrenReady);
    let neutral = matches!(reason, ParentReason::ChildrenSuspended | ParentReason::Terminating);
    Answer {
        reason,
        total: tally.total(),
        ready: tally.at(Level::Ready),
        reconciling: !well && !neutral,
        stalled: false,
    }
}

/// The answer of `roll` at `now`. Moves the roll's phase on.
fn judge(roll: &mut Roll, policy: &Policy, gate: Gate, now: Time) -> Judged {
    let Some(view) = &roll.view else { return Judged { answer: None, again: None } };
    let blocked = view.unrendered;
    if roll.answer.is_some_and(|a| a.reason == ParentReason::AllChildrenReady) {
        roll.phase.unready = now;
    }
    let stand = Standing::of(roll, policy);
    if roll.deleting {
        return Judged { answer: Some(say(ParentReason::Terminating, &stand.all)), again: None };
    }
    if !roll.phase.announced {
        return Judged { answer: Some(say(ParentReason::ChildrenPending, &Tally::default())), again: None };
    }
    if blocked {
        return in_time(roll, policy, now, &stand.all, say(ParentReason::TemplateFailed, &stand.all), None);
    }
    match handled(roll, policy, now) {
        Ok(()) => {
            if !std::mem::replace(&mut roll.phase.handled, true) && roll.evidence == Evidence::Handled {
                roll.proven = now;
            }
        }
        Err(again) => return pending(roll, policy, now, &stand.all, again),
    }
    judge_children(roll, policy, gate, now, &stand)
}

/// Would nothing that is known of `roll` keep it from being well?
pub(crate) fn is_well(roll: &Roll, policy: &Policy) -> bool {
    let kept = roll.deleting
        || !(roll.phase.announced && roll.phase.handled)
        || roll.evidence == Evidence::NotYet
        || roll.view.as_ref().is_none_or(|v| v.unrendered);
    !kept && Standing::of(roll, policy).worst().is_none()
}

/// Is it known to have failed, or to be stuck, while it says neither? That does not wait for quiet.
pub(crate) fn is_urgent(roll: &Roll, policy: &Policy) -> bool {
    use ParentReason::{ChildrenFailed, ChildrenStuck, DeadlineExceeded};
    let said = roll.answer.map(|answer| answer.reason);
    let known = matches!(said, Some(ChildrenFailed | ChildrenStuck | DeadlineExceeded));
    // The worst comes first: where nothing is as bad as that, nobody has to count.
    let bad = |level| matches!(level, Level::Failed | Level::Stuck);
    let possible = !known && roll.troubles.iter().next().is_some_and(|worst| bad(worst.weight.level));
    possible
        && roll.phase.announced
        && roll.phase.handled
        && !roll.deleting
        && matches!(Standing::of(roll, policy).worst(), Some(ChildrenFailed | ChildrenStuck))
}

/// Was this generation handled? If not, when to ask again where nothing moves.
fn handled(roll: &Roll, policy: &Policy, now: Time) -> Result<(), Option<Time>> {
    match roll.evidence {
        _ if roll.phase.handled && roll.evidence != Evidence::NotYet => Ok(()),
        Evidence::Handled => Ok(()),
        Evidence::NotYet | Evidence::Unmarked => Err(None),
        Evidence::Silent => {
            let at = roll.phase.since.max(roll.stirred) + policy.settle;
            if at <= now { Ok(()) } else { Err(Some(at)) }
        }
    }
}

fn pending(roll: &Roll, policy: &Policy, now: Time, all: &Tally, again: Option<Time>) -> Judged {
    let answer = say(ParentReason::ChildrenPending, &Tally::default());
    if again.is_some() {
        return in_time(roll, policy, now, all, answer, again);
    }
    let silent_at = roll.phase.since + policy.pending;
    let first = policy.deadline.is_none_or(|limit| silent_at < roll.phase.unready + limit);
    if silent_at <= now && first {
        let answer = Answer {
            reconciling: false,
            stalled: true,
            ..say(ParentReason::OperatorSilent, &Tally::default())
        };
        return Judged { answer: Some(answer), again: None };
    }
    in_time(roll, policy, now, all, answer, Some(silent_at))
}

/// The same answer within the policy's deadline; `again` is when it changes for another reason.
fn in_time(
    roll: &Roll,
    policy: &Policy,
    now: Time,
    all: &Tally,
    answer: Answer,
    again: Option<Time>,
) -> Judged {
    let Some(limit) = policy.deadline else { return Judged { answer: Some(answer), again } };
    let at = roll.phase.unready + limit;
    if at > now {
        return Judged { answer: Some(answer), again: Some(again.map_or(at, |a| a.min(at))) };
    }
    // The same words whether its children are judged already or, after a restart, not yet.
    let answer = Answer { reconciling: false, stalled: true, ..say(ParentReason::DeadlineExceeded, all) };
    Judged { answer: Some(answer), again: again.filter(|again| *again > now) }
}

fn judge_children(roll: &mut Roll, policy: &Policy, gate: Gate, now: Time, stand: &Standing) -> Judged {
    let reason = stand.worst();
    roll.missing = match reason {
        Some(ParentReason::ChildrenMissing) => roll.missing.or(Some(now)),
        _ => None,
    };
    if gate == Gate::Withdrawn
        && !matches!(reason, Some(ParentReason::ChildrenFailed | ParentReason::ChildrenStuck))
    {
        roll.well = None;
        return Judged { answer: Some(say(ParentReason::ChildrenUnknown, &stand.all)), again: None };
    }
    let Some(reason) = reason else { return all_well(roll, policy, gate, now, &stand.all) };
    roll.well = None;
    // What is not found among what cannot be seen is not known to be missing.
    if let Gate::Blind(state) = gate
        && (reason.status() != Status::False || reason == ParentReason::ChildrenMissing)
    {
        return blind(state, &stand.all);
    }
    let mut answer = say(reason, &stand.all);
    let overdue = roll.missing.map(|since| since + policy.pending);
    answer.stalled = match reason {
        ParentReason::ChildrenFailed => stand.counted().terminal() > 0,
        ParentReason::ChildrenStuck => true,
        ParentReason::ChildrenMissing => overdue.is_some_and(|at| at <= now),
        _ => false,
    };
    answer.reconciling &= !answer.stalled;
    let again = overdue.filter(|at| *at > now);
    if reason == ParentReason::ChildrenSuspended {
        return Judged { answer: Some(answer), again };
    }
    in_time(roll, policy, now, &stand.all, answer, again)
}

fn blind(state: KindState, critical: &Tally) -> Judged {
    let reason = match state {
        KindState::Stale => ParentReason::WatchStale,
        _ => ParentReason::KindNotVisible,
    };
    Judged { answer: Some(say(reason, critical)), again: None }
}

fn all_well(roll: &mut Roll, policy: &Policy, gate: Gate, now: Time, critical: &Tally) -> Judged {
    let since = *roll.well.get_or_insert(now);
    if let Gate::Blind(state) = gate {
        return blind(state, critical);
    }
    let stands = roll.answer.is_some_and(|a| a.reason == ParentReason::AllChildrenReady);
    let settled = roll.appeared + policy.debounce.quiet + policy.settle + policy.hold;
    // Each kind has a watch of its own: what the operator created before it said that it is done may come after that.
    let (at, proven) = (settled.max(since + policy.hold), roll.proven + policy.debounce.quiet);
    let (reason, again) = if stands || at.max(proven) <= now {
        (ParentReason::AllChildrenReady, None)
    } else if at <= now && roll.answer.is_none_or(|a| a.reason == ParentReason::ChildrenPending) {
        (ParentReason::ChildrenPending, Some(proven))
    } else {
        (ParentReason::ChildrenSettling, Some(at.max(proven)))
    };
    Judged { answer: Some(say(reason, critical)), again }
}
