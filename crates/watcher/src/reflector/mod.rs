//! What is known of the world: one row per object that matters, judged as it comes in.
//!
//! The reflector owns identity, versions, names, owners and verdicts. It knows no clock: a verdict that changes by
//! itself carries the moment. It knows no I/O: watches, live reads and a simulator feed it alike.

mod assess;
mod dirty;
mod links;
mod parent;
mod refined;
mod row;
mod selectors;
mod slots;
mod view;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use aggregator::{KindId, Link, ObjectId};
use dashmap::DashMap;
use readiness::{Assessment, Level, Reason, Time, Verdict};
use rustc_hash::{FxBuildHasher, FxHashMap};
use serde_json::value::RawValue;

use crate::plan::{Interest, ParentRule};
use crate::wire::{Child, Meta};

pub use parent::{AnswerTarget, ParentRow};
pub use refined::Refined;
pub use row::{Namespace, Row};
pub use selectors::name_hash;

/// Labels, in the order of the JSON text.
type Labels = Box<[(Box<str>, Box<str>)]>;

/// So many deletions are remembered, so that a live read that was overtaken by a deletion does not bring it back.
const TOMBSTONES: usize = 4_096;

/// The in-memory reflector.
pub struct Reflector {
    index: DashMap<slots::Uid, ObjectId, FxBuildHasher>,
    slots: slots::Slots,
    dirty: dirty::Dirty,
    wake: Box<dyn Fn() + Send + Sync>,
    selectors: Mutex<selectors::Selectors>,
    epochs: Mutex<FxHashMap<(KindId, Option<Namespace>), u32>>,
    namespaces: RwLock<BTreeMap<Namespace, Labels>>,
    names: DashMap<Namespace, (), FxBuildHasher>,
    tombstones: Mutex<Tombstones>,
    /// What live reads knew before the watch did, and with which version the watch has to catch up.
    awaited: DashMap<slots::Uid, u64, FxBuildHasher>,
    /// What the driver last said that time it is, in milliseconds: rules of users may ask.
    now: AtomicI64,
}

/// Something that a live read knew before the watch did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited(slots::Uid);

