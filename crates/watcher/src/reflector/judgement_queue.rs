//! Objects that await a custom rule, each once: the newest version takes the place of the one that waited.
//!
//! The queue has no threads and no clock: the owner of threads takes from it, and the simulator does so when it likes.
//! Rules take turns, each has one object evaluated at a time, and none holds more than is still free: a rule that is slow
//! costs the others neither time nor room. Where groups bring a rule, the namespaces in which it is evaluated share its turns, one
//! after the other, and each has room of its own.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use aggregator::{KindId, ObjectId};
use readiness::Time;
use rustc_hash::FxHashMap;

use super::planned::PlannedInterest;
use super::uid_key::UidKey;

/// Memory for the texts of all objects that wait.
const MAX_WAITING_BYTES: usize = 32 << 20;

/// Bytes counted for an object beside its text.
const JUDGEMENT_BYTES: usize = 256;

/// Room that an object of ordinary size takes, for which a task that ingests objects may wait. 64 KiB.
const ORDINARY_BYTES: usize = 64 << 10;

/// Age of the longest waiting object from which on no task waits for room any more: its rule is slow, and must not slow others
/// down. 5 s.
const ROOM_WAIT_LIMIT: Duration = Duration::from_secs(5);

/// One object that awaits a rule.
#[derive(Debug)]
pub struct Judgement {
    pub(super) plan: Arc<PlannedInterest>,
    /// Index into [`crate::plan::Interest::assessment_rules`].
    pub(super) rule_index: u16,
    pub(super) id: ObjectId,
    pub(super) namespace: Box<str>,
    pub(super) uid: Box<str>,
    pub(super) version: u64,
    /// The object, shared by all rules that it awaits.
    pub(super) text: Arc<str>,
    /// When the object began to wait, in whichever version.
    pub(super) since: Time,
    /// When it was taken to be evaluated.
    pub(super) taken_at: Time,
    number: u64,
}

/// A rule, by its kind and its index there.
type RuleId = (KindId, u16);

/// What takes turns: a rule, or a rule in a namespace, for whose objects alone it has limits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct TurnTaker {
    rule: RuleId,
    namespace: Option<Box<str>>,
}

/// What waits for one turn.
#[derive(Debug, Default)]
struct RuleBacklog {
    /// The objects in the order in which they began to wait.
    order: VecDeque<UidKey>,
    waiting: FxHashMap<UidKey, Judgement>,
    bytes: usize,
}

/// The turns within a rule.
#[derive(Debug, Default)]
struct RuleTurns {
    /// Those whose turn comes.
    ready: VecDeque<TurnTaker>,
    /// Number of the judgement that is being evaluated.
    running: Option<u64>,
}

#[derive(Debug, Default)]
struct QueueState {
    /// What waits, where something does; its turn is queued then.
    backlogs: FxHashMap<TurnTaker, RuleBacklog>,
    rules: FxHashMap<RuleId, RuleTurns>,
    /// Rules whose turn comes: each has as many turns as any other, however many namespaces share them.
    turns: VecDeque<RuleId>,
    bytes: usize,
    next_number: u64,
}

/// The queue.
#[derive(Default)]
pub(super) struct JudgementQueue {
    state: Mutex<QueueState>,
    /// Called when there is something to take; unset where rules are evaluated on ingest.
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Judgement {
    pub(super) fn new(
        (plan, rule_index): (&Arc<PlannedInterest>, u16),
        (id, (namespace, uid), version): (ObjectId, (&str, &str), u64),
        text: Arc<str>,
        now: Time,
    ) -> Judgement {
        let (plan, namespace, uid) = (Arc::clone(plan), namespace.into(), uid.into());
        Judgement {
            plan,
            rule_index,
            id,
            namespace,
            uid,
            version,
            text,
            since: now,
            taken_at: now,
            number: 0,
        }
    }

    fn turn_taker(&self) -> TurnTaker {
        let namespace = self.plan.sharing_namespace(self.rule_index, &self.namespace).map(Into::into);
        TurnTaker { rule: self.rule_id(), namespace }
    }

    fn rule_id(&self) -> RuleId {
        (self.plan.interest.id, self.rule_index)
    }

    fn bytes(&self) -> usize {
        JUDGEMENT_BYTES + self.text.len()
    }

    fn age(&self) -> (u64, u64) {
        (self.plan.epoch(), self.version)
    }
}

impl RuleBacklog {
    fn oldest(&self) -> Option<&Judgement> {
        self.order.front().and_then(|uid| self.waiting.get(uid))
    }
}

impl QueueState {
    /// It takes its turn among those of its rule.
    fn queue_turn(&mut self, turn: TurnTaker) {
        let rule_id = turn.rule;
        let rule = self.rules.entry(rule_id).or_default();
        if rule.ready.is_empty() && rule.running.is_none() {
            self.turns.push_back(rule_id);
        }
        rule.ready.push_back(turn);
    }

