//! The steps of a random history and their effects.

use std::time::Duration;

use aggregator::{
    ChildGroup, EnginePolicy, GroupRole, HandledEvidence, KindId, KindState, PolicyId, Quorum,
    ReportedFailure, SelectorId,
};
use proptest::prelude::*;
use readiness::Level;
use readiness::rollup::ChildWeight;

use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, POLICY};
use crate::server::WriteFate;
use crate::{group, groups};

/// The second policy.
const OTHER: PolicyId = PolicyId(2);
/// A kind that only the second policy covers.
const EXTRAS: KindId = KindId(2);
const PARENTS: u8 = 4;
const CHILD_NAMES: u8 = 6;
pub(crate) const LEVELS: [Level; 8] = [
    Level::Ready,
    Level::Progressing,
    Level::Failed,
    Level::Unknown,
    Level::Stuck,
    Level::Suspended,
    Level::Missing,
    Level::Terminating,
];

/// One step of a history.
#[derive(Clone, Debug)]
pub(crate) enum HistoryStep {
    Wait(u64),
    Child { child: u8, of: u8, level: usize, labelled: bool },
    Turn { child: u8, level: usize, terminal: bool },
    Remove(u8),
    Parent { parent: u8, evidence: u8, both: bool, selects: bool },
    Own { parent: u8, of: Option<u8> },
    Respecify { parent: u8, evidence: u8 },
    Evidence { parent: u8, evidence: u8 },
    Failure { parent: u8, failure: u8 },
    RemoveParent(u8),
    Delete(u8),
    Expect { parent: u8, child: u8 },
    Blot { parent: u8 },
    Kind { kind: u16, state: u8 },
    Fates(Vec<u8>),
    Restart(bool),
    Policy(bool),
    Standby(bool),
}

pub(crate) fn step() -> impl Strategy<Value = HistoryStep> {
    let (parent, child, level) = (0..PARENTS, 0..CHILD_NAMES, 0..LEVELS.len());
    prop_oneof![
        8 => prop_oneof![0..150_u64, 0..1_500_u64, 0..20_000_u64].prop_map(HistoryStep::Wait),
        6 => (child.clone(), parent.clone(), level.clone(), any::<bool>())
            .prop_map(|(child, of, level, labelled)| HistoryStep::Child { child, of, level, labelled }),
        12 => (child.clone(), prop_oneof![3 => 0..2_usize, 1 => level], any::<bool>())
            .prop_map(|(child, level, terminal)| HistoryStep::Turn { child, level, terminal }),
        2 => child.clone().prop_map(HistoryStep::Remove),
        4 => (parent.clone(), 0..3_u8, any::<bool>(), any::<bool>())
            .prop_map(|(parent, evidence, both, selects)| HistoryStep::Parent { parent, evidence, both, selects }),
        3 => (parent.clone(), proptest::option::of(parent.clone())).prop_map(|(parent, of)| HistoryStep::Own { parent, of }),
        2 => (parent.clone(), 0..3_u8).prop_map(|(parent, evidence)| HistoryStep::Respecify { parent, evidence }),
        2 => (parent.clone(), 0..3_u8).prop_map(|(parent, evidence)| HistoryStep::Evidence { parent, evidence }),
        2 => (parent.clone(), 0..6_u8).prop_map(|(parent, failure)| HistoryStep::Failure { parent, failure }),
        1 => parent.clone().prop_map(HistoryStep::RemoveParent),
        1 => parent.clone().prop_map(HistoryStep::Delete),
        1 => (parent.clone(), child).prop_map(|(parent, child)| HistoryStep::Expect { parent, child }),
        1 => parent.prop_map(|parent| HistoryStep::Blot { parent }),
        2 => (0..3_u16, 0..5_u8).prop_map(|(kind, state)| HistoryStep::Kind { kind, state }),
        2 => proptest::collection::vec(0..5_u8, 1..5).prop_map(HistoryStep::Fates),
        1 => any::<bool>().prop_map(HistoryStep::Restart),
        1 => any::<bool>().prop_map(HistoryStep::Policy),
        1 => any::<bool>().prop_map(HistoryStep::Standby),
    ]
}

