//! Task that watches policies: each change creates a new plan, and the state of each plan is written to the policies'
//! status.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use policy::{FoundPolicy, OtherPolicy, PolicySettings, ReleaseIdentity, WatchPlan, build_plan};
use rollcall_core::StagedList;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use watcher::plan::LabelMatcher;
use watcher::wire::ChildObject;
use watcher::{ApiKind, FollowEvent, FollowFailure, ParentObject, WireObject, follow};

use super::departures::Departure;
use super::grants::{GrantFindings, GrantSettings, RightsGranter};
use super::group_policies::GroupPolicies;
use super::inventory_client::{InventoryClient, InventorySettings};
use super::namespace_selection::{apply_namespace_event, policies_choosing_otherwise};
use super::policy_task_state::PolicyTaskState;
use super::release_check::ReleaseCheck;
use super::status::{PolicyStatusWriter, PolicyTroubles};
use super::task_inputs::{RulesMove, namespaces_move, next_in_time, rights_move, rules_move, status_is_due};
use super::watched_kinds::{group_kind, namespace_kind, policy_kind};
use crate::clock::ServerClock;
use crate::kind_tasks::{KindContext, KindRequest, KindTasks};
use crate::lease::{Leadership, LeadershipGate};
use crate::own_watches::OwnWatchKind;
use crate::rule_threads::work_beside;
use crate::snapshot::StatsSnapshot;

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
    /// Leadership: only the leader writes the status of policies, and grants rights.
    pub(crate) leadership: Leadership,
    /// Gate of the leadership over parents.
    pub(crate) leadership_gate: LeadershipGate,
    /// What the administrator allows it to grant itself.
    pub(crate) grants: GrantSettings,
    /// How it keeps what policies wrote.
    pub(crate) inventory: InventorySettings,
    /// How policies' status names it.
    pub(crate) release: ReleaseIdentity,
}

impl PolicyTask {
    /// Runs until `stop`. What the event loop asks of the kinds' tasks comes in by `requests`.
    pub(crate) async fn run(
        self,
        mut requests: mpsc::UnboundedReceiver<KindRequest>,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        let (mut state, mut kinds) = self.begin()?;
        let (mut events, mut groups) = (self.policy_events(), self.group_events());
        let (mut statuses, mut granter, mut inventory) = self.writers();
        let (mut releases, mut snapshot) = (ReleaseCheck::default(), self.snapshot.clone());
        let mut records = self.context.records.trouble.subscribe();
        let writes_status = matches!(self.source, PolicySource::Cluster(_));
        loop {
            if self.keeps_what_is_written(&mut inventory, &mut state) && state.plan_is_due {
                work_beside(true, || self.follow_decided(&mut state, &mut kinds))?;
            }
            let is_moved = tokio::select! {
                () = stop.cancelled() => {
                    kinds.shut_down().await;
                    return Ok(());
                }
                error = kinds.next_failure() => return Err(error),
                Some(event) = events.next() => {
                    self.on_policy_event(event, &mut state, granter.findings(), &mut statuses)
                }
                Some(event) = groups.next() => state.groups.apply_event(event, &self.settings),
                () = state.groups.wait_until_due() => state.groups.decide_policies(&self.settings),
                Some(departure) = state.departures.next(&state.selector) => {
                    self.settle_departure(departure, &mut state)
                }
                moved = rules_move(&mut state.libraries, &mut state.budgets, (&mut state.kopf_log, &self.context.reflector)) => {
                    self.on_rules_moved(moved, &mut state)
                }
                Some(request) = requests.recv() => {
                    kinds.handle_request(request);
                    false
                }
                event = namespaces_move(&mut state.namespaces, &state.relists) => {
                    self.on_namespaces_moved(event, &mut state, &mut kinds)?;
                    false
                }
                () = next_in_time(&self.clock, &state.refused_since, &state.others, state.decided_at) => true,
                () = self.context.refusals.notified(), if writes_status => {
                    state.rights.doubt(&self.context);
                    false
                }
                () = rights_move(&self.context, &mut state.rights, (&state.book, &state.released, state.policies.items()), &mut granter), if writes_status => {
                    self.write_statuses(&state, granter.findings(), &mut statuses);
                    false
                }
                result = inventory.next_result(), if writes_status => state.apply_inventory(result),
                () = releases.next_check(), if self.looks_for_entries(&state) => {
                    releases.settle(&mut state, &self.context.reflector, &self.snapshot.borrow().clone())
                }
                () = status_is_due(&mut snapshot, &mut records, &mut statuses), if writes_status => {
                    self.write_statuses(&state, granter.findings(), &mut statuses);
                    false
                }
            };
            if is_moved {
                self.decide(&mut state);
                self.write_claims(&state, &mut statuses);
            }
        }
    }

    /// What writes while this replica leads.
    fn writers(&self) -> (PolicyStatusWriter, RightsGranter, InventoryClient) {
        let (context, leadership) = (&self.context, || self.leadership.clone());
        let notices = self.grants.notices.clone();
        (
            PolicyStatusWriter::new(context, self.clock.clone(), leadership(), notices),
            RightsGranter::new(context, self.grants.clone(), leadership()),
            InventoryClient::new(context, &self.inventory, &self.clock, leadership()),
        )
    }

