//! Who hears of transitions: Kubernetes Events, the history, the live page.
//!
//! The loop tells every [`Transition`] once, by [`Transitions::tell`], and never waits for anybody:
//!
//! * [`Transitions::subscribe`] hears all that are told from then on, in order. Whoever is more than [`AHEAD`] behind has
//!   lost the oldest ones; they are counted in `rollcall_transitions_dropped_total{by}`, and nobody else notices.
//! * [`Transitions::last`] gives the last few of one parent, for a timeline: [`EACH`] at most, and [`ALL`] of all parents
//!   together. Those of the parent that has been quiet for longest go first.
//!
//! A page does both: first subscribe, then read the last ones, so that nothing is missed in between; a transition may be
//! seen twice then. Transitions are shared (`Arc`) and serialise as camelCase JSON.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use aggregator::KindId;
use prometheus::{IntCounter, IntCounterVec};
use rustc_hash::FxHashMap;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

pub use crate::core::{Culprit, Place, Transition};
use crate::kinds::Known;

/// So many may be told before a subscriber has taken the first of them.
pub const AHEAD: usize = 16_384;
/// So many are remembered of one parent.
pub const EACH: usize = 16;
/// So many are remembered in all.
pub const ALL: usize = 8_192;

/// Those who subscribe, as `rollcall_transitions_dropped_total{by}` has them.
pub const SUBSCRIBERS: [&str; 3] = ["events", "history", "page"];

/// Where transitions are told and heard.
#[derive(Debug)]
pub struct Transitions {
    told: broadcast::Sender<Arc<Transition>>,
    /// Written by the loop alone, read by pages.
    recent: Mutex<Recent>,
    known: Known,
    dropped: IntCounterVec,
}

impl Transitions {
    pub(crate) fn new(known: Known, dropped: IntCounterVec) -> Self {
        for by in SUBSCRIBERS {
            dropped.with_label_values(&[by]);
        }
        Transitions { told: broadcast::Sender::new(AHEAD), recent: Mutex::default(), known, dropped }
    }

    /// Tells these, in this order. Never waits.
    pub(crate) fn tell(&self, transitions: Vec<Transition>) {
        if transitions.is_empty() {
            return;
        }
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        for mut transition in transitions {
            if let Some(followed) = self.known.get(&transition.kind) {
                transition.version.clone_from(&followed.api.version);
            }
            let transition = Arc::new(transition);
            recent.add(transition.clone());
            // Nobody listens: then it is not kept either.
            _ = self.told.send(transition);
        }
    }

    /// The version under which a kind is watched.
    pub(crate) fn version_of(&self, kind: KindId) -> Option<String> {
        self.known.get(&kind).map(|followed| followed.api.version.clone())
    }

    /// Everything that is told from now on. `by` is one of [`SUBSCRIBERS`].
    pub fn subscribe(&self, by: &'static str) -> Subscription {
        Subscription { told: self.told.subscribe(), dropped: self.dropped.with_label_values(&[by]) }
    }

    /// The last transitions of the parent with this uid under any of its policies, oldest first.
    pub fn last(&self, uid: &str) -> Vec<Arc<Transition>> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.parents.get(uid).map(|story| story.last.iter().cloned().collect()).unwrap_or_default()
    }
}

/// One who hears of transitions.
#[derive(Debug)]
pub struct Subscription {
    told: broadcast::Receiver<Arc<Transition>>,
    dropped: IntCounter,
}

/// What a subscriber hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// This one.
    Told(Arc<Transition>),
    /// So many were lost before the next one: it came too late for them. They are counted already.
    Lost(u64),
}

impl Subscription {
    /// The next one; `None` once the loop has ended and everything was heard. Safe to cancel.
    pub async fn next(&mut self) -> Option<Heard> {
        match self.told.recv().await {
            Ok(transition) => Some(Heard::Told(transition)),
            Err(RecvError::Lagged(lost)) => Some(self.lost(lost)),
            Err(RecvError::Closed) => None,
        }
    }