/// Parents count for each other under both policies; the second one has a quorum, a maximum, an optional group and
/// names.
pub(crate) fn harness() -> EngineHarness {
    let mut w = EngineHarness::empty();
    let parents = |min| ChildGroup { min, ..group(crate::harness::PARENTS) };
    w.policy(POLICY, groups(vec![ChildGroup { min: 0, ..group(CHILDREN) }, parents(0)]));
    let most = ChildGroup { min: 0, max: Some(3), quorum: Quorum::Percent(60), ..group(CHILDREN) };
    let beside = ChildGroup { role: GroupRole::Optional, min: 0, ..group(EXTRAS) };
    let other = EnginePolicy {
        expects_names: true,
        min: 1,
        settle: Duration::from_secs(1),
        hold: Duration::from_millis(300),
        availability: aggregator::Availability::Strict,
        grace: Duration::ZERO,
        ..groups(vec![most, beside, parents(0)])
    };
    w.policy(OTHER, other);
    w.sync();
    w
}

/// Removes the second policy, or applies it again to all existing parents and children.
fn take_policy(w: &mut EngineHarness, on: bool) {
    if on == w.policies.contains_key(&OTHER) {
        return;
    }
    if !on {
        return w.forget(OTHER);
    }
    let other = harness().policies[&OTHER].clone();
    w.policy(OTHER, other);
    for name in w.objects.keys().cloned().collect::<Vec<_>>() {
        w.change(&name, |object| {
            object.parent.iter_mut().for_each(|p| p.policies.push(OTHER));
            let shifted = |(_, group, of): &(PolicyId, u8, String)| (OTHER, 2 * group, of.clone());
            let more: Vec<_> = object.owners.iter().filter(|o| o.0 == POLICY).map(shifted).collect();
            object.owners.extend(more);
        });
    }
}

fn parent(at: u8) -> String {
    format!("parent-{at}")
}

fn child(at: u8) -> String {
    format!("child-{at}")
}

/// Half of the statuses report no failure.
fn reported_failure(at: u8) -> ReportedFailure {
    use ReportedFailure::{Final, None, Temporary, Unattributed};
    [None, None, None, Unattributed, Temporary, Final][usize::from(at)]
}

fn evidence(at: u8) -> HandledEvidence {
    [HandledEvidence::Handled, HandledEvidence::Silent, HandledEvidence::NotYet][usize::from(at)]
}

fn weight(level: usize, terminal: bool) -> ChildWeight {
    let level = LEVELS[level];
    ChildWeight::of(level).with_terminal(terminal && level == Level::Failed)
}

/// The last child is of the kind that only the second policy covers.
fn kind_of(at: u8) -> KindId {
    if at + 1 == CHILD_NAMES { EXTRAS } else { CHILDREN }
}

