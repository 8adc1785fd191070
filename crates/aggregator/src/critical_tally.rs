//! Tally of a parent's critical children against the requirements of its policy.

use readiness::Level;
use readiness::rollup::{LevelTally, ParentReason, worst_reason};

use crate::evaluation::ChildCounts;
use crate::types::{AnswerView, ChildGroup, EnginePolicy, GroupRole, Quorum};

/// Tally of the critical children of one evaluation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CriticalTally {
    /// All critical children.
    pub(crate) all: LevelTally,
    /// Children whose state counts, if not all do: the unready children of a group with its quorum do not.
    counted: Option<LevelTally>,
    /// Number of expected children that do not exist.
    missing: u32,
    /// A group has more children than the policy allows.
    surplus: bool,
}

impl CriticalTally {
    pub(crate) fn of_children(
        children: &ChildCounts,
        view: &AnswerView,
        policy: &EnginePolicy,
    ) -> CriticalTally {
        let (mut stand, mut total, mut forgiven) = (CriticalTally::default(), 0, false);
        for (at, group) in policy.indexed_groups().filter(|(_, g)| g.role == GroupRole::Critical) {
            let tally = children.find_group_tally(at);
            let count = tally.map_or(0, LevelTally::total_count);
            if let Some(tally) = tally.filter(|_| count > 0) {
                stand.all = if total == 0 { *tally } else { stand.all.sum_with(tally) };
                forgiven |= has_quorum(group, tally);
            }
            total += count;
            let short = min_expected(Some(view), at, group).saturating_sub(count);
            stand.missing = stand.missing.saturating_add(short);
            stand.surplus |= group.max.is_some_and(|max| count > max);
        }
        stand.counted = forgiven.then(|| tally_without_quorum(children, policy));
        let short =
            policy.min.saturating_sub(total).saturating_add(missing_name_count(children, view, policy));
        stand.missing = stand.missing.saturating_add(short);
        // A parent without any children is never ready, whatever the policy expects.
        stand.missing = stand.missing.max(u32::from(total == 0));
        stand
    }

    pub(crate) fn worst_reason(&self) -> Option<ParentReason> {
        let reason = worst_reason(self.counted_tally(), self.missing, self.surplus);
        // Suspended children are neutral beside any ready one, also in a group whose unready children do not count.
        reason.filter(|r| *r != ParentReason::ChildrenSuspended || self.all.count_at(Level::Ready) == 0)
    }

    pub(crate) fn counted_tally(&self) -> &LevelTally {
        self.counted.as_ref().unwrap_or(&self.all)
    }
}

fn tally_without_quorum(children: &ChildCounts, policy: &EnginePolicy) -> LevelTally {
    let critical = policy.indexed_groups().filter(|(_, g)| g.role == GroupRole::Critical);
    let tallies = critical.filter_map(|(at, group)| Some((group, children.find_group_tally(at)?)));
    let counted = tallies.filter(|(group, tally)| !has_quorum(group, tally));
    counted.fold(LevelTally::default(), |sum, (_, tally)| sum.sum_with(tally))
}

/// Returns the minimum number of children that the policy sets or computes from this parent. A quorum of n needs at
/// least n children, and one of n % at least one.
pub(crate) fn min_expected(view: Option<&AnswerView>, at: u8, group: &ChildGroup) -> u32 {
    let counts = view.into_iter().flat_map(|view| &view.counts);
    let computed = counts.filter(|(group, _)| *group == at).map(|(_, n)| *n).max();
    let min = computed.unwrap_or(group.min);
    match group.quorum {
        Quorum::Count(n) => min.max(n),
        Quorum::Percent(_) => min.max(1),
        Quorum::All => min,
    }
}

fn has_quorum(group: &ChildGroup, tally: &LevelTally) -> bool {
    if group.quorum == Quorum::All {
        return false;
    }
    let needed = group.quorum.needed_of(tally.total_count() - tally.count_at(Level::Suspended));
    needed > 0 && tally.count_at(Level::Ready) >= needed
}

fn missing_name_count(children: &ChildCounts, view: &AnswerView, policy: &EnginePolicy) -> u32 {
    let unseen = view.expects.iter().filter(|(group, name)| {
        let critical = policy.groups.get(usize::from(*group)).is_some_and(|g| g.role == GroupRole::Critical);
        critical && !children.has_name(*group, *name)
    });
    u32::try_from(unseen.count()).unwrap_or(u32::MAX)
}