    /// Begins what is to be asked of the inventory. `true` once it has what policies are to write, or nobody waits for it.
    fn keeps_what_is_written(&self, inventory: &mut InventoryClient, state: &mut PolicyTaskState) -> bool {
        let PolicySource::Cluster(_) = self.source else { return true };
        inventory.begin_request(state.policies.items().is_some(), &mut state.inventory);
        let is_awaited = inventory.is_awaited(state.inventory.as_ref());
        self.leadership_gate.update(inventory.leads(), is_awaited);
        !is_awaited
    }

    /// Returns `true` if somebody waits until entries are gone that are to be removed.
    fn looks_for_entries(&self, state: &PolicyTaskState) -> bool {
        !self.grants.roles.is_empty() || state.inventory.is_some() || state.others.has_left()
    }

    /// What is known at first: the policies of a file, or nothing.
    fn begin(&self) -> anyhow::Result<(PolicyTaskState, KindTasks)> {
        let mut kinds = KindTasks::new(self.context.clone());
        let mut state = PolicyTaskState::reporting_to(&self.context.failures);
        match &self.source {
            PolicySource::Cluster(selector) => {
                state.groups = GroupPolicies::new(selector, &self.context.client, &state.failures);
                state.selector = selector.clone();
                state.others.release = self.release.clone();
                state.rights.await_releases(true);
            }
            PolicySource::File(found) => {
                state.policies = StagedList::of_complete(found.iter().map(|f| (f.name.clone(), f.clone())));
                self.decide(&mut state);
                self.follow_decided(&mut state, &mut kinds)?;
            }
        }
        Ok((state, kinds))
    }

    fn write_statuses(
        &self,
        state: &PolicyTaskState,
        grants: &GrantFindings,
        statuses: &mut PolicyStatusWriter,
    ) {
        let numbers = self.snapshot.borrow().clone();
        let records = self.context.records.trouble.borrow().clone();
        let troubles = PolicyTroubles { rights: state.rights.findings(), grants, records: records.as_ref() };
        statuses.begin_pass();
        self.write_claims(state, statuses);
        statuses.write_statuses(state.policies.items(), &state.book, &numbers, &troubles);
    }

    /// Says which policies are in use here, before anything is written on their parents, and which are not any more.
    fn write_claims(&self, state: &PolicyTaskState, statuses: &mut PolicyStatusWriter) {
        if matches!(self.source, PolicySource::Cluster(_)) {
            statuses.write_claims(state.claim_changes(self.clock.now()), &self.release);
        }
    }

