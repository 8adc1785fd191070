//! One task per kind: find it, follow it, feed the reflector, and say where it stands.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aggregator::KindId;
use dashmap::DashMap;
use futures::StreamExt;
use futures::stream::select_all;
use readiness::{Level, Time};
use timer::{Backoff, Seed};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use watcher::plan::Interest;
use watcher::reflector::Reflector;
use watcher::{ApiKind, Cause, Event, Feed, FollowOptions, Parent, Trouble, follow, resolve, wire::Child};

pub(crate) use crate::core::News;
use crate::lease::Mandate;
use crate::metrics::Metrics;
use crate::policies::{KindPlan, Plan};

/// A kind as the server serves it, and why it is followed.
#[derive(Clone, Debug)]
pub(crate) struct Followed {
    /// Where it is served.
    pub(crate) api: ApiKind,
    /// Why it is followed.
    pub(crate) interest: Interest,
}

/// Kinds that were found, by id: for the writer and for live reads.
pub(crate) type Known = Arc<DashMap<KindId, Arc<Followed>>>;

/// What every kind's task needs.
#[derive(Clone)]
pub(crate) struct Setting {
    /// The guarded client.
    pub(crate) client: kube::Client,
    /// What is fed.
    pub(crate) reflector: Arc<Reflector>,
    /// What was found.
    pub(crate) known: Known,
    /// To the loop.
    pub(crate) news: UnboundedSender<(KindId, News)>,
    /// Only these namespaces; empty for all.
    pub(crate) namespaces: Vec<String>,
    /// Lengths of watches and waits.
    pub(crate) seed: Seed,
    /// Told how long children took that ended.
    pub(crate) metrics: Arc<Metrics>,
    /// Our own records.
    pub(crate) records: RecordsSetting,
}

/// Where our own records are kept.
#[derive(Clone)]
pub(crate) struct RecordsSetting {
    /// Their namespace.
    pub(crate) namespace: String,
    /// Something moved that they should say.
    pub(crate) moved: Arc<Notify>,
    /// Only one of several replicas writes them.
    pub(crate) mandate: Mandate,
}

/// The tasks of all kinds of the current plan.
pub(crate) struct Kinds {
    setting: Setting,
    running: BTreeMap<KindId, (Arc<KindPlan>, CancellationToken)>,
    plan: Arc<Plan>,
    tasks: JoinSet<KindId>,
}

impl Kinds {
    /// None yet.
    pub(crate) fn new(setting: Setting) -> Self {
        Kinds { setting, running: BTreeMap::new(), plan: Arc::default(), tasks: JoinSet::new() }
    }

    /// Follows what the plan asks for: starts what is new, restarts what is followed for other reasons now, stops the rest.
    pub(crate) fn follow(&mut self, plan: &Arc<Plan>) {
        let before = std::mem::replace(&mut self.plan, Arc::clone(plan));
        let gone: Vec<_> = self.running.keys().copied().filter(|id| !plan.kinds.contains_key(id)).collect();
        for id in gone {
            self.stop(id);
            self.setting.known.remove(&id);
            self.setting.reflector.forget(id);
            _ = self.setting.news.send((id, News::Stopped));
        }
        for (id, plan) in &plan.kinds {
            let same =
                |(old, _): &(Arc<KindPlan>, CancellationToken)| format!("{old:?}") == format!("{plan:?}");
            if !self.running.get(id).is_some_and(same) {
                let changed = self.plan.rules_changed(&before, *id);
                if !changed.is_empty() {
                    _ = self.setting.news.send((*id, News::RuleChanged(changed)));
                }
                self.stop(*id);
                self.start(plan.clone());
            }
        }
    }

    /// Lists one kind anew, because what is wanted of it changed in a way that the plan does not show.
    pub(crate) fn restart(&mut self, id: KindId) {
        if let Some((plan, _)) = self.running.get(&id).cloned() {
            self.stop(id);
            self.start((*plan).clone());
        }
    }

    fn start(&mut self, plan: KindPlan) {
        let stop = CancellationToken::new();
        let (id, plan) = (plan.id, Arc::new(plan));
        _ = self.setting.news.send((id, News::Starting));
        if plan.waits {
            // By what it is to be judged is not known yet: nothing of it is seen, so nothing is said that rests on it.
            self.running.insert(id, (plan, stop));
            return;
        }
        let task = Task { setting: self.setting.clone(), plan: plan.clone(), stop: stop.clone() };
        self.tasks.spawn(async move {
            task.run().await;
            id
        });
        self.running.insert(id, (plan, stop));
    }

    fn stop(&mut self, id: KindId) {
        if let Some((_, stop)) = self.running.remove(&id) {
            stop.cancel();
        }
    }

    /// Ends all tasks: none may be in the middle of something when the runtime goes.
    pub(crate) async fn shut_down(mut self) {
        self.tasks.shutdown().await;
    }

    /// Waits for a task that ended by itself, which none should; one that was stopped is only cleared away.
    pub(crate) async fn ended(&mut self) -> anyhow::Error {
        loop {
            match self.tasks.join_next().await {
                None => std::future::pending().await,
                Some(Ok(_)) => {}
                Some(Err(error)) => return anyhow::Error::new(error).context("following a kind ended"),
            }
        }
    }
}

/// How long it took, of one that has noted its end.
fn ended(child: &Child) -> Option<Duration> {
    let status = &child.facts.status;
    Some(status.finished? - status.started?)
}

/// The task of one kind.
pub(crate) struct Task {
    pub(crate) setting: Setting,
    pub(crate) plan: Arc<KindPlan>,
    stop: CancellationToken,
}

