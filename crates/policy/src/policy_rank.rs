//! Which of two policies rules a parent that both select for the same condition.

use readiness::Time;

use super::found_policy::FoundPolicy;

/// Rank of a policy: the lesser one rules. It is the same to every release.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyRank {
    /// One that was never accepted rules only where no other policy does.
    is_never_accepted: bool,
    created: Option<Time>,
    name: String,
}

impl PolicyRank {
    /// The rank of a policy, by its age and then its name.
    pub fn of(found: &FoundPolicy, is_never_accepted: bool) -> PolicyRank {
        PolicyRank { is_never_accepted, created: found.created, name: found.name.clone() }
    }
}
