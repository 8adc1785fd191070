//! What is known of the world: one row per object that matters, judged as it comes in.
//!
//! The reflector owns identity, versions, names, owners and verdicts. It knows no clock: a verdict that changes by
//! itself carries the moment. It knows no I/O: watches, live reads and a simulator feed it alike.

mod assess;
mod dirty;
mod door;
mod finalizers;
mod gone;
mod kopf;
mod links;
mod marks;
mod memory;
mod parent;
mod refined;
mod row;
mod selectors;
mod since;
mod slots;
mod view;
mod weight;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use aggregator::{KindId, ObjectId, PolicyId};
use dashmap::DashMap;
use readiness::Time;
use rustc_hash::{FxBuildHasher, FxHashMap};
use serde_json::value::RawValue;

use crate::plan::Interest;
use crate::status::{Entry, ParentStatus};
use crate::wire::Child;

pub use finalizers::FinalizerChange;
pub use memory::{Beyond, End, MOST_OUTCOMES, Memories, Outcome, Runs, Trace, Unseen, Whose};
pub use parent::{AnswerTarget, ParentRow};
pub use refined::Refined;
pub use row::{Namespace, Row};
pub use selectors::name_hash;

/// Labels, in the order of the JSON text.
type Labels = Box<[(Box<str>, Box<str>)]>;

/// The in-memory reflector.
pub struct Reflector {
    index: DashMap<slots::Uid, ObjectId, FxBuildHasher>,
    slots: slots::Slots,
    account: weight::Account,
    dirty: dirty::Dirty,
    wake: Box<dyn Fn() + Send + Sync>,
    selectors: Mutex<selectors::Selectors>,
    epochs: Mutex<FxHashMap<(KindId, Option<Namespace>), u32>>,
    namespaces: RwLock<BTreeMap<Namespace, Labels>>,
    names: DashMap<Namespace, (), FxBuildHasher>,
    tombstones: Mutex<gone::Tombstones>,
    /// What live reads knew before the watch did, and with which version the watch has to catch up.
    awaited: DashMap<slots::Uid, u64, FxBuildHasher>,
    /// Changes of finalizers that nobody has taken yet.
    finalizers: Mutex<Vec<(slots::Uid, FinalizerChange)>>,
    /// What was last sent to parents whose schema drops the generation of a condition.
    /// In which namespaces the operator of a policy leaves marks of Kopf's.
    marking: RwLock<BTreeMap<PolicyId, BTreeSet<Namespace>>>,
    sent: DashMap<slots::Uid, Box<[Entry]>, FxBuildHasher>,
    /// What the driver last said that time it is, in milliseconds: rules of users may ask.
    now: AtomicI64,
    /// How often rules of users were asked, and how long that took in all, in nanoseconds.
    asked: (AtomicU64, AtomicU64),
    /// **Locks:** taken before any slot's, never while one is held.
    memory: Mutex<memory::Memory>,
    wake_memory: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// Something that a live read knew before the watch did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited(slots::Uid);

/// What became of an object that was fed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Older than what is held: ignored.
    Stale,
    /// Nothing that a parent could show has changed.
    Same,
    /// It moved; what was held before had this version (0 for nothing).
    Moved(u64),
    /// No parent owns or selects it.
    Unwanted,
}

