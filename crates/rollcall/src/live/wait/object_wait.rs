//! Waits for what each object shows by itself, as `kubectl wait` does: that it exists, is gone, or has a condition.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use controller::args::ClusterArgs;
use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use inspect::client::InspectClient;
use inspect::holder_signs::LifeSigns;
use tokio::time::{Instant, timeout, timeout_at};
use watcher::wire::WireMeta;
use watcher::{
    ApiFailureCause, ApiKind, FollowEvent, FollowFailure, FollowOptions, ParentObject, Seed, follow,
    resolve_kind,
};

use super::super::connect::connect_cluster;
use super::super::scope_args::ScopeArgs;
use super::super::target::{ObjectTarget, find_targets};
use super::status_line::{StatusLine, UNANSWERED_TEXT, end_unanswered};
use super::wait_goal::ObjectGoal;
use super::wait_limit::WaitLimit;
use crate::eval::current_time;

/// Interval of re-evaluation: whether a deletion is stuck changes by the clock alone.
const REEVALUATION_INTERVAL: Duration = Duration::from_secs(5);

/// Interval at which signs of life of those who hold a deletion are read.
const SIGNS_INTERVAL: Duration = Duration::from_secs(30);

/// Waits until every object is as awaited.
pub(super) async fn wait_for_objects(
    cluster: &ClusterArgs,
    scope: &ScopeArgs,
    what: &[String],
    goal: &ObjectGoal,
    limit: WaitLimit,
) -> anyhow::Result<ExitCode> {
    let deadline = limit.deadline;
    let mut line = StatusLine::default();
    let Ok(opened) = timeout_at(deadline, ObjectFollower::open(cluster, scope, what)).await else {
        return end_unanswered(&mut line);
    };
    let mut following = opened?;
    let mut last = UNANSWERED_TEXT.to_owned();
    while let Ok(changed) = timeout_at(deadline, following.wait_for_change()).await {
        changed?;
        following.look_for_holders(deadline).await;
        let Some(text) = following.describe_lack(goal) else {
            let titles: Vec<&str> = following.objects.iter().map(|object| &*object.title).collect();
            line.end_with(&titles.join(", "), goal.done_word())?;
            return Ok(ExitCode::SUCCESS);
        };
        last = text;
        if limit.is_single_look {
            break;
        }
        line.show_text(&last);
    }
    line.end_with(&last, "waited too long")?;
    Ok(ExitCode::from(124))
}

/// Follows the awaited objects by list and watch, one stream for each.
struct ObjectFollower {
    events: SelectAll<BoxStream<'static, (usize, FollowEvent<ParentObject>)>>,
    objects: Vec<AwaitedObject>,
    client: kube::Client,
    /// Signs of life of those who hold deletions, and when they were read.
    signs: Option<(Instant, LifeSigns)>,
}

/// One awaited object, as it was last seen.
struct AwaitedObject {
    title: String,
    api: ApiKind,
    object: Option<ParentObject>,
    /// The object in a list that is not complete yet.
    pending: Option<ParentObject>,
    /// UID of the object that was seen first.
    first_uid: Option<Box<str>>,
    listed: bool,
    trouble: Option<FollowFailure>,
}

impl ObjectFollower {
    async fn open(
        cluster: &ClusterArgs,
        scope: &ScopeArgs,
        what: &[String],
    ) -> anyhow::Result<ObjectFollower> {
        if scope.all_namespaces {
            bail!("an object has its name in one namespace: replace -A by -n NAMESPACE");
        }
        let (client, default_namespace) = connect_cluster(cluster).await?;
        let namespace = scope.namespace.clone().unwrap_or(default_namespace);
        let seed = Seed(u64::from(std::process::id()));
        let (mut events, mut objects) = (SelectAll::new(), Vec::new());
        for target in find_targets(&client, what).await? {
            let Some(name) = target.name.clone() else { bail!("name an object: `rollcall wait KIND/NAME`") };
            let api = resolve_target_kind(&client, &target).await?;
            let options =
                FollowOptions { fields: Some(format!("metadata.name={name}")), ..FollowOptions::new(seed) };
            let (at, namespace) = (objects.len(), Some(&*namespace).filter(|_| api.namespaced));
            let stream = follow::<ParentObject>(&client, &api, namespace, options);
            events.push(stream.map(move |event| (at, event)).boxed());
            objects.push(AwaitedObject {
                title: target.to_string(),
                api,
                object: None,
                pending: None,
                first_uid: None,
                listed: false,
                trouble: None,
            });
        }
        Ok(ObjectFollower { events, objects, client, signs: None })
    }

