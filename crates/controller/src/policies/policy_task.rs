//! Task that watches policies: each change creates a new plan, and the state of each plan is written to the policies'
//! status.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aggregator::{Acceptance, KindId};
use futures::StreamExt;
use policy::{
    FoundPolicy, IdRegistry, PolicyBook, PolicyInUse, PolicySettings, Released, WatchPlan, build_plan,
    read_policy,
};
use readiness::Time;
use timer::Seed;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use watcher::plan::LabelMatcher;
use watcher::status::written_types;
use watcher::wire::ChildObject;
use watcher::{ApiFailureCause, ApiKind, FollowEvent, FollowOptions, ParentObject, WireObject, follow};

use super::departures::{Departure, Departures};
use super::rights::{RightsFindings, RightsReviewer};
use super::script_libraries::ScriptLibraries;
use super::staged::StagedList;
use super::status::{PolicyStatusWriter, PolicyTroubles};
use crate::clock::ServerClock;
use crate::kind_tasks::{KindContext, KindTasks, RecordsTrouble};
use crate::lease::Leadership;
use crate::snapshot::StatsSnapshot;

/// Time after which the Trues of a policy that is refused, and was never accepted, are taken back.
const REFUSED_FOR_LONG: Duration = Duration::from_mins(2);

type Labels = Vec<(Box<str>, Box<str>)>;

/// Source of the policies.
#[derive(Clone, Debug)]
pub enum PolicySource {
    /// ReadinessPolicies of the cluster that match the selector.
    Cluster(LabelMatcher),
    /// Policies of a file, fixed for the life of the process.
    File(Vec<FoundPolicy>),
}

/// Watches policies, builds plans, and keeps the kinds' tasks in line with the plan.
pub(crate) struct PolicyTask {
    /// Source of the policies.
    pub(crate) source: PolicySource,
    /// Shared context of the kinds' tasks.
    pub(crate) context: KindContext,
    /// What the administrator set for all policies.
    pub(crate) settings: PolicySettings,
    /// Plans for the event loop.
    pub(crate) plans: mpsc::UnboundedSender<Arc<WatchPlan>>,
    /// Numbers for the status of policies.
    pub(crate) snapshot: watch::Receiver<Arc<StatsSnapshot>>,
    /// Set to true once the policies have been listed.
    pub(crate) policies_read: watch::Sender<bool>,
    /// Clock, for the timestamps of conditions.
    pub(crate) clock: ServerClock,
    /// Leadership: only the leader writes the status of policies.
    pub(crate) leadership: Leadership,
}

/// What is known of policies, and what became of them.
#[derive(Default)]
struct PolicyTaskState {
    selector: LabelMatcher,
    policies: StagedList<String, FoundPolicy>,
    departures: Departures,
    book: PolicyBook,
    /// Since when policies are refused that were never accepted.
    refused_since: BTreeMap<String, Time>,
    /// Types of conditions by parent kind, of policies that are gone or changed.
    released: Released,
    registry: IdRegistry,
    namespaces: Option<futures::stream::BoxStream<'static, FollowEvent<watcher::wire::ChildObject>>>,
    namespace_labels: StagedList<Box<str>, Labels>,
    libraries: ScriptLibraries,
    rights: RightsReviewer,
}

