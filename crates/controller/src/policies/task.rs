//! The task that follows policies: each change makes a new plan; each plan's fate goes back into the policies' status.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aggregator::PolicyId;
use futures::StreamExt;
use timer::Seed;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use watcher::plan::Selector;
use watcher::{ApiKind, Cause, Event, FollowOptions, Parent, Wire, follow, wire::Meta};

use super::changed::same_but_for_rules;
use super::libraries::Libraries;
use super::plan::{InUse, KindKey, Plan, Registry, plan};
use super::status::StatusWriter;
use super::{Found, Refused, compile};
use crate::clock::ServerClock;
use crate::kinds::{Kinds, Setting};
use crate::lease::Mandate;
use crate::snapshot::Snapshot;

/// Where policies come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// The cluster's ReadinessPolicies, those with such labels.
    Cluster(Selector),
    /// A file; what it says holds until the process ends.
    File(Vec<Found>),
}

/// Follows policies, plans, and keeps the kinds' tasks to the plan.
pub(crate) struct Policies {
    /// Where they come from.
    pub(crate) source: Source,
    /// What every kind's task needs.
    pub(crate) setting: Setting,
    /// Stands for limits that a policy leaves out.
    pub(crate) stuck_after: Duration,
    /// To the loop.
    pub(crate) plans: mpsc::UnboundedSender<Arc<Plan>>,
    /// Numbers for policies' status.
    pub(crate) snapshot: watch::Receiver<Arc<Snapshot>>,
    /// Whether the policies were read once.
    pub(crate) read: watch::Sender<bool>,
    /// The clock, for conditions of policies.
    pub(crate) clock: ServerClock,
    /// Whether that is ours to write.
    pub(crate) mandate: Mandate,
}

/// `Followed` kinds of policies that are gone, and what the current ones became.
#[derive(Default)]
struct State {
    found: BTreeMap<String, Found>,
    ids: BTreeMap<String, (PolicyId, Found)>,
    refused: BTreeMap<String, Refused>,
    in_use: Vec<InUse>,
    released: Vec<KindKey>,
    registry: Registry,
    namespaces: Option<futures::stream::BoxStream<'static, Event<watcher::wire::Child>>>,
    libraries: Libraries,
}

