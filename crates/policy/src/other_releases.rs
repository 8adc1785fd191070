//! Policies that are another release's: what they say of their parents is not for this one to take away.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use readiness::Time;
use rollcall_core::StagedList;

use super::claim_changes::ClaimChange;
use super::found_policy::FoundPolicy;
use super::left_policy::LeftPolicy;
use super::other_policy::{OtherPolicy, OtherSpecs};
use super::plan::Released;
use super::policy_in_use::KindKey;
use super::protected_kinds::PolicySettings;
use super::release_claims::{ClaimedScope, OwnClaim, PolicyClaims, ReleaseIdentity};
use super::written_conditions::{add_conditions, conditions_of};
use super::written_policy::WrittenPolicy;

/// Time in which a policy that no release has accepted, as far as its status says, may have been accepted all the same: by a
/// release that could not say so yet. 2 min.
const ACCEPTED_WITHIN: Duration = Duration::from_mins(2);

/// Policies that the labels of this release do not select.
#[derive(Debug, Default)]
pub struct OtherReleases {
    /// The release whose labels do not select them.
    pub release: ReleaseIdentity,
    policies: StagedList<String, FoundPolicy>,
    /// Specs of theirs that were compiled.
    specs: BTreeMap<String, Arc<OtherSpecs>>,
    /// Those that this release had.
    left: BTreeMap<String, LeftPolicy>,
    /// Since when those that no release has accepted are as they are.
    unaccepted: BTreeMap<String, Time>,
}

impl OtherReleases {
    /// A list begins.
    pub fn begin_list(&mut self) {
        self.policies.begin_list();
    }

    /// The list is complete: what it lacks is gone.
    pub fn finish_list(&mut self) {
        self.specs.clear();
        self.policies.finish_list();
    }

    /// Stages one of the list under way.
    pub fn stage(&mut self, found: FoundPolicy) {
        self.policies.stage_item(found.name.clone(), found);
    }

    /// Returns `true` if this one is among them.
    pub fn contains(&self, found: &FoundPolicy) -> bool {
        self.policies
            .items()
            .and_then(|items| items.get(&found.name))
            .is_some_and(|other| other.uid == found.uid)
    }

    /// Handles one that was created or changed; `true` where it may speak for other parents than before, or other releases
    /// may have it.
    pub fn apply(&mut self, found: &FoundPolicy) -> bool {
        let before = self.policies.apply_item(found.name.clone(), found.clone());
        let is_same = |before: &FoundPolicy| {
            (&before.uid, &before.spec, &before.labels) == (&found.uid, &found.spec, &found.labels)
        };
        let Some(before) = before.filter(is_same) else {
            self.unaccepted.remove(&found.name);
            self.specs.remove(&found.name);
            return true;
        };
        if before.status.accepted != found.status.accepted {
            self.specs.remove(&found.name);
            return true;
        }
        let claims = |of: &FoundPolicy| PolicyClaims::of(of, &self.release);
        claims(&before) != claims(found)
    }

    /// Handles one that is gone, or is this release's now; `true` if it was another's.
    pub fn remove(&mut self, name: &str) -> bool {
        self.unaccepted.remove(name);
        self.left.remove(name);
        self.specs.remove(name);
        self.policies.remove_item(&name.to_owned()).is_some()
    }

    /// What this one has left on parents that this release had; nothing where others have it.
    pub fn left_behind(&self, name: &str) -> Released {
        let left = self.left.get(name).filter(|left| !left.is_handed_over(&self.release.namespaces));
        left.map(|left| left.writes.clone()).unwrap_or_default()
    }

