//! Distribution of transitions to Kubernetes Events, the history and the live page.
//!
//! The loop publishes every [`Transition`] once, by [`TransitionHub::publish_transitions`], and never waits for a
//! subscriber:
//!
//! * [`TransitionHub::subscribe`] receives all transitions published from then on, in order. A subscriber that lags by
//!   more than [`SUBSCRIBER_BACKLOG`] loses the oldest ones; they are counted in
//!   `rollcall_transitions_dropped_total{by}`, and others are not affected.
//! * [`TransitionHub::last_of_parent`] returns the last few of one parent, for a timeline: at most
//!   [`MAX_RECENT_PER_PARENT`], and [`MAX_RECENT_TOTAL`] of all parents together. Those of the parent that has been
//!   quiet for longest are dropped first.
//! * [`TransitionHub::latest_since`] returns the last [`MAX_LATEST`] of all parents, in order: what has changed lately.
//!
//! A page does both: it subscribes first and then reads the last ones, so that none is missed in between; a transition
//! may be seen twice then. Transitions are shared (`Arc`) and serialize as camelCase JSON.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use aggregator::KindId;
use prometheus::{IntCounter, IntCounterVec};
use readiness::Time;
use rustc_hash::FxHashMap;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::kind_tasks::ResolvedKinds;
pub use rollcall_core::{ObjectRef, RootCause, Transition};

/// Number of transitions that a subscriber may lag behind.
pub const SUBSCRIBER_BACKLOG: usize = 16_384;
/// Maximum number of recent transitions kept per parent.
pub const MAX_RECENT_PER_PARENT: usize = 16;
/// Maximum number of recent transitions kept in total.
pub const MAX_RECENT_TOTAL: usize = 8_192;

/// Maximum number of the latest transitions of all parents that are kept.
pub const MAX_LATEST: usize = 4_096;

/// Subscribers, as in `rollcall_transitions_dropped_total{by}`.
pub const SUBSCRIBER_LABELS: [&str; 3] = ["events", "history", "page"];

/// Publisher of transitions.
#[derive(Debug)]
pub struct TransitionHub {
    sender: broadcast::Sender<Arc<Transition>>,
    /// Written only by the loop, read by pages.
    recent: Mutex<RecentTransitions>,
    /// As `recent`, with its own lock: pages copy it as a whole.
    latest: Mutex<LatestTransitions>,
    resolved: ResolvedKinds,
    dropped: IntCounterVec,
}

impl TransitionHub {
    pub(crate) fn new(known: ResolvedKinds, dropped: IntCounterVec) -> Self {
        for by in SUBSCRIBER_LABELS {
            dropped.with_label_values(&[by]);
        }
        TransitionHub {
            sender: broadcast::Sender::new(SUBSCRIBER_BACKLOG),
            recent: Mutex::default(),
            latest: Mutex::default(),
            resolved: known,
            dropped,
        }
    }

    /// Publishes these transitions in this order. Never waits.
    pub(crate) fn publish_transitions(&self, transitions: Vec<Transition>) {
        if transitions.is_empty() {
            return;
        }
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        for mut transition in transitions {
            if let Some(followed) = self.resolved.get(&transition.kind) {
                transition.version.clone_from(&followed.api.version);
            }
            let transition = Arc::new(transition);
            recent.add_transition(transition.clone());
            latest.add_transition(transition.clone());
            // Sending fails only without subscribers; then the transition is not kept for them either.
            _ = self.sender.send(transition);
        }
    }

    /// API version under which a kind is watched.
    pub(crate) fn version_of(&self, kind: KindId) -> Option<String> {
        self.resolved.get(&kind).map(|followed| followed.api.version.clone())
    }

    /// Subscribes to all transitions from now on. `by` is one of [`SUBSCRIBER_LABELS`].
    pub fn subscribe(&self, by: &'static str) -> TransitionSubscription {
        TransitionSubscription {
            receiver: self.sender.subscribe(),
            dropped: self.dropped.with_label_values(&[by]),
        }
    }

    /// Last transitions of the parent with this uid under any of its policies, oldest first.
    pub fn last_of_parent(&self, uid: &str) -> Vec<Arc<Transition>> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.parents.get(uid).map(|story| story.last.iter().cloned().collect()).unwrap_or_default()
    }

    /// Transitions of all parents since this time, newest first, as far as they are kept; and the time since which all are
    /// kept, where some were dropped.
    pub fn latest_since(&self, since: Time) -> (Vec<Arc<Transition>>, Option<Time>) {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let found =
            latest.kept.iter().rev().take_while(|transition| transition.at >= since).cloned().collect();
        (found, latest.kept.front().filter(|_| latest.is_cut).map(|oldest| oldest.at))
    }
}

