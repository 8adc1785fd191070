//! One task per kind: resolve it through discovery, follow it, ingest its objects, and report its state.

mod absence;
mod failure_log;
mod feed_gate;
mod kind_context;
mod kind_event_sender;
mod reappearance;
mod rule_wait;
mod run_durations;
mod scopes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aggregator::KindId;
use futures::StreamExt;
use futures::stream::select_all;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{debug, info, warn};
use watcher::plan::Interest;
use watcher::reflector::{ListPass, Reflector};
use watcher::{
    ApiFailureCause, ApiKind, Discovered, FollowEvent, FollowOptions, ParentObject, ReflectorObject,
    discover, follow, list_live_at_most, wire::ChildObject,
};

use absence::AbsenceProof;
use feed_gate::FeedGate;
use reappearance::{ReappearanceCheck, search_delay};
use rule_wait::RuleWait;
use run_durations::RunDurations;
use scopes::ScopeTracker;

pub(crate) use failure_log::report_trouble;
pub(crate) use kind_context::{KindContext, RecordsContext, RecordsTrouble, ResolvedKind, ResolvedKinds};
pub(crate) use kind_event_sender::KindEventSender;

use crate::record_task::RecordTask;
use crate::rule_threads::ingest_beside;
use policy::{KindPlan, WatchPlan};
pub(crate) use rollcall_core::KindEvent;

/// A running task that follows a kind, with what is needed to stop it.
struct RunningTask {
    plan: Arc<KindPlan>,
    event_sender: KindEventSender,
    gate: FeedGate,
}

/// Longest time that a live read of a kind may take which has lost its objects. 5 s.
const REAPPEARANCE_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of objects that such a read returns.
const MAX_REAPPEARED_OBJECTS: u32 = 20;

/// Tasks of all kinds of the current plan.
pub(crate) struct KindTasks {
    context: KindContext,
    running: BTreeMap<KindId, RunningTask>,
    plan: Arc<WatchPlan>,
    tasks: JoinSet<KindId>,
}

impl KindTasks {
    /// Creates the collection without tasks.
    pub(crate) fn new(setting: KindContext) -> Self {
        KindTasks { context: setting, running: BTreeMap::new(), plan: Arc::default(), tasks: JoinSet::new() }
    }

    /// Applies the plan: starts new kinds, restarts kinds whose interest changed, and stops the others.
    pub(crate) fn follow_plan(&mut self, plan: &Arc<WatchPlan>) {
        let before = std::mem::replace(&mut self.plan, Arc::clone(plan));
        let gone: Vec<_> = self.running.keys().copied().filter(|id| !plan.kinds.contains_key(id)).collect();
        for id in gone {
            self.stop_kind(id);
            self.context.resolved.remove(&id);
            self.context.reflector.forget_kind(id);
            _ = self.context.kind_events.send((id, KindEvent::Stopped));
        }
        for (id, plan) in &plan.kinds {
            let same = |task: &RunningTask| *task.plan == *plan;
            if !self.running.get(id).is_some_and(same) {
                let changed = policy::changed_rules(&before, &self.plan, *id);
                if !changed.is_empty() {
                    _ = self.context.kind_events.send((*id, KindEvent::RuleChanged(changed)));
                }
                self.stop_kind(*id);
                self.start_kind(plan.clone());
            }
        }
    }

    /// Relists one kind, because its interest changed in a way that the plan does not show.
    pub(crate) fn restart_kind(&mut self, id: KindId) {
        if let Some(plan) = self.running.get(&id).map(|task| (*task.plan).clone()) {
            self.stop_kind(id);
            self.start_kind(plan);
        }
    }

    fn start_kind(&mut self, plan: KindPlan) {
        let gate = FeedGate::default();
        let (id, plan) = (plan.id, Arc::new(plan));
        let event_sender =
            KindEventSender::new(id, self.context.kind_events.clone(), self.context.refusals.clone());
        event_sender.send(KindEvent::Starting);
        if plan.awaits_library {
            // The rule of the kind is not known yet: its objects are not observed, so no condition rests on them.
            self.running.insert(id, RunningTask { plan, event_sender, gate });
            return;
        }
        let task = KindTask {
            context: self.context.clone(),
            plan: plan.clone(),
            event_sender: event_sender.clone(),
            gate: gate.clone(),
        };
        self.tasks.spawn(async move {
            task.run().await;
            id
        });
        self.running.insert(id, RunningTask { plan, event_sender, gate });
    }

    /// Stops a kind's task. By what the kind is judged is not known from then on, until its successor has found it: what was
    /// asked for meanwhile is refused.
    fn stop_kind(&mut self, id: KindId) {
        if let Some(task) = self.running.remove(&id) {
            task.event_sender.cancel();
            task.gate.close();
            self.context.reflector.remove_interest(id);
        }
    }

