//! How the children of one parent stand, by what its policy asks of them.

use readiness::Level;
use readiness::rollup::{ParentReason, Tally, worst};

use crate::roll::Roll;
use crate::types::{Group, ObjectId, Policy, Quorum, Role};

/// How the critical children of a roll stand.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standing {
    /// All of them.
    pub(crate) all: Tally,
    /// Those whose trouble counts, where that is not all: a group that has its quorum has none.
    counted: Option<Tally>,
    /// So many that are expected do not exist.
    missing: u32,
    /// A group has more than the policy allows.
    surplus: bool,
}

impl Standing {
    pub(crate) fn of(roll: &Roll, policy: &Policy) -> Standing {
        let (mut stand, mut total, mut forgiven) = (Standing::default(), 0, false);
        for (at, group) in policy.groups.iter().enumerate().filter(|(_, g)| g.role == Role::Critical) {
            let tally = roll.tally_of(at as u8);
            let count = tally.map_or(0, Tally::total);
            if let Some(tally) = tally.filter(|_| count > 0) {
                stand.all = if total == 0 { *tally } else { stand.all.plus(tally) };
                forgiven |= has_quorum(group, tally);
            }
            total += count;
            stand.missing += least(roll, at as u8, group).saturating_sub(count);
            stand.surplus |= group.max.is_some_and(|max| count > max);
        }
        stand.counted = forgiven.then(|| unforgiven(roll, policy));
        stand.missing += policy.min.saturating_sub(total) + unseen_names(roll, policy);
        // No children at all is never ready, whatever a policy expects.
        stand.missing = stand.missing.max(u32::from(total == 0));
        stand
    }

    pub(crate) fn worst(&self) -> Option<ParentReason> {
        let reason = worst(self.counted(), self.missing, self.surplus);
        // Suspended ones are neutral beside any that is ready, also in a group whose troubles do not count.
        reason.filter(|r| *r != ParentReason::ChildrenSuspended || self.all.at(Level::Ready) == 0)
    }

    pub(crate) fn counted(&self) -> &Tally {
        self.counted.as_ref().unwrap_or(&self.all)
    }
}

fn unforgiven(roll: &Roll, policy: &Policy) -> Tally {
    let critical = policy.groups.iter().enumerate().filter(|(_, g)| g.role == Role::Critical);
    let tallies = critical.filter_map(|(at, group)| Some((group, roll.tally_of(at as u8)?)));
    let counted = tallies.filter(|(group, tally)| !has_quorum(group, tally));
    counted.fold(Tally::default(), |sum, (_, tally)| sum.plus(tally))
}

/// What the policy says, or computes from this parent. A quorum of n is never reached by fewer than n, and one of n % never by
/// none at all.
fn least(roll: &Roll, at: u8, group: &Group) -> u32 {
    let counts = roll.view.iter().flat_map(|view| &view.counts);
    let computed = counts.filter(|(group, _)| *group == at).map(|(_, n)| *n).max();
    let min = computed.unwrap_or(group.min);
    match group.quorum {
        Quorum::Count(n) => min.max(n),
        Quorum::Percent(_) => min.max(1),
        Quorum::All => min,
    }
}

fn has_quorum(group: &Group, tally: &Tally) -> bool {
    if group.quorum == Quorum::All {
        return false;
    }
    let needed = group.quorum.of(tally.total() - tally.at(Level::Suspended));
    needed > 0 && tally.at(Level::Ready) >= needed
}

fn unseen_names(roll: &Roll, policy: &Policy) -> u32 {
    let expects = roll.view.iter().flat_map(|v| &v.expects);
    let unseen = expects.filter(|(group, name)| {
        let critical = policy.groups.get(usize::from(*group)).is_some_and(|g| g.role == Role::Critical);
        critical && !has_name(roll, *group, *name)
    });
    unseen.count() as u32
}

/// Is there a child of that name in that group?
pub(crate) fn has_name(roll: &Roll, group: u8, name: u64) -> bool {
    roll.named.range((group, name, ObjectId(0))..=(group, name, ObjectId(u32::MAX))).next().is_some()
}
