//! Which spec of each policy is in force: the last one that was accepted, for as long as a later one is not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aggregator::{Acceptance, PolicyId};
use api::ReadinessPolicySpec;
use api::policy::AcceptedPolicy;

use super::compile::CompiledPolicy;
use super::found_policy::{FoundPolicy, RefusedPolicy};
use super::groups::CompiledGroup;
use super::library_rules::{LibraryRules, LibraryState};
use super::plan::{IdRegistry, PolicyInUse};
use super::policy_claim::PolicyClaim;
use super::policy_reason::PolicyReason;
use super::protected_kinds::PolicySettings;
use super::ready_rule::GroupRule;
use super::rule_changes::same_but_for_rules;
use super::stub;

/// Longest spec that is kept in the status of its policy, in bytes of JSON text.
const MAX_KEPT_SPEC: usize = 64 << 10;
/// Most groups of all policies together that may judge one kind: each may bring a rule of its own.
const MAX_GROUPS_OF_KIND: usize = u16::MAX as usize;

/// A spec that was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceptedSpec {
    uid: String,
    /// The generation that it was accepted with.
    pub generation: i64,
    spec: ReadinessPolicySpec,
    /// As the status of the policy keeps it.
    pub kept: Arc<AcceptedPolicy>,
}

/// What became of each policy.
#[derive(Debug, Default)]
pub struct PolicyBook {
    /// What is in force, or was when it was last accepted.
    pub accepted: BTreeMap<String, AcceptedSpec>,
    /// Why the spec as it is now is not in force.
    pub refused: BTreeMap<String, RefusedPolicy>,
    /// Policies in force, and those that are refused and of which nothing is that could judge.
    pub in_use: Vec<PolicyInUse>,
    /// Policies whose rules are not read yet, so that nobody knows whether they are refused.
    pub undecided: BTreeSet<String>,
    ids: BTreeMap<String, (PolicyId, PolicyIdentity)>,
}

/// What makes a policy the same one to the engine: its uid, and its spec but for the rules for children. One that was
/// never accepted has no spec, only what it claims.
#[derive(Clone, Debug)]
struct PolicyIdentity {
    uid: String,
    spec: Option<ReadinessPolicySpec>,
    claim: PolicyClaim,
}

/// What may be in force of one policy.
struct Candidate<'f> {
    found: &'f FoundPolicy,
    /// The spec as it is now.
    wish: Option<CompiledPolicy>,
    /// The last one that was accepted.
    last: Option<(AcceptedSpec, CompiledPolicy)>,
    choice: Choice,
    refused: Option<RefusedPolicy>,
    /// It is not known yet what its rules are: it is not accepted before.
    provisional: bool,
    /// Its rules were never read, nor were those of another spec of it.
    is_unusable: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    Wish,
    Last,
    None,
}

impl AcceptedSpec {
    fn of(found: &FoundPolicy, spec: &ReadinessPolicySpec) -> AcceptedSpec {
        let text = serde_json::to_string(spec).unwrap_or_default();
        let (spec_text, omitted) = if text.is_empty() || text.len() > MAX_KEPT_SPEC {
            (None, Some(format!("the spec has more than {} KiB", MAX_KEPT_SPEC >> 10)))
        } else {
            (Some(text), None)
        };
        let kept = AcceptedPolicy { generation: found.generation, spec: spec_text, omitted };
        AcceptedSpec {
            uid: found.uid.clone(),
            generation: found.generation,
            spec: spec.clone(),
            kept: Arc::new(kept),
        }
    }

    /// As the policy's own status has it.
    fn kept_by(found: &FoundPolicy) -> Option<AcceptedSpec> {
        let kept = found.status.accepted.as_ref()?;
        let spec = found.accepted_spec()?;
        Some(AcceptedSpec {
            uid: found.uid.clone(),
            generation: kept.generation,
            spec,
            kept: Arc::new(kept.clone()),
        })
    }
}