#[derive(Default)]
struct Tombstones {
    at: FxHashMap<slots::Uid, u64>,
    order: VecDeque<slots::Uid>,
}

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
            dirty: dirty::Dirty::default(),
            wake: Box::new(wake),
            selectors: Mutex::default(),
            epochs: Mutex::default(),
            namespaces: RwLock::default(),
            names: DashMap::default(),
            tombstones: Mutex::default(),
            awaited: DashMap::default(),
            now: AtomicI64::default(),
        }
    }

    /// It is `now`, to rules that ask for the time.
    pub fn tell_time(&self, now: Time) {
        self.now.store(now.0, Ordering::Relaxed);
    }

    /// An object came over the watch, in a list, or as the answer to a write. `object` is its whole text where its kind
    /// may be a parent.
    pub fn apply(&self, interest: &Interest, child: &Child, object: Option<&RawValue>) -> Applied {
        self.caught_up(slots::Uid::of(&child.meta.uid), child.meta.resource_version);
        self.take_in(interest, child, object)
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
        let uid = self.slots.with(id, |slot| slot.row.is_some().then_some(slot.uid)).flatten()?;
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

    fn take_in(&self, interest: &Interest, child: &Child, object: Option<&RawValue>) -> Applied {
        let meta = &child.meta;
        let uid = slots::Uid::of(&meta.uid);
        if meta.uid.is_empty() || self.is_buried(uid, meta.resource_version) {
            return Applied::Stale;
        }
        let rules = self.parent_rules(interest, meta);
        let held = self.index.get(&uid).map(|id| *id);
        let before = held.and_then(|id| self.slots.with(id, |s| s.row.as_ref().map(|r| r.version)).flatten());
        if before.is_some_and(|version| meta.resource_version < version) {
            return Applied::Stale;
        }
        let links = self.links(interest, meta);
        let parent = object.and_then(|object| self.read_parent(interest, meta, object, &rules, held));
        if links.is_empty() && parent.is_none() {
            if let Some(id) = held.filter(|_| before.is_some()) {
                self.bury_row(id);
            }
            return Applied::Unwanted;
        }
        let assessed: Vec<Assessment> =
            interest.lenses.iter().map(|lens| self.assess(interest, child, object, lens)).collect();
        let row = self.row(interest, meta, assessed, links, parent);
        self.put(uid, row)
    }

    fn row(
        &self,
        interest: &Interest,
        meta: &Meta,
        assessed: Vec<Assessment>,
        links: Vec<Link>,
        parent: Option<Box<ParentRow>>,
    ) -> Row {
        let mut assessed = assessed.into_iter();
        let assessment = assessed.next().unwrap_or_else(|| unknown(Reason::NoSignal));
        let beside: Vec<_> = assessed.collect();
        let namespace = self.namespace(&meta.namespace);
        Row {
            kind: interest.id,
            name: meta.name.clone(),
            epoch: self.epoch(interest.id, &namespace),
            namespace,
            version: meta.resource_version,
            generation: meta.generation as u32,
            created: meta.created.map_or(0, |t| u32::try_from(t.0 / 1_000).unwrap_or(0)),
            assessment,
            aside: (!beside.is_empty()).then(|| Box::new(row::Aside { beside, refined: None })),
            links: row::Links::of(links),
            parent,
        }
    }

    fn put(&self, uid: slots::Uid, row: Row) -> Applied {
        let mut row = Some(row);
        let (id, (outcome, released, strangers)) = self.place(uid, |slot| {
            let mut new = row.take()?;
            if slot.row.as_ref().is_some_and(|old| new.version < old.version) {
                return Some((Applied::Stale, new.links, false));
            }
            if let Some(old) = &slot.row {
                new.inherit(old);
            }
            let outcome = match &slot.row {
                Some(old) if same(old, &new) => Applied::Same,
                Some(old) => Applied::Moved(old.version),
                None => Applied::Moved(0),
            };
            let strangers = slot.row.is_none() && slot.expects_other_than(&new.namespace);
            let old = slot.row.replace(new);
            Some((outcome, old.map(|r| r.links).unwrap_or_default(), strangers))
        });
        self.release(released.as_slice());
        if strangers {
            self.mark_strangers(id);
        }
        if matches!(outcome, Applied::Moved(_)) {
            self.mark(id);
        }
        outcome
    }

    /// An object is gone, as a DELETE event or a live read says. `version` is that of the deletion, 0 if not known.
    pub fn delete(&self, uid: &str, version: u64) {
        let uid = slots::Uid::of(uid);
        self.caught_up(uid, u64::MAX);
        self.bury(uid, version);
        if let Some(id) = self.index.get(&uid).map(|id| *id) {
            let older = |slot: &mut slots::Slot| {
                slot.row.as_ref().is_some_and(|r| version == 0 || r.version <= version)
            };
            if self.slots.with(id, older) == Some(true) {
                self.bury_row(id);
            }
        }
    }

    /// A list of this kind begins, in one namespace or in all. A kind is listed either way, never both.
    pub fn begin(&self, kind: KindId, scope: Option<&str>) {
        let scope = scope.map(|s| self.namespace(s));
        *lock(&self.epochs).entry((kind, scope)).or_insert(0) += 1;
    }

    /// The list is through: what it did not have is gone. How many that were.
    pub fn finish(&self, kind: KindId, scope: Option<&str>) -> usize {
        // What is not in a complete list is gone as far as the watch is concerned.
        self.awaited.retain(|_, version| *version != u64::MAX);
        let scope = scope.map(|s| self.namespace(s));
        let epoch = lock(&self.epochs).get(&(kind, scope.clone())).copied().unwrap_or(0);
        let within = |row: &Row| scope.as_ref().is_none_or(|s| *s == row.namespace);
        self.sweep(|row| row.kind == kind && within(row) && row.epoch != epoch)
    }

    /// This kind is not watched any more, or its API is gone: it has no objects.
    pub fn forget(&self, kind: KindId) -> usize {
        self.sweep(|row| row.kind == kind)
    }

    fn sweep(&self, gone: impl Fn(&Row) -> bool) -> usize {
        let mut swept = Vec::new();
        self.slots.each(|id, slot| {
            if slot.row.as_ref().is_some_and(&gone) {
                swept.push(id);
            }
        });
        for id in &swept {
            self.bury_row(*id);
        }
        swept.len()
    }

    fn bury_row(&self, id: ObjectId) {
        if let Some(Some(row)) = self.slots.with(id, |slot| slot.row.take()) {
            self.release(row.links.as_slice());
            self.mark(id);
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
        }
    }

    /// How many objects have a place, those known as somebody's owner alone included.
    pub fn len(&self) -> usize {
        self.index.len()
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
            let done = self.slots.with(id, |slot| if slot.uid == uid { at(slot) } else { None });
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

    fn bury(&self, uid: slots::Uid, version: u64) {
        let mut tombstones = lock(&self.tombstones);
        if tombstones.at.insert(uid, version).is_none() {
            tombstones.order.push_back(uid);
        }
        if tombstones.order.len() > TOMBSTONES
            && let Some(oldest) = tombstones.order.pop_front()
        {
            tombstones.at.remove(&oldest);
        }
    }

    fn is_buried(&self, uid: slots::Uid, version: u64) -> bool {
        // A uid never comes back, so a newer version of a buried one can only be a deletion that was a mistake.
        lock(&self.tombstones).at.get(&uid).is_some_and(|at| *at == 0 || version <= *at)
    }

    fn parent_rules<'i>(&self, interest: &'i Interest, meta: &Meta) -> Vec<&'i ParentRule> {
        let namespaces = self.namespaces.read().unwrap_or_else(PoisonError::into_inner);
        let chosen = |rule: &&ParentRule| {
            let named = rule.namespaces.is_empty() || rule.namespaces.contains(&meta.namespace);
            let labelled = rule.namespace_selector.as_ref().is_none_or(|selector| {
                namespaces.get(&*meta.namespace).is_some_and(|labels| selector.matches(labels))
            });
            named && labelled && rule.selector.matches(&meta.labels)
        };
        interest.parent.iter().filter(chosen).collect()
    }

    fn read_parent(
        &self,
        interest: &Interest,
        meta: &Meta,
        object: &RawValue,
        rules: &[&ParentRule],
        held: Option<ObjectId>,
    ) -> Option<Box<ParentRow>> {
        if interest.parent.is_empty() && !interest.release {
            return None;
        }
        let about = held.and_then(|id| self.read(id, |row| row.parent.as_ref().map(|p| p.about()))).flatten();
        let about = about.unwrap_or_default();
        let row = parent::read(meta, object, interest, rules, &mut lock(&self.selectors), &about);
        // One that no policy chooses is of interest only while something of ours is left on it.
        (!rules.is_empty() || !row.status.ours.is_empty()).then(|| Box::new(row))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unknown(reason: Reason) -> Assessment {
    Verdict { level: Level::Unknown, reason }.into()
}

/// Would a parent show the same for both?
fn same(old: &Row, new: &Row) -> bool {
    let parents = match (&old.parent, &new.parent) {
        (None, None) => true,
        (Some(old), Some(new)) => old.view == new.view && old.targets_equal(new),
        _ => false,
    };
    parents
        && old.links == new.links
        && old.generation == new.generation
        && old.assessment == new.assessment
        && old.aside == new.aside
}