impl Task {
    async fn run(self) {
        let stop = self.stop.clone();
        stop.run_until_cancelled(async {
            loop {
                let api = self.find().await;
                info!(kind = %api, version = %api.version, "following");
                if self.plan.records.is_some() {
                    self.keep_records(&api).await;
                } else {
                    self.follow(api).await;
                }
            }
        })
        .await;
    }

    pub(crate) fn say(&self, news: News) {
        // A task that was stopped may be in the middle of a sentence; its successor speaks for the kind now.
        if !self.stop.is_cancelled() {
            _ = self.setting.news.send((self.plan.id, news));
        }
    }

    /// Waits until the kind is installed.
    async fn find(&self) -> ApiKind {
        let backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(15) };
        let (group, kind) = &self.plan.key;
        for failures in 1.. {
            match resolve(&self.setting.client, group, self.plan.version.as_deref(), kind).await {
                Ok(Some(api)) => return api,
                Ok(None) => {
                    if failures == 1 {
                        info!(kind, group, "not installed yet: waiting for its CRD");
                    }
                    self.setting.reflector.forget(self.plan.id);
                    self.say(News::Absent);
                }
                Err(error) => {
                    warn!(kind, group, %error, "not found out where it is served");
                    self.say(News::Trouble(error.cause, error.to_string()));
                }
            }
            let wait = backoff.after(failures, self.setting.seed, u64::from(self.plan.id));
            tokio::time::sleep(wait).await;
        }
        unreachable!("counted to the end of u32 by waiting at least a second each")
    }

    fn level(&self, child: &Child) -> Option<Level> {
        let reflector = &self.setting.reflector;
        reflector.read(reflector.find(&child.meta.uid)?, |row| row.assessment.verdict.level)
    }

    /// A child that was seen before it was ready has noted its end: how long it took, if it is ready now.
    fn measure(&self, api: &ApiKind, child: &Child) {
        let Some(took) = ended(child).filter(|_| self.level(child) == Some(Level::Ready)) else { return };
        let reflector = &self.setting.reflector;
        let Some(id) = reflector.find(&child.meta.uid) else { return };
        let policies = reflector.view(id, Time::default(), |view| {
            view.map(|view| view.links.iter().map(|link| link.policy).collect()).unwrap_or_default()
        });
        self.setting.metrics.child_ended(&policies, &api.to_string(), took);
    }

    async fn follow(&self, api: ApiKind) {
        let mut interest = Interest { counted: api.has_status, ..self.plan.interest.clone() };
        for rule in interest.lenses.iter_mut().filter_map(|lens| lens.rule.as_mut()) {
            rule.of = (api.api_version().into(), api.kind.as_str().into());
        }
        self.setting
            .known
            .insert(self.plan.id, Arc::new(Followed { api: api.clone(), interest: interest.clone() }));
        if interest.reads_whole() {
            self.feed::<Parent>(&api, &interest).await;
        } else {
            self.feed::<Child>(&api, &interest).await;
        }
    }

    /// Feeds the reflector until the kind is not served any more.
    async fn feed<K: Feed>(&self, api: &ApiKind, interest: &Interest) {
        let everywhere = self.setting.namespaces.is_empty() || !api.namespaced;
        let scopes: Vec<Option<String>> =
            if everywhere { vec![None] } else { self.setting.namespaces.iter().cloned().map(Some).collect() };
        let mut unlisted: Vec<bool> = vec![true; scopes.len()];
        let streams = scopes.iter().enumerate().map(|(at, scope)| {
            let options = FollowOptions::new(self.setting.seed);
            follow::<K>(&self.setting.client, api, scope.as_deref(), options)
                .map(move |event| (at, event))
                .boxed()
        });
        let mut events = select_all(streams);
        let reflector = &self.setting.reflector;
        reflector.recollect(interest);
        while let Some((at, event)) = events.next().await {
            let scope = scopes[at].as_deref();
            match event {
                Event::Init => {
                    unlisted[at] = true;
                    reflector.begin(interest.id, scope);
                    self.say(News::Listing);
                }
                Event::InitApply(object) => {
                    reflector.apply(interest, object.child(), object.text());
                }
                Event::Apply(object) => {
                    let before = ended(object.child()).and_then(|_| self.level(object.child()));
                    reflector.apply(interest, object.child(), object.text());
                    if before.is_some_and(|level| level != Level::Ready) {
                        self.measure(api, object.child());
                    }
                }
                Event::InitDone => {
                    let swept = reflector.finish(interest.id, scope);
                    debug!(kind = %api, swept, "listed");
                    unlisted[at] = false;
                    if !unlisted.contains(&true) {
                        self.say(News::Synced);
                    }
                }
                Event::Delete(object) => {
                    reflector.deleted(interest, object.child());
                }
                Event::Alive => self.say(News::Alive),
                Event::Trouble(trouble) => {
                    log(api, &trouble);
                    let gone = trouble.cause == Cause::NotInstalled;
                    self.say(News::Trouble(trouble.cause, trouble.detail));
                    if gone {
                        return;
                    }
                }
            }
        }
    }
}

/// What is wrong, and the way out where the reader has it in hand.
pub(crate) fn log(api: &ApiKind, trouble: &Trouble) {
    let Trouble { cause, detail } = trouble;
    if *cause == Cause::Forbidden {
        let way =
            "not permitted to list and watch it: `rollcall rbac -f POLICY | kubectl apply -f -` grants that";
        warn!(kind = %api, detail, "{way}");
    } else {
        warn!(kind = %api, cause = cause.label(), detail, "watch");
    }
}