    /// Waits until every object was looked for once and something changed.
    async fn wait_for_change(&mut self) -> anyhow::Result<()> {
        loop {
            let changed = match timeout(REEVALUATION_INTERVAL, self.events.next()).await {
                Ok(Some((at, event))) => match self.objects.get_mut(at) {
                    Some(object) => object.on_event(event)?,
                    None => false,
                },
                Ok(None) => bail!("the watch of the cluster has ended"),
                Err(_) => true,
            };
            if changed && self.objects.iter().all(|object| object.listed) {
                return Ok(());
            }
        }
    }

    /// Looks for signs of life of those who hold a deletion, not too often.
    async fn look_for_holders(&mut self, deadline: Instant) {
        let held = |meta: &WireMeta| meta.deleted.is_some() && !meta.finalizers.is_empty();
        let waits = self.objects.iter().any(|it| it.object.as_ref().is_some_and(|it| held(&it.child.meta)));
        let fresh = self.signs.as_ref().is_some_and(|(at, _)| at.elapsed() < SIGNS_INTERVAL);
        if waits && !fresh {
            let mut ask = InspectClient::new(self.client.clone());
            if let Ok(signs) = timeout_at(deadline, LifeSigns::read(&mut ask)).await {
                self.signs = Some((Instant::now(), signs));
            }
        }
    }

    /// Returns what the first object still lacks, with the number of those that are done; `None` if all are.
    fn describe_lack(&self, goal: &ObjectGoal) -> Option<String> {
        let (now, signs) = (current_time(), self.signs.as_ref().map(|(_, signs)| signs));
        let lacks: Vec<(&AwaitedObject, String)> = self
            .objects
            .iter()
            .filter_map(|awaited| {
                let lack =
                    goal.find_lack(awaited.object.as_ref(), awaited.first_uid.as_deref(), signs, now)?;
                Some((awaited, lack))
            })
            .collect();
        let (awaited, lack) = lacks.first()?;
        let of = match self.objects.len() {
            1 => String::new(),
            all => format!("{} of {all} {}; ", all - lacks.len(), goal.done_word()),
        };
        let trouble = awaited.trouble.as_ref().map_or_else(String::new, |trouble| {
            format!("the cluster does not respond ({}); the shown state may be stale; ", trouble.detail)
        });
        Some(format!("{trouble}{of}{} {lack}", awaited.title))
    }
}

impl AwaitedObject {
    /// Takes an event. Returns `true` if what is known has changed.
    fn on_event(&mut self, event: FollowEvent<ParentObject>) -> anyhow::Result<bool> {
        if !matches!(event, FollowEvent::Failure(_) | FollowEvent::Init) {
            self.trouble = None;
        }
        match event {
            FollowEvent::Init => self.pending = None,
            FollowEvent::InitApply(object) => self.pending = Some(object),
            FollowEvent::InitDone => {
                let listed = self.pending.take();
                self.observe(listed);
                return Ok(true);
            }
            FollowEvent::Apply(object) => {
                self.observe(Some(object));
                return Ok(true);
            }
            FollowEvent::Delete(_) => {
                self.observe(None);
                return Ok(true);
            }
            FollowEvent::Failure(failure) => return self.on_failure(failure),
            FollowEvent::Alive => {}
        }
        Ok(false)
    }

    fn observe(&mut self, object: Option<ParentObject>) {
        self.listed = true;
        self.object = object.map(|object| object.with_type_meta(&self.api.api_version(), &self.api.kind));
        if let Some(object) = &self.object {
            self.first_uid.get_or_insert_with(|| object.child.meta.uid.clone());
        }
    }

    fn on_failure(&mut self, failure: FollowFailure) -> anyhow::Result<bool> {
        match failure.cause {
            ApiFailureCause::Forbidden => bail!(
                "failed to watch {}: you may not list and watch {} here; ask for these rights, or name another namespace with -n",
                self.title,
                self.api
            ),
            // The definition is gone, and with it every object of the kind.
            ApiFailureCause::NotInstalled => self.observe(None),
            _ => self.trouble = Some(failure),
        }
        Ok(true)
    }
}

async fn resolve_target_kind(client: &kube::Client, target: &ObjectTarget) -> anyhow::Result<ApiKind> {
    let (group, kind) = (&target.kind.group, &target.kind.kind);
    let found = resolve_kind(client, group, None, kind).await;
    let found = found.map_err(|error| anyhow::anyhow!("{}", error.detail));
    let found = found.with_context(|| format!("failed to find out where {kind} is served"))?;
    found.with_context(|| format!("the cluster serves no kind {kind} of group {group:?}"))
}
