//! ReadinessGroups of the cluster, as far as they make policies: those in force are replaced when what groups select by has
//! changed, and the less often the oftener that has happened: the kinds that they name are listed again by it, for everybody.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use policy::{
    FoundGroup, FoundPolicy, PolicySettings, depend_on_served_kinds, policies_of_groups, read_group,
};
use rollcall_core::StagedList;
use timer::{Backoff, Seed};
use tokio::time::{Instant, sleep_until};
use tracing::{debug, warn};
use watcher::plan::LabelMatcher;
use watcher::{ApiFailureCause, FollowEvent, FollowFailure, ParentObject};

use super::served_kinds_watch::ServedKindsWatch;
use crate::failure_reporter::FailureReporter;
use crate::own_watches::OwnWatchKind;

/// Time after a change in which further ones are awaited: groups are created many at a time. 500 ms.
const CHANGE_QUIET: Duration = Duration::from_millis(500);
/// Shortest interval between two plans that groups cause: 10 s, or up to a quarter less, doubled with each that follows. Whoever may create groups has
/// kinds listed again by it, and nothing is said by those meanwhile.
const PLAN_BACKOFF: Backoff = Backoff { base: Duration::from_secs(10), cap: Duration::from_mins(2) };
/// Time without another plan after which the interval is the shortest again. 5 min.
const PLANS_FORGOTTEN_AFTER: Duration = Duration::from_mins(5);

/// Number of shapes from which on those that no group has any more are removed at once.
const MAX_HELD_SHAPES: usize = 1_024;

/// Groups, and the policies that stand for them.
#[derive(Default)]
pub(super) struct GroupPolicies {
    /// Labels by which this release is for groups, as it is for policies.
    selector: LabelMatcher,
    groups: StagedList<String, FoundGroup>,
    /// Each shape once.
    shapes: BTreeSet<Arc<str>>,
    policies: Vec<FoundPolicy>,
    served: ServedKindsWatch,
    /// Time at which the policies are looked at again.
    due: Option<Instant>,
    decided_at: Option<Instant>,
    /// Number of plans that followed each other.
    plans: u32,
    failures: FailureReporter,
}

impl GroupPolicies {
    /// No groups are known yet of those that have these labels.
    pub(super) fn new(
        selector: &LabelMatcher,
        client: &kube::Client,
        failures: &FailureReporter,
    ) -> GroupPolicies {
        GroupPolicies {
            selector: selector.clone(),
            served: ServedKindsWatch::new(client, failures),
            failures: failures.clone(),
            ..GroupPolicies::default()
        }
    }

    /// The policies that stand for groups, as of the last time they were decided on.
    pub(super) fn policies(&self) -> &[FoundPolicy] {
        &self.policies
    }

    /// Handles an event of the groups' watch; `true` where a new plan is due at once.
    pub(super) fn apply_event(
        &mut self,
        event: FollowEvent<ParentObject>,
        settings: &PolicySettings,
    ) -> bool {
        let was_listed = self.groups.items().is_some();
        match event {
            FollowEvent::Init => self.groups.begin_list(),
            FollowEvent::InitApply(group) if !self.selector.matches(&group.child.meta.labels) => {}
            FollowEvent::InitApply(group) => {
                let (key, found) = self.read_found(&group);
                self.groups.stage_item(key, found);
            }
            FollowEvent::Apply(group) if self.selector.matches(&group.child.meta.labels) => {
                let (key, found) = self.read_found(&group);
                let before = self.groups.apply_item(key, found.clone());
                if was_listed && before.is_none_or(|before| !before.asks_the_same(&found)) {
                    self.expect_change();
                }
            }
            FollowEvent::Apply(group) | FollowEvent::Delete(group) => {
                if self.groups.remove_item(&key_of(&group)).is_some() {
                    self.expect_change();
                }
            }
            FollowEvent::InitDone => {
                self.groups.finish_list();
                if !was_listed {
                    return self.decide_policies(settings);
                }
                self.expect_change();
            }
            FollowEvent::Failure(trouble) => report_trouble(&self.failures, trouble),
            FollowEvent::Alive => {}
        }
        false
    }

