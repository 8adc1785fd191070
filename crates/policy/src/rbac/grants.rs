//! Which of the ClusterRoles that the administrator lists Rollcall binds to itself, and which not any more.
//!
//! The API server is what keeps it within the list: it lets no client bind a role without the right to `bind` that very role,
//! or all that the role grants. What is decided here is only which of them are needed.

use std::collections::{BTreeMap, BTreeSet};

use super::access::AccessNeed;
use super::grant_binding::MAX_GRANT_ROLES;
use super::listed_role::{ListedRole, RoleBreadth};

/// A right that an accepted policy needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemandedRight {
    /// The policy.
    pub policy: String,
    /// The right.
    pub need: AccessNeed,
    /// The API server denies it.
    pub lacking: bool,
}

/// What all accepted policies need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantDemand {
    /// The rights.
    pub rights: Vec<DemandedRight>,
    /// API groups of kinds that were not discovered yet: what their resources are called is a guess.
    pub unresolved_groups: BTreeSet<String>,
    /// It is not known yet what policies left on parents that are gone: the removal of that may need any role that is bound.
    pub awaits_releases: bool,
}

impl GrantDemand {
    /// True if any right is denied.
    pub fn lacks_any(&self) -> bool {
        self.rights.iter().any(|right| right.lacking)
    }
}

/// What is to be bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantDecision {
    /// The listed roles that are to be bound and no others, each with the policies that need it.
    pub roles: BTreeMap<String, BTreeSet<String>>,
    /// Rights that are denied and that no listed role grants, by policy.
    pub ungranted: BTreeMap<String, Vec<AccessNeed>>,
}

/// Set of listed roles, a bit each.
type RoleSet = u32;

/// Roles that Rollcall has bound, each with the policies for which it did.
pub type BoundRoles = BTreeMap<String, BTreeSet<String>>;

/// Decides which of the listed roles are to be bound, where `bound` are those that Rollcall has bound.
///
/// Together they grant all that is denied, and all that the bound ones grant and a policy needs, as far as listed roles
/// do. What serves explanations alone, as the right to Events that all policies need, keeps only what was bound for that policy:
/// should it go with a role, it is denied then. Of the sets of roles that do so it is the narrowest, then the smallest, then the one listed first. What a policy
/// holds from elsewhere asks for no role. The decision stands once it is carried out: the same demand has the same answer.
///
/// While the resources of a group were not discovered, a bound role with rights in it stays; while it is not known what policies
/// that are gone left on parents, every bound role does.
pub fn decide_grants(demand: &GrantDemand, listed: &[ListedRole], bound: &BoundRoles) -> GrantDecision {
    let listed = &listed[..listed.len().min(MAX_GRANT_ROLES)];
    let mut decision = GrantDecision::default();
    let mut asked: BTreeMap<RoleSet, BTreeSet<&str>> = BTreeMap::new();
    for right in &demand.rights {
        let granting = role_set(listed, |role| role.grants(&right.need));
        if granting == 0 && right.lacking {
            decision.ungranted.entry(right.policy.clone()).or_default().push(right.need.clone());
        }
        let keeps = |policies: &BTreeSet<String>| right.need.essential || policies.contains(&right.policy);
        let kept = role_set(listed, |role| bound.get(&role.name).is_some_and(keeps));
        if granting != 0 && (right.lacking || granting & kept != 0) {
            asked.entry(granting).or_default().insert(&right.policy);
        }
    }
    let unknown = |role: &ListedRole| {
        let is_doubtful = || demand.unresolved_groups.iter().any(|group| role.names_group(group));
        bound.contains_key(&role.name) && (demand.awaits_releases || is_doubtful())
    };
    let chosen =
        narrowest_cover(listed, &asked.keys().copied().collect::<Vec<_>>(), role_set(listed, unknown));
    for (at, role) in listed.iter().enumerate().filter(|(at, _)| chosen & (1 << at) != 0) {
        let served = asked.iter().filter(|(granting, _)| *granting & (1 << at) != 0);
        let policies = served.flat_map(|(_, policies)| policies.iter().map(|&policy| policy.to_owned()));
        decision.roles.insert(role.name.clone(), policies.collect());
    }
    decision
}

fn role_set(listed: &[ListedRole], chosen: impl Fn(&ListedRole) -> bool) -> RoleSet {
    listed.iter().enumerate().filter(|(_, role)| chosen(role)).fold(0, |set, (at, _)| set | 1 << at)
}

/// The best set of roles that has all of `kept` and one of each of the sets that are asked for.
fn narrowest_cover(listed: &[ListedRole], asked: &[RoleSet], kept: RoleSet) -> RoleSet {
    let breadths: Vec<RoleBreadth> = listed.iter().map(ListedRole::breadth).collect();
    let cost = |set: RoleSet| {
        let chosen = breadths.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0);
        let breadth = chosen.fold(RoleBreadth::default(), |sum, (_, breadth)| sum.plus(*breadth));
        (breadth, set.count_ones(), set)
    };
    let useful = asked.iter().fold(kept, |all, set| all | set);
    let candidates = (0..1 << listed.len()).filter(|set: &RoleSet| set & !useful == 0 && set & kept == kept);
    let covers = candidates.filter(|set| asked.iter().all(|granting| granting & set != 0));
    covers.min_by_key(|set| cost(*set)).unwrap_or(kept)
}

#[cfg(test)]
mod tests;