impl<'f> Candidate<'f> {
    fn of(
        found: &'f FoundPolicy,
        known: Option<&AcceptedSpec>,
        settings: &PolicySettings,
        libraries: &dyn LibraryRules,
        registry: &mut IdRegistry,
    ) -> Self {
        let known = known.filter(|known| known.uid == found.uid).cloned();
        let last = known.or_else(|| AcceptedSpec::kept_by(found)).and_then(|last| {
            let compiled = found.compile_as_own(&last.spec, settings).ok()?;
            registry.enroll(&compiled).is_ok().then_some((last, compiled))
        });
        let wish = found.compile_spec(settings).and_then(|compiled| match registry.enroll(&compiled) {
            Ok(()) => Ok(compiled),
            Err(kind) => Err(format!("{} is one kind more than one process can follow", kind.kind)),
        });
        let mut candidate = match wish {
            Ok(compiled) => Candidate::new(found, Some(compiled), last, None),
            Err(why) => {
                Candidate::new(found, None, last, Some(RefusedPolicy { reason: PolicyReason::Invalid, why }))
            }
        };
        candidate.apply_library_states(libraries);
        candidate
    }

    fn new(
        found: &'f FoundPolicy,
        wish: Option<CompiledPolicy>,
        last: Option<(AcceptedSpec, CompiledPolicy)>,
        refused: Option<RefusedPolicy>,
    ) -> Self {
        let choice = match (&wish, &last) {
            (Some(_), _) => Choice::Wish,
            (None, Some(_)) => Choice::Last,
            (None, None) => Choice::None,
        };
        Candidate { found, wish, last, choice, refused, provisional: false, is_unusable: false }
    }

    /// A spec by whose rules nothing can be judged gives way to one by which it can. Where there is none, and one was accepted
    /// before, it is as if none had been: what an earlier process said by rules that are gone is left for a while. A policy
    /// that was never accepted has said nothing: what it would judge is Unknown.
    fn apply_library_states(&mut self, libraries: &dyn LibraryRules) {
        let is_missing = |group: &CompiledGroup| match &group.rule {
            Some(GroupRule::Library(name)) => matches!(libraries.state(name), LibraryState::Missing(_)),
            _ => false,
        };
        let last = self.last.as_ref().map(|(_, compiled)| compiled.groups.iter().any(is_missing));
        if self.choice == Choice::Last && last == Some(true) {
            self.choice = Choice::None;
        }
        for group in self.wish.iter().flat_map(|wish| &wish.groups) {
            let Some(GroupRule::Library(name)) = &group.rule else { continue };
            let (why, then) = match (libraries.state(name), last) {
                (LibraryState::Current, _) => continue,
                (LibraryState::Unread, _) => {
                    self.provisional = true;
                    continue;
                }
                (LibraryState::Outdated(why), _) => (why, "the rules that were last read stay in force"),
                (LibraryState::Missing(why), Some(false)) => {
                    self.choice = Choice::Last;
                    (why, "the spec that was last accepted stays in force")
                }
                (LibraryState::Missing(why), Some(true)) => {
                    self.choice = Choice::None;
                    (why, "nothing is judged by it, and what says True is taken back after two minutes")
                }
                (LibraryState::Missing(why), None) => {
                    self.is_unusable = true;
                    (why, "what it judges is Unknown")
                }
            };
            let why = format!("spec.children[{}].ready.rules: ConfigMap {name}: {why}; {then}", group.at);
            self.refused = Some(RefusedPolicy { reason: PolicyReason::RulesUnavailable, why });
        }
    }

    /// There is a spec that was accepted, and it is not the one of now.
    fn is_changed(&self) -> bool {
        self.last.as_ref().is_some_and(|(last, _)| self.found.spec.as_ref() != Ok(&last.spec))
    }

    fn chosen(&self) -> Option<&CompiledPolicy> {
        match self.choice {
            Choice::Wish => self.wish.as_ref(),
            Choice::Last => self.last.as_ref().map(|(_, compiled)| compiled),
            Choice::None => None,
        }
    }

    /// By what was last accepted, the claim is its own already.
    fn holds(&self, claim: &PolicyClaim) -> bool {
        self.last.as_ref().is_some_and(|(_, compiled)| PolicyClaim::new(compiled) == *claim)
    }

    /// Refuses what is chosen, for what was accepted before that.
    fn give_way(&mut self, refused: RefusedPolicy) {
        self.choice = match self.choice {
            Choice::Wish if self.is_changed() => Choice::Last,
            _ => Choice::None,
        };
        self.refused = Some(refused);
    }

    fn accepted(&self) -> Option<AcceptedSpec> {
        let last = || self.last.as_ref().map(|(last, _)| last.clone());
        match (self.choice, &self.found.spec) {
            (Choice::Wish, Ok(spec)) if !self.provisional && !self.is_unusable => {
                // Whoever may write the status may have put any spec there, also with this generation.
                let is_this =
                    |last: &AcceptedSpec| (last.generation, &last.spec) == (self.found.generation, spec);
                let known = last().filter(is_this);
                Some(known.unwrap_or_else(|| AcceptedSpec::of(self.found, spec)))
            }
            _ => last(),
        }
    }
}