impl Policies {
    /// Runs until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let mut kinds = Kinds::new(self.setting.clone());
        let mut state = State::default();
        let mut events = self.events();
        let mut statuses = StatusWriter::new(&self.setting.client, self.clock.clone(), self.mandate.clone());
        let mut snapshot = self.snapshot.clone();
        let writes_status = matches!(self.source, Source::Cluster(_));
        if let Source::File(found) = &self.source {
            state.found = found.iter().map(|f| (f.name.clone(), f.clone())).collect();
            self.replan(&mut state, &mut kinds)?;
        }
        loop {
            tokio::select! {
                () = stop.cancelled() => {
                    kinds.shut_down().await;
                    return Ok(());
                }
                error = kinds.ended() => return Err(error),
                Some(event) = events.next() => {
                    if state.take(event, &self.read) {
                        self.replan(&mut state, &mut kinds)?;
                    }
                }
                _ = state.libraries.moved() => self.replan(&mut state, &mut kinds)?,
                Some(event) = next_namespace(&mut state.namespaces) => self.namespace(&event, &state, &mut kinds),
                Ok(()) = snapshot.changed(), if writes_status => {
                    let numbers = snapshot.borrow_and_update().clone();
                    statuses.write(&state.found, &state.refused, &state.in_use, &numbers).await;
                }
                () = statuses.due(), if writes_status => {
                    let numbers = snapshot.borrow().clone();
                    statuses.write(&state.found, &state.refused, &state.in_use, &numbers).await;
                }
            }
        }
    }

    fn events(&self) -> futures::stream::BoxStream<'static, Event<Parent>> {
        match &self.source {
            Source::Cluster(selector) => {
                let api = policy_kind();
                let selector = selector.clone();
                let events =
                    follow::<Parent>(&self.setting.client, &api, None, FollowOptions::new(self.setting.seed));
                let kept = move |event: Event<Parent>| match event {
                    // One that no longer has the labels is, to this release, gone.
                    Event::Apply(p) if !selector.matches(&p.meta().labels) => Event::Delete(p),
                    Event::InitApply(p) if !selector.matches(&p.meta().labels) => Event::Alive,
                    event => event,
                };
                events.map(kept).boxed()
            }
            Source::File(_) => futures::stream::pending().boxed(),
        }
    }

    fn replan(&self, state: &mut State, kinds: &mut Kinds) -> anyhow::Result<()> {
        state.accept(self.stuck_after);
        state.libraries.follow(&self.setting.client, self.setting.seed, &state.in_use);
        let plan = Arc::new(plan(&state.in_use, &state.released, &mut state.registry, &state.libraries));
        if plan.namespaces && state.namespaces.is_none() {
            let seed: Seed = self.setting.seed;
            let events = follow(&self.setting.client, &namespace_kind(), None, FollowOptions::new(seed));
            state.namespaces = Some(events.boxed());
        }
        // First what happens to the kinds: the loop has to know that what they said does not hold before it hears of the plan.
        kinds.follow(&plan);
        self.plans.send(plan)?;
        Ok(())
    }

    /// A namespace's labels moved: parents that are chosen by them are listed anew.
    fn namespace(&self, event: &Event<watcher::wire::Child>, state: &State, kinds: &mut Kinds) {
        let news = match event {
            Event::InitApply(ns) | Event::Apply(ns) => {
                let Meta { name, labels, .. } = &ns.meta;
                self.setting.reflector.set_namespace(name, Some(labels))
            }
            Event::Delete(ns) => self.setting.reflector.set_namespace(&ns.meta.name, None),
            Event::Trouble(trouble) => {
                warn!(
                    detail = trouble.detail,
                    "namespaces, whose labels a policy chooses parents by, cannot be watched"
                );
                false
            }
            Event::InitDone => true,
            Event::Init | Event::Alive => false,
        };
        let listing = matches!(event, Event::InitApply(_));
        if news && !listing {
            let chosen = state.in_use.iter().filter(|p| p.compiled.namespace_selector.is_some());
            for id in
                chosen.filter_map(|p| state.registry.known(&p.compiled.parent.group, &p.compiled.parent.kind))
            {
                kinds.restart(id);
            }
        }
    }
}

async fn next_namespace(
    events: &mut Option<futures::stream::BoxStream<'static, Event<watcher::wire::Child>>>,
) -> Option<Event<watcher::wire::Child>> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

impl State {
    /// An event of the policies' watch; `true` where a new plan is due.
    fn take(&mut self, event: Event<Parent>, read: &watch::Sender<bool>) -> bool {
        match event {
            Event::Init => {
                // A list says everything: what it does not have is gone.
                self.found.clear();
                false
            }
            Event::InitApply(policy) => {
                self.insert(&policy);
                false
            }
            Event::Apply(policy) => self.insert(&policy),
            Event::Delete(policy) => self.found.remove(&*policy.child.meta.name).is_some(),
            Event::InitDone => {
                if !read.send_replace(true) && self.found.is_empty() {
                    info!(
                        "no ReadinessPolicy yet: write one (kubectl explain readinesspolicies.spec), check it with `rollcall check -f FILE`"
                    );
                }
                true
            }
            Event::Trouble(trouble) => {
                explain(trouble.cause, &trouble.detail);
                false
            }
            Event::Alive => false,
        }
    }

    fn insert(&mut self, policy: &Parent) -> bool {
        let found = found(policy);
        let old = self.found.insert(found.name.clone(), found.clone());
        // Its own status moves it as well; only what it asks for calls for a new plan.
        old.is_none_or(|old| {
            old.uid != found.uid || old.generation != found.generation || old.labels != found.labels
        })
    }

