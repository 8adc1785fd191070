//! State of the task that watches policies: which were found, which are in force, and what is released. No clock and no
//! requests.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aggregator::Acceptance;
use futures::stream::BoxStream;
use policy::{
    ClaimChange, FormerTypes, FoundPolicy, IdRegistry, KeptState, KindKey, OtherReleases, PolicyBook,
    PolicyInUse, PolicySettings, PresentPolicy, Released, add_conditions, conditions_of, read_policy,
};
use readiness::Time;
use rollcall_core::StagedList;
use tokio::sync::watch;
use tracing::{info, warn};
use watcher::plan::LabelMatcher;
use watcher::wire::ChildObject;
use watcher::{FollowEvent, FollowFailure, ParentObject};

use super::departures::Departures;
use super::disruption_budgets::DisruptionBudgets;
use super::group_policies::GroupPolicies;
use super::inventory_client::InventoryResult;
use super::kopf_log::KopfLog;
use super::namespace_selection::{NamespaceLabels, RelistSchedule};
use super::rights::RightsReviewer;
use super::script_libraries::ScriptLibraries;
use crate::failure_reporter::FailureReporter;
use crate::own_watches::OwnWatchKind;

/// Time after which the Trues of a policy that is refused, and was never accepted, are taken back.
pub(super) const REFUSED_FOR_LONG: Duration = Duration::from_mins(2);

/// What is known of policies, and what became of them.
#[derive(Default)]
pub(super) struct PolicyTaskState {
    pub(super) selector: LabelMatcher,
    pub(super) policies: StagedList<String, FoundPolicy>,
    pub(super) departures: Departures,
    pub(super) others: OtherReleases,
    /// Policies whose status has said that this release has them, for as long as it selects them.
    claimed: BTreeSet<String>,
    pub(super) groups: GroupPolicies,
    pub(super) book: PolicyBook,
    /// Since when policies are refused that were never accepted.
    pub(super) refused_since: BTreeMap<String, Time>,
    /// Types of conditions by parent kind, of policies that are gone or changed.
    pub(super) released: Released,
    /// Types of conditions that policies wrote before they were edited.
    pub(super) former: FormerTypes,
    /// When it was last decided which policies are in force.
    pub(super) decided_at: Time,
    /// What policies wrote, and by which scripts they judge, as it is kept outside the process; `None` where it was not read.
    pub(super) inventory: Option<KeptState>,
    pub(super) registry: IdRegistry,
    pub(super) namespaces: Option<BoxStream<'static, FollowEvent<ChildObject>>>,
    pub(super) namespace_labels: StagedList<Box<str>, NamespaceLabels>,
    pub(super) relists: RelistSchedule,
    pub(super) libraries: ScriptLibraries,
    pub(super) budgets: DisruptionBudgets,
    pub(super) kopf_log: KopfLog,
    /// What was decided last is not followed yet.
    pub(super) plan_is_due: bool,
    /// A plan is not followed yet, because budgets or a log are awaited.
    pub(super) awaits_lists: bool,
    pub(super) rights: RightsReviewer,
    pub(super) failures: FailureReporter,
}

impl PolicyTaskState {
    /// Nothing is known yet.
    pub(super) fn reporting_to(failures: &FailureReporter) -> PolicyTaskState {
        let mut state = PolicyTaskState { failures: failures.clone(), ..PolicyTaskState::default() };
        state.departures.failures = failures.clone();
        state.libraries.failures = failures.clone();
        state.budgets.failures = failures.clone();
        state.kopf_log.failures = failures.clone();
        state
    }

    /// Returns `true` while nothing is to be judged, because what else it is judged by is not listed yet.
    pub(super) fn awaits_first_lists(&self) -> bool {
        self.budgets.is_awaited() || self.kopf_log.is_awaited()
    }

