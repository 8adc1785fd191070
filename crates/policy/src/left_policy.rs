//! A policy that this release had and does not select any more: another release has it, or what it says is taken back.
//!
//! Who has it is said in its own status, which outlives a restart. Where nobody says so, this release says that nobody does; a
//! release that has it all the same, of a version that claims nothing or by the same name as this one, contradicts.

use std::collections::BTreeSet;
use std::time::Duration;

use readiness::Time;

use super::claim_changes::ClaimChange;
use super::plan::Released;
use super::policy_in_use::KindKey;
use super::release_claims::{ClaimedScope, OwnClaim, PolicyClaims};

/// Time in which another release may accept the policy before this one says that nobody has it. 15 s.
const WITHDRAWN_AFTER: Duration = Duration::from_secs(15);
/// Time in which that may be contradicted before what the policy says is taken back. A release writes a status again that
/// was edited within 10 s. 15 s.
const TAKEN_BACK_AFTER: Duration = Duration::from_secs(15);

/// A policy that this release had.
#[derive(Clone, Debug)]
pub(super) struct LeftPolicy {
    pub(super) uid: String,
    since: Time,
    /// Since when its status says that nobody has it.
    withdrawn: Option<Time>,
    /// That was contradicted: it is another release's.
    is_contested: bool,
    claims: PolicyClaims,
    /// Its status keeps a spec that was accepted.
    has_accepted: bool,
    /// Types of conditions that it may have written, by parent kind.
    pub(super) writes: Released,
    /// Kinds on whose parents none of them is left.
    clean: BTreeSet<KindKey>,
}

impl LeftPolicy {
    pub(super) fn new(uid: &str, now: Time) -> LeftPolicy {
        LeftPolicy {
            uid: uid.to_owned(),
            since: now,
            withdrawn: None,
            is_contested: false,
            claims: PolicyClaims::default(),
            has_accepted: false,
            writes: Released::new(),
            clean: BTreeSet::new(),
        }
    }

    /// Notes what its status says now.
    pub(super) fn note(&mut self, claims: PolicyClaims, has_accepted: bool, writes: Released, now: Time) {
        let is_withdrawn = match claims.own {
            OwnClaim::Withdrawn => !claims.is_unclaimed,
            // Where the definition of policies is of a version without claims, only the condition says so. Nothing does where
            // others have some of its parents, once this release has taken back what it said on the rest.
            OwnClaim::Absent => {
                claims.is_unselected || (self.withdrawn.is_some() && !claims.releases.is_empty())
            }
            OwnClaim::Standing => false,
        };
        let is_contradicted = self.withdrawn.is_some() && !is_withdrawn && claims.releases.is_empty();
        self.is_contested |= is_contradicted || (claims.own == OwnClaim::Withdrawn && claims.is_unclaimed);
        self.withdrawn = is_withdrawn.then(|| self.withdrawn.unwrap_or(now));
        (self.claims, self.has_accepted, self.writes) = (claims, has_accepted, writes);
    }

    /// Where other releases have it.
    pub(super) fn scope_of_others(&self) -> ClaimedScope {
        if self.is_contested { ClaimedScope::Everywhere } else { self.claims.others.clone() }
    }

    /// Other releases have all of its parents that one of these namespaces has.
    pub(super) fn is_handed_over(&self, namespaces: &[String]) -> bool {
        self.scope_of_others().covers(namespaces)
    }

    /// What it says is not taken back yet, if it is at all.
    pub(super) fn is_left_alone(&self, now: Time) -> bool {
        self.withdrawn.is_none_or(|at| at + TAKEN_BACK_AFTER > now)
    }

    /// No parent of this kind has an entry of it any more.
    pub(super) fn note_clean(&mut self, kind: &KindKey) {
        if self.writes.contains_key(kind) {
            self.clean.insert(kind.clone());
        }
    }

    /// What is still to be taken back, of what it wrote.
    pub(super) fn remains(&self) -> impl Iterator<Item = (&KindKey, &BTreeSet<String>)> {
        self.writes.iter().filter(|(kind, _)| !self.clean.contains(*kind))
    }

    fn is_taken_back(&self, now: Time) -> bool {
        !self.is_left_alone(now) && self.remains().next().is_none()
    }

    /// Other releases have some of its parents.
    fn is_shared(&self) -> bool {
        !self.claims.releases.is_empty()
    }

    /// Nothing of it concerns a release of these namespaces any more.
    pub(super) fn is_done(&self, namespaces: &[String], now: Time) -> bool {
        // What others have accepted stays accepted.
        let is_forgotten = !self.has_accepted || self.is_shared();
        let is_over = self.is_handed_over(namespaces) || (self.is_taken_back(now) && is_forgotten);
        self.claims.own == OwnClaim::Absent && is_over
    }

    /// What is to be said of it in its status now.
    pub(super) fn change(&self, namespaces: &[String], now: Time) -> Option<ClaimChange> {
        let is_shared = self.is_shared();
        if self.is_handed_over(namespaces) {
            // A claim that came back after it was withdrawn is that of another release with this one's name.
            let is_own = match self.claims.own {
                OwnClaim::Absent => false,
                OwnClaim::Standing => !self.is_contested,
                OwnClaim::Withdrawn => true,
            };
            return is_own.then_some(ClaimChange::HandOver);
        }
        if self.withdrawn.is_none() {
            return (self.since + WITHDRAWN_AFTER <= now).then_some(ClaimChange::Withdraw { is_shared });
        }
        self.is_taken_back(now).then_some(ClaimChange::Forget { is_shared })
    }

    /// The next time after this one at which something becomes due.
    pub(super) fn next_step(&self, then: Time) -> Option<Time> {
        let steps = [Some(self.since + WITHDRAWN_AFTER), self.withdrawn.map(|at| at + TAKEN_BACK_AFTER)];
        steps.into_iter().flatten().filter(|at| *at > then).min()
    }
}
