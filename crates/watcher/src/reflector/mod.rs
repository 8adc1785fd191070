//! The in-memory state of the cluster: one row per relevant object, assessed on ingest.
//!
//! The reflector owns identity, versions, names, owners and verdicts. It has no clock: a verdict that changes with time
//! carries the moment. It does no I/O: watches, live reads and the simulator feed it in the same way.

mod assess;
mod deletion;
mod dirty;
mod finalizers;
mod generation_marks;
mod generation_practice;
mod ingest;
mod kopf;
mod kopf_marks;
mod kopf_outcomes;
mod links;
mod memory;
mod memory_account;
mod parent;
mod parent_deletion;
mod planned;
mod refinement;
mod row;
mod rule_breaker;
mod selector_interner;
mod slots;
mod unready_since;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use aggregator::{KindId, ObjectId, PolicyId};
use dashmap::DashMap;
use readiness::Time;
use rustc_hash::{FxBuildHasher, FxHashMap};
use serde_json::value::RawValue;

use crate::status::{ConditionEntry, ParentStatus};
use crate::wire::ChildObject;

pub use deletion::ReadStart;
pub use finalizers::FinalizerChange;
pub use memory::{
    DroppedOutcomes, MAX_PARENT_OUTCOMES, NamespaceRuns, OutcomeParent, ParentOutcomes, RememberedOutcome,
    RunEnd, RunTrace, UnseenRun,
};
pub use parent::{AnswerTarget, ParentRow};
pub use planned::ListPass;
pub use refinement::RefinedCause;
pub use row::{NamespaceName, ObjectRow};
pub use rule_breaker::RuleSuspension;
pub use selector_interner::name_hash;

/// Labels, in the order of the JSON text.
type LabelPairs = Box<[(Box<str>, Box<str>)]>;

/// The in-memory reflector.
pub struct Reflector {
    index: DashMap<slots::UidKey, ObjectId, FxBuildHasher>,
    slots: slots::SlotTable,
    account: memory_account::MemoryAccount,
    dirty: dirty::DirtySet,
    wake: Box<dyn Fn() + Send + Sync>,
    selectors: Mutex<selector_interner::SelectorInterner>,
    /// By what each kind is judged.
    interests: DashMap<KindId, Arc<planned::PlannedInterest>, FxBuildHasher>,
    /// The number of the next plan of a kind.
    plan_epoch: AtomicU64,
    epochs: Mutex<FxHashMap<(KindId, Option<NamespaceName>), u32>>,
    namespaces: RwLock<BTreeMap<NamespaceName, LabelPairs>>,
    interned_namespaces: DashMap<NamespaceName, (), FxBuildHasher>,
    tombstones: Mutex<deletion::TombstoneCache>,
    /// How many times an object was not found by a read.
    absences: AtomicU64,
    /// Versions known from live reads that the watch has not delivered yet.
    awaited: DashMap<slots::UidKey, u64, FxBuildHasher>,
    /// Changes of finalizers that have not been taken yet.
    finalizers: Mutex<Vec<(slots::UidKey, FinalizerChange)>>,
    /// Namespaces in which the operator of a policy leaves Kopf's mark.
    marking_namespaces: RwLock<BTreeMap<PolicyId, BTreeSet<NamespaceName>>>,
    /// Kinds whose operator keeps `status.observedGeneration` on some parent.
    keeping_kinds: RwLock<BTreeSet<KindId>>,
    /// Conditions last written to parents whose schema drops the observed generation of a condition.
    last_written: DashMap<slots::UidKey, Box<[ConditionEntry]>, FxBuildHasher>,
    /// Current time as last set by the driver, in milliseconds; custom rules may read it.
    now: AtomicI64,
    /// Number of evaluations of custom rules, and their total duration in nanoseconds.
    user_rule_calls: (AtomicU64, AtomicU64),
    /// Which custom rules are not evaluated for a while.
    rule_breakers: rule_breaker::RuleBreakers,
    /// **Lock order:** taken before any slot lock, never while one is held.
    memory: Mutex<memory::OutcomeMemory>,
    wake_memory: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// A version known from a live read that the watch has not delivered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaitedVersion(slots::UidKey);

/// Result of ingesting an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyOutcome {
    /// Older than the stored version: ignored.
    Stale,
    /// No change that a parent could show.
    Same,
    /// Changed; contains the stored version before, 0 if there was none.
    Moved(u64),
    /// No parent owns or selects the object.
    Unwanted,
    /// Its kind is not followed, or what came is less than the plan that holds has to read of it.
    Refused,
}

