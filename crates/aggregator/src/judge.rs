//! What one parent is to be told now, and when that changes by itself.

use readiness::rollup::{ParentReason, Tally, worst};
use readiness::{Level, Time};

use crate::roll::Roll;
use crate::types::{Answer, Evidence, Group, KindState, Policy, Role};

/// What the lists and watches of a policy's kinds allow to be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// A kind was not listed yet: nothing is said.
    Closed,
    /// Everything was seen.
    Open,
    /// A kind is blind in this way: at most Unknown.
    Blind(KindState),
}

impl Gate {
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
pub(crate) struct Judged {
    pub(crate) answer: Option<Answer>,
    pub(crate) again: Option<Time>,
}

fn say(reason: ParentReason, tally: Tally) -> Answer {
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
pub(crate) fn judge(roll: &mut Roll, policy: &Policy, gate: Gate, now: Time) -> Judged {
    let quiet = Judged { answer: roll.answer, again: None };
    let Some(view) = &roll.view else { return Judged { answer: None, again: None } };
    let blocked = view.unrendered;
    let critical = critical(roll, policy);
    if roll.deleting {
        return Judged { answer: Some(say(ParentReason::Terminating, critical)), again: None };
    }
    if gate == Gate::Closed {
        return quiet;
    }
    if !roll.phase.announced {
        return Judged { answer: Some(say(ParentReason::ChildrenPending, Tally::default())), again: None };
    }
    if blocked {
        return Judged { answer: Some(say(ParentReason::TemplateFailed, critical)), again: None };
    }
    match handled(roll, policy, now) {
        Ok(()) => roll.phase.handled = true,
        Err(again) => return pending(roll, policy, now, again),
    }
    judge_children(roll, policy, gate, now, critical)
}

/// Would nothing that is known of `roll` keep it from being well?
pub(crate) fn is_well(roll: &Roll, policy: &Policy) -> bool {
    let (missing, surplus) = unmet(roll, policy, &critical(roll, policy));
    let kept = roll.deleting
        || !(roll.phase.announced && roll.phase.handled)
        || roll.evidence == Evidence::NotYet
        || roll.view.as_ref().is_none_or(|v| v.unrendered);
    !kept && worst(&counted(roll, policy), missing, surplus).is_none()
}

/// Was this generation handled? If not, when to ask again where nothing moves.
fn handled(roll: &Roll, policy: &Policy, now: Time) -> Result<(), Option<Time>> {
    match roll.evidence {
        _ if roll.phase.handled && roll.evidence != Evidence::NotYet => Ok(()),
        Evidence::Handled => Ok(()),
        Evidence::NotYet => Err(None),
        Evidence::Silent => {
            let at = roll.phase.since.max(roll.stirred) + policy.settle;
            if at <= now { Ok(()) } else { Err(Some(at)) }
        }
    }
}

fn pending(roll: &Roll, policy: &Policy, now: Time, again: Option<Time>) -> Judged {
    let silent_at = roll.phase.since + policy.pending;
    if again.is_none() && silent_at <= now {
        let answer = Answer {
            reconciling: false,
            stalled: true,
            ..say(ParentReason::OperatorSilent, Tally::default())
        };
        return Judged { answer: Some(answer), again: None };
    }
    let answer = say(ParentReason::ChildrenPending, Tally::default());
    Judged { answer: Some(answer), again: again.or(Some(silent_at)) }
}

fn judge_children(roll: &mut Roll, policy: &Policy, gate: Gate, now: Time, critical: Tally) -> Judged {
    let (missing, surplus) = unmet(roll, policy, &critical);
    let reason = worst(&counted(roll, policy), missing, surplus);
    roll.missing = match reason {
        Some(ParentReason::ChildrenMissing) => roll.missing.or(Some(now)),
        _ => None,
    };
    let Some(reason) = reason else { return all_well(roll, policy, gate, now, critical) };
    roll.well = None;
    // What is not found among what cannot be seen is not known to be missing.
    if let Gate::Blind(state) = gate
        && (reason.status() != readiness::rollup::Status::False || reason == ParentReason::ChildrenMissing)
    {
        return blind(state, critical);
    }
    let mut answer = say(reason, critical);
    let overdue = roll.missing.map(|since| since + policy.pending);
    answer.stalled = match reason {
        ParentReason::ChildrenFailed => counted(roll, policy).terminal() > 0,
        ParentReason::ChildrenStuck => true,
        ParentReason::ChildrenMissing => overdue.is_some_and(|at| at <= now),
        _ => false,
    };
    let mut again = overdue.filter(|at| *at > now);
    if let Some(limit) = policy.deadline {
        let at = roll.phase.since + limit;
        if at <= now && reason != ParentReason::ChildrenSuspended {
            answer = Answer { stalled: true, ..say(ParentReason::DeadlineExceeded, critical) };
        } else {
            again = Some(again.map_or(at, |a| a.min(at)));
        }
    }
    answer.reconciling &= !answer.stalled;
    Judged { answer: Some(answer), again }
}

fn blind(state: KindState, critical: Tally) -> Judged {
    let reason = match state {
        KindState::Stale => ParentReason::WatchStale,
        _ => ParentReason::KindNotVisible,
    };
    Judged { answer: Some(say(reason, critical)), again: None }
}

fn all_well(roll: &mut Roll, policy: &Policy, gate: Gate, now: Time, critical: Tally) -> Judged {
    let since = *roll.well.get_or_insert(now);
    if let Gate::Blind(state) = gate {
        return blind(state, critical);
    }
    let stands = roll.answer.is_some_and(|a| a.reason == ParentReason::AllChildrenReady);
    let settled = roll.appeared + policy.debounce.quiet + policy.settle + policy.hold;
    let at = settled.max(since + policy.hold);
    if stands || at <= now {
        return Judged { answer: Some(say(ParentReason::AllChildrenReady, critical)), again: None };
    }
    Judged { answer: Some(say(ParentReason::ChildrenSettling, critical)), again: Some(at) }
}

/// All critical children.
fn critical(roll: &Roll, policy: &Policy) -> Tally {
    sum(roll, policy, |_, _| true)
}

/// The critical children whose trouble counts: a group that has its quorum has none.
fn counted(roll: &Roll, policy: &Policy) -> Tally {
    sum(roll, policy, |group, tally| !has_quorum(group, tally))
}

fn has_quorum(group: &Group, tally: &Tally) -> bool {
    let needed = group.quorum.of(tally.total() - tally.at(Level::Suspended));
    group.quorum != crate::types::Quorum::All && needed > 0 && tally.at(Level::Ready) >= needed
}

fn sum(roll: &Roll, policy: &Policy, keep: impl Fn(&Group, &Tally) -> bool) -> Tally {
    let mut total = Tally::default();
    for (at, tally) in &roll.groups {
        match policy.groups.get(usize::from(*at)) {
            Some(group) if group.role == Role::Critical && keep(group, tally) => total = total.plus(tally),
            _ => {}
        }
    }
    total
}

/// How many expected children there are not, and whether any group has too many.
fn unmet(roll: &Roll, policy: &Policy, critical: &Tally) -> (u32, bool) {
    let (mut missing, mut surplus) = (policy.min.saturating_sub(critical.total()), false);
    for (at, group) in policy.groups.iter().enumerate().filter(|(_, g)| g.role == Role::Critical) {
        let count = roll.tally(at as u8).total();
        // A quorum of n is never reached by fewer than n.
        let least = match group.quorum {
            crate::types::Quorum::Count(n) => group.min.max(n),
            _ => group.min,
        };
        missing += least.saturating_sub(count);
        surplus |= group.max.is_some_and(|max| count > max);
    }
    let names = roll.view.iter().flat_map(|v| &v.expects).filter(|(group, name)| {
        let critical = policy.groups.get(usize::from(*group)).is_some_and(|g| g.role == Role::Critical);
        critical && !has_name(roll, *group, *name)
    });
    missing += names.count() as u32;
    // No children at all is never ready, whatever a policy expects.
    if critical.total() == 0 {
        missing = missing.max(1);
    }
    (missing, surplus)
}

/// Is there a child of that name in that group?
pub(crate) fn has_name(roll: &Roll, group: u8, name: u64) -> bool {
    use crate::types::ObjectId;
    roll.named.range((group, name, ObjectId(0))..=(group, name, ObjectId(u32::MAX))).next().is_some()
}