    /// Waits until what groups select by may have changed, or which kinds that is.
    pub(super) async fn wait_until_due(&mut self) {
        let due = self.due;
        let is_due = async {
            match due {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = is_due => {}
            () = self.served.next_change() => {}
        }
    }

    /// Decides which policies stand for the groups; `true` if they are others than before. While it has to be read first which
    /// kinds are served, nothing is decided.
    pub(super) fn decide_policies(&mut self, settings: &PolicySettings) -> bool {
        let Some(groups) = self.groups.items() else { return false };
        self.due = None;
        let now = Instant::now();
        if !depend_on_served_kinds(groups.values(), self.served.known()) {
            self.served.rest();
        } else if !self.served.follow() {
            return false;
        }
        let policies = policies_of_groups(groups.values(), &self.selector, self.served.known(), settings);
        let has_changed = self.policies != policies;
        let is_first = self.decided_at.is_none_or(|at| at + PLANS_FORGOTTEN_AFTER <= now);
        self.plans = if is_first { 1 } else { self.plans.saturating_add(u32::from(has_changed)) };
        self.decided_at = Some(now);
        self.policies = policies;
        self.shapes.retain(|shape| Arc::strong_count(shape) > 1);
        has_changed
    }

    fn expect_change(&mut self) {
        let now = Instant::now();
        let interval = PLAN_BACKOFF.delay_with_exact_cap(self.plans, Seed(0), 0);
        let earliest = self.decided_at.map_or(now, |at| at + interval);
        self.due.get_or_insert(earliest.max(now + CHANGE_QUIET));
    }

    /// Reads a group; one of a generation that is known is not read again: its status changes more often than its spec.
    fn read_found(&mut self, group: &ParentObject) -> (String, FoundGroup) {
        let (key, meta) = (key_of(group), &group.child.meta);
        let known = self.groups.items().and_then(|groups| groups.get(&key));
        if let Some(known) = known.filter(|known| known.is_same(&meta.uid, meta.generation)) {
            return (key, known.clone());
        }
        let mut found = read_group(group);
        if let Ok(shape) = &mut found.shape {
            if let Some(known) = self.shapes.get(shape) {
                *shape = known.clone();
            } else {
                if self.shapes.len() >= MAX_HELD_SHAPES {
                    self.shapes.retain(|shape| Arc::strong_count(shape) > 1);
                }
                self.shapes.insert(shape.clone());
            }
        }
        (key, found)
    }
}

fn key_of(group: &ParentObject) -> String {
    format!("{}/{}", group.child.meta.namespace, group.child.meta.name)
}

/// Logs a failure to read groups, with its remedy.
fn report_trouble(failures: &FailureReporter, trouble: FollowFailure) {
    let FollowFailure { cause, detail } = trouble;
    failures.report("follow groups", cause.metric_label(), move |failures| {
        if cause == ApiFailureCause::NotInstalled {
            debug!(
                failures,
                "the ReadinessGroup CRD is not installed; `rollcall crd | kubectl apply -f -` does"
            );
            return;
        }
        let why = OwnWatchKind::Groups.explain_failure(cause);
        warn!(cause = cause.metric_label(), detail, failures, "{why}");
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "what fails here is a failed test")]

    use super::*;
    use serde_json::json;

    fn settings() -> PolicySettings {
        PolicySettings::with_stuck_after(Duration::from_mins(10))
    }

    fn group(name: &str, generation: i64, label: &str) -> ParentObject {
        let object = json!({
            "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessGroup",
            "metadata": { "name": name, "namespace": "shop", "uid": name, "resourceVersion": generation.to_string(),
                "generation": generation },
            "spec": { "members": [{ "kinds": [{ "kind": "Pod" }], "labels": { label: name } }] },
        });
        serde_json::from_value(object).unwrap()
    }

    fn listed(groups: &[ParentObject]) -> GroupPolicies {
        let mut policies = GroupPolicies::default();
        assert!(!policies.apply_event(FollowEvent::Init, &settings()));
        for group in groups {
            assert!(!policies.apply_event(FollowEvent::InitApply(group.clone()), &settings()));
            assert!(policies.policies().is_empty(), "half a list makes no policy");
        }
        assert_eq!(policies.apply_event(FollowEvent::InitDone, &settings()), !groups.is_empty());
        policies
    }

    fn in_force(policies: &GroupPolicies) -> usize {
        policies
            .policies()
            .iter()
            .filter(|policy| policy.groups.as_ref().is_some_and(|groups| !groups.is_refused()))
            .count()
    }

    #[tokio::test(start_paused = true)]
    async fn what_selects_in_a_known_way_makes_no_plan_and_what_does_not_makes_few() {
        let mut policies = listed(&[group("a", 1, "app"), group("b", 1, "app")]);
        assert_eq!(in_force(&policies), 1);
        policies.apply_event(FollowEvent::Apply(group("c", 1, "app")), &settings());
        policies.wait_until_due().await;
        assert!(!policies.decide_policies(&settings()), "another value");
        let (start, mut plans) = (Instant::now(), 0);
        for n in 0..600 {
            policies.apply_event(FollowEvent::Apply(group("d", n, &format!("key-{n}"))), &settings());
            tokio::time::sleep(Duration::from_millis(100)).await;
            if policies.due.is_some_and(|due| due <= Instant::now()) {
                plans += usize::from(policies.decide_policies(&settings()));
            }
        }
        assert!(start.elapsed() >= Duration::from_mins(1) && (2..=4).contains(&plans), "{plans}");
        assert_eq!(in_force(&policies), 2, "what no group asks for is forgotten");
        assert!(policies.shapes.len() <= 1 + 600 + 1, "those since the last plan");
        for n in 0..3_000 {
            policies.apply_event(FollowEvent::Apply(group("e", n, &format!("other-{n}"))), &settings());
        }
        assert!(policies.shapes.len() <= MAX_HELD_SHAPES, "{}", policies.shapes.len());
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_relist_lacks_is_gone_when_it_is_complete() {
        let mut policies = listed(&[group("a", 1, "app"), group("b", 1, "team")]);
        policies.apply_event(FollowEvent::Init, &settings());
        policies.apply_event(FollowEvent::InitApply(group("a", 1, "app")), &settings());
        assert!(policies.due.is_none());
        policies.apply_event(FollowEvent::InitDone, &settings());
        policies.wait_until_due().await;
        assert!(policies.decide_policies(&settings()));
        assert_eq!(in_force(&policies), 1);
        policies.apply_event(FollowEvent::Delete(group("a", 1, "app")), &settings());
        policies.wait_until_due().await;
        assert!(policies.decide_policies(&settings()));
        assert_eq!(policies.policies().len(), 0);
    }
}
