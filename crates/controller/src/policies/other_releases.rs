//! Policies that are another release's: what they say of their parents is not for this one to take away.

use std::collections::BTreeMap;
use std::time::Duration;

use policy::{CompiledPolicy, FoundPolicy, PolicySettings, WrittenPolicy};
use readiness::Time;
use rollcall_core::StagedList;

/// Time in which this release takes back what a policy said that was its own and has other labels now: no release may have it.
const HANDED_OVER_AFTER: Duration = Duration::from_secs(30);

/// Policies that the labels of this release do not select.
#[derive(Default)]
pub(super) struct OtherReleases {
    policies: StagedList<String, FoundPolicy>,
    /// Since when policies are others' that were in force here.
    moved: BTreeMap<String, Time>,
}

impl OtherReleases {
    pub(super) fn begin_list(&mut self) {
        self.policies.begin_list();
    }

    pub(super) fn finish_list(&mut self) {
        self.policies.finish_list();
        let Self { policies, moved } = self;
        moved.retain(|name, _| policies.items().is_some_and(|others| others.contains_key(name)));
    }

    pub(super) fn stage(&mut self, found: FoundPolicy) {
        self.policies.stage_item(found.name.clone(), found);
    }

    /// Handles one that was created or changed; `true` where it may speak for other parents than before.
    pub(super) fn apply(&mut self, found: &FoundPolicy) -> bool {
        let before = self.policies.apply_item(found.name.clone(), found.clone());
        before
            .is_none_or(|before| before.spec != found.spec || before.status.accepted != found.status.accepted)
    }

    /// Handles one that is gone, or is this release's now; `true` if it was another's.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        self.moved.remove(name);
        self.policies.remove_item(&name.to_owned()).is_some()
    }

    /// These policies were in force here until now.
    pub(super) fn note_moved<'n>(&mut self, names: impl Iterator<Item = &'n str>, now: Time) {
        let others = self.policies.items();
        for name in names.filter(|name| others.is_some_and(|others| others.contains_key(*name))) {
            self.moved.entry(name.to_owned()).or_insert(now);
        }
    }

    /// Nothing can be taken back now: the time to do so begins anew.
    pub(super) fn put_off(&mut self, now: Time) {
        for since in self.moved.values_mut().filter(|since| **since + HANDED_OVER_AFTER > now) {
            *since = now;
        }
    }

    /// What speaks for parents that this release is to leave alone: what some release has accepted, and writes.
    pub(super) fn claims(&self, settings: &PolicySettings, now: Time) -> Vec<CompiledPolicy> {
        let is_handed_over =
            |name: &str| self.moved.get(name).is_none_or(|since| *since + HANDED_OVER_AFTER <= now);
        let speaks =
            |(name, found): &(&String, &FoundPolicy)| is_handed_over(name) && found.status.accepted.is_some();
        let others = self.policies.items().into_iter().flatten().filter(speaks);
        let written = others.flat_map(|(_, found)| WrittenPolicy::of(found, settings).compiled);
        written.filter(|compiled| !compiled.shadow).collect()
    }

    /// When the next of them is to be left alone, of which it was not known then.
    pub(super) fn next_handover(&self, then: Time) -> Option<Time> {
        self.moved.values().map(|since| *since + HANDED_OVER_AFTER).filter(|at| *at > then).min()
    }
}