    /// An event of the policies' watch; `true` where a new plan is due, and policies whose deletion is to be confirmed
    /// before that is one.
    pub(super) fn apply_event(
        &mut self,
        event: FollowEvent<ParentObject>,
        read: &watch::Sender<bool>,
    ) -> (bool, Vec<FoundPolicy>) {
        match event {
            FollowEvent::Init => {
                self.policies.begin_list();
                self.others.begin_list();
            }
            FollowEvent::InitApply(policy) if !self.selector.matches(&policy.child.meta.labels) => {
                self.others.stage(read_policy(&policy));
            }
            FollowEvent::InitApply(policy) => {
                let found = read_policy(&policy);
                self.policies.stage_item(found.name.clone(), found);
            }
            // One that no longer matches the selector is deleted for this release.
            FollowEvent::Apply(policy) if !self.selector.matches(&policy.child.meta.labels) => {
                let speaks_anew = self.others.apply(&read_policy(&policy));
                let (moved, suspects) = self.remove(&policy);
                return (moved || speaks_anew, suspects);
            }
            FollowEvent::Apply(policy) => {
                let was_others = self.others.remove(&policy.child.meta.name);
                return (self.insert_policy(&policy) || was_others, Vec::new());
            }
            FollowEvent::Delete(policy) => {
                let left = self.others.left_behind(&policy.child.meta.name);
                add_conditions(&mut self.released, left);
                let was_others = self.others.remove(&policy.child.meta.name);
                let (moved, suspects) = self.remove(&policy);
                return (moved || was_others, suspects);
            }
            FollowEvent::InitDone => {
                self.others.finish_list();
                let gone = self.policies.finish_list().into_values();
                // The list itself says of the others that they are not for this release any more.
                let gone: Vec<_> = gone.filter(|found| !self.others.contains(found)).collect();
                let items = self.policies.items().into_iter().flatten();
                for name in items.clone().map(|(name, _)| name) {
                    self.departures.refute(name);
                }
                let claimed = items.clone().filter(|(_, found)| self.others.release.has_claimed(found));
                self.claimed = claimed.map(|(name, _)| name.clone()).collect();
                for found in &gone {
                    self.departures.suspect(found.clone());
                }
                if !read.send_replace(true) && items.count() == 0 {
                    info!(
                        "no ReadinessPolicy exists yet; write one (kubectl explain readinesspolicies.spec), \
                         check it with `rollcall check -f FILE`"
                    );
                }
                return (true, gone);
            }
            FollowEvent::Failure(trouble) => report_trouble(&self.failures, trouble),
            FollowEvent::Alive => {}
        }
        (false, Vec::new())
    }

    fn remove(&mut self, policy: &ParentObject) -> (bool, Vec<FoundPolicy>) {
        let name = policy.child.meta.name.to_string();
        self.claimed.remove(&name);
        let Some(gone) = self.policies.remove_item(&name) else { return (false, Vec::new()) };
        if !self.selector.matches(&policy.child.meta.labels) {
            // The event itself says that it is not for this release any more.
            return (true, Vec::new());
        }
        self.departures.suspect(gone.clone());
        (false, vec![gone])
    }

    pub(super) fn insert_policy(&mut self, policy: &ParentObject) -> bool {
        let found = read_policy(policy);
        self.departures.refute(&found.name);
        if self.others.release.has_claimed(&found) {
            self.claimed.insert(found.name.clone());
        }
        let old = self.policies.apply_item(found.name.clone(), found.clone());
        // Rollcall's own status writes cause events too; only a change of the spec requires a new plan. A changed CRD
        // makes one of the same generation: a default appears, or a field is pruned.
        old.is_none_or(|old| {
            old.uid != found.uid
                || old.generation != found.generation
                || old.labels != found.labels
                || old.spec != found.spec
        })
    }

    /// Decides which policies are in force; `false` where that cannot be known, because they were not listed.
    pub(super) fn decide(&mut self, settings: &PolicySettings, now: Time) -> bool {
        let Some(items) = self.policies.complete_list() else { return false };
        self.decided_at = now;
        let before = written(&self.book.in_use);
        self.former.note_in_use(&self.book.in_use);
        let in_force = self.book.in_use.iter().map(|used| &*used.name);
        let lost = self.others.note(in_force, settings, now);
        let departing = self.departures.suspected().filter(|found| !items.contains_key(&found.name));
        let beside = departing.chain(self.groups.policies());
        self.book.decide(items, beside, settings, &self.libraries, &mut self.registry);
        self.note_refused(now);
        // What a policy said that is gone or changed is taken back from its parents.
        for left in [before, lost, self.others.released()] {
            add_conditions(&mut self.released, left);
        }
        self.note_inventory();
        // Where a policy of this release writes it, there is nothing to look for.
        for key in self.others.released().keys().filter(|key| !self.released.contains_key(*key)) {
            self.others.note_clean(key, now);
        }
        true
    }

    /// Compares what is kept outside the process with the policies that there are. What those left behind that are not
    /// there any more, or write something else, is released; `true` where that is news.
    pub(super) fn note_inventory(&mut self) -> bool {
        let before = self.released.clone();
        if let (Some(inventory), Some(items)) = (&mut self.inventory, self.policies.items()) {
            let departing = self.departures.suspected().filter(|found| !items.contains_key(&found.name));
            let present = items.values().chain(departing).map(|found| present_policy(found, &self.book));
            inventory.conditions.note_policies(&present.collect::<Vec<_>>());
            inventory.scripts.note_scripts(self.libraries.scripts_of(&self.book.in_use));
            self.former.note_inventory(&inventory.conditions);
            add_conditions(&mut self.released, inventory.conditions.left_behind());
        }
        for (key, types) in written(&self.book.in_use) {
            if let Some(released) = self.released.get_mut(&key) {
                released.retain(|kind| !types.contains(kind));
            }
        }
        self.released.retain(|_, types| !types.is_empty());
        self.former.retain_released(&self.released);
        self.released != before
    }

