//! The trace of one object in Events, which names it but not its owner.

use std::time::Duration;

use aggregator::KindId;
use readiness::Time;

use super::outcome::{RememberedOutcome, RunEnd};

/// Length of the suffix that the server appends to `generateName`, in characters.
pub(super) const GENERATED_SUFFIX_LEN: usize = 5;
/// Characters of that suffix.
const GENERATED_SUFFIX_LETTERS: &str = "bcdfghjklmnpqrstvwxz2456789";

/// One object, as described by Events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunTrace {
    /// Its kind.
    pub kind: KindId,
    /// Its uid.
    pub uid: Box<str>,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Time of its first Event.
    pub first_seen: Option<Time>,
    /// Lowest resourceVersion in its Events; 0 if there is none.
    pub version: u64,
    /// Its Events include its creation.
    pub seen_from_creation: bool,
    /// Its outcome.
    pub end: RunEnd,
}

impl RunTrace {
    /// Returns `true` if the trace is, by its name, another run of the same identity.
    pub(super) fn is_run_of(&self, outcome: &RememberedOutcome) -> bool {
        let by_name = || {
            if outcome.slot == outcome.name {
                return self.name == outcome.slot;
            }
            let made_up = self.name.strip_prefix(&*outcome.slot);
            made_up.is_some_and(|rest| {
                rest.len() == GENERATED_SUFFIX_LEN
                    && rest.chars().all(|c| GENERATED_SUFFIX_LETTERS.contains(c))
            })
        };
        (self.kind, &self.namespace) == (outcome.kind, &outcome.namespace) && by_name()
    }

    /// Returns `true` if the object existed only after the remembered one. Versions of a kind only grow, and only one
    /// object of a name exists at a time, so any version of the later one exceeds every version of the earlier one; for
    /// generated names, the first versions have to be compared.
    pub(super) fn is_after(&self, outcome: &RememberedOutcome) -> bool {
        let same_name = self.name == outcome.name;
        let known =
            if same_name { outcome.first_version.max(outcome.version) } else { outcome.first_version };
        match (known, outcome.created, self.first_seen) {
            _ if self.version == 0 || !(same_name || self.seen_from_creation) => false,
            (1.., ..) => self.version > known,
            (0, Some(created), Some(first)) => first.0 / 1_000 > created.0 / 1_000,
            _ => false,
        }
    }

    /// Returns the trace as a possible run after another one.
    pub(super) fn as_run_after(&self, before: &RememberedOutcome) -> RememberedOutcome {
        // It ran later, even if the clocks disagree.
        let created = self.first_seen.max(before.created.map(|at| at + Duration::from_secs(1)));
        RememberedOutcome {
            uid: self.uid.clone(),
            name: self.name.clone(),
            created,
            end: RunEnd::Open,
            deleted: true,
            version: 0,
            first_version: self.version,
            known_from_events: true,
            unlisted: false,
            ..before.clone()
        }
    }
}