    /// Takes the next object of a rule of which none is being evaluated.
    fn take_of(&mut self, rule_id: RuleId) -> Option<Judgement> {
        let rule = self.rules.get_mut(&rule_id).filter(|rule| rule.running.is_none())?;
        let turn = rule.ready.pop_front()?;
        let backlog = self.backlogs.get_mut(&turn)?;
        let taken = backlog.order.pop_front().and_then(|uid| backlog.waiting.remove(&uid))?;
        backlog.bytes -= taken.bytes();
        self.bytes -= taken.bytes();
        rule.running = Some(taken.number);
        if backlog.order.is_empty() {
            self.backlogs.remove(&turn);
        } else {
            rule.ready.push_back(turn);
        }
        Some(taken)
    }

    fn finish(&mut self, rule_id: RuleId, number: u64) {
        let rule = self.rules.get_mut(&rule_id).filter(|rule| rule.running == Some(number));
        let Some(rule) = rule else { return };
        rule.running = None;
        if rule.ready.is_empty() {
            self.rules.remove(&rule_id);
        } else {
            self.turns.push_back(rule_id);
        }
    }
}

impl JudgementQueue {
    /// Has rules evaluated by the threads that take from the queue, from now on.
    pub(super) fn set_waker(&self, wake: Box<dyn Fn() + Send + Sync>) {
        _ = self.wake.set(wake);
    }

