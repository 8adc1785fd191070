//! Health of the watches that the service itself rests on: policies, groups, and what policies refer to. No parent is told that
//! one of them fails, so `/readyz` and the metric of stale kinds are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::sync::watch;
use tokio::time::Instant;
use watcher::{ApiFailureCause, FollowEvent, FollowFailure};

use crate::metrics::Metrics;

/// Time without a working list or watch after which one of them is stale, as for every other kind. 2 min.
const STALE_AFTER: Duration = Duration::from_mins(2);
/// Time after which one that is forbidden before its first list is stale: a server that has just started rejects all requests
/// for a moment. 3 s.
const FORBIDDEN_AFTER: Duration = Duration::from_secs(3);
/// Time for which a watch that was listed may fail by something else than a refusal without being named: watches break now and
/// then, and are opened again. 10 s.
const UNNAMED_FOR: Duration = Duration::from_secs(10);
/// Longest detail of a failure in `/readyz`, in characters.
const MAX_DETAIL: usize = 300;

/// What the service itself watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OwnWatchKind {
    /// ReadinessPolicies.
    Policies,
    /// ReadinessGroups.
    Groups,
    /// Namespaces, by whose labels policies choose.
    Namespaces,
    /// ConfigMaps of health scripts, each by its name.
    Scripts,
    /// PodDisruptionBudgets, of the cluster or of each namespace that Rollcall is restricted to.
    Budgets,
    /// Events of Kopf operators, of the cluster or of each such namespace.
    KopfEvents,
}

impl OwnWatchKind {
    /// The label of its series.
    fn metric_label(self) -> &'static str {
        match self {
            OwnWatchKind::Policies => "ReadinessPolicy.rollcall.dev",
            OwnWatchKind::Groups => "ReadinessGroup.rollcall.dev",
            OwnWatchKind::Namespaces => "Namespace",
            OwnWatchKind::Scripts => "ConfigMap",
            OwnWatchKind::Budgets => "PodDisruptionBudget.policy",
            OwnWatchKind::KopfEvents => "Event",
        }
    }

    /// Why it cannot be watched, and the command that mends it.
    pub(crate) fn explain_failure(self, cause: ApiFailureCause) -> String {
        let (resource, rights) = match self {
            OwnWatchKind::Policies => ("readinesspolicies.rollcall.dev", "rollcall rbac"),
            OwnWatchKind::Groups => ("readinessgroups.rollcall.dev", "rollcall rbac"),
            OwnWatchKind::Namespaces => ("namespaces", "rollcall rbac -f POLICY"),
            OwnWatchKind::Scripts => ("the ConfigMap", "rollcall rbac -f POLICY"),
            OwnWatchKind::Budgets => ("poddisruptionbudgets.policy", "rollcall rbac -f POLICY"),
            OwnWatchKind::KopfEvents => ("events", "rollcall rbac -f POLICY"),
        };
        match (self, cause) {
            (OwnWatchKind::Policies, ApiFailureCause::NotInstalled) => {
                "the ReadinessPolicy CRD is not installed; run `rollcall crd | kubectl apply -f -`, or use --policies FILE"
                    .to_owned()
            }
            (_, ApiFailureCause::Forbidden) => {
                format!("not permitted to list and watch {resource}; grant it with `{rights} | kubectl apply -f -`")
            }
            _ => format!("failed to watch {resource}: {}", cause.metric_label()),
        }
    }

    /// What it is called in `/readyz`.
    fn title(self, scope: &str) -> String {
        match self {
            OwnWatchKind::Policies => "policies".to_owned(),
            OwnWatchKind::Groups => "groups".to_owned(),
            OwnWatchKind::Namespaces => "labels of namespaces".to_owned(),
            OwnWatchKind::Scripts => format!("ConfigMap of scripts {scope}"),
            OwnWatchKind::Budgets if scope.is_empty() => "PodDisruptionBudgets".to_owned(),
            OwnWatchKind::Budgets => format!("PodDisruptionBudgets of namespace {scope}"),
            OwnWatchKind::KopfEvents if scope.is_empty() => "Events of Kopf operators".to_owned(),
            OwnWatchKind::KopfEvents => format!("Events of Kopf operators of namespace {scope}"),
        }
    }

    /// A cluster without groups needs no definition of them.
    fn may_be_absent(self) -> bool {
        self == OwnWatchKind::Groups
    }
}