impl Reflector {
    /// Creates an empty reflector; `wake` is called when the dirty set becomes non-empty.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Reflector {
            index: DashMap::default(),
            slots: slots::SlotTable::default(),
            account: memory_account::MemoryAccount::default(),
            dirty: dirty::DirtySet::default(),
            wake: Box::new(wake),
            selectors: Mutex::default(),
            interests: DashMap::default(),
            plan_epoch: AtomicU64::default(),
            epochs: Mutex::default(),
            namespaces: RwLock::default(),
            interned_namespaces: DashMap::default(),
            tombstones: Mutex::default(),
            absences: AtomicU64::default(),
            awaited: DashMap::default(),
            finalizers: Mutex::default(),
            marking_namespaces: RwLock::default(),
            keeping_kinds: RwLock::default(),
            last_written: DashMap::default(),
            now: AtomicI64::default(),
            user_rule_calls: (AtomicU64::default(), AtomicU64::default()),
            rule_breakers: rule_breaker::RuleBreakers::default(),
            memory: Mutex::default(),
            wake_memory: OnceLock::new(),
        }
    }

    /// Sets the current time for custom rules.
    pub fn set_now(&self, now: Time) {
        self.now.store(now.0, Ordering::Relaxed);
    }

    fn now(&self) -> Time {
        Time(self.now.load(Ordering::Relaxed))
    }

    /// Returns the number of evaluations of custom rules and their total duration.
    pub fn user_rule_usage(&self) -> (u64, Duration) {
        let (times, nanoseconds) = &self.user_rule_calls;
        (times.load(Ordering::Relaxed), Duration::from_nanos(nanoseconds.load(Ordering::Relaxed)))
    }

    /// Takes in an object that came over the watch or as the answer to a write. It is judged by the interest that holds
    /// now, whichever held when it was asked for. `object` is its whole text where its kind may be a parent.
    pub fn apply_object(&self, kind: KindId, child: &ChildObject, object: Option<&RawValue>) -> ApplyOutcome {
        self.on_watch_caught_up(slots::UidKey::from_text(&child.meta.uid), child.meta.resource_version);
        self.ingest_object(kind, child, object)
    }

    /// Takes in an object of a list. It is there, whatever a live read said before the list began. A page of a list of an
    /// older plan, or of one that was begun anew, is refused.
    pub fn apply_listed(
        &self,
        pass: &ListPass,
        child: &ChildObject,
        object: Option<&RawValue>,
    ) -> ApplyOutcome {
        if !self.is_current(pass) {
            return ApplyOutcome::Refused;
        }
        self.exhume(slots::UidKey::from_text(&child.meta.uid), pass.start);
        self.apply_object(pass.kind, child, object)
    }

    /// Records an accepted write and its response. Must be called before the response is applied.
    pub fn on_write_accepted(&self, uid: &str, sent: &[ConditionEntry], answer: &ParentStatus) {
        if answer.has_lost_generations(sent) {
            self.last_written.insert(slots::UidKey::from_text(uid), sent.into());
        } else if !self.last_written.is_empty() {
            self.last_written.remove(&slots::UidKey::from_text(uid));
        }
    }

    /// Switches a parent to the fallback condition type because the current type keeps being overwritten. Applies from
    /// the next time the parent is read, for policies that have a fallback, as long as this reflector knows the parent.
    pub fn use_fallback_type(&self, id: ObjectId) {
        let row = |slot: &mut slots::RowSlot| {
            slot.row.as_mut()?.parent.as_mut().map(|parent| parent.use_fallback_type())
        };
        _ = self.change_slot(id, row);
    }

    /// Applies an object that was read live, by a read that began then: it is there, whatever another read did not find
    /// before. If it is newer, the watch is expected to deliver it too.
    pub fn apply_live(
        &self,
        kind: KindId,
        start: ReadStart,
        child: &ChildObject,
        object: Option<&RawValue>,
    ) -> (ApplyOutcome, Option<AwaitedVersion>) {
        let uid = slots::UidKey::from_text(&child.meta.uid);
        self.exhume(uid, start);
        let held = self
            .find_object(&child.meta.uid)
            .and_then(|id| self.read_row(id, |row| row.version))
            .unwrap_or(0);
        let applied = self.ingest_object(kind, child, object);
        let news = matches!(applied, ApplyOutcome::Moved(_)) && held < child.meta.resource_version;
        if news {
            self.awaited.insert(uid, child.meta.resource_version);
        }
        (applied, news.then_some(AwaitedVersion(uid)))
    }

    /// A live read found that an object is gone that was held at `version` when it was sent. Nothing up to that version
    /// brings it back but a list or a live read that begins from now on; the watch is awaited to say so too.
    pub fn apply_live_absence(&self, id: ObjectId, version: u64) -> Option<AwaitedVersion> {
        let gone = |row: &ObjectRow| !row.is_remembered() && row.version <= version;
        let there = |slot: &mut slots::RowSlot| slot.row.as_ref().filter(|row| gone(row)).map(|_| slot.uid);
        let uid = self.slots.with_slot(id, there).flatten()?;
        self.bury_absent(uid, version);
        if !self.remove_deleted_row(id, gone) {
            return None;
        }
        self.awaited.insert(uid, u64::MAX);
        Some(AwaitedVersion(uid))
    }

    /// Returns `true` if the watch has not delivered the version yet. Answered once.
    pub fn is_still_awaited(&self, awaited: &AwaitedVersion) -> bool {
        self.awaited.remove(&awaited.0).is_some()
    }

    fn on_watch_caught_up(&self, uid: slots::UidKey, version: u64) {
        if !self.awaited.is_empty() {
            self.awaited.remove_if(&uid, |_, awaited| *awaited <= version);
        }
    }

    /// Takes at most `most` changed objects.
    pub fn take_dirty(&self, most: usize) -> Vec<ObjectId> {
        self.dirty.take_up_to(most)
    }

    /// Number of changed objects that wait to be taken.
    pub fn dirty_len(&self) -> usize {
        self.dirty.len()
    }

    /// Reads the row of an object.
    pub fn read_row<R>(&self, id: ObjectId, f: impl FnOnce(&ObjectRow) -> R) -> Option<R> {
        self.slots.with_slot(id, |slot| slot.row.as_ref().map(f)).flatten()
    }

    /// Returns the object with this uid.
    pub fn find_object(&self, uid: &str) -> Option<ObjectId> {
        self.index.get(&slots::UidKey::from_text(uid)).map(|id| *id)
    }

    /// Recycles the slot of a deleted object after the driver has removed it from the engine.
    pub fn recycle_slot(&self, id: ObjectId) {
        if let Some(uid) = self.slots.give_back_slot(id) {
            self.index.remove_if(&uid, |_, held| *held == id);
            self.last_written.remove(&uid);
        }
    }

    /// Number of objects with a slot, including those known only as owners.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Number of interned selections: labels, references and claims.
    pub fn count_selections(&self) -> usize {
        lock_mutex(&self.selectors).len()
    }

    /// Returns `true` if no object has a slot.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Calls `f` on every row, for pages and tests.
    pub fn for_each_row(&self, mut f: impl FnMut(ObjectId, &ObjectRow)) {
        self.slots.for_each_slot(|id, slot| {
            if let Some(row) = &slot.row {
                f(id, row);
            }
        });
    }

    /// Sets the labels of a namespace; returns `true` if they changed. Parents selected by them have to be relisted.
    pub fn set_namespace_labels(&self, name: &str, labels: Option<&[(Box<str>, Box<str>)]>) -> bool {
        let name = self.intern_namespace(name);
        let mut namespaces = self.namespaces.write().unwrap_or_else(PoisonError::into_inner);
        match labels {
            Some(labels) => namespaces.insert(name, labels.into()).as_deref() != Some(labels),
            None => namespaces.remove(&name).is_some(),
        }
    }

    fn mark_dirty(&self, id: ObjectId) {
        if self.dirty.insert(id) {
            (self.wake)();
        }
    }

    /// Runs `at` on the slot of `uid`, created if there is none. The slot may be freed and reused between two attempts;
    /// it is then looked up again.
    fn with_slot_of<R>(
        &self,
        uid: slots::UidKey,
        mut at: impl FnMut(&mut slots::RowSlot) -> Option<R>,
    ) -> (ObjectId, R) {
        loop {
            let id = *self.index.entry(uid).or_insert_with(|| self.slots.take_slot(uid));
            let done = self.change_slot(id, |slot| if slot.uid == uid { at(slot) } else { None });
            if let Some(Some(done)) = done {
                return (id, done);
            }
            std::hint::spin_loop();
        }
    }

    fn intern_namespace(&self, name: &str) -> NamespaceName {
        if let Some(known) = self.interned_namespaces.get(name) {
            return known.key().clone();
        }
        let name: NamespaceName = name.into();
        self.interned_namespaces.insert(name.clone(), ());
        name
    }

    /// The number of the list that was last begun of a kind, in this scope.
    fn list_number(&self, kind: KindId, scope: Option<&NamespaceName>) -> u32 {
        lock_mutex(&self.epochs).get(&(kind, scope.cloned())).copied().unwrap_or(0)
    }

    /// The number of the list that was last begun of a kind, where it covers this namespace.
    fn list_epoch(&self, kind: KindId, namespace: &NamespaceName) -> u32 {
        let epochs = lock_mutex(&self.epochs);
        let scoped = epochs.get(&(kind, Some(namespace.clone())));
        scoped.or_else(|| epochs.get(&(kind, None))).copied().unwrap_or(0)
    }
}

fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