    /// Returns `true` if rules are evaluated by the threads that take from the queue, and not on ingest.
    pub(super) fn is_used(&self) -> bool {
        self.wake.get().is_some()
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the threads that there is something to take.
    pub(super) fn wake(&self) {
        if let Some(wake) = self.wake.get() {
            wake();
        }
    }

    /// Adds an object, or puts its newer version in the place of the one that waits. Returns `false` if there is no room: the
    /// older version may still wait then, but nothing awaits its verdict. Where the version that waits is the higher one,
    /// `is_stored` says whether the object is held in the other one by now, because a server that was restored counts anew.
    pub(super) fn push(&self, mut judgement: Judgement, is_stored: impl FnOnce() -> bool) -> bool {
        let (turn, bytes) = (judgement.turn_taker(), judgement.bytes());
        let uid = UidKey::from_text(&judgement.uid);
        let mut state = self.lock();
        let QueueState { backlogs, bytes: all_bytes, next_number, .. } = &mut *state;
        let free = MAX_WAITING_BYTES.saturating_sub(*all_bytes);
        // A rule for which nothing waits takes one object, however large that is.
        let is_alone = || !backlogs.keys().any(|other| other.rule == turn.rule);
        if bytes > free && !backlogs.contains_key(&turn) && !is_alone() {
            return false;
        }
        let rule = backlogs.entry(turn.clone()).or_default();
        if let Some(held) = rule.waiting.get_mut(&uid) {
            if held.age() > judgement.age() && !is_stored() {
                return true;
            }
            let before = held.bytes();
            let is_alone = rule.order.len() == 1;
            if bytes > before && !is_alone && rule.bytes + (bytes - before) > free {
                return false;
            }
            (judgement.since, judgement.number) = (held.since, held.number);
            *held = judgement;
            rule.bytes = rule.bytes + bytes - before;
            *all_bytes = *all_bytes + bytes - before;
            return true;
        }
        let was_idle = rule.order.is_empty();
        if !was_idle && rule.bytes + bytes > free {
            return false;
        }
        judgement.number = *next_number;
        *next_number += 1;
        rule.order.push_back(uid);
        rule.waiting.insert(uid, judgement);
        rule.bytes += bytes;
        *all_bytes += bytes;
        if was_idle {
            state.queue_turn(turn);
        }
        drop(state);
        self.wake();
        true
    }

    /// Takes the next object of the next rule. Give it back with [`JudgementQueue::finish`].
    pub(super) fn take(&self, now: Time) -> Option<Judgement> {
        let mut state = self.lock();
        while let Some(rule) = state.turns.pop_front() {
            if let Some(mut taken) = state.take_of(rule) {
                taken.taken_at = now;
                return Some(taken);
            }
        }
        None
    }

    /// Its rule takes its turn again.
    pub(super) fn finish(&self, judgement: Judgement) {
        let (rule_id, number) = (judgement.rule_id(), judgement.number);
        drop(judgement);
        self.lock().finish(rule_id, number);
    }

    /// Forgets everything of a kind: by what it is judged is not known any more.
    pub(super) fn forget_kind(&self, kind: KindId) {
        let mut state = self.lock();
        let state = &mut *state;
        let gone = state.backlogs.extract_if(|turn, _| turn.rule.0 == kind).map(|(_, rule)| rule.bytes);
        state.bytes -= gone.sum::<usize>();
        state.rules.retain(|rule, _| rule.0 != kind);
        state.turns.retain(|rule| rule.0 != kind);
    }

    /// Returns `true` if there is room for another object of this kind, or no use in waiting for it.
    pub(super) fn has_room(&self, kind: KindId, now: Time) -> bool {
        let state = self.lock();
        let free = MAX_WAITING_BYTES.saturating_sub(state.bytes);
        state.backlogs.iter().filter(|(turn, _)| turn.rule.0 == kind).all(|(_, rule)| {
            rule.bytes + ORDINARY_BYTES <= free
                || rule.oldest().is_none_or(|oldest| now - oldest.since >= ROOM_WAIT_LIMIT)
        })
    }

    /// Number that the next object to wait is given.
    pub(super) fn next_number(&self) -> u64 {
        self.lock().next_number
    }

    /// Returns `true` if all objects of a kind are evaluated that began to wait before this number was given.
    pub(super) fn is_done_before(&self, kind: KindId, number: u64) -> bool {
        let state = self.lock();
        let running =
            state.rules.iter().filter(|(rule, _)| rule.0 == kind).filter_map(|(_, rule)| rule.running);
        let waiting = state.backlogs.iter().filter(|(turn, _)| turn.rule.0 == kind);
        let oldest = waiting.filter_map(|(_, backlog)| backlog.oldest()).map(|oldest| oldest.number);
        running.chain(oldest).all(|first| first >= number)
    }

    /// Number of objects that have waited for a rule for at least `age`.
    pub(super) fn count_overdue(&self, rule: RuleId, age: Duration, now: Time) -> u64 {
        let state = self.lock();
        let overdue = |backlog: &RuleBacklog| {
            let waiting = backlog.order.iter().filter_map(|uid| backlog.waiting.get(uid));
            waiting.take_while(|judgement| now - judgement.since >= age).count()
        };
        let of_rule = state.backlogs.iter().filter(|(turn, _)| turn.rule == rule);
        u64::try_from(of_rule.map(|(_, backlog)| overdue(backlog)).sum::<usize>()).unwrap_or(u64::MAX)
    }

    /// Number of objects that wait, one for each rule that they await, and the bytes held for them.
    pub(super) fn size(&self) -> (usize, usize) {
        let state = self.lock();
        (state.backlogs.values().map(|rule| rule.order.len()).sum(), state.bytes)
    }
}

#[cfg(test)]
mod tests;
