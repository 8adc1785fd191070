//! Policies that the labels of the release under test do not select: the product's own part of them, fed by the simulated watch.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use aggregator::Acceptance;
use policy::{
    ClaimChange, FoundPolicy, KindKey, OtherReleases, PolicyBook, PolicyInUse, PolicyRank, PolicySettings,
    ReleaseIdentity, Released, add_conditions,
};
use readiness::Time;
use serde_json::json;
use watcher::plan::Interest;

use super::policy_plan::PolicyPlan;
use crate::scenario::{PolicyDef, Scenario};
use crate::timeline::ClaimWrite;
use crate::world::{OWN_RELEASE, SelectedBy, StoredPolicy, found_policy, spec_json};

/// What one life of the process knows of other releases' policies, and says of its own to those.
pub(crate) struct OtherPolicies {
    others: OtherReleases,
    settings: PolicySettings,
    scenario: Rc<Scenario>,
    /// Those of the list under way: a sabotage takes them for all.
    staged: Vec<FoundPolicy>,
    /// Policies whose status has said that this release has them, for as long as it selects them.
    claimed: BTreeSet<usize>,
    /// Version of each policy for which a claim was sent.
    sent: BTreeMap<usize, u64>,
    /// What those left that are gone.
    lost: Released,
    /// Kinds on whose parents the last look found nothing that is to be taken back.
    clean: BTreeSet<KindKey>,
}

impl OtherPolicies {
    pub(crate) fn new(scenario: Rc<Scenario>) -> OtherPolicies {
        let mut others = OtherReleases::default();
        others.release = ReleaseIdentity { name: OWN_RELEASE.to_owned(), namespaces: Vec::new() };
        OtherPolicies {
            others,
            settings: PolicySettings::with_stuck_after(Duration::from_mins(10)),
            scenario,
            staged: Vec::new(),
            claimed: BTreeSet::new(),
            sent: BTreeMap::new(),
            lost: Released::new(),
            clean: BTreeSet::new(),
        }
    }

    fn read(&self, policy: &StoredPolicy) -> FoundPolicy {
        found_policy(policy, &self.scenario.kinds)
    }

    pub(super) fn begin_list(&mut self) {
        self.staged.clear();
        self.others.begin_list();
    }

    /// Stages one of the list under way, if it is another release's.
    pub(super) fn stage(&mut self, policy: &StoredPolicy) -> bool {
        let is_other = policy.object.selected_by != SelectedBy::Ours;
        if is_other {
            let found = self.read(policy);
            self.staged.push(found.clone());
            self.others.stage(found);
        }
        is_other
    }

    /// Takes what is staged for a whole list: a sabotage.
    pub(super) fn finish_half_list(&mut self) {
        self.others.finish_list();
        self.others.begin_list();
        self.staged.iter().for_each(|found| self.others.stage(found.clone()));
    }

