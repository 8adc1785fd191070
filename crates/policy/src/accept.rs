//! Which spec of each policy is in force: the last one that was accepted, for as long as a later one is not.

mod accepted_spec;
mod candidate;

use std::collections::{BTreeMap, BTreeSet};

use aggregator::{Acceptance, PolicyId};
use api::ReadinessPolicySpec;
use rollcall_core::CompleteList;

use super::compile::CompiledPolicy;
use super::found_policy::{FoundPolicy, RefusedPolicy};
use super::library_rules::LibraryRules;
use super::plan::IdRegistry;
use super::policy_claim::PolicyClaim;
use super::policy_in_use::PolicyInUse;
use super::policy_rank::PolicyRank;
use super::policy_reason::PolicyReason;
use super::protected_kinds::PolicySettings;
use super::rule_changes::same_but_for_rules;
use super::stub;
use candidate::{Candidate, Choice};

pub use accepted_spec::AcceptedSpec;

/// Most groups of all policies together that may judge one kind: each may bring a rule of its own.
const MAX_GROUPS_OF_KIND: usize = u16::MAX as usize;

/// What became of each policy.
///
/// **Invariant:** a plan is made of what is in use here, and that was decided of a complete list of policies.
#[derive(Debug, Default)]
pub struct PolicyBook {
    /// What is in force, or was when it was last accepted.
    pub accepted: BTreeMap<String, AcceptedSpec>,
    /// Why the spec as it is now is not in force.
    pub refused: BTreeMap<String, RefusedPolicy>,
    /// Policies in force, and those that are refused and of which nothing is that could judge.
    pub in_use: Vec<PolicyInUse>,
    /// What policies were accepted with by which nothing can be judged now: what they were granted for it is left to them.
    pub set_aside: BTreeMap<String, CompiledPolicy>,
    /// Policies whose rules are not read yet, so that nobody knows whether they are refused.
    pub undecided: BTreeSet<String>,
    /// Ranks of the policies in use.
    pub ranks: BTreeMap<PolicyId, PolicyRank>,
    ids: BTreeMap<String, (PolicyId, PolicyIdentity)>,
}

/// What makes a policy the same one to the engine: its uid, and its spec but for the rules for children. One by which
/// nothing can be judged has no spec, only what it claims.
#[derive(Clone, Debug)]
struct PolicyIdentity {
    uid: String,
    spec: Option<ReadinessPolicySpec>,
    claim: PolicyClaim,
}