    /// Ends all tasks: none may be interrupted by the end of the runtime.
    pub(crate) async fn shut_down(mut self) {
        self.tasks.shutdown().await;
    }

    /// Waits for a task that ended by itself, which is an error. Tasks that were stopped are only removed.
    pub(crate) async fn next_failure(&mut self) -> anyhow::Error {
        loop {
            match self.tasks.join_next().await {
                None => std::future::pending().await,
                Some(Ok(_)) => {}
                Some(Err(error)) => return anyhow::Error::new(error).context("a kind's task failed"),
            }
        }
    }
}

/// Task of one kind.
struct KindTask {
    context: KindContext,
    plan: Arc<KindPlan>,
    event_sender: KindEventSender,
    gate: FeedGate,
}

impl KindTask {
    async fn run(self) {
        let stop = self.event_sender.stop_token();
        stop.run_until_cancelled(async {
            let mut followed_until = None;
            loop {
                let api = self.wait_until_resolved(followed_until).await;
                info!(kind = %api, version = %api.version, "following kind");
                if self.plan.records.is_some() {
                    RecordTask::new(&self.context, &self.plan, &self.event_sender).keep_records(&api).await;
                } else {
                    self.follow_kind(api).await;
                }
                followed_until = Some(Instant::now());
                // What discovery still lists may not be served any more: nothing else paces that.
                sleep(self.search_delay(1, None)).await;
            }
        })
        .await;
    }

    /// Does something to the reflector, unless the task was stopped.
    fn feed_reflector<R>(&self, feed: impl FnOnce(&Reflector) -> R) -> Option<R> {
        self.gate.pass(|| feed(&self.context.reflector))
    }

    fn search_delay(&self, failures: u32, gone_for: Option<Duration>) -> Duration {
        search_delay(failures, gone_for, self.context.seed, u64::from(self.plan.id))
    }

    /// Waits until the kind is served.
    async fn wait_until_resolved(&self, followed_until: Option<Instant>) -> ApiKind {
        let (group, kind) = &self.plan.key;
        let mut absence = AbsenceProof::default();
        for failures in 1.. {
            let found = discover(&self.context.client, group, self.plan.version.as_deref(), kind).await;
            if let Ok(Discovered::Served(api)) = found {
                return api;
            }
            match absence.judge(&found, self.context.reflector.count_held(self.plan.id) > 0) {
                None => {
                    if failures == 1 {
                        info!(kind, group, "kind is not installed; waiting for its CRD");
                    }
                    self.feed_reflector(|reflector| reflector.forget_kind(self.plan.id));
                    self.event_sender.send(KindEvent::Absent);
                }
                Some(trouble) => {
                    let (name, said) =
                        (format!("{kind}.{group}"), watcher::error_text(format_args!("{trouble:?}")));
                    self.context.failures.report("discover", name.clone(), move |failures| {
                        warn!(
                            kind = name,
                            trouble = said,
                            failures,
                            "API discovery did not find the kind; will retry"
                        );
                    });
                    self.event_sender.send(trouble);
                }
            }
            let wait = self.search_delay(failures, followed_until.map(|at| at.elapsed()));
            absence.wait(&found, wait);
            sleep(wait).await;
        }
        unreachable!("counted to the end of u32 by waiting a while each")
    }

    async fn follow_kind(&self, api: ApiKind) {
        let mut interest = Interest { counted: api.has_status, ..self.plan.interest.clone() };
        for rule in interest.assessment_rules.iter_mut().filter_map(|judged_by| judged_by.rule.as_mut()) {
            rule.of = (api.api_version().into(), api.kind.as_str().into());
        }
        let whole = interest.reads_whole();
        let id = self.plan.id;
        let begun = self.feed_reflector(|reflector| {
            self.context.resolved.insert(id, Arc::new(ResolvedKind { id, api: api.clone() }));
            reflector.set_interest(interest);
        });
        match begun {
            None => {}
            Some(()) if whole => self.follow_kind_streams::<ParentObject>(&api).await,
            Some(()) => self.follow_kind_streams::<ChildObject>(&api).await,
        }
    }