    /// Notes what their status says now; `in_force` are policies that were in force here until now. Returns what those left
    /// that are gone.
    pub fn note<'n>(
        &mut self,
        in_force: impl Iterator<Item = &'n str>,
        settings: &PolicySettings,
        now: Time,
    ) -> Released {
        let mut lost = Released::new();
        let Some(items) = self.policies.items() else { return lost };
        let moved: Vec<&str> = in_force.filter(|name| items.contains_key(*name)).collect();
        let namespaces = &self.release.namespaces;
        for (_, left) in self.left.extract_if(.., |name, left| !is_there(items, name, left)) {
            if !left.is_handed_over(namespaces) {
                add_conditions(&mut lost, left.writes);
            }
        }
        self.unaccepted.retain(|name, _| items.contains_key(name));
        for (name, found) in items {
            let claims = PolicyClaims::of(found, &self.release);
            if claims.is_unaccepted() {
                self.unaccepted.entry(name.clone()).or_insert(now);
            } else {
                self.unaccepted.remove(name);
            }
            let was_ours = claims.own != OwnClaim::Absent || moved.contains(&name.as_str());
            if was_ours {
                self.left.entry(name.clone()).or_insert_with(|| LeftPolicy::new(&found.uid, now));
            }
            if let Some(left) = self.left.get_mut(name) {
                let written = WrittenPolicy::of(found, settings).compiled;
                let writes = conditions_of(written.iter().filter(|spec| !spec.shadow));
                left.note(claims, found.status.accepted.is_some(), writes, now);
            }
        }
        self.left.retain(|_, left| !left.is_done(namespaces, now));
        lost
    }

    /// What policies left that this release had: as long as it is not all taken back, by parent kind. Where others may have
    /// some, their words are kept by what is [left to them](OtherReleases::speaking).
    pub fn released(&self) -> Released {
        let mut released = Released::new();
        let namespaces = &self.release.namespaces;
        for left in self.left.values().filter(|left| !left.is_handed_over(namespaces)) {
            for (kind, types) in left.remains() {
                released.entry(kind.clone()).or_default().extend(types.iter().cloned());
            }
        }
        released
    }

    /// Returns `true` while what stands on parents of this kind is left alone, and may have to be taken back later.
    pub fn may_release(&self, kind: &KindKey, now: Time) -> bool {
        self.left.values().any(|left| left.is_left_alone(now) && left.writes.contains_key(kind))
    }

    /// Returns `true` if this release had some of them.
    pub fn has_left(&self) -> bool {
        !self.left.is_empty()
    }

    /// No parent of this kind has an entry any more that is to be taken back.
    pub fn note_clean(&mut self, kind: &KindKey, now: Time) {
        for left in self.left.values_mut().filter(|left| !left.is_left_alone(now)) {
            left.note_clean(kind);
        }
    }

    /// What speaks for parents that this release is to leave alone: what another one writes, or may write.
    pub fn speaking(&mut self, settings: &PolicySettings, now: Time) -> Vec<OtherPolicy> {
        let mut speaking = Vec::new();
        for (name, found) in self.policies.items().into_iter().flatten() {
            let claims = PolicyClaims::of(found, &self.release);
            let (scope, may_be_theirs) = match self.left.get(name) {
                Some(left) => (left.scope_of_others(), left.is_left_alone(now)),
                None if claims.is_unclaimed => (ClaimedScope::Everywhere, false),
                None => {
                    let since = self.unaccepted.get(name);
                    let may_be_accepted = since.is_none_or(|since| *since + ACCEPTED_WITHIN > now);
                    (claims.others.clone(), claims.releases.is_empty() && may_be_accepted)
                }
            };
            let is_left_alone = may_be_theirs && !scope.covers(&self.release.namespaces);
            if scope == ClaimedScope::Nowhere && !is_left_alone {
                continue;
            }
            let compile = || Arc::new(OtherSpecs::compile(found, settings));
            let specs = self.specs.entry(name.clone()).or_insert_with(compile);
            speaking.extend(OtherPolicy::accepted(found, specs, &scope, &claims.releases));
            if is_left_alone {
                speaking.push(OtherPolicy::left_alone(found, specs));
            }
        }
        speaking
    }

    /// What this release has to say of them now.
    pub fn changes(&self, now: Time) -> impl Iterator<Item = (&FoundPolicy, ClaimChange)> {
        let items = self.policies.items().into_iter().flatten();
        items.filter_map(move |(name, found)| {
            Some((found, self.left.get(name)?.change(&self.release.namespaces, now)?))
        })
    }

    /// When something is to be decided anew that could not be decided then.
    pub fn next_step(&self, then: Time) -> Option<Time> {
        let steps = self.left.values().filter_map(|left| left.next_step(then));
        let unaccepted = self.unaccepted.values().map(|since| *since + ACCEPTED_WITHIN);
        steps.chain(unaccepted.filter(|at| *at > then)).min()
    }
}

fn is_there(items: &BTreeMap<String, FoundPolicy>, name: &str, left: &LeftPolicy) -> bool {
    items.get(name).is_some_and(|found| found.uid == left.uid)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::found_policy::read_policy;

    fn theirs(condition: &str, parents: u32) -> FoundPolicy {
        let spec = json!({ "parent": { "group": "example.com", "kind": "Database" }, "condition": { "type": condition } });
        let object = json!({
            "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy", "spec": spec,
            "metadata": { "name": "theirs", "uid": "u", "resourceVersion": "1", "generation": 1 },
            "status": { "parents": parents, "accepted": { "generation": 1, "spec": spec.to_string() } },
        });
        read_policy(&serde_json::from_value(object).expect("a policy"))
    }

    #[test]
    fn what_others_write_is_compiled_once_for_as_long_as_it_is_the_same() {
        let settings = PolicySettings::with_stuck_after(Duration::from_mins(10));
        let mut others = OtherReleases::default();
        others.begin_list();
        others.stage(theirs("Ready", 0));
        others.finish_list();
        // What was said before is held, so that nothing else can lie in its place.
        let mut speaking: Vec<Vec<OtherPolicy>> = Vec::new();
        let mut says_the_same = |others: &mut OtherReleases| {
            speaking.push(others.speaking(&settings, Time(0)));
            let spec = |said: &'_ [OtherPolicy]| said[0].specs().next().map(std::ptr::from_ref);
            let count = speaking.len();
            count > 1 && spec(&speaking[count - 2]) == spec(&speaking[count - 1])
        };
        assert!(!says_the_same(&mut others));
        others.apply(&theirs("Ready", 7));
        assert!(says_the_same(&mut others), "a status that says nothing new");
        others.apply(&theirs("Other", 7));
        assert!(!says_the_same(&mut others), "another spec");
    }
}