/// Where two policies claim the same condition on the same parents, the one that gives way, and to whom: not the one that
/// was accepted with it, else the one that was created later. One that is refused keeps the claim that it was accepted with,
/// also where it cannot be read any more what else it said.
fn find_conflict(candidates: &[Candidate<'_>]) -> Option<(usize, usize, PolicyClaim)> {
    let mut taken: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (at, candidate) in candidates.iter().enumerate() {
        let Some(claim) = candidate.claim() else { continue };
        let of_kind = taken.entry(claim.of.clone()).or_default();
        let same = of_kind.iter().find(|(_, selectors)| *selectors == claim.selectors);
        let Some(before) = same.map(|(before, _)| *before) else {
            of_kind.push((at, claim.selectors));
            continue;
        };
        let later_prevails = candidate.strength_of(&claim) > candidates[before].strength_of(&claim);
        let (loser, winner) = if later_prevails { (before, at) } else { (at, before) };
        return Some((loser, winner, claim));
    }
    None
}

/// Where all policies together bring more rules for one kind than can be numbered, the latest of them.
fn find_excess(candidates: &[Candidate<'_>]) -> Option<(usize, String)> {
    let mut groups: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (at, candidate) in candidates.iter().enumerate() {
        for group in candidate.chosen().iter().flat_map(|compiled| &compiled.groups) {
            let of = groups.entry((&group.kind.group, &group.kind.kind)).or_default();
            *of += 1;
            if *of > MAX_GROUPS_OF_KIND {
                return Some((at, group.kind.kind.clone()));
            }
        }
    }
    None
}

/// Lets policies give way until no two claim the same, and all that judge a kind can be numbered.
fn settle_claims(candidates: &mut [Candidate<'_>]) {
    loop {
        if let Some((loser, winner, claim)) = find_conflict(candidates) {
            let refused = refused_for_conflict(&candidates[winner], &claim);
            candidates[loser].give_way(refused, Some(&claim));
        } else if let Some((at, kind)) = find_excess(candidates) {
            let why = format!(
                "spec.children: all policies together have more than {MAX_GROUPS_OF_KIND} groups of {kind}; \
                 split them among releases with --policy-selector"
            );
            candidates[at].give_way(RefusedPolicy { reason: PolicyReason::Invalid, why }, None);
        } else {
            return;
        }
    }
}

fn refused_for_conflict(winner: &Candidate<'_>, claim: &PolicyClaim) -> RefusedPolicy {
    let (policy, (parent, condition)) = (&winner.found.name, &claim.of);
    let whose = if winner.choice == Choice::Claim {
        format!(
            "was accepted for {condition} on {} and keeps it while it is refused; mend or delete it, or",
            parent.1
        )
    } else {
        format!("writes {condition} on {} already;", parent.1)
    };
    let why = format!(
        "spec.condition.type: policy {policy} {whose} choose other parents by spec.parent.selector, or another type"
    );
    RefusedPolicy { reason: PolicyReason::Conflict, why }
}

impl PolicyBook {
    /// Decides which spec of each policy is in force, and why another one is not: of all that are listed, and of those that stay
    /// beside them.
    pub fn decide<'f, K>(
        &mut self,
        listed: CompleteList<'f, K, FoundPolicy>,
        beside: impl Iterator<Item = &'f FoundPolicy>,
        settings: &PolicySettings,
        libraries: &dyn LibraryRules,
        registry: &mut IdRegistry,
    ) {
        let mut found: Vec<_> = listed.into_values().chain(beside).collect();
        found.sort_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)));
        let mut candidates: Vec<_> = found
            .into_iter()
            .map(|f| Candidate::of(f, self.accepted.get(&f.name), settings, libraries, registry))
            .collect();
        settle_claims(&mut candidates);
        self.note(&candidates);
        self.put_in_use(&candidates, registry);
    }

    fn note(&mut self, candidates: &[Candidate<'_>]) {
        let named = |c: &Candidate<'_>| c.found.name.clone();
        self.accepted = candidates.iter().filter_map(|c| Some((named(c), c.accepted()?))).collect();
        let refused: BTreeMap<_, _> =
            candidates.iter().filter_map(|c| Some((named(c), c.refused.clone()?))).collect();
        for (policy, RefusedPolicy { reason, why }) in &refused {
            if self.refused.get(policy).is_none_or(|before| before.why != *why) {
                let in_force = self.accepted.get(policy).map(|accepted| accepted.generation);
                tracing::warn!(
                    policy,
                    reason = reason.as_str(),
                    why,
                    in_force,
                    "policy refused; what was last accepted stays in force"
                );
            }
        }
        let decided = candidates.iter().filter(|c| c.refused.is_none() && !c.provisional);
        for Candidate { found, .. } in decided.filter(|c| self.refused.contains_key(&c.found.name)) {
            tracing::info!(policy = found.name, generation = found.generation, "policy accepted");
        }
        self.refused = refused;
        let idle = candidates.iter().filter(|c| c.chosen().is_none());
        self.set_aside = idle.filter_map(|c| Some((named(c), c.last.as_ref()?.1.clone()))).collect();
        self.undecided = candidates.iter().filter(|c| c.provisional).map(named).collect();
    }

    fn put_in_use(&mut self, candidates: &[Candidate<'_>], registry: &mut IdRegistry) {
        let mut before = std::mem::take(&mut self.ids);
        let mut claimed: Vec<PolicyClaim> = candidates.iter().filter_map(Candidate::claim).collect();
        let (mut ranked, mut last) = (Vec::new(), Vec::new());
        self.ranks.clear();
        for candidate in candidates {
            let claims = candidate.choice != Choice::None;
            let Some((compiled, acceptance)) = use_of(candidate, &mut claimed, registry) else { continue };
            let now = PolicyIdentity {
                uid: candidate.found.uid.clone(),
                spec: candidate.chosen_spec().cloned(),
                claim: PolicyClaim::new(&compiled),
            };
            let known = before.remove(&candidate.found.name).filter(|(_, before)| before.is_same(&now));
            let id = known.map_or_else(|| registry.new_policy_id(), |(id, _)| id);
            self.ids.insert(candidate.found.name.clone(), (id, now));
            self.ranks.insert(id, PolicyRank::of(candidate.found, !claims));
            let used = PolicyInUse { id, name: candidate.found.name.clone(), compiled, acceptance };
            if claims { ranked.push(used) } else { last.push(used) }
        }
        // One that was never accepted rules only where no other policy does. One that was accepted once keeps its rank.
        ranked.append(&mut last);
        self.in_use = ranked;
        registry.retain_policies(self.ids.values().map(|(id, _)| *id));
    }
}

/// What of a policy is in use: what judges, or else what stands for it, as far as it says for which parents.
fn use_of(
    candidate: &Candidate<'_>,
    claimed: &mut Vec<PolicyClaim>,
    registry: &mut IdRegistry,
) -> Option<(CompiledPolicy, Acceptance)> {
    if let Some(chosen) = candidate.chosen() {
        return Some((chosen.clone(), Acceptance::Accepted));
    }
    let held = candidate.held_stub().cloned();
    let stub = held.or_else(|| {
        let unclaimed = stub::compile(candidate.found);
        let unclaimed = unclaimed.filter(|stub| !claimed.contains(&PolicyClaim::new(stub)))?;
        claimed.push(PolicyClaim::new(&unclaimed));
        Some(unclaimed)
    })?;
    registry.enroll(&stub).ok()?;
    Some((stub, Acceptance::Refused))
}

impl PolicyIdentity {
    fn is_same(&self, other: &PolicyIdentity) -> bool {
        let spec = match (&self.spec, &other.spec) {
            (Some(before), Some(now)) => same_but_for_rules(before, now),
            (None, None) => self.claim == other.claim,
            _ => false,
        };
        spec && self.uid == other.uid
    }
}

#[cfg(test)]
mod tests;