    /// Feeds the reflector until the kind is no longer served.
    async fn follow_kind_streams<K: ReflectorObject>(&self, api: &ApiKind) {
        let everywhere = self.context.namespaces.is_empty() || !api.namespaced;
        let scopes: Vec<Option<String>> =
            if everywhere { vec![None] } else { self.context.namespaces.iter().cloned().map(Some).collect() };
        let KindContext { reflector, metrics, judged, .. } = &self.context;
        let mut feeding = Feeding {
            api,
            passes: vec![None; scopes.len()],
            tracker: ScopeTracker::new(scopes.len()),
            durations: RunDurations::new(reflector.clone(), metrics.clone(), self.plan.id, api),
        };
        let streams = scopes.iter().enumerate().map(|(at, scope)| {
            let options = FollowOptions::new(self.context.seed);
            follow::<K>(&self.context.client, api, scope.as_deref(), options)
                .map(move |event| (at, event))
                .boxed()
        });
        let has_rules = self.plan.interest.assessment_rules.iter().any(|judged_by| judged_by.rule.is_some());
        let evaluates = self.plan.interest.evaluates_on_ingest();
        let rules = has_rules.then_some(RuleWait { kind: self.plan.id, judged });
        let mut events = select_all(streams);
        let mut check = ReappearanceCheck::default();
        loop {
            let next_check = check.next_check();
            tokio::select! { biased;
                event = events.next() => {
                    let Some((at, event)) = event else { return };
                    // Groups without a dot are the server's own: their definitions are never deleted.
                    if matches!(event, FollowEvent::Delete(_)) && api.group.contains('.') {
                        check.on_deleted(Instant::now());
                    }
                    if let Some(rules) = rules {
                        match &event {
                            // It was read when everything in it is judged: an answer turns once.
                            FollowEvent::InitDone => rules.wait_until_judged(reflector).await,
                            FollowEvent::InitApply(_) | FollowEvent::Apply(_) => rules.wait_for_room(reflector).await,
                            _ => {}
                        }
                        feeding.durations.record_judged();
                    }
                    let fed = ingest_beside(evaluates, || {
                        self.gate.pass(|| self.on_follow_event(&mut feeding, at, scopes[at].as_deref(), event))
                    });
                    if fed != Some(true) {
                        return;
                    }
                }
                () = sleep_until(next_check.unwrap_or_else(Instant::now)), if next_check.is_some() => {
                    if self.is_watch_deaf(api, &scopes, &mut check).await {
                        info!(kind = %api, "objects exist that the watch does not deliver; listing the kind again");
                        return;
                    }
                }
            }
        }
    }

    /// Returns `true` if a kind that has lost its objects has others, which the watch does not deliver.
    async fn is_watch_deaf(
        &self,
        api: &ApiKind,
        scopes: &[Option<String>],
        check: &mut ReappearanceCheck,
    ) -> bool {
        if self.context.reflector.count_held(self.plan.id) > 0 {
            check.stand_down();
            return false;
        }
        let mut found = false;
        for scope in scopes {
            let limit = MAX_REAPPEARED_OBJECTS;
            let live =
                list_live_at_most::<ChildObject>(&self.context.client, api, scope.as_deref(), None, limit);
            if let Ok(Ok(objects)) = timeout(REAPPEARANCE_TIMEOUT, live).await {
                let wanted =
                    |object: &ChildObject| self.context.reflector.wants_object(self.plan.id, &object.meta);
                found |= objects.iter().any(wanted);
            }
        }
        check.record_check(found, Instant::now())
    }

    /// Handles an event of one of the streams of a kind. Returns `false` if the stream has ended.
    fn on_follow_event<K: ReflectorObject>(
        &self,
        feeding: &mut Feeding<'_>,
        at: usize,
        scope: Option<&str>,
        event: FollowEvent<K>,
    ) -> bool {
        let (reflector, id) = (&self.context.reflector, self.plan.id);
        match event {
            FollowEvent::Init => {
                feeding.passes[at] = Some(reflector.begin_list(id, scope));
                self.event_sender.send(feeding.tracker.list_began(at));
            }
            FollowEvent::InitApply(object) => {
                if let Some(pass) = &feeding.passes[at] {
                    reflector.apply_listed(pass, object.as_child(), object.raw_text());
                }
            }
            FollowEvent::Apply(object) => {
                feeding.durations.apply_object(&object);
            }
            FollowEvent::InitDone => {
                let swept = feeding.passes[at].take().and_then(|pass| reflector.finish_list(&pass));
                debug!(kind = %feeding.api, swept, "listed kind");
                if swept.is_some() {
                    feeding
                        .tracker
                        .scope_listed(at)
                        .into_iter()
                        .for_each(|event| self.event_sender.send(event));
                }
            }
            FollowEvent::Delete(object) => reflector.on_deleted(id, object.as_child()),
            FollowEvent::Alive => {
                feeding
                    .tracker
                    .scope_answered(at)
                    .into_iter()
                    .for_each(|event| self.event_sender.send(event));
            }
            FollowEvent::Failure(trouble) => {
                report_trouble(&self.context.failures, feeding.api, &trouble);
                let gone = trouble.cause == ApiFailureCause::NotInstalled;
                feeding.tracker.scope_failed(at);
                self.event_sender.send(KindEvent::Failure(trouble.cause, trouble.detail));
                return !gone;
            }
        }
        true
    }
}

/// How far the streams of a kind are, scope by scope.
struct Feeding<'a> {
    api: &'a ApiKind,
    /// The list that is being read.
    passes: Vec<Option<ListPass>>,
    tracker: ScopeTracker,
    durations: RunDurations,
}
