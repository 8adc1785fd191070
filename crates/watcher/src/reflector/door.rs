//! The door: an object comes in, is linked, judged, and becomes a row, or is turned away.

use std::sync::PoisonError;

use aggregator::{Link, ObjectId};
use readiness::{Assessment, Level, Reason, Verdict};
use serde_json::value::RawValue;

use super::{Applied, ParentRow, Reflector, Row, finalizers, lock, parent, row, slots};
use crate::plan::{Interest, ParentRule};
use crate::wire::{Child, Meta};

impl Reflector {
    pub(super) fn take_in(&self, interest: &Interest, child: &Child, object: Option<&RawValue>) -> Applied {
        let meta = &child.meta;
        let uid = slots::Uid::of(&meta.uid);
        if meta.uid.is_empty() || self.is_buried(uid, meta.resource_version) {
            self.late(interest, child);
            return Applied::Stale;
        }
        let rules = self.parent_rules(interest, meta);
        let held = self.index.get(&uid).map(|id| *id);
        let known = |slot: &mut slots::Slot| slot.row.as_ref().map(|r| (r.version, r.finalizers));
        let before = held.and_then(|id| self.slots.with(id, known).flatten());
        if before.is_some_and(|(version, _)| meta.resource_version < version) {
            return Applied::Stale;
        }
        let links = self.links(interest, meta);
        let parent = object.and_then(|object| self.read_parent(interest, meta, object, &rules, held));
        if links.is_empty() && parent.is_none() {
            if interest.remembers() {
                // Whose it was, it is no more.
                self.note(interest, child);
            }
            if let Some(id) = held.filter(|_| before.is_some()) {
                // What comes late of the time when it did count must not bring it back. The same version may: by other rules.
                if meta.resource_version > 1 {
                    self.bury(uid, meta.resource_version - 1);
                }
                self.bury_row(id);
            }
            return Applied::Unwanted;
        }
        if interest.remembers() {
            self.note(interest, child);
        }
        let known_generation = || {
            held.and_then(|id| self.read(id, |row| row.parent.as_ref().map(|p| p.view.generation)).flatten())
        };
        let generation = parent.as_ref().map(|p| (p.view.generation, known_generation()));
        let assessed: Vec<Assessment> =
            interest.lenses.iter().map(|lens| self.assess(interest, child, object, lens)).collect();
        let mut row = self.row(interest, meta, assessed, links, parent);
        let lends = self.lends(interest, child);
        if !lends.is_empty() {
            row.aside.get_or_insert_default().lends = lends;
        }
        row.say_since(interest, &child.facts);
        let finalizers = row.finalizers;
        let (marked, silent) = row.parent.as_ref().map_or((false, false), |p| (p.marked, p.is_silent()));
        let applied = self.put(uid, row);
        self.learn_marks(&rules, &meta.namespace, marked, silent);
        if let Some((generation, before)) = generation
            && applied != Applied::Stale
            && before != Some(generation)
        {
            self.parent_seen(&meta.uid);
        }
        if let Some((_, id)) =
            before.zip(held).filter(|((_, old), _)| *old != finalizers && applied != Applied::Stale)
        {
            self.note_finalizers(id, meta);
        }
        applied
    }

    pub(super) fn row(
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
            finalizers: finalizers::fingerprint(meta),
            name: meta.name.clone(),
            epoch: self.epoch(interest.id, &namespace),
            namespace,
            version: meta.resource_version,
            generation: meta.generation as u32,
            created: meta.created.map_or(0, |t| u32::try_from(t.0 / 1_000).unwrap_or(0)),
            assessment,
            aside: row::Aside { beside, ..row::Aside::default() }.boxed(),
            links: row::Links::of(links),
            parent,
        }
    }

    pub(super) fn put(&self, uid: slots::Uid, row: Row) -> Applied {
        let mut row = Some(row);
        let (id, (outcome, released, strangers)) = self.place(uid, |slot| {
            let mut new = row.take()?;
            if slot.row.as_ref().is_some_and(|old| new.version < old.version) {
                return Some((Applied::Stale, Some(new), false));
            }
            match &slot.row {
                Some(old) => new.inherit(old),
                None => new.is_first_seen(),
            }
            let outcome = match &slot.row {
                Some(old) if same(old, &new) => Applied::Same,
                Some(old) => Applied::Moved(old.version),
                None => Applied::Moved(0),
            };
            let strangers = slot.row.is_none() && slot.expects_other_than(&new.namespace);
            let old = slot.row.replace(new);
            Some((outcome, old, strangers))
        });
        if let Some(released) = released {
            self.let_go(&released);
        }
        if strangers {
            self.mark_strangers(id);
        }
        if matches!(outcome, Applied::Moved(_)) {
            self.mark(id);
        }
        outcome
    }

    pub(super) fn parent_rules<'i>(&self, interest: &'i Interest, meta: &Meta) -> Vec<&'i ParentRule> {
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

    pub(super) fn read_parent(
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
        let before = held.and_then(|id| self.read(id, |row| row.parent.as_ref().map(|p| p.before())));
        let mut before = before.flatten().unwrap_or_default();
        before.expects_mark = self.expects_mark(rules, &meta.namespace);
        let sent = self.sent.get(&slots::Uid::of(&meta.uid)).map(|sent| sent.clone()).unwrap_or_default();
        let row = parent::read(meta, object, interest, rules, &mut lock(&self.selectors), before, &sent);
        // One that no policy chooses is of interest only while something of ours is left on it.
        (!rules.is_empty() || !row.status.ours.is_empty()).then(|| Box::new(row))
    }
}

pub(super) fn unknown(reason: Reason) -> Assessment {
    Verdict { level: Level::Unknown, reason }.into()
}

/// Would a parent show the same for both?
fn same(old: &Row, new: &Row) -> bool {
    let parents = match (&old.parent, &new.parent) {
        (None, None) => true,
        (Some(old), Some(new)) => {
            old.view == new.view && old.targets_equal(new) && old.progress == new.progress
        }
        _ => false,
    };
    parents
        && old.links == new.links
        && old.generation == new.generation
        && old.assessment == new.assessment
        && old.aside == new.aside
}