impl PolicyTask {
    /// Runs until `stop`. Kinds that became blind while no list of theirs was under way come in by `relists`.
    pub(crate) async fn run(
        self,
        mut relists: mpsc::UnboundedReceiver<KindId>,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        let mut kinds = KindTasks::new(self.context.clone());
        let mut state = PolicyTaskState::default();
        let mut events = self.policy_events();
        let mut statuses =
            PolicyStatusWriter::new(&self.context.client, self.clock.clone(), self.leadership.clone());
        let mut snapshot = self.snapshot.clone();
        let mut records = self.context.records.trouble.subscribe();
        let writes_status = matches!(self.source, PolicySource::Cluster(_));
        match &self.source {
            PolicySource::Cluster(selector) => state.selector = selector.clone(),
            PolicySource::File(found) => {
                state.policies = StagedList::of_complete(found.iter().map(|f| (f.name.clone(), f.clone())));
                self.replan_all(&mut state, &mut kinds)?;
            }
        }
        loop {
            tokio::select! {
                () = stop.cancelled() => {
                    kinds.shut_down().await;
                    return Ok(());
                }
                error = kinds.next_failure() => return Err(error),
                Some(event) = events.next() => {
                    let (moved, suspects) = state.apply_event(event, &self.policies_read);
                    state.departures.confirm(&self.context.client, suspects);
                    if moved {
                        self.replan_all(&mut state, &mut kinds)?;
                    }
                }
                Some(departure) = state.departures.next(&state.selector) => {
                    if self.settle_departure(departure, &mut state) {
                        self.replan_all(&mut state, &mut kinds)?;
                    }
                }
                _ = state.libraries.next_change() => self.replan_all(&mut state, &mut kinds)?,
                Some(kind) = relists.recv() => kinds.restart_kind(kind),
                Some(event) = next_namespace(&mut state.namespaces) => {
                    self.on_namespace_event(event, &mut state, &mut kinds)?;
                }
                () = self.refused_for_long(&state.refused_since) => self.replan_all(&mut state, &mut kinds)?,
                () = self.context.refusals.notified(), if writes_status => {
                    state.rights.doubt(&self.context, &state.book.in_use);
                }
                () = self.status_is_due(&mut snapshot, &mut records, &mut state.rights, &statuses), if writes_status => {
                    let findings = state.rights.findings();
                    self.write_statuses(state.policies.items(), &state.book, findings, &mut statuses).await;
                }
            }
        }
    }

    /// Waits until the status of a policy may say something else.
    async fn status_is_due(
        &self,
        snapshot: &mut watch::Receiver<Arc<StatsSnapshot>>,
        records: &mut watch::Receiver<Option<RecordsTrouble>>,
        rights: &mut RightsReviewer,
        statuses: &PolicyStatusWriter,
    ) {
        loop {
            tokio::select! {
                Ok(()) = snapshot.changed() => return,
                Ok(()) = records.changed() => return,
                changed = rights.next_result(&self.context) => {
                    if changed {
                        return;
                    }
                }
                () = statuses.wait_until_due() => return,
            }
        }
    }

    async fn write_statuses(
        &self,
        policies: Option<&BTreeMap<String, FoundPolicy>>,
        book: &PolicyBook,
        rights: &RightsFindings,
        statuses: &mut PolicyStatusWriter,
    ) {
        let numbers = self.snapshot.borrow().clone();
        let records = self.context.records.trouble.borrow().clone();
        let troubles = PolicyTroubles { rights, records: records.as_ref() };
        statuses.write_statuses(policies, book, &numbers, &troubles).await;
    }

    /// The server has been asked about a policy that is said to be gone; `true` where a new plan is due.
    fn settle_departure(&self, departure: Departure, state: &mut PolicyTaskState) -> bool {
        match departure {
            Departure::Confirmed(gone) => {
                let parents = self.snapshot.borrow().policies.get(&gone.name).map(|numbers| numbers.parents);
                info!(policy = gone.name, parents, "policy deleted; removing its entries from its parents");
                true
            }
            Departure::Refuted(policy) => state.insert_policy(&policy),
            Departure::Unconfirmed(found) => {
                state.departures.retry(&self.context.client, found);
                false
            }
            Departure::Superseded => false,
        }
    }

    /// Waits until a policy that was never accepted has been refused for so long that its Trues are taken back.
    async fn refused_for_long(&self, since: &BTreeMap<String, Time>) {
        let now = self.clock.now();
        match since.values().map(|since| *since + REFUSED_FOR_LONG).filter(|at| *at > now).min() {
            Some(at) => tokio::time::sleep(at - now).await,
            None => std::future::pending().await,
        }
    }

