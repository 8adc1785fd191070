//! What a workload was when it was rolled out whole last, while only the number of its replicas moves.

use readiness::Facts;

use crate::wire::{ChildObject, SpecVersion};

/// A workload that was rolled out whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WholeWorkload {
    /// Replicas that it had.
    pub(super) replicas: u32,
    /// What it was wanted to be then.
    first: SpecVersion,
    /// The newest version since of which each differs from the one before in the number of replicas alone.
    wanted: SpecVersion,
}

impl WholeWorkload {
    /// One that was ready with so many replicas in this version.
    pub(super) fn new(replicas: u32, wanted: SpecVersion) -> WholeWorkload {
        WholeWorkload { replicas, first: wanted, wanted }
    }

    /// Returns `true` if this version of it is wanted to have more or fewer replicas, and nothing else, and its status is about a
    /// version of which that is known, too: of none before it was whole, which etcd restored from a backup brings back.
    pub(super) fn is_only_scaled(self, child: &ChildObject) -> bool {
        let wanted = child.meta.spec_version;
        let unobserved = unobserved_generations(&child.facts);
        let since = |version| i64::from(wanted.generations_since(version));
        wanted.has_equal_template(self.wanted)
            && (since(self.wanted)..=since(self.first)).contains(&unobserved)
    }

    /// The same beside this version of it. A version between the two that nobody saw may have had another template.
    pub(super) fn beside(self, child: &ChildObject) -> WholeWorkload {
        let wanted = child.meta.spec_version;
        let follows = wanted.has_equal_template(self.wanted) && wanted.generations_since(self.wanted) <= 1;
        let is_observed = unobserved_generations(&child.facts) == 0;
        match (follows, is_observed) {
            (_, true) => WholeWorkload { first: wanted, wanted, ..self },
            (true, false) => WholeWorkload { wanted, ..self },
            (false, false) => self,
        }
    }
}

/// Number of generations by which the status of an object is behind.
fn unobserved_generations(facts: &Facts) -> i64 {
    facts.generation.zip(facts.status.observed).map_or(0, |(generation, observed)| generation - observed)
}