    /// Decides which policies are in use, and why the others are not.
    fn accept(&mut self, stuck_after: Duration) {
        let before: Vec<KindKey> = self.in_use.iter().map(parent_key).collect();
        let mut taken: BTreeMap<(KindKey, String), String> = BTreeMap::new();
        self.refused.clear();
        self.in_use.clear();
        let mut found: Vec<_> = self.found.values().cloned().collect();
        found.sort_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)));
        for policy in found {
            let compiled = match compiled(&policy, stuck_after) {
                Ok(compiled) => compiled,
                Err(why) => {
                    self.refuse(&policy, "Invalid", why);
                    continue;
                }
            };
            let parent = (compiled.parent.group.clone(), compiled.parent.kind.clone());
            let key = (parent, compiled.condition.clone());
            if let Some(other) = taken.get(&key) {
                let why =
                    format!("spec.condition.type: policy {other} writes {} on {} already", key.1, key.0.1);
                self.refuse(&policy, "Conflict", why);
                continue;
            }
            taken.insert(key, policy.name.clone());
            let id = self.id(&policy);
            self.in_use.push(InUse { id, name: policy.name.clone(), compiled });
        }
        // Parents of a policy that is gone, or refused now, are released: what we said of them is taken back.
        let now: Vec<KindKey> = self.in_use.iter().map(parent_key).collect();
        for key in before.into_iter().filter(|k| !now.contains(k)) {
            if !self.released.contains(&key) {
                self.released.push(key);
            }
        }
        self.released.retain(|k| !now.contains(k));
    }

    fn refuse(&mut self, policy: &Found, reason: &'static str, why: String) {
        warn!(policy = policy.name, why, "refused");
        self.refused.insert(policy.name.clone(), Refused { reason, why });
    }

    fn id(&mut self, policy: &Found) -> PolicyId {
        let same = |old: &Found| match (&old.spec, &policy.spec) {
            (Ok(old), Ok(new)) => same_but_for_rules(old, new),
            _ => false,
        };
        if let Some((id, old)) = self.ids.get_mut(&policy.name)
            && old.uid == policy.uid
            && (old.generation == policy.generation || same(old))
        {
            *old = policy.clone();
            return *id;
        }
        let id = self.registry.policy();
        self.ids.insert(policy.name.clone(), (id, policy.clone()));
        id
    }
}

fn parent_key(policy: &InUse) -> KindKey {
    (policy.compiled.parent.group.clone(), policy.compiled.parent.kind.clone())
}

fn compiled(policy: &Found, stuck_after: Duration) -> Result<compile::Compiled, String> {
    let spec = policy.spec.as_ref().map_err(Clone::clone)?;
    compile::compile(spec, stuck_after)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// A policy as it was read.
pub(crate) fn found(policy: &Parent) -> Found {
    #[derive(serde::Deserialize)]
    struct Statused {
        #[serde(default)]
        status: Option<api::ReadinessPolicyStatus>,
    }
    #[derive(serde::Deserialize)]
    struct Specced {
        spec: api::ReadinessPolicySpec,
    }
    let (meta, text) = (&policy.child.meta, policy.text.get());
    Found {
        name: meta.name.to_string(),
        uid: meta.uid.to_string(),
        generation: meta.generation,
        created: meta.created,
        labels: meta.labels.clone(),
        spec: serde_json::from_str::<Specced>(text).map(|s| s.spec).map_err(|error| error.to_string()),
        status: serde_json::from_str::<Statused>(text).ok().and_then(|s| s.status).unwrap_or_default(),
    }
}

/// What to do where policies cannot be read.
fn explain(cause: Cause, detail: &str) {
    match cause {
        Cause::NotInstalled => warn!(
            "the ReadinessPolicy CRD is not installed: `rollcall crd | kubectl apply -f -`, or give policies by --policies FILE"
        ),
        Cause::Forbidden => warn!(
            detail,
            "not permitted to list and watch readinesspolicies.rollcall.dev: `rollcall rbac | kubectl apply -f -` grants it"
        ),
        _ => warn!(cause = cause.label(), detail, "policies"),
    }
}

fn policy_kind() -> ApiKind {
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