    fn policy_events(&self) -> futures::stream::BoxStream<'static, FollowEvent<ParentObject>> {
        match &self.source {
            PolicySource::Cluster(selector) => {
                let api = policy_kind();
                let selector = selector.clone();
                let events = follow::<ParentObject>(
                    &self.context.client,
                    &api,
                    None,
                    FollowOptions::new(self.context.seed),
                );
                let kept = move |event: FollowEvent<ParentObject>| match event {
                    // A policy that no longer matches the selector is deleted for this release.
                    FollowEvent::Apply(p) if !selector.matches(&p.meta().labels) => FollowEvent::Delete(p),
                    FollowEvent::InitApply(p) if !selector.matches(&p.meta().labels) => FollowEvent::Alive,
                    event => event,
                };
                events.map(kept).boxed()
            }
            PolicySource::File(_) => futures::stream::pending().boxed(),
        }
    }

    fn replan_all(&self, state: &mut PolicyTaskState, kinds: &mut KindTasks) -> anyhow::Result<()> {
        if !state.decide(&self.settings, self.clock.now()) {
            return Ok(());
        }
        self.context.metrics.planned.policies_refused(state.refusals());
        state.libraries.follow_needed(&self.context.client, self.context.seed, &state.book.in_use);
        let mut plan = build_plan(&state.book.in_use, &state.released, &mut state.registry, &state.libraries);
        if plan.namespaces && state.namespaces.is_none() {
            let seed: Seed = self.context.seed;
            let events = follow(&self.context.client, &namespace_kind(), None, FollowOptions::new(seed));
            state.namespaces = Some(events.boxed());
        }
        if state.namespace_labels.items().is_none() {
            plan.await_namespaces();
        }
        // The kinds are updated first: the loop has to learn that their earlier events are void before it receives the
        // plan.
        let plan = Arc::new(plan);
        kinds.follow_plan(&plan);
        self.plans.send(plan)?;
        if matches!(self.source, PolicySource::Cluster(_)) {
            state.rights.review_policies(&self.context, &state.book.in_use);
        }
        Ok(())
    }

    /// Relists the parents selected by namespace labels after the labels of a namespace changed.
    fn on_namespace_event(
        &self,
        event: FollowEvent<watcher::wire::ChildObject>,
        state: &mut PolicyTaskState,
        kinds: &mut KindTasks,
    ) -> anyhow::Result<()> {
        let reflector = &self.context.reflector;
        let mut moved = false;
        match event {
            FollowEvent::Init => state.namespace_labels.begin_list(),
            FollowEvent::InitApply(ChildObject { meta, .. }) => {
                state.namespace_labels.stage_item(meta.name, meta.labels);
            }
            FollowEvent::InitDone => {
                let first = state.namespace_labels.items().is_none();
                for name in state.namespace_labels.finish_list().into_keys() {
                    moved |= reflector.set_namespace_labels(&name, None);
                }
                for (name, labels) in state.namespace_labels.items().into_iter().flatten() {
                    moved |= reflector.set_namespace_labels(name, Some(labels));
                }
                if first {
                    return self.replan_all(state, kinds);
                }
            }
            FollowEvent::Apply(ChildObject { meta, .. }) => {
                moved = reflector.set_namespace_labels(&meta.name, Some(&meta.labels));
                state.namespace_labels.apply_item(meta.name, meta.labels);
            }
            FollowEvent::Delete(ChildObject { meta, .. }) => {
                moved = reflector.set_namespace_labels(&meta.name, None);
                state.namespace_labels.remove_item(&meta.name);
            }
            FollowEvent::Failure(trouble) => warn!(
                detail = trouble.detail,
                "cannot watch namespaces, although a policy selects parents by their labels"
            ),
            FollowEvent::Alive => {}
        }
        if moved {
            let chosen = state.book.in_use.iter().filter(|p| p.compiled.namespace_selector.is_some());
            for id in chosen
                .filter_map(|p| state.registry.find_kind(&p.compiled.parent.group, &p.compiled.parent.kind))
            {
                kinds.restart_kind(id);
            }
        }
        Ok(())
    }
}

async fn next_namespace(
    events: &mut Option<futures::stream::BoxStream<'static, FollowEvent<watcher::wire::ChildObject>>>,
) -> Option<FollowEvent<watcher::wire::ChildObject>> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