    /// The next one, if there is one already.
    pub fn take(&mut self) -> Option<Heard> {
        match self.told.try_recv() {
            Ok(transition) => Some(Heard::Told(transition)),
            Err(TryRecvError::Lagged(lost)) => Some(self.lost(lost)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }

    /// The subscriber itself could not keep so many.
    pub fn drop_some(&self, count: u64) {
        self.dropped.inc_by(count);
    }

    fn lost(&self, lost: u64) -> Heard {
        self.dropped.inc_by(lost);
        Heard::Lost(lost)
    }
}

/// The last transitions of the parents that moved last.
#[derive(Debug, Default)]
struct Recent {
    parents: FxHashMap<Box<str>, Story>,
    /// Parents by when they moved last.
    order: BTreeMap<u64, Box<str>>,
    told: u64,
    held: usize,
}

#[derive(Debug, Default)]
struct Story {
    last: VecDeque<Arc<Transition>>,
    moved: u64,
}

impl Recent {
    fn add(&mut self, transition: Arc<Transition>) {
        self.told += 1;
        let uid: Box<str> = transition.uid.as_str().into();
        let story = self.parents.entry(uid.clone()).or_default();
        self.order.remove(&story.moved);
        story.moved = self.told;
        story.last.push_back(transition);
        self.order.insert(self.told, uid);
        if story.last.len() > EACH {
            story.last.pop_front();
        } else {
            self.held += 1;
        }
        while self.held > ALL {
            let Some((_, quiet)) = self.order.pop_first() else { return };
            self.held -= self.parents.remove(&quiet).map_or(0, |story| story.last.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readiness::Time;
    use readiness::rollup::ParentReason;

    fn transition(uid: &str, at: i64) -> Transition {
        let parent = Place {
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

    fn transitions() -> Transitions {
        let opts = prometheus::Opts::new("dropped", "dropped");
        Transitions::new(Known::default(), IntCounterVec::new(opts, &["by"]).unwrap())
    }

    #[test]
    fn the_last_few_of_a_parent_are_remembered_oldest_first() {
        let transitions = transitions();
        transitions.tell((0..20).map(|at| transition("a", at)).collect());
        transitions.tell(vec![transition("b", 99)]);
        let at = |uid| transitions.last(uid).iter().map(|t| t.at.0).collect::<Vec<_>>();
        assert_eq!(at("a"), (4..20).collect::<Vec<_>>());
        assert_eq!(at("b"), [99]);
        assert!(at("c").is_empty());
    }

    #[test]
    fn what_is_remembered_of_all_parents_is_bounded_and_the_quiet_ones_go_first() {
        let transitions = transitions();
        transitions.tell(vec![transition("quiet", 0), transition("lively", 0)]);
        for at in 0..(ALL as i64) {
            transitions.tell(vec![transition("lively", at), transition(&format!("other-{at}"), at)]);
        }
        assert!(transitions.last("quiet").is_empty());
        assert_eq!(transitions.last("lively").len(), EACH);
        let recent = transitions.recent.lock().unwrap();
        let held: usize = recent.parents.values().map(|story| story.last.len()).sum();
        assert_eq!((held, recent.order.len()), (recent.held, recent.parents.len()));
        assert!(held <= ALL && held > ALL - EACH, "{held}");
    }

    #[tokio::test]
    async fn who_does_not_listen_loses_the_oldest_and_nobody_waits_for_it() {
        let transitions = transitions();
        let (mut slow, mut quick) = (transitions.subscribe("page"), transitions.subscribe("history"));
        let more = 10;
        for at in 0..(AHEAD + more) as i64 {
            transitions.tell(vec![transition("a", at)]);
            assert!(matches!(quick.take(), Some(Heard::Told(told)) if told.at.0 == at));
        }
        assert_eq!(slow.next().await, Some(Heard::Lost(more as u64)));
        assert!(matches!(slow.next().await, Some(Heard::Told(told)) if told.at.0 == more as i64));
        let dropped = |by| transitions.dropped.with_label_values(&[by]).get();
        assert_eq!([dropped("page"), dropped("history"), dropped("events")], [more as u64, 0, 0]);
        drop(transitions);
        while slow.take().is_some() {}
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