pub(crate) fn take(w: &mut EngineHarness, step: &HistoryStep) {
    match *step {
        HistoryStep::Wait(millis) => w.run(millis),
        HistoryStep::Child { child: at, of, level, labelled } => {
            let groups = if kind_of(at) == EXTRAS { vec![(OTHER, 1)] } else { vec![(POLICY, 0), (OTHER, 0)] };
            if !w.objects.contains_key(&child(at)) {
                w.create(&child(at), kind_of(at), LEVELS[level], |_| {});
            }
            w.change(&child(at), |object| {
                object.owners = groups.iter().map(|(policy, group)| (*policy, *group, parent(of))).collect();
                object.labels =
                    groups.into_iter().map(|(policy, group)| (policy, group, SelectorId(1))).collect();
                if !labelled {
                    object.labels.clear();
                }
                // The first child lends the selectors that the others are labelled with.
                if at == 0 && !std::mem::take(&mut object.labels).is_empty() {
                    object.lends = [POLICY, OTHER].map(|policy| (policy, SelectorId(1))).to_vec();
                } else {
                    object.lends.clear();
                }
            });
        }
        HistoryStep::Turn { child: at, level, terminal } => {
            if w.objects.contains_key(&child(at)) {
                w.change(&child(at), |object| object.weights = vec![weight(level, terminal)]);
            }
        }
        HistoryStep::Remove(at) => w.remove(&child(at)),
        HistoryStep::RemoveParent(at) => w.remove(&parent(at)),
        HistoryStep::Kind { kind, state } => {
            let state = [
                KindState::Synced,
                KindState::Listing,
                KindState::Forbidden,
                KindState::Stale,
                KindState::Absent,
            ][usize::from(state)];
            w.kind(KindId(u32::from(kind)), state);
        }
        HistoryStep::Fates(ref fates) => {
            let fate = |at: &u8| match at {
                0 => WriteFate::Conflict,
                1 => WriteFate::Retry(Duration::from_millis(700)),
                2 => WriteFate::Unheard(Duration::from_secs(2)),
                _ => WriteFate::Lands,
            };
            w.server.fates.extend(fates.iter().map(fate));
        }
        HistoryStep::Policy(on) => take_policy(w, on),
        HistoryStep::Standby(on) => w.stand_by(on),
        HistoryStep::Restart(reversed) => {
            let mut order: Vec<String> = w.objects.keys().cloned().collect();
            if reversed {
                order.reverse();
            }
            w.restart(&order.iter().map(String::as_str).collect::<Vec<_>>());
        }
        _ => take_parents(w, step),
    }
}

fn take_parents(w: &mut EngineHarness, step: &HistoryStep) {
    let (HistoryStep::Parent { parent: at, .. }
    | HistoryStep::Own { parent: at, .. }
    | HistoryStep::Respecify { parent: at, .. }
    | HistoryStep::Evidence { parent: at, .. }
    | HistoryStep::Failure { parent: at, .. }
    | HistoryStep::Delete(at)
    | HistoryStep::Expect { parent: at, .. }
    | HistoryStep::Blot { parent: at }) = *step
    else {
        return;
    };
    let name = parent(at);
    if let HistoryStep::Parent { evidence: marks, both, selects, .. } = *step {
        if w.objects.contains_key(&name) {
            return;
        }
        let both = both && w.policies.contains_key(&OTHER);
        return w.parent_so(&name, |p| {
            p.evidence = evidence(marks);
            if both {
                p.policies.push(OTHER);
            }
            if selects {
                p.selects = p.policies.iter().map(|policy| (*policy, SelectorId(1))).collect();
            }
        });
    }
    if !w.objects.contains_key(&name) {
        return;
    }
    match *step {
        HistoryStep::Own { of, .. } => w.change(&name, |object| {
            let above = of.map(|of| [(POLICY, 1, parent(of)), (OTHER, 2, parent(of))]);
            object.owners = above.into_iter().flatten().collect();
        }),
        HistoryStep::Respecify { evidence: marks, .. } => w.respecify(&name, evidence(marks)),
        HistoryStep::Evidence { evidence: marks, .. } => {
            w.change_parent(&name, |p| p.evidence = evidence(marks));
        }
        HistoryStep::Failure { failure, .. } => {
            w.change_parent(&name, |p| p.reported_failure = reported_failure(failure));
        }
        HistoryStep::Delete(_) => w.change_parent(&name, |p| p.deleting = true),
        HistoryStep::Expect { child: expected, .. } => {
            w.change_parent(&name, |p| p.expects = vec![(OTHER, 0, child(expected))]);
        }
        HistoryStep::Blot { .. } => w.change_parent(&name, |p| {
            if let Some(entry) = p.status.get_mut(&POLICY) {
                entry.stalled = !entry.stalled;
            }
        }),
        _ => {}
    }
}