/// Where two policies claim the same condition on the same parents, the one that gives way, and to whom: not the one that
/// was accepted with it, else the one that was created later.
fn find_conflict(candidates: &[Candidate<'_>]) -> Option<(usize, usize, PolicyClaim)> {
    let mut taken: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (at, candidate) in candidates.iter().enumerate() {
        let Some(claim) = candidate.chosen().map(PolicyClaim::new) else { continue };
        let of_kind = taken.entry(claim.of.clone()).or_default();
        let same = of_kind.iter().find(|(_, selectors)| *selectors == claim.selectors);
        let Some(before) = same.map(|(before, _)| *before) else {
            of_kind.push((at, claim.selectors));
            continue;
        };
        let later_holds = candidate.holds(&claim) && !candidates[before].holds(&claim);
        let (loser, winner) = if later_holds { (before, at) } else { (at, before) };
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

impl PolicyBook {
    /// Decides which spec of each policy is in force, and why another one is not.
    pub fn decide<'f>(
        &mut self,
        found: impl Iterator<Item = &'f FoundPolicy>,
        settings: &PolicySettings,
        libraries: &dyn LibraryRules,
        registry: &mut IdRegistry,
    ) {
        let mut found: Vec<_> = found.collect();
        found.sort_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)));
        let mut candidates: Vec<_> = found
            .into_iter()
            .map(|f| Candidate::of(f, self.accepted.get(&f.name), settings, libraries, registry))
            .collect();
        while let Some((loser, winner, PolicyClaim { of: (parent, condition), .. })) =
            find_conflict(&candidates)
        {
            let other = &candidates[winner].found.name;
            let why = format!(
                "spec.condition.type: policy {other} writes {condition} on {} already; choose other parents by \
                 spec.parent.selector, or another type",
                parent.1
            );
            candidates[loser].give_way(RefusedPolicy { reason: PolicyReason::Conflict, why });
        }
        while let Some((at, kind)) = find_excess(&candidates) {
            let why = format!(
                "spec.children: all policies together have more than {MAX_GROUPS_OF_KIND} groups of {kind}; \
                 split them among releases with --policy-selector"
            );
            candidates[at].give_way(RefusedPolicy { reason: PolicyReason::Invalid, why });
        }
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
        self.undecided = candidates.iter().filter(|c| c.provisional).map(named).collect();
    }

    fn put_in_use(&mut self, candidates: &[Candidate<'_>], registry: &mut IdRegistry) {
        let mut before = std::mem::take(&mut self.ids);
        let mut claimed: Vec<PolicyClaim> =
            candidates.iter().filter_map(|c| c.chosen().map(PolicyClaim::new)).collect();
        self.in_use.clear();
        for candidate in candidates {
            let spec = match candidate.choice {
                Choice::Wish => candidate.found.spec.as_ref().ok(),
                Choice::Last => candidate.last.as_ref().map(|(last, _)| &last.spec),
                Choice::None => None,
            };
            let chosen = candidate.chosen().cloned().map(|compiled| (compiled, Acceptance::Accepted));
            // What stands for one that was never accepted, as far as it says what that is.
            let refused = || {
                let stub = stub::compile(candidate.found)
                    .filter(|stub| !claimed.contains(&PolicyClaim::new(stub)))?;
                registry.enroll(&stub).ok()?;
                claimed.push(PolicyClaim::new(&stub));
                Some((stub, Acceptance::Refused))
            };
            let Some((compiled, acceptance)) = chosen.or_else(refused) else { continue };
            let now = PolicyIdentity {
                uid: candidate.found.uid.clone(),
                spec: spec.cloned(),
                claim: PolicyClaim::new(&compiled),
            };
            let known = before.remove(&candidate.found.name).filter(|(_, before)| before.is_same(&now));
            let id = known.map_or_else(|| registry.new_policy_id(), |(id, _)| id);
            self.ids.insert(candidate.found.name.clone(), (id, now));
            self.in_use.push(PolicyInUse { id, name: candidate.found.name.clone(), compiled, acceptance });
        }
        // One that is refused rules only where no other policy does.
        self.in_use.sort_by_key(|policy| policy.acceptance != Acceptance::Accepted);
        registry.retain_policies(self.ids.values().map(|(id, _)| *id));
    }
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