    /// An event of the policies' watch; `true` where a new plan is due. A status that somebody else has changed is written
    /// again, and so is a claim.
    fn on_policy_event(
        &self,
        event: FollowEvent<ParentObject>,
        state: &mut PolicyTaskState,
        grants: &GrantFindings,
        statuses: &mut PolicyStatusWriter,
    ) -> bool {
        let applied = match &event {
            FollowEvent::Apply(policy) => Some(policy.child.meta.name.to_string()),
            _ => None,
        };
        let (moved, suspects) = state.apply_event(event, &self.policies_read);
        state.departures.confirm(&self.context.client, &self.clock, suspects);
        let found = applied.and_then(|name| state.policies.items()?.get(&name));
        let is_unclaimed = |found: &FoundPolicy| !self.release.has_claimed(found);
        if !moved && found.is_some_and(|found| statuses.was_edited(found) || is_unclaimed(found)) {
            self.write_statuses(state, grants, statuses);
        }
        moved
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
                state.departures.retry(&self.context.client, &self.clock, found);
                false
            }
            Departure::Superseded => false,
        }
    }

    fn policy_events(&self) -> BoxStream<'static, FollowEvent<ParentObject>> {
        match &self.source {
            PolicySource::Cluster(_) => self.follow_own(OwnWatchKind::Policies, policy_kind),
            PolicySource::File(_) => futures::stream::pending().boxed(),
        }
    }

    /// The events of a kind that no live read looks at.
    fn follow_own<K: WireObject>(
        &self,
        watch: OwnWatchKind,
        kind: fn() -> ApiKind,
    ) -> BoxStream<'static, FollowEvent<K>> {
        let (client, options) = (self.context.client.clone(), self.context.follow_options());
        let open = move || follow::<K>(&client, &kind(), None, options.clone()).boxed();
        self.context.own_watches.observed(watch, "", self.context.breaks.reopened_after(open))
    }

    fn group_events(&self) -> BoxStream<'static, FollowEvent<ParentObject>> {
        match &self.source {
            PolicySource::Cluster(_) => self.follow_own(OwnWatchKind::Groups, group_kind),
            PolicySource::File(_) => futures::stream::pending().boxed(),
        }
    }

    /// Decides which policies are in force. A plan is due then, which is followed once the inventory has them: a process that is
    /// killed after its first write leaves nothing that the next one takes for somebody else's.
    fn decide(&self, state: &mut PolicyTaskState) {
        // It compiles every policy.
        if work_beside(true, || state.decide(&self.settings, self.clock.now())) {
            self.context.metrics.planned.policies_refused(state.refusals());
            state.libraries.follow_needed(&self.context, &state.book.in_use);
            state.plan_is_due = true;
        }
    }

    /// Builds a plan for the policies in force, and follows it.
    fn follow_decided(&self, state: &mut PolicyTaskState, kinds: &mut KindTasks) -> anyhow::Result<()> {
        state.plan_is_due = false;
        let mut plan = build_plan(&state.book.in_use, &state.released, &mut state.registry, &state.libraries);
        state.former.recall_in(&mut plan);
        let others = state.others.speaking(&self.settings, self.clock.now());
        plan.leave_to(others.iter().flat_map(|other| other.rules(&state.book)), &state.registry);
        if plan.budgets {
            state.budgets.follow(&self.context);
        }
        if plan.kopf_log {
            state.kopf_log.follow(&self.context);
        }
        // Where something is followed already, it goes on meanwhile.
        state.awaits_lists = state.awaits_first_lists() && !kinds.follows_any();
        if state.awaits_lists {
            return Ok(());
        }
        if plan.namespaces && state.namespaces.is_none() {
            state.namespaces = Some(self.follow_own(OwnWatchKind::Namespaces, namespace_kind));
        }
        self.context.own_watches.set_needed(OwnWatchKind::Namespaces, |_| plan.namespaces);
        self.context.own_watches.set_needed(OwnWatchKind::Budgets, |_| plan.budgets);
        self.context.own_watches.set_needed(OwnWatchKind::KopfEvents, |_| plan.kopf_log);
        if state.namespace_labels.items().is_none() {
            plan.await_namespaces();
        }
        // The kinds are updated first: the loop has to learn that their earlier events are void before it receives the
        // plan.
        let plan = Arc::new(plan);
        kinds.follow_plan(&plan);
        self.plans.send(plan)?;
        if matches!(self.source, PolicySource::Cluster(_)) {
            state.rights.review_policies(&state.book.in_use);
        }
        Ok(())
    }

    /// Returns `true` where a new plan is due.
    fn on_rules_moved(&self, moved: RulesMove, state: &mut PolicyTaskState) -> bool {
        match moved {
            RulesMove::Scripts => return true,
            RulesMove::Budgets(budgets) => self.context.reflector.set_disruption_budgets(budgets),
            RulesMove::KopfLog => {}
        }
        state.awaits_lists && !state.awaits_first_lists()
    }

    /// Notes labels of namespaces, and lists parents again that are selected by them, where that selects others.
    fn on_namespaces_moved(
        &self,
        event: Option<FollowEvent<ChildObject>>,
        state: &mut PolicyTaskState,
        kinds: &mut KindTasks,
    ) -> anyhow::Result<()> {
        if let Some(event) = event {
            self.on_namespace_event(event, state, kinds)?;
        }
        for kind in state.relists.take_due(Instant::now()) {
            kinds.restart_kind(kind);
        }
        Ok(())
    }

    fn on_namespace_event(
        &self,
        event: FollowEvent<ChildObject>,
        state: &mut PolicyTaskState,
        kinds: &mut KindTasks,
    ) -> anyhow::Result<()> {
        if let FollowEvent::Failure(FollowFailure { cause, detail }) = event {
            kinds.fail_awaiting_namespaces(&detail);
            self.context.failures.report("follow namespaces", cause.metric_label(), move |failures| {
                warn!(
                    detail,
                    failures, "cannot watch namespaces, although a policy selects parents by their labels"
                );
            });
            return Ok(());
        }
        let was_listed = state.namespace_labels.items().is_some();
        let changes = apply_namespace_event(&mut state.namespace_labels, event);
        for change in &changes {
            self.context.reflector.set_namespace_labels(&change.name, change.after.as_deref());
        }
        let is_first = !was_listed && state.namespace_labels.items().is_some();
        if is_first && !state.plan_is_due {
            work_beside(true, || self.follow_decided(state, kinds))?;
        }
        if changes.is_empty() && !is_first {
            return Ok(());
        }
        let others = state.others.speaking(&self.settings, self.clock.now());
        let others = others.iter().flat_map(OtherPolicy::specs);
        let relisted: Vec<_> = if is_first {
            // What is left to other releases did not wait for labels: those that are not known match.
            others.filter(|other| other.namespace_selector.is_some()).collect()
        } else {
            let own = state.book.in_use.iter().map(|policy| &policy.compiled);
            policies_choosing_otherwise(own.chain(others), &changes).collect()
        };
        let now = Instant::now();
        for policy in relisted {
            if let Some(kind) = state.registry.find_kind(&policy.parent.group, &policy.parent.kind) {
                state.relists.request_relist(kind, now);
            }
        }
        Ok(())
    }
}