    /// The list is complete; `selected` are those that this release selects.
    pub(super) fn finish_list<'p>(&mut self, selected: impl Iterator<Item = &'p StoredPolicy>) {
        self.others.finish_list();
        let claimed = selected.filter(|policy| policy.object.is_claimed_by(OWN_RELEASE));
        self.claimed = claimed.map(|policy| policy.number).collect();
    }

    /// Returns `true` if this one is another release's by now.
    pub(super) fn contains(&self, policy: &StoredPolicy) -> bool {
        self.others.contains(&self.read(policy))
    }

    /// Handles one that was created or changed. `None` if it is this release's; else whether it speaks otherwise than before.
    pub(super) fn apply(&mut self, policy: &StoredPolicy) -> Option<bool> {
        if policy.object.selected_by != SelectedBy::Ours {
            self.claimed.remove(&policy.number);
            return Some(self.others.apply(&self.read(policy)));
        }
        if policy.object.is_claimed_by(OWN_RELEASE) {
            self.claimed.insert(policy.number);
        }
        None
    }

    /// One is this release's now, or gone; returns `true` if it was another's.
    pub(super) fn remove(&mut self, policy: &StoredPolicy, is_deleted: bool) -> bool {
        let name = policy.stub.name();
        if is_deleted {
            self.claimed.remove(&policy.number);
            add_conditions(&mut self.lost, self.others.left_behind(&name));
        }
        self.others.remove(&name)
    }

    /// Notes what their status says; `in_force` is the plan that held until now.
    pub(super) fn note(&mut self, in_force: &PolicyPlan, now: i64) {
        let names: Vec<String> = in_force.policies.iter().map(PolicyDef::name).collect();
        let lost = self.others.note(names.iter().map(String::as_str), &self.settings, Time(now));
        add_conditions(&mut self.lost, lost);
    }

    /// Takes the types of conditions that are to be taken back, by parent kind.
    pub(super) fn take_released(&mut self) -> Vec<(usize, BTreeSet<String>)> {
        let mut released = std::mem::take(&mut self.lost);
        add_conditions(&mut released, self.others.released());
        let kinds = &self.scenario.kinds;
        let index =
            |key: &KindKey| kinds.iter().position(|of| (&of.api.group, &of.api.kind) == (&key.0, &key.1));
        released.iter().filter_map(|(key, types)| Some((index(key)?, types.clone()))).collect()
    }

    /// Leaves to other releases what is theirs of a plan of these policies, each with what the server shows of it.
    pub(super) fn leave_in(
        &mut self,
        interests: &mut BTreeMap<usize, Interest>,
        in_use: &[(PolicyDef, StoredPolicy)],
        now: i64,
    ) {
        let book = self.book_of(in_use);
        for other in self.others.speaking(&self.settings, Time(now)) {
            for ((group, kind), rule) in other.rules(&book) {
                let at =
                    self.scenario.kinds.iter().position(|of| of.api.group == group && of.api.kind == kind);
                let interest = at.and_then(|at| interests.get_mut(&at));
                let concerned = interest.filter(|of| !of.parent.is_empty() || !of.release.is_empty());
                if let Some(interest) = concerned {
                    interest.elsewhere.push(rule);
                }
            }
        }
    }

    /// The policies in force, as far as other releases' are compared with them.
    fn book_of(&self, in_use: &[(PolicyDef, StoredPolicy)]) -> PolicyBook {
        let mut book = PolicyBook::default();
        for (spec, stored) in in_use {
            let in_force = StoredPolicy { spec: Some(spec.clone()), ..stored.clone() };
            let found = self.read(&in_force);
            let Ok(compiled) = found.compile_spec(&self.settings) else { continue };
            let is_refused = spec.acceptance != Acceptance::Accepted;
            book.ranks.insert(spec.id, PolicyRank::of(&found, is_refused));
            let (id, name, acceptance) = (spec.id, found.name, spec.acceptance);
            book.in_use.push(PolicyInUse { id, name, compiled, acceptance });
        }
        book
    }

    /// Returns what is to be said of policies that was not sent yet: of those in use, each with its spec that was accepted last, and
    /// of those that this release had.
    pub(super) fn claim_writes<'p>(
        &mut self,
        in_use: impl Iterator<Item = (&'p StoredPolicy, Option<&'p (i64, PolicyDef)>)>,
        now: i64,
    ) -> Vec<ClaimWrite> {
        let release = self.others.release.clone();
        let mut writes = Vec::new();
        for (policy, accepted) in in_use {
            let found = self.read(policy);
            let is_first = !self.claimed.contains(&policy.number);
            let Some(change) = ClaimChange::accept(&found, None, &release, is_first) else { continue };
            let mut patch = change.patch(&found, &release, Time(now));
            if let Some((generation, spec)) = accepted {
                let text = spec_json(spec, &self.scenario.kinds).to_string();
                patch["status"]["accepted"] = json!({ "generation": generation, "spec": text });
            }
            writes.push((found, patch));
        }
        for (found, change) in self.others.changes(Time(now)) {
            writes.push((found.clone(), change.patch(found, &release, Time(now))));
        }
        let unsent = writes.into_iter().filter_map(|(found, patch)| {
            let number = found.name.strip_prefix("policy-")?.parse().ok()?;
            let is_sent = self.sent.insert(number, found.version) == Some(found.version);
            let uid = found.uid.parse().ok()?;
            (!is_sent).then_some(ClaimWrite { number, uid, patch })
        });
        unsent.collect()
    }

    /// Returns when something is to be decided anew that could not be decided then.
    pub(super) fn next_step(&self, then: i64) -> Option<i64> {
        self.others.next_step(Time(then)).map(|at| at.0)
    }

    /// Returns `true` if this release had some of them.
    pub(super) fn has_left(&self) -> bool {
        self.others.has_left()
    }

    /// Looks whether entries are gone that are to be taken back: as `has_entries` says of a kind and its types, twice in a row.
    /// Returns `true` if those of a kind are.
    pub(super) fn check_release(
        &mut self,
        decided_at: i64,
        has_entries: impl Fn(usize, &BTreeSet<String>) -> bool,
    ) -> bool {
        let kinds = &self.scenario.kinds;
        let released = self.others.released();
        let is_clean = |(key, types): &(&KindKey, &BTreeSet<String>)| {
            let at = kinds.iter().position(|of| of.api.group == key.0 && of.api.kind == key.1);
            !self.others.may_release(key, Time(decided_at)) && at.is_some_and(|at| !has_entries(at, types))
        };
        let clean: BTreeSet<KindKey> = released.iter().filter(is_clean).map(|(key, _)| key.clone()).collect();
        let done: Vec<KindKey> = clean.intersection(&self.clean).cloned().collect();
        for key in &done {
            self.others.note_clean(key, Time(decided_at));
        }
        self.clean = clean;
        !done.is_empty()
    }
}