/// How far the list of one of them has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ListStage {
    /// No list was completed.
    #[default]
    Unlisted,
    /// A list was completed, and no other has begun.
    Listed,
    /// A list was completed, and another one is not.
    Relisting,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct WatchTrouble {
    failure: FollowFailure,
    since: Instant,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnWatchState {
    is_needed: bool,
    list: ListStage,
    trouble: Option<WatchTrouble>,
}

impl OwnWatchState {
    fn is_stale(&self) -> bool {
        let Some(WatchTrouble { failure, since }) = &self.trouble else { return false };
        let is_refused = self.list == ListStage::Unlisted && failure.cause == ApiFailureCause::Forbidden;
        let after = if is_refused { FORBIDDEN_AFTER } else { STALE_AFTER };
        self.is_needed && since.elapsed() >= after
    }

    /// The failure that is worth a word.
    fn named_failure(&self) -> Option<&FollowFailure> {
        let WatchTrouble { failure, since } = self.trouble.as_ref().filter(|_| self.is_needed)?;
        let is_refused = matches!(
            failure.cause,
            ApiFailureCause::Forbidden | ApiFailureCause::Unauthorized | ApiFailureCause::NotInstalled
        );
        let is_named = is_refused || self.list == ListStage::Unlisted || since.elapsed() >= UNNAMED_FOR;
        is_named.then_some(failure)
    }

    /// A page that was read on the way of a list proves nothing, as one that always breaks off shows.
    fn on_alive(&mut self) -> bool {
        self.list == ListStage::Listed && self.trouble.take().is_some()
    }

    /// Since when it fails stays, whatever it fails by.
    fn on_failure(&mut self, failure: FollowFailure) -> bool {
        let since = self.trouble.as_ref().map_or_else(Instant::now, |before| before.since);
        self.trouble = Some(WatchTrouble { failure, since });
        true
    }

    /// Applies an event; `true` where its trouble may be another.
    fn apply_event<K>(&mut self, kind: OwnWatchKind, event: &FollowEvent<K>) -> bool {
        match event {
            FollowEvent::Init => {
                if self.list == ListStage::Listed {
                    self.list = ListStage::Relisting;
                }
                false
            }
            FollowEvent::InitDone => {
                self.list = ListStage::Listed;
                self.trouble.take().is_some()
            }
            FollowEvent::Alive => self.on_alive(),
            FollowEvent::Failure(failure)
                if failure.cause == ApiFailureCause::NotInstalled && kind.may_be_absent() =>
            {
                self.trouble.take().is_some()
            }
            FollowEvent::Failure(failure) => self.on_failure(failure.clone()),
            FollowEvent::InitApply(_) | FollowEvent::Apply(_) | FollowEvent::Delete(_) => false,
        }
    }
}

/// State of all of them, by what is watched and where.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnWatchStates(BTreeMap<(OwnWatchKind, String), OwnWatchState>);

impl OwnWatchStates {
    /// A line for each that fails: the cause, the command that mends it, and what is in force meanwhile.
    pub(crate) fn trouble_lines(&self) -> Vec<String> {
        let lines = self.0.iter().filter_map(|((kind, scope), state)| {
            let failure = state.named_failure()?;
            let in_force = match state.list {
                ListStage::Unlisted => "nothing was read yet",
                ListStage::Listed | ListStage::Relisting => "what was last read stays in force",
            };
            let detail: String = failure.detail.chars().take(MAX_DETAIL).collect();
            let (title, why) = (kind.title(scope), kind.explain_failure(failure.cause));
            Some(format!("{title}: {why}; {in_force} ({detail})"))
        });
        lines.collect()
    }

    fn is_stale(&self, kind: OwnWatchKind) -> bool {
        self.0.iter().any(|((of, _), state)| *of == kind && state.is_stale())
    }
}

/// Handle by which the tasks that watch them report on them. Cheap to clone; the policies' task alone writes.
#[derive(Clone)]
pub(crate) struct OwnWatches {
    states: watch::Sender<OwnWatchStates>,
    metrics: Arc<Metrics>,
}

impl OwnWatches {
    /// Publishes by this channel, and in these metrics.
    pub(crate) fn new(states: watch::Sender<OwnWatchStates>, metrics: Arc<Metrics>) -> OwnWatches {
        OwnWatches { states, metrics }
    }

    /// The same events; what they say of the health of the watch is noted as they are taken.
    pub(crate) fn observed<K: Send + 'static>(
        &self,
        kind: OwnWatchKind,
        scope: &str,
        events: BoxStream<'static, FollowEvent<K>>,
    ) -> BoxStream<'static, FollowEvent<K>> {
        let key = (kind, scope.to_owned());
        let begun = OwnWatchState { is_needed: true, list: ListStage::default(), trouble: None };
        self.states.send_modify(|states| _ = states.0.insert(key.clone(), begun));
        self.export_kind(kind);
        let own = self.clone();
        events.inspect(move |event| own.note_event(&key, event)).boxed()
    }

    /// Says which scopes of a kind policies still need: the others need not be permitted any more.
    pub(crate) fn set_needed(&self, kind: OwnWatchKind, is_scope_needed: impl Fn(&str) -> bool) {
        self.states.send_if_modified(|states| {
            let of_kind = states.0.iter_mut().filter(|((of, _), _)| *of == kind);
            of_kind.fold(false, |moved, ((_, scope), state)| {
                let is_needed = is_scope_needed(scope);
                std::mem::replace(&mut state.is_needed, is_needed) != is_needed || moved
            })
        });
        self.export_kind(kind);
    }

    fn note_event<K>(&self, key: &(OwnWatchKind, String), event: &FollowEvent<K>) {
        let has_moved = self.states.send_if_modified(|states| {
            states.0.get_mut(key).is_some_and(|state| state.apply_event(key.0, event))
        });
        if has_moved {
            self.export_kind(key.0);
        }
    }

    fn export_kind(&self, kind: OwnWatchKind) {
        let is_stale = self.states.borrow().is_stale(kind);
        self.metrics.planned.stale.set_own(kind.metric_label(), is_stale);
    }
}

#[cfg(test)]
mod tests;