impl PolicyTaskState {
    /// An event of the policies' watch; `true` where a new plan is due, and policies whose deletion is to be confirmed
    /// before that is one.
    fn apply_event(
        &mut self,
        event: FollowEvent<ParentObject>,
        read: &watch::Sender<bool>,
    ) -> (bool, Vec<FoundPolicy>) {
        match event {
            FollowEvent::Init => self.policies.begin_list(),
            FollowEvent::InitApply(policy) => {
                let found = read_policy(&policy);
                self.policies.stage_item(found.name.clone(), found);
            }
            FollowEvent::Apply(policy) => return (self.insert_policy(&policy), Vec::new()),
            FollowEvent::Delete(policy) => return self.remove(&policy),
            FollowEvent::InitDone => {
                let gone: Vec<_> = self.policies.finish_list().into_values().collect();
                let items = self.policies.items().into_iter().flatten();
                for name in items.clone().map(|(name, _)| name) {
                    self.departures.refute(name);
                }
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
            FollowEvent::Failure(trouble) => log_trouble(trouble.cause, &trouble.detail),
            FollowEvent::Alive => {}
        }
        (false, Vec::new())
    }

    fn remove(&mut self, policy: &ParentObject) -> (bool, Vec<FoundPolicy>) {
        let Some(gone) = self.policies.remove_item(&policy.child.meta.name.to_string()) else {
            return (false, Vec::new());
        };
        if !self.selector.matches(&policy.child.meta.labels) {
            // The event itself says that it is not for this release any more.
            return (true, Vec::new());
        }
        self.departures.suspect(gone.clone());
        (false, vec![gone])
    }

    fn insert_policy(&mut self, policy: &ParentObject) -> bool {
        let found = read_policy(policy);
        self.departures.refute(&found.name);
        let old = self.policies.apply_item(found.name.clone(), found.clone());
        // Rollcall's own status writes cause events too; only a change of the spec requires a new plan.
        old.is_none_or(|old| {
            old.uid != found.uid || old.generation != found.generation || old.labels != found.labels
        })
    }

    /// Decides which policies are in force; `false` where that cannot be known, because they were not listed.
    fn decide(&mut self, settings: &PolicySettings, now: Time) -> bool {
        let Some(items) = self.policies.items() else { return false };
        let before = written(&self.book.in_use);
        let departing = self.departures.suspected().filter(|found| !items.contains_key(&found.name));
        let found = items.values().chain(departing);
        self.book.decide(found, settings, &self.libraries, &mut self.registry);
        self.note_refused(now);
        // What a policy said that is gone or changed is taken back from its parents.
        for (key, types) in before {
            self.released.entry(key).or_default().extend(types);
        }
        for (key, types) in written(&self.book.in_use) {
            if let Some(released) = self.released.get_mut(&key) {
                released.retain(|kind| !types.contains(kind));
            }
        }
        self.released.retain(|_, types| !types.is_empty());
        true
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

    /// All policies, and whether each is refused.
    fn refusals(&self) -> BTreeMap<String, bool> {
        let names = self.policies.items().into_iter().flat_map(BTreeMap::keys);
        names.map(|name| (name.clone(), self.book.refused.contains_key(name))).collect()
    }
}

/// Types of conditions that these policies write, by parent kind.
fn written(policies: &[PolicyInUse]) -> Released {
    let mut written = Released::new();
    for PolicyInUse { compiled, .. } in policies {
        let key = (compiled.parent.group.clone(), compiled.parent.kind.clone());
        let types = written_types(&compiled.condition, compiled.fallback.as_deref());
        written.entry(key).or_default().extend(types.map(str::to_owned));
    }
    written
}

/// Logs a failure to read policies, with its remedy.
fn log_trouble(cause: ApiFailureCause, detail: &str) {
    match cause {
        ApiFailureCause::NotInstalled => warn!(
            "the ReadinessPolicy CRD is not installed; run `rollcall crd | kubectl apply -f -`, or use --policies FILE"
        ),
        ApiFailureCause::Forbidden => warn!(
            detail,
            "not permitted to list and watch readinesspolicies.rollcall.dev; grant it with `rollcall rbac | kubectl apply -f -`"
        ),
        _ => warn!(cause = cause.metric_label(), detail, "failed to watch policies"),
    }
}

pub(super) fn policy_kind() -> ApiKind {
    ApiKind {
        group: "rollcall.dev".into(),
        version: "v1alpha1".into(),
        kind: "ReadinessPolicy".into(),
        plural: "readinesspolicies".into(),
        namespaced: false,
        has_status: true,
    }
}

fn namespace_kind() -> ApiKind {
    ApiKind {
        group: String::new(),
        version: "v1".into(),
        kind: "Namespace".into(),
        plural: "namespaces".into(),
        namespaced: false,
        has_status: true,
    }
}

#[cfg(test)]
mod tests;
