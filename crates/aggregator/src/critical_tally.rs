//! Tally of a parent's critical children against the requirements of its policy.

use readiness::rollup::{LevelTally, ParentReason, worst_reason};
use readiness::{Level, Steadiness};

use crate::answer_view::AnswerView;
use crate::evaluation::ChildCounts;
use crate::types::{Availability, ChildGroup, EnginePolicy, GroupRole, JointCount, Quorum};

/// Tally of the critical children of one evaluation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CriticalTally {
    /// All critical children.
    pub(crate) all: LevelTally,
    /// Children whose state counts, if not all do: the unready children of a group with its quorum do not.
    counted: Option<LevelTally>,
    /// Children but for prerequisites, where there are such.
    own: Option<LevelTally>,
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
        CriticalTally::of_tallies(children, view, policy, |tally| *tally)
    }

    /// Returns `true` if all children would be ready without those whose newest version awaits its rule: what stands for these
    /// meanwhile keeps an answer and gives none.
    pub(crate) fn is_ready_as_judged(
        &self,
        children: &ChildCounts,
        view: &AnswerView,
        policy: &EnginePolicy,
    ) -> bool {
        // Nearly always nothing is awaited, and then nothing has to be summed up again.
        self.all.unjudged_count() == 0
            || CriticalTally::of_tallies(children, view, policy, LevelTally::with_unjudged_unknown)
                .worst_reason()
                .is_none()
    }

    /// Returns how far children that are not all ready can still be counted on: if all that are as steady as this were ready,
    /// nothing would keep the parent from being so.
    pub(crate) fn steadiness_of(
        children: &ChildCounts,
        view: &AnswerView,
        policy: &EnginePolicy,
    ) -> Steadiness {
        // Nearly always nothing is steady, and then nothing has to be summed up again.
        let steady_counts =
            children.groups.iter().map(|(_, tally)| tally.steady_count(Steadiness::Unobserved));
        if policy.availability == Availability::Strict || steady_counts.sum::<u32>() == 0 {
            return Steadiness::Unsteady;
        }
        let suffices = |least: &Steadiness| {
            let counted = |tally: &LevelTally| tally.with_steady_ready(*least);
            CriticalTally::of_tallies(children, view, policy, counted).worst_reason().is_none()
        };
        [Steadiness::Available, Steadiness::Unobserved].into_iter().find(suffices).unwrap_or_default()
    }

    #[inline]
    fn of_tallies(
        children: &ChildCounts,
        view: &AnswerView,
        policy: &EnginePolicy,
        count: impl Fn(&LevelTally) -> LevelTally + Copy,
    ) -> CriticalTally {
        let mut stand = CriticalTally::default();
        let (mut total, mut own_total, mut forgiven) = (0, 0, false);
        for (at, group) in policy.indexed_groups().filter(|(_, g)| g.role == GroupRole::Critical) {
            let tally = children.find_group_tally(at).map(count);
            let number = tally.as_ref().map_or(0, LevelTally::total_count);
            if let Some(tally) = tally.filter(|_| number > 0) {
                stand.all = if total == 0 { tally } else { stand.all.sum_with(&tally) };
                forgiven |= has_quorum(group, &tally);
            }
            total += number;
            own_total += if group.is_prerequisite { 0 } else { number };
            let short = min_expected(Some(view), at, group).saturating_sub(number);
            stand.missing = stand.missing.saturating_add(short);
            stand.surplus |= group.max.is_some_and(|max| number > max);
        }
        stand.counted = forgiven.then(|| tally_without_quorum(children, policy, count));
        stand.own = (own_total < total).then(|| tally_without_prerequisites(children, policy, count));
        for joint in &policy.joint {
            let number = joint_count(joint, children, policy);
            stand.missing = stand.missing.saturating_add(joint.min.saturating_sub(number));
            stand.surplus |= joint.max.is_some_and(|max| number > max);
        }
        let short =
            policy.min.saturating_sub(own_total).saturating_add(missing_name_count(children, view, policy));
        stand.missing = stand.missing.saturating_add(short);
        // A parent without any children is never ready, whatever the policy expects, and whatever is ready before it.
        stand.missing = stand.missing.max(u32::from(own_total == 0));
        stand
    }

    pub(crate) fn worst_reason(&self) -> Option<ParentReason> {
        let reason = match &self.counted {
            Some(counted) => worst_reason(counted, self.missing, self.surplus),
            None => worst_reason(&self.all, self.missing, self.surplus),
        };
        // Suspended children are neutral beside any ready one, also in a group whose unready children do not count. One that is
        // only awaited is not beside them.
        let own = self.own.as_ref().unwrap_or(&self.all);
        let suspended = || own.count_at(Level::Suspended) > 0 && own.count_at(Level::Ready) == 0;
        reason
            .filter(|r| *r != ParentReason::ChildrenSuspended || own.count_at(Level::Ready) == 0)
            .or_else(|| (self.own.is_some() && suspended()).then_some(ParentReason::ChildrenSuspended))
    }

    pub(crate) fn counted_tally(&self) -> &LevelTally {
        self.counted.as_ref().unwrap_or(&self.all)
    }
}

/// Number of critical children that some groups have together.
fn joint_count(joint: &JointCount, children: &ChildCounts, policy: &EnginePolicy) -> u32 {
    let critical = joint.groups.clone().filter(|at| policy.is_critical(*at));
    critical.map(|at| children.find_group_tally(at).map_or(0, LevelTally::total_count)).sum()
}

fn tally_without_quorum(
    children: &ChildCounts,
    policy: &EnginePolicy,
    count: impl Fn(&LevelTally) -> LevelTally,
) -> LevelTally {
    let critical = policy.indexed_groups().filter(|(_, g)| g.role == GroupRole::Critical);
    let tallies = critical.filter_map(|(at, group)| Some((group, count(children.find_group_tally(at)?))));
    let counted = tallies.filter(|(group, tally)| !has_quorum(group, tally));
    counted.fold(LevelTally::default(), |sum, (_, tally)| sum.sum_with(&tally))
}

fn tally_without_prerequisites(
    children: &ChildCounts,
    policy: &EnginePolicy,
    count: impl Fn(&LevelTally) -> LevelTally,
) -> LevelTally {
    let own = policy.indexed_groups().filter(|(_, g)| g.role == GroupRole::Critical && !g.is_prerequisite);
    let tallies = own.filter_map(|(at, _)| Some(count(children.find_group_tally(at)?)));
    tallies.fold(LevelTally::default(), |sum, tally| sum.sum_with(&tally))
}

/// Returns the minimum number of children that the policy sets, or computes from this parent, or to which the parent refers
/// where that is known by their number alone. A quorum of n needs at least n children, and one of n % at least one.
pub(crate) fn min_expected(view: Option<&AnswerView>, at: u8, group: &ChildGroup) -> u32 {
    let counts = view.into_iter().flat_map(AnswerView::counts);
    let computed = counts.filter(|(group, _)| *group == at).map(|(_, n)| *n).max();
    let min = computed.unwrap_or(0).max(group.min);
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
    let unseen = view.expects().iter().filter(|(group, name)| {
        let critical = policy.groups.get(usize::from(*group)).is_some_and(|g| g.role == GroupRole::Critical);
        critical && !children.has_name(*group, *name)
    });
    u32::try_from(unseen.count()).unwrap_or(u32::MAX)
}
