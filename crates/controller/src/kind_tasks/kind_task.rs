//! The task of one kind: resolves it through discovery, follows it, ingests its objects, and reports its state.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll, select_all};
use policy::KindPlan;
use rollcall_core::{KindEvent, live_reads};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{debug, info, warn};
use watcher::plan::Interest;
use watcher::reflector::{ListPass, Reflector};
use watcher::{
    ApiFailureCause, ApiKind, Discovered, FollowEvent, ParentObject, ReflectorObject, discover, follow,
    list_live, list_live_at_most, wire::ChildObject,
};

use super::absence::AbsenceProof;
use super::failure_log::report_trouble;
use super::feed_gate::FeedGate;
use super::kind_context::{KindContext, ResolvedKind};
use super::kind_event_sender::KindEventSender;
use super::reappearance::{ReappearanceCheck, search_delay};
use super::rule_wait::RuleWait;
use super::run_durations::RunDurations;
use super::scopes::ScopeTracker;
use super::watch_doubts::DoubtfulWatch;
use crate::record_task::RecordTask;
use crate::rule_threads::work_beside;

/// Longest time that a live read of a kind may take which has lost its objects. 5 s.
const REAPPEARANCE_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of objects that such a read returns.
const MAX_REAPPEARED_OBJECTS: u32 = 20;

/// What follows a kind in several scopes, with the number of the scope.
type ScopeStreams<K> = SelectAll<BoxStream<'static, (usize, FollowEvent<K>)>>;

/// Task of one kind.
pub(super) struct KindTask {
    pub(super) context: KindContext,
    pub(super) plan: Arc<KindPlan>,
    pub(super) event_sender: KindEventSender,
    pub(super) gate: FeedGate,
}