impl Reflector {
    /// An empty one; `wake` is called when something moved after nothing had.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Reflector {
            index: DashMap::default(),
            slots: slots::Slots::default(),
            account: weight::Account::default(),
            dirty: dirty::Dirty::default(),
            wake: Box::new(wake),
            selectors: Mutex::default(),
            epochs: Mutex::default(),
            namespaces: RwLock::default(),
            names: DashMap::default(),
            tombstones: Mutex::default(),
            awaited: DashMap::default(),
            finalizers: Mutex::default(),
            marking: RwLock::default(),
            sent: DashMap::default(),
            now: AtomicI64::default(),
            asked: (AtomicU64::default(), AtomicU64::default()),
            memory: Mutex::default(),
            wake_memory: OnceLock::new(),
        }
    }

    /// It is `now`, to rules that ask for the time.
    pub fn tell_time(&self, now: Time) {
        self.now.store(now.0, Ordering::Relaxed);
    }

    /// How often rules of users were asked so far, and how long that took in all.
    pub fn asked(&self) -> (u64, Duration) {
        let (times, nanoseconds) = &self.asked;
        (times.load(Ordering::Relaxed), Duration::from_nanos(nanoseconds.load(Ordering::Relaxed)))
    }

    /// An object came over the watch, in a list, or as the answer to a write. `object` is its whole text where its kind
    /// may be a parent.
    pub fn apply(&self, interest: &Interest, child: &Child, object: Option<&RawValue>) -> Applied {
        self.caught_up(slots::Uid::of(&child.meta.uid), child.meta.resource_version);
        self.take_in(interest, child, object)
    }

    /// The server took what was sent, and this is its answer. To be told before that is applied.
    pub fn accepted(&self, uid: &str, sent: &[Entry], answer: &ParentStatus) {
        if answer.lost_generations(sent) {
            self.sent.insert(slots::Uid::of(uid), sent.into());
        } else if !self.sent.is_empty() {
            self.sent.remove(&slots::Uid::of(uid));
        }
    }

    /// What a parent is told by now keeps being overwritten: from its next reading on, policies that name another type to
    /// tell it by use that one, for as long as this reflector knows the parent.
    pub fn give_up(&self, id: ObjectId) {
        let row = |slot: &mut slots::Slot| slot.row.as_mut()?.parent.as_mut().map(|parent| parent.give_up());
        _ = self.change(id, row);
    }

    /// An object was read live. Where that was news, the watch is awaited to bring it too.
    pub fn apply_live(
        &self,
        interest: &Interest,
        child: &Child,
        object: Option<&RawValue>,
    ) -> (Applied, Option<Awaited>) {
        let uid = slots::Uid::of(&child.meta.uid);
        let held = self.find(&child.meta.uid).and_then(|id| self.read(id, |row| row.version)).unwrap_or(0);
        let applied = self.take_in(interest, child, object);
        let news = matches!(applied, Applied::Moved(_)) && held < child.meta.resource_version;
        if news {
            self.awaited.insert(uid, child.meta.resource_version);
        }
        (applied, news.then_some(Awaited(uid)))
    }

    /// A live read found that an object is gone. The watch is awaited to say so too.
    pub fn vanish(&self, id: ObjectId) -> Option<Awaited> {
        let there = |slot: &mut slots::Slot| {
            slot.row.as_ref().is_some_and(|row| !row.is_remembered()).then_some(slot.uid)
        };
        let uid = self.slots.with(id, there).flatten()?;
        self.bury(uid, 0);
        self.bury_row(id);
        self.awaited.insert(uid, u64::MAX);
        Some(Awaited(uid))
    }

    /// Does the watch still lack it? Asked once.
    pub fn still_awaited(&self, awaited: &Awaited) -> bool {
        self.awaited.remove(&awaited.0).is_some()
    }

    fn caught_up(&self, uid: slots::Uid, version: u64) {
        if !self.awaited.is_empty() {
            self.awaited.remove_if(&uid, |_, awaited| *awaited <= version);
        }
    }

    /// At most `most` objects that moved since they were last taken.
    pub fn take_dirty(&self, most: usize) -> Vec<ObjectId> {
        self.dirty.take(most)
    }

    /// How many objects wait to be taken.
    pub fn dirty(&self) -> usize {
        self.dirty.len()
    }

    /// Reads the row of an object.
    pub fn read<R>(&self, id: ObjectId, f: impl FnOnce(&Row) -> R) -> Option<R> {
        self.slots.with(id, |slot| slot.row.as_ref().map(f)).flatten()
    }

    /// The object with this uid.
    pub fn find(&self, uid: &str) -> Option<ObjectId> {
        self.index.get(&slots::Uid::of(uid)).map(|id| *id)
    }

    /// The driver has told the engine that an object is gone: its place may be used again.
    pub fn recycle(&self, id: ObjectId) {
        if let Some(uid) = self.slots.give_back(id) {
            self.index.remove_if(&uid, |_, held| *held == id);
            self.sent.remove(&uid);
        }
    }

    /// How many objects have a place, those known as somebody's owner alone included.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// How many selections rows speak of: labels, references and claims.
    pub fn selections(&self) -> usize {
        lock(&self.selectors).len()
    }

    /// None has.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Every row, for pages and tests.
    pub fn each(&self, mut f: impl FnMut(ObjectId, &Row)) {
        self.slots.each(|id, slot| {
            if let Some(row) = &slot.row {
                f(id, row);
            }
        });
    }

    /// The labels of a namespace; `true` where they are news. Parents chosen by them have to be listed anew.
    pub fn set_namespace(&self, name: &str, labels: Option<&[(Box<str>, Box<str>)]>) -> bool {
        let name = self.namespace(name);
        let mut namespaces = self.namespaces.write().unwrap_or_else(PoisonError::into_inner);
        match labels {
            Some(labels) => namespaces.insert(name, labels.into()).as_deref() != Some(labels),
            None => namespaces.remove(&name).is_some(),
        }
    }

    fn mark(&self, id: ObjectId) {
        if self.dirty.insert(id) {
            (self.wake)();
        }
    }

    /// Does something at the place of `uid`, which is made where there is none. Between two looks the place may have
    /// been given back and taken by another: then it is looked up anew.
    fn place<R>(&self, uid: slots::Uid, mut at: impl FnMut(&mut slots::Slot) -> Option<R>) -> (ObjectId, R) {
        loop {
            let id = *self.index.entry(uid).or_insert_with(|| self.slots.take(uid));
            let done = self.change(id, |slot| if slot.uid == uid { at(slot) } else { None });
            if let Some(Some(done)) = done {
                return (id, done);
            }
            std::hint::spin_loop();
        }
    }

    fn namespace(&self, name: &str) -> Namespace {
        if let Some(known) = self.names.get(name) {
            return known.key().clone();
        }
        let name: Namespace = name.into();
        self.names.insert(name.clone(), ());
        name
    }

    fn epoch(&self, kind: KindId, namespace: &Namespace) -> u32 {
        let epochs = lock(&self.epochs);
        let scoped = epochs.get(&(kind, Some(namespace.clone())));
        scoped.or_else(|| epochs.get(&(kind, None))).copied().unwrap_or(0)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
