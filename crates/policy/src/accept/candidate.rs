//! What may be in force of one policy, and what it claims.

use api::ReadinessPolicySpec;

use super::accepted_spec::AcceptedSpec;
use crate::compile::CompiledPolicy;
use crate::found_policy::{FoundPolicy, RefusedPolicy};
use crate::groups::CompiledGroup;
use crate::library_rules::{LibraryRules, LibraryState};
use crate::plan::IdRegistry;
use crate::policy_claim::PolicyClaim;
use crate::policy_reason::PolicyReason;
use crate::protected_kinds::PolicySettings;
use crate::ready_rule::GroupRule;
use crate::stub;

/// What may be in force of one policy.
pub(super) struct Candidate<'f> {
    pub(super) found: &'f FoundPolicy,
    /// The spec as it is now.
    wish: Option<CompiledPolicy>,
    /// The last one that was accepted.
    pub(super) last: Option<(AcceptedSpec, CompiledPolicy)>,
    /// What it was accepted for, if it ever was; nothing is judged by it.
    held: Option<HeldClaim>,
    pub(super) choice: Choice,
    pub(super) refused: Option<RefusedPolicy>,
    /// It is not known yet what its rules are: it is not accepted before.
    pub(super) provisional: bool,
    /// Its rules were never read, nor were those of another spec of it.
    is_unusable: bool,
}

/// What of a policy is in use. A policy that has to give way goes down from one to the next.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// The spec as it is now.
    Wish,
    /// The one that was accepted last.
    Last,
    /// Nothing can judge. What it was accepted for stays its own: nobody approved of another policy's True there.
    Claim,
    /// Nothing, nor does it claim anything.
    None,
}

/// What a policy was accepted for.
struct HeldClaim {
    stub: CompiledPolicy,
    strength: ClaimStrength,
}

/// Why a policy has a claim: of two that have the same, the stronger one prevails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ClaimStrength {
    /// It asks for it.
    Wished,
    /// It was accepted, nobody can tell for what, and its spec asks for it now.
    Presumed,
    /// It was accepted for it.
    Accepted,
}

impl HeldClaim {
    /// `None` for a policy whose status has no trace of a spec that was accepted.
    fn of(found: &FoundPolicy, last: Option<&CompiledPolicy>) -> Option<HeldClaim> {
        let accepted = |stub| HeldClaim { stub, strength: ClaimStrength::Accepted };
        if let Some(known) = last.map(stub::of_compiled).or_else(|| stub::compile_kept(found)) {
            return Some(accepted(known));
        }
        if !found.was_accepted() {
            return None;
        }
        let stub = stub::compile(found)?;
        if found.accepted_generation() == Some(found.generation) {
            return Some(accepted(stub));
        }
        Some(HeldClaim { stub, strength: ClaimStrength::Presumed })
    }
}

impl<'f> Candidate<'f> {
    pub(super) fn of(
        found: &'f FoundPolicy,
        known: Option<&AcceptedSpec>,
        settings: &PolicySettings,
        libraries: &dyn LibraryRules,
        registry: &mut IdRegistry,
    ) -> Self {
        let known = known.filter(|known| known.uid == found.uid).cloned();
        let kept: Vec<_> = known.map_or_else(|| AcceptedSpec::kept_by(found).collect(), |known| vec![known]);
        let last = kept.into_iter().find_map(|last| {
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
        let held = HeldClaim::of(found, last.as_ref().map(|(_, compiled)| compiled));
        let choice = match (&wish, &last, &held) {
            (Some(_), ..) => Choice::Wish,
            (None, Some(_), _) => Choice::Last,
            (None, None, Some(_)) => Choice::Claim,
            (None, None, None) => Choice::None,
        };
        Candidate { found, wish, last, held, choice, refused, provisional: false, is_unusable: false }
    }

    /// A spec by whose rules nothing can be judged gives way to one by which it can. Where there is none, and one was accepted
    /// before, only its claim stays: what an earlier process said by rules that are gone is left for a while. A policy
    /// that was never accepted has said nothing: what it would judge is Unknown.
    fn apply_library_states(&mut self, libraries: &dyn LibraryRules) {
        let is_missing = |group: &CompiledGroup| match &group.rule {
            Some(GroupRule::Library(name)) => matches!(libraries.state(name), LibraryState::Missing(_)),
            _ => false,
        };
        let last = self.last.as_ref().map(|(_, compiled)| compiled.groups.iter().any(is_missing));
        if self.choice == Choice::Last && last == Some(true) {
            self.choice = Choice::Claim;
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
                    self.choice = Choice::Claim;
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

    /// What judges.
    pub(super) fn chosen(&self) -> Option<&CompiledPolicy> {
        match self.choice {
            Choice::Wish => self.wish.as_ref(),
            Choice::Last => self.last.as_ref().map(|(_, compiled)| compiled),
            Choice::Claim | Choice::None => None,
        }
    }

    /// The spec of what judges.
    pub(super) fn chosen_spec(&self) -> Option<&ReadinessPolicySpec> {
        match self.choice {
            Choice::Wish => self.found.spec.as_ref().ok(),
            Choice::Last => self.last.as_ref().map(|(last, _)| &last.spec),
            Choice::Claim | Choice::None => None,
        }
    }

    /// What stands for it where nothing of it can judge, and it was accepted once.
    pub(super) fn held_stub(&self) -> Option<&CompiledPolicy> {
        let held = self.held.as_ref().filter(|_| self.choice == Choice::Claim);
        held.map(|held| &held.stub)
    }

    /// What it claims, whether it can judge or not.
    pub(super) fn claim(&self) -> Option<PolicyClaim> {
        self.chosen().or_else(|| self.held_stub()).map(PolicyClaim::new)
    }

    fn held_claim(&self) -> Option<PolicyClaim> {
        self.held.as_ref().map(|held| PolicyClaim::new(&held.stub))
    }

    /// Why it has this claim.
    pub(super) fn strength_of(&self, claim: &PolicyClaim) -> ClaimStrength {
        let held = self.held.as_ref().filter(|_| self.held_claim().as_ref() == Some(claim));
        held.map_or(ClaimStrength::Wished, |held| held.strength)
    }

    /// Refuses what is chosen, for what was accepted before that, or the claim to what that was; `lost` is a claim that it
    /// cannot have.
    pub(super) fn give_way(&mut self, refused: RefusedPolicy, lost: Option<&PolicyClaim>) {
        let held = self.held_claim();
        let before = self.choice;
        self.choice = match before {
            Choice::Wish if self.is_changed() => Choice::Last,
            Choice::Wish | Choice::Last if held.is_some() && held.as_ref() != lost => Choice::Claim,
            _ => Choice::None,
        };
        // What was refused before it gave way is so for what is to be mended.
        if before != Choice::Claim {
            self.refused = Some(refused);
        }
    }

    pub(super) fn accepted(&self) -> Option<AcceptedSpec> {
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