impl KindTask {
    pub(super) async fn run(self) {
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
        let (mut absence, mut adopted) = (AbsenceProof::default(), None);
        for failures in 1.. {
            let found = discover(&self.context.client, group, self.plan.version.as_deref(), kind).await;
            match &found {
                Ok(Discovered::Served(api)) => return api.clone(),
                Ok(Discovered::Unserved { elsewhere: Some(api), .. }) if adopted.as_ref() != Some(api) => {
                    adopted = self.adopt_elsewhere(api).await.then(|| api.clone());
                }
                _ => {}
            }
            let trouble = absence.judge(&found, self.context.reflector.count_held(self.plan.id) > 0);
            let has_failed = trouble.is_some();
            match trouble {
                None => {
                    if failures == 1 {
                        info!(kind, group, "kind is not installed; waiting for its CRD");
                    }
                    self.feed_reflector(|reflector| reflector.forget_kind(self.plan.id));
                    self.event_sender.send(KindEvent::Absent);
                }
                Some(trouble) => {
                    self.adopt_as_found_before();
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
            if has_failed {
                self.context.turns.wait_turn().await;
            }
        }
        unreachable!("counted to the end of u32 by waiting a while each")
    }

    /// Lets what stands on objects that are held be judged and written by the plan that holds, as they were served when they were
    /// found last: whether they still are cannot be asked.
    fn adopt_as_found_before(&self) {
        let KindContext { reflector, resolved, .. } = &self.context;
        let is_adopted =
            reflector.interest(self.plan.id).is_some() || reflector.count_held(self.plan.id) == 0;
        let found = resolved.get(&self.plan.id).filter(|_| !is_adopted).map(|found| Arc::clone(&found));
        if let Some(found) = found {
            self.adopt_kind(found);
        }
    }

    /// Lets what stands on parents of the kind be taken back in a version that it is served in, though not as the policy asks for
    /// it: they are the same objects, and say of Rollcall the same. They are read once, and not followed, because another
    /// version may say other things of them: nothing that rests on the kind is ready meanwhile. Returns `true` if that is done.
    async fn adopt_elsewhere(&self, api: &ApiKind) -> bool {
        let found = Arc::new(ResolvedKind::new(self.plan.id, api.clone()));
        if self.adopt_kind(found).is_none() || self.plan.interest.parent.is_empty() {
            return true;
        }
        let start = self.context.reflector.start_read();
        let namespaces = Some(&self.context.namespaces).filter(|all| !all.is_empty() && api.namespaced);
        let scopes = namespaces.map_or_else(|| vec![None], |all| all.iter().map(Some).collect());
        for scope in scopes {
            let scope = scope.map(String::as_str);
            match list_live::<ParentObject>(&self.context.client, api, scope, None).await {
                Ok(parents) => {
                    self.feed_reflector(|reflector| {
                        for parent in &parents {
                            live_reads::apply_live_object(reflector, self.plan.id, start, parent);
                        }
                    });
                }
                Err(error) => {
                    debug!(%error, kind = %api, "parents cannot be read in another version; will retry");
                    return false;
                }
            }
        }
        true
    }

    /// Lets objects of the kind be read and written here, by what the plan asks of them. `None` if the task was stopped.
    fn adopt_kind(&self, found: Arc<ResolvedKind>) -> Option<()> {
        let api = &found.api;
        let mut interest = Interest { counted: api.has_status, ..self.plan.interest.clone() };
        for rule in interest.assessment_rules.iter_mut().filter_map(|judged_by| judged_by.rule.as_mut()) {
            rule.of = (api.api_version().into(), api.kind.as_str().into());
        }
        if let Some(excerpt) = &mut interest.excerpt {
            excerpt.of = (api.api_version().into(), api.kind.as_str().into());
        }
        self.feed_reflector(|reflector| {
            self.context.resolved.insert(found.id, found);
            reflector.set_interest(interest);
        })
    }

    async fn follow_kind(&self, api: ApiKind) {
        let whole = self.plan.interest.reads_whole();
        let found = Arc::new(ResolvedKind::new(self.plan.id, api));
        match self.adopt_kind(found.clone()) {
            None => {}
            Some(()) if whole => self.follow_kind_streams::<ParentObject>(&found).await,
            Some(()) => self.follow_kind_streams::<ChildObject>(&found).await,
        }
    }

    /// Feeds the reflector until the kind is no longer served.
    async fn follow_kind_streams<K: ReflectorObject>(&self, found: &ResolvedKind) {
        let ResolvedKind { api, doubts, .. } = found;
        let everywhere = self.context.namespaces.is_empty() || !api.namespaced;
        let scopes: Vec<Option<String>> =
            if everywhere { vec![None] } else { self.context.namespaces.iter().cloned().map(Some).collect() };
        let KindContext { reflector, metrics, judged, .. } = &self.context;
        let mut feeding = Feeding {
            found,
            passes: vec![None; scopes.len()],
            listed: vec![ListedCount::default(); scopes.len()],
            tracker: ScopeTracker::new(scopes.len()),
            durations: RunDurations::new(reflector.clone(), metrics.clone(), self.plan.id, api),
        };
        let has_rules = self.plan.interest.assessment_rules.iter().any(|judged_by| judged_by.rule.is_some());
        let evaluates = self.plan.interest.evaluates_on_ingest();
        let rules = has_rules.then_some(RuleWait { kind: self.plan.id, judged });
        let mut events = self.open_streams::<K>(api, &scopes);
        let mut doubtful = DoubtfulWatch::new(doubts);
        let mut check = ReappearanceCheck::default();
        let mut breaks = self.context.breaks.subscribe();
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
                        rules.wait_before(&event, reflector).await;
                        feeding.durations.record_judged();
                    }
                    let fed = work_beside(evaluates, || {
                        self.gate.pass(|| self.on_follow_event(&mut feeding, at, scopes[at].as_deref(), event))
                    });
                    if fed != Some(true) {
                        return;
                    }
                    doubtful.set_listing(scopes.len() == 1 && feeding.passes.iter().any(Option::is_some));
                }
                () = doubts.served_otherwise() => {
                    info!(kind = %api, "the kind is served otherwise than it was found; following it anew");
                    return;
                }
                () = doubtful.lost_events() => {
                    info!(kind = %api, "the watch has lost events; listing the kind again");
                    events = self.open_streams(api, &scopes);
                }
                Ok(()) = breaks.changed() => events = self.open_streams(api, &scopes),
                () = sleep_until(next_check.unwrap_or_else(Instant::now)), if next_check.is_some() => {
                    if self.is_watch_deaf(api, &scopes, &mut check).await {
                        info!(kind = %api, "objects exist that the watch does not deliver; listing the kind again");
                        return;
                    }
                }
            }
        }
    }

    /// Lists a kind and follows it, in each of these scopes.
    fn open_streams<K: ReflectorObject>(&self, api: &ApiKind, scopes: &[Option<String>]) -> ScopeStreams<K> {
        select_all(scopes.iter().enumerate().map(|(at, scope)| {
            let options = self.context.follow_options();
            let events = follow::<K>(&self.context.client, api, scope.as_deref(), options);
            events.map(move |event| (at, event)).boxed()
        }))
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
        if let FollowEvent::InitApply(object) | FollowEvent::Apply(object) | FollowEvent::Delete(object) =
            &event
        {
            feeding.found.note_version(object.as_child().meta.resource_version);
        }
        match event {
            FollowEvent::Init => {
                feeding.passes[at] = Some(reflector.begin_list(id, scope));
                feeding.listed[at].under_way = 0;
                self.event_sender.send(feeding.tracker.list_began(at));
            }
            FollowEvent::InitApply(object) => {
                feeding.listed[at].under_way += 1;
                if let Some(pass) = &feeding.passes[at] {
                    reflector.apply_listed(pass, object.as_child(), object.raw_text());
                }
            }
            FollowEvent::Apply(object) => {
                feeding.durations.apply_object(&object);
            }
            FollowEvent::InitDone => {
                feeding.end_list(at);
                let swept = feeding.passes[at].take().and_then(|pass| reflector.finish_list(&pass));
                debug!(kind = %feeding.found.api, swept, "listed kind");
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
                report_trouble(&self.context.failures, &feeding.found.api, &trouble);
                let gone = trouble.cause == ApiFailureCause::NotInstalled;
                if !gone && trouble.cause != ApiFailureCause::Forbidden {
                    self.context.breaks.on_watch_failed();
                }
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
    found: &'a ResolvedKind,
    /// The list that is being read.
    passes: Vec<Option<ListPass>>,
    listed: Vec<ListedCount>,
    tracker: ScopeTracker,
    durations: RunDurations,
}

/// Number of objects in the lists of one scope.
#[derive(Clone, Copy, Debug, Default)]
struct ListedCount {
    /// Of the one that is being read, so far.
    under_way: usize,
    /// Of the last one that was complete.
    complete: usize,
}

impl Feeding<'_> {
    /// The list of a scope is complete.
    fn end_list(&mut self, at: usize) {
        self.listed[at].complete = self.listed[at].under_way;
        let all = self.listed.iter().map(|scope| scope.complete).sum();
        self.found.listed.store(all, Ordering::Relaxed);
    }
}