/// Subscription of one receiver.
#[derive(Debug)]
pub struct TransitionSubscription {
    receiver: broadcast::Receiver<Arc<Transition>>,
    dropped: IntCounter,
}

/// Item that a subscriber receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransitionEvent {
    /// Next transition.
    Received(Arc<Transition>),
    /// Number of transitions lost before the next one because the subscriber lagged. They are already counted.
    Lost(u64),
}

impl TransitionSubscription {
    /// Waits for the next item; `None` once the loop has ended and everything was received. Cancel-safe.
    pub async fn next(&mut self) -> Option<TransitionEvent> {
        match self.receiver.recv().await {
            Ok(transition) => Some(TransitionEvent::Received(transition)),
            Err(RecvError::Lagged(lost)) => Some(self.count_lost(lost)),
            Err(RecvError::Closed) => None,
        }
    }

    /// Next item, if one is available.
    pub fn try_next(&mut self) -> Option<TransitionEvent> {
        match self.receiver.try_recv() {
            Ok(transition) => Some(TransitionEvent::Received(transition)),
            Err(TryRecvError::Lagged(lost)) => Some(self.count_lost(lost)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }

    /// Counts transitions that the subscriber itself had to drop.
    pub fn count_dropped(&self, count: u64) {
        self.dropped.inc_by(count);
    }

    fn count_lost(&self, lost: u64) -> TransitionEvent {
        self.dropped.inc_by(lost);
        TransitionEvent::Lost(lost)
    }
}

/// Last transitions of all parents, oldest first.
#[derive(Debug, Default)]
struct LatestTransitions {
    kept: VecDeque<Arc<Transition>>,
    /// Earlier ones were dropped.
    is_cut: bool,
}

impl LatestTransitions {
    fn add_transition(&mut self, transition: Arc<Transition>) {
        if self.kept.len() == MAX_LATEST {
            self.kept.pop_front();
            self.is_cut = true;
        }
        self.kept.push_back(transition);
    }
}

/// Last transitions of the parents that changed most recently.
#[derive(Debug, Default)]
struct RecentTransitions {
    parents: FxHashMap<Box<str>, ParentTransitions>,
    /// Parents by the time of their last change.
    order: BTreeMap<u64, Box<str>>,
    published: u64,
    held: usize,
}

#[derive(Debug, Default)]
struct ParentTransitions {
    last: VecDeque<Arc<Transition>>,
    last_published: u64,
}

impl RecentTransitions {
    fn add_transition(&mut self, transition: Arc<Transition>) {
        self.published += 1;
        let uid: Box<str> = transition.uid.as_str().into();
        let story = self.parents.entry(uid.clone()).or_default();
        self.order.remove(&story.last_published);
        story.last_published = self.published;
        story.last.push_back(transition);
        self.order.insert(self.published, uid);
        if story.last.len() > MAX_RECENT_PER_PARENT {
            story.last.pop_front();
        } else {
            self.held += 1;
        }
        while self.held > MAX_RECENT_TOTAL {
            let Some((_, quiet)) = self.order.pop_first() else { return };
            self.held -= self.parents.remove(&quiet).map_or(0, |story| story.last.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readiness::rollup::ParentReason;

    fn transition(uid: &str, at: i64) -> Transition {
        let parent = ObjectRef {
            group: "example.com".to_owned(),
            kind: "Database".to_owned(),
            namespace: "shop".to_owned(),
            name: "orders".to_owned(),
        };
        Transition {
            at: Time(at),
            policy: "databases".to_owned(),
            parent,
            version: String::new(),
            uid: uid.to_owned(),
            generation: Some(3),
            from: Some(ParentReason::AllChildrenReady),
            to: ParentReason::ChildrenFailed,
            message: "1 of 3 not ready".to_owned(),
            causes: Vec::new(),
            shadow: false,
            kind: aggregator::KindId(7),
        }
    }

    fn transitions() -> TransitionHub {
        let opts = prometheus::Opts::new("dropped", "dropped");
        TransitionHub::new(ResolvedKinds::default(), IntCounterVec::new(opts, &["by"]).unwrap())
    }

    #[test]
    fn the_last_few_of_a_parent_are_remembered_oldest_first() {
        let transitions = transitions();
        transitions.publish_transitions((0..20).map(|at| transition("a", at)).collect());
        transitions.publish_transitions(vec![transition("b", 99)]);
        let at = |uid| transitions.last_of_parent(uid).iter().map(|t| t.at.0).collect::<Vec<_>>();
        assert_eq!(at("a"), (4..20).collect::<Vec<_>>());
        assert_eq!(at("b"), [99]);
        assert!(at("c").is_empty());
    }

    #[test]
    fn what_is_remembered_of_all_parents_is_bounded_and_the_quiet_ones_go_first() {
        let transitions = transitions();
        transitions.publish_transitions(vec![transition("quiet", 0), transition("lively", 0)]);
        for at in 0..i64::try_from(MAX_RECENT_TOTAL).unwrap() {
            transitions
                .publish_transitions(vec![transition("lively", at), transition(&format!("other-{at}"), at)]);
        }
        assert!(transitions.last_of_parent("quiet").is_empty());
        assert_eq!(transitions.last_of_parent("lively").len(), MAX_RECENT_PER_PARENT);
        let recent = transitions.recent.lock().unwrap();
        let held: usize = recent.parents.values().map(|story| story.last.len()).sum();
        assert_eq!((held, recent.order.len()), (recent.held, recent.parents.len()));
        assert!(held <= MAX_RECENT_TOTAL && held > MAX_RECENT_TOTAL - MAX_RECENT_PER_PARENT, "{held}");
    }

    #[test]
    fn the_latest_of_all_parents_are_kept_in_order_and_how_far_they_reach_back_is_known() {
        let transitions = transitions();
        transitions.publish_transitions((0..3).map(|at| transition(&format!("parent-{at}"), at)).collect());
        let found = |since| {
            let (latest, reaches) = transitions.latest_since(Time(since));
            (latest.iter().map(|of| of.at.0).collect::<Vec<_>>(), reaches.map(|at| at.0))
        };
        assert_eq!(found(1), (vec![2, 1], None));
        assert_eq!(found(9), (vec![], None));
        let most = i64::try_from(MAX_LATEST).unwrap();
        // One parent that turns very often does not make others' forgotten sooner than by their number.
        transitions.publish_transitions((3..most + 2).map(|at| transition("lively", at)).collect());
        let (all, reaches) = found(0);
        assert_eq!((all.len(), all.last().copied(), reaches), (MAX_LATEST, Some(2), Some(2)));
    }

    #[tokio::test]
    async fn who_does_not_listen_loses_the_oldest_and_nobody_waits_for_it() {
        let transitions = transitions();
        let (mut slow, mut quick) = (transitions.subscribe("page"), transitions.subscribe("history"));
        let more = 10;
        for at in 0..i64::try_from(SUBSCRIBER_BACKLOG + more).unwrap() {
            transitions.publish_transitions(vec![transition("a", at)]);
            assert!(matches!(quick.try_next(), Some(TransitionEvent::Received(told)) if told.at.0 == at));
        }
        assert_eq!(slow.next().await, Some(TransitionEvent::Lost(more as u64)));
        assert!(
            matches!(slow.next().await, Some(TransitionEvent::Received(told)) if usize::try_from(told.at.0) == Ok(more))
        );
        let dropped = |by| transitions.dropped.with_label_values(&[by]).get();
        assert_eq!([dropped("page"), dropped("history"), dropped("events")], [more as u64, 0, 0]);
        drop(transitions);
        while slow.try_next().is_some() {}
        assert_eq!(slow.next().await, None);
    }

    #[test]
    fn a_line_of_the_history_can_be_read_by_anybody() {
        let line = serde_json::to_value(transition("a", 1_767_225_600_090)).unwrap();
        let said = |verdict, status, reason| serde_json::json!({"verdict": verdict, "status": status, "reason": reason});
        let expected = serde_json::json!({
            "at": "2026-01-01T00:00:00.090Z", "policy": "databases", "group": "example.com", "version": "",
            "kind": "Database", "namespace": "shop", "name": "orders", "uid": "a", "generation": 3,
            "from": said("Ready", "True", "AllChildrenReady"), "to": said("Failed", "False", "ChildrenFailed"),
            "message": "1 of 3 not ready", "causes": [], "shadow": false,
        });
        assert_eq!(line, expected);
    }
}