    /// The inventory was read, or the server was asked for a policy in it; `true` where a new plan is due.
    pub(super) fn apply_inventory(&mut self, result: InventoryResult) -> bool {
        let moved = self.take_inventory(result);
        let is_known = |kept: &KeptState| kept.conditions.next_unconfirmed().is_none();
        self.rights.await_releases(!self.inventory.as_ref().is_some_and(is_known));
        moved
    }

    fn take_inventory(&mut self, result: InventoryResult) -> bool {
        match result {
            InventoryResult::Nothing => return false,
            InventoryResult::Read(read) => {
                let recalled = self.libraries.recall(&read.scripts);
                self.inventory.get_or_insert_default().merge(read);
                return self.note_inventory() || recalled;
            }
            InventoryResult::Asked { uid, gone } => {
                let known =
                    self.inventory.as_mut().and_then(|inventory| inventory.conditions.confirm(&uid, gone));
                if let Some(policy) = known {
                    info!(
                        policy,
                        "policy was deleted unobserved; removing those of its entries that no policy writes"
                    );
                }
            }
        }
        self.note_inventory()
    }

    /// No parent of this kind has an entry of these types any more.
    pub(super) fn settle_release(&mut self, key: &KindKey) {
        let Some(types) = self.released.remove(key) else { return };
        self.others.note_clean(key, self.decided_at);
        let done = self.inventory.as_mut().map(|inventory| inventory.conditions.settle_release(key, &types));
        for policy in done.into_iter().flatten() {
            info!(policy, "the entries of a deleted policy are removed");
        }
    }

    fn note_refused(&mut self, now: Time) {
        let before = std::mem::take(&mut self.refused_since);
        for policy in self.book.in_use.iter_mut().filter(|p| p.acceptance != Acceptance::Accepted) {
            let since = before.get(&policy.name).copied().unwrap_or(now);
            if since + REFUSED_FOR_LONG <= now {
                policy.acceptance = Acceptance::RefusedForLong;
            }
            self.refused_since.insert(policy.name.clone(), since);
        }
    }

    /// What is to be said in the status of policies of who has them: of those in use here, and of those that this release had.
    pub(super) fn claim_changes(&self, now: Time) -> Vec<(&FoundPolicy, ClaimChange)> {
        let release = &self.others.release;
        let in_use = self.book.in_use.iter().filter_map(|used| self.policies.items()?.get(&used.name));
        let accepted = in_use.filter_map(|found| {
            let accepted = self.book.accepted.get(&found.name);
            let is_first = !self.claimed.contains(&found.name);
            Some((found, ClaimChange::accept(found, accepted, release, is_first)?))
        });
        accepted.chain(self.others.changes(now)).collect()
    }

    /// All policies, and whether each is refused.
    pub(super) fn refusals(&self) -> BTreeMap<String, bool> {
        let names = self.policies.items().into_iter().flat_map(BTreeMap::keys);
        names.map(|name| (name.clone(), self.book.refused.contains_key(name))).collect()
    }
}

/// A policy as far as the inventory of conditions is concerned.
fn present_policy<'p>(found: &'p FoundPolicy, book: &PolicyBook) -> PresentPolicy<'p> {
    let accepted = |used: &&PolicyInUse| used.name == found.name && used.acceptance == Acceptance::Accepted;
    let used = book.in_use.iter().find(accepted);
    PresentPolicy {
        uid: &found.uid,
        name: &found.name,
        names: used.map(|used| written([used])),
        writes: used.is_some_and(|used| !used.compiled.shadow),
    }
}

fn written<'p>(policies: impl IntoIterator<Item = &'p PolicyInUse>) -> Released {
    conditions_of(policies.into_iter().map(|used| &used.compiled))
}

/// Logs a failure to read policies, with its remedy.
fn report_trouble(failures: &FailureReporter, trouble: FollowFailure) {
    let FollowFailure { cause, detail } = trouble;
    failures.report("follow policies", cause.metric_label(), move |failures| {
        let why = OwnWatchKind::Policies.explain_failure(cause);
        warn!(cause = cause.metric_label(), detail, failures, "{why}");
    });
}

#[cfg(test)]
mod release_tests;
#[cfg(test)]
mod tests;
