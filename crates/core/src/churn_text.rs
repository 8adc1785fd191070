//! The critical children on which an answer that says True stands although they are not ready, as text.
//!
//! **Invariant:** it is made of what the API server shows of the children: the next process says the same.

use std::collections::BTreeMap;

use aggregator::{GroupRole, ObjectId, PolicyId, UnreadyChild};
use readiness::{CountedUnit, Reason, Steadiness, Time};
use watcher::reflector::ObjectRow;

use super::causes::{CauseFinder, MAX_NAMES_PER_CAUSE, name_beside};

/// What a workload goes through that is rolled out and available, worse first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Churn {
    /// It has as many pods as it wants, and some are not ready: a disruption took them, or they have just been added. No field of
    /// the workload tells which.
    PodsMissing,
    /// It has fewer pods than it wants, or more.
    Scaling,
}

impl Churn {
    /// Returns what a workload goes through whose verdict has this reason; `None` where the reason is no number of pods.
    fn of_reason(reason: &Reason) -> Option<Churn> {
        match reason {
            Reason::CausedBy(below) => Churn::of_reason(&below.base),
            Reason::Count(CountedUnit::Created | CountedUnit::Updated | CountedUnit::Surplus, ..) => {
                Some(Churn::Scaling)
            }
            Reason::Count(CountedUnit::Ready | CountedUnit::Available, ..) => Some(Churn::PodsMissing),
            _ => None,
        }
    }

    fn as_text(self) -> &'static str {
        match self {
            Churn::PodsMissing => "available with pods missing",
            Churn::Scaling => "scaling",
        }
    }
}

/// Workloads that go through the same: the first few with their numbers of pods, and how many there are.
#[derive(Default)]
struct ChurningWorkloads {
    first: BTreeMap<String, String>,
    count: usize,
}

/// Returns what is said of the critical children of a ready parent that are not ready, worst first; empty if there are none.
pub(super) fn churn_text(causes: &CauseFinder<'_>, parent: ObjectId, policy: PolicyId, now: Time) -> String {
    let namespace = causes.reflector.read_row(parent, |row| row.namespace.clone()).unwrap_or_default();
    let mut churning = BTreeMap::<Churn, ChurningWorkloads>::new();
    for child in causes.engine.unready_children(parent, policy, GroupRole::Critical) {
        let Some(churn) = churn_of(causes, &child, now) else { continue };
        let name = causes.reflector.read_row(child.child, |row| name_beside(row, &namespace));
        let name = format!("{} {}", causes.kinds.name(child.kind), name.unwrap_or_default());
        let workloads = churning.entry(churn).or_default();
        workloads.count += 1;
        workloads.first.insert(name, causes.cause_detail(&child, now));
        if workloads.first.len() > MAX_NAMES_PER_CAUSE {
            workloads.first.pop_last();
        }
    }
    let is_other = |child: &UnreadyChild| churn_of(causes, child, now).is_none();
    let others = causes.causes_text_of(parent, policy, GroupRole::Critical, now, &is_other);
    let churning = churning.iter().map(|(churn, workloads)| workloads_text(*churn, workloads));
    let parts: Vec<String> = (!others.is_empty()).then_some(others).into_iter().chain(churning).collect();
    parts.join("; ")
}

/// Returns what a child goes through, if it is a workload that can be counted on meanwhile.
fn churn_of(causes: &CauseFinder<'_>, child: &UnreadyChild, now: Time) -> Option<Churn> {
    if child.weight.steadiness() != Steadiness::Available || child.rule_changed {
        return None;
    }
    let read =
        |row: &ObjectRow| Churn::of_reason(&row.assessment_for(child.rule_index).verdict_at(now).reason);
    causes.reflector.read_row(child.child, read).flatten()
}

fn workloads_text(churn: Churn, workloads: &ChurningWorkloads) -> String {
    let named = workloads.first.iter().map(|(name, detail)| format!("{name} ({detail})"));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = workloads.count.saturating_sub(workloads.first.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{} {}: {named}{more}", workloads.count, churn.as_text())
}
