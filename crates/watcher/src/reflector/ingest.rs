//! Ingest: links and assesses a received object and stores its row, or drops the object if nothing needs it.

use std::sync::PoisonError;

use aggregator::{ChildLink, KindId, ObjectId};
use readiness::{Assessment, Level, Reason, Verdict};
use serde_json::value::RawValue;

use super::planned::PlannedInterest;
use super::{ApplyOutcome, ObjectRow, ParentRow, Reflector, finalizers, lock_mutex, parent, row, slots};
use crate::plan::{Interest, ParentRule};
use crate::wire::{ChildObject, WireMeta};

impl Reflector {
    /// Judges an object by the plan that holds and puts its row. Where the plan moved while it was judged, it is judged again.
    pub(super) fn ingest_object(
        &self,
        kind: KindId,
        child: &ChildObject,
        object: Option<&RawValue>,
    ) -> ApplyOutcome {
        loop {
            let Some(plan) = self.planned(kind) else { return ApplyOutcome::Refused };
            if object.is_none() && plan.interest.reads_whole() {
                // It was read for an older plan, which did not need all of it.
                return ApplyOutcome::Refused;
            }
            if let Some(applied) = self.take_in_by(&plan, child, object) {
                return applied;
            }
        }
    }

    /// An object that counts for nobody by this plan; `held` is its row, if it counted before.
    fn turn_away(
        &self,
        plan: &PlannedInterest,
        child: &ChildObject,
        held: Option<ObjectId>,
    ) -> Option<ApplyOutcome> {
        let version = child.meta.resource_version;
        if plan.interest.remembers_outcomes() {
            // The object no longer belongs to the parents that it belonged to before.
            self.observe_run(plan, child);
        }
        if let Some(id) = held.filter(|_| plan.holds()) {
            // A late event from the time when the object counted must not bring it back. The same version may, under
            // other rules.
            if version > 1 {
                self.add_tombstone(slots::UidKey::from_text(&child.meta.uid), version - 1);
            }
            self.remove_deleted_row(id, |row| plan.holds() && row.version <= version);
        }
        plan.holds().then_some(ApplyOutcome::Unwanted)
    }

    /// The same by this plan; `None` where it does not hold any more.
    fn take_in_by(
        &self,
        plan: &PlannedInterest,
        child: &ChildObject,
        object: Option<&RawValue>,
    ) -> Option<ApplyOutcome> {
        let (interest, meta) = (&*plan.interest, &child.meta);
        let uid = slots::UidKey::from_text(&meta.uid);
        if meta.uid.is_empty() || self.has_tombstone(uid, meta.resource_version) {
            self.observe_late_object(interest, child);
            return Some(ApplyOutcome::Stale);
        }
        let rules = self.parent_rules(interest, meta);
        let held = self.index.get(&uid).map(|id| *id);
        let known = |slot: &mut slots::RowSlot| slot.row.as_ref().map(|r| (r.version, r.finalizers));
        let before = held.and_then(|id| self.slots.with_slot(id, known).flatten());
        if before.is_some_and(|(version, _)| meta.resource_version < version) {
            return Some(ApplyOutcome::Stale);
        }
        let links = self.resolve_links(interest, meta);
        let parent = object.and_then(|object| self.read_parent(interest, meta, object, &rules, held));
        if links.is_empty() && parent.is_none() {
            return self.turn_away(plan, child, held.filter(|_| before.is_some()));
        }
        if interest.remembers_outcomes() {
            self.observe_run(plan, child);
        }
        let known_generation = || {
            held.and_then(|id| {
                self.read_row(id, |row| row.parent.as_ref().map(|p| p.view.generation)).flatten()
            })
        };
        let generation = parent.as_ref().map(|p| (p.view.generation, known_generation()));
        let assessed: Vec<Assessment> = interest
            .assessment_rules
            .iter()
            .zip(&plan.breakers)
            .map(|(lens, breaker)| self.assess_child(interest, child, object, (lens, breaker.as_deref())))
            .collect();
        let mut row = self.build_row(interest, meta, assessed, links, parent);
        let lends = self.lent_selectors(interest, child);
        if !lends.is_empty() {
            row.extras.get_or_insert_default().lent_selectors = lends;
        }
        row.set_since_from_facts(interest, &child.facts);
        let finalizers = row.finalizers;
        let (marked, silent) =
            row.parent.as_ref().map_or((false, false), |p| (p.has_kopf_mark, p.has_no_evidence()));
        let practice = row.parent.as_ref().map(|p| p.seen_practice(interest.counted));
        let applied = self.store_row(uid, row, Some(plan))?;
        self.learn_marks(&rules, &meta.namespace, marked, silent);
        self.learn_generation(interest.id, practice);
        if let Some((generation, before)) = generation
            && applied != ApplyOutcome::Stale
            && before != Some(generation)
        {
            self.on_parent_observed(&meta.uid);
        }
        if let Some((_, id)) =
            before.zip(held).filter(|((_, old), _)| *old != finalizers && applied != ApplyOutcome::Stale)
        {
            self.note_finalizers(id, meta);
        }
        Some(applied)
    }

    pub(super) fn build_row(
        &self,
        interest: &Interest,
        meta: &WireMeta,
        assessed: Vec<Assessment>,
        links: Vec<ChildLink>,
        parent: Option<Box<ParentRow>>,
    ) -> ObjectRow {
        let mut assessed = assessed.into_iter();
        let assessment = assessed.next().unwrap_or_else(|| unknown_assessment(Reason::NoSignal));
        let beside: Vec<_> = assessed.collect();
        let namespace = self.intern_namespace(&meta.namespace);
        ObjectRow {
            kind: interest.id,
            finalizers: finalizers::finalizer_fingerprint(meta),
            name: meta.name.clone(),
            epoch: self.list_epoch(interest.id, &namespace),
            namespace,
            version: meta.resource_version,
            generation: u32::try_from(meta.generation).unwrap_or(u32::MAX),
            created: meta.created.map_or(0, |t| u32::try_from(t.0 / 1_000).unwrap_or(0)),
            assessment,
            extras: row::RowExtras { further_assessments: beside, ..row::RowExtras::default() }.into_boxed(),
            links: row::RowLinks::from_vec(links),
            parent,
        }
    }

    /// Puts a row that was derived by a plan, or (without one) from what is remembered. `None` where that plan does not hold
    /// any more: what stands may have been derived by a newer one.
    pub(super) fn store_row(
        &self,
        uid: slots::UidKey,
        row: ObjectRow,
        plan: Option<&PlannedInterest>,
    ) -> Option<ApplyOutcome> {
        let mut row = Some(row);
        let (id, (outcome, released, strangers)) = self.with_slot_of(uid, |slot| {
            let mut new = row.take()?;
            if plan.is_some_and(|plan| !plan.holds()) {
                return Some((None, Some(new), false));
            }
            let overtaken = match &slot.row {
                Some(old) => new.version < old.version,
                // A deletion may have come while it was judged.
                None => plan.is_some() && self.has_tombstone(uid, new.version),
            };
            if overtaken {
                return Some((Some(ApplyOutcome::Stale), Some(new), false));
            }
            match &slot.row {
                Some(old) => new.inherit_from(old),
                None => new.mark_first_seen(),
            }
            let outcome = match &slot.row {
                Some(old) if is_unchanged(old, &new) => ApplyOutcome::Same,
                Some(old) => ApplyOutcome::Moved(old.version),
                None => ApplyOutcome::Moved(0),
            };
            let strangers = slot.row.is_none() && slot.has_references_outside(&new.namespace);
            let old = slot.row.replace(new);
            Some((Some(outcome), old, strangers))
        });
        if let Some(released) = released {
            self.release_row(&released);
        }
        if strangers {
            self.mark_cross_namespace_children(id);
        }
        if matches!(outcome, Some(ApplyOutcome::Moved(_))) {
            self.mark_dirty(id);
        }
        outcome
    }

    pub(super) fn parent_rules<'i>(&self, interest: &'i Interest, meta: &WireMeta) -> Vec<&'i ParentRule> {
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
        meta: &WireMeta,
        object: &RawValue,
        rules: &[&ParentRule],
        held: Option<ObjectId>,
    ) -> Option<Box<ParentRow>> {
        if interest.parent.is_empty() && interest.release.is_empty() {
            return None;
        }
        let before = held
            .and_then(|id| self.read_row(id, |row| row.parent.as_ref().map(|p| p.to_previous_state(rules))));
        let mut before = before.flatten().unwrap_or_default();
        before.expects_mark = self.expects_mark(rules, &meta.namespace);
        before.expects_generation = self.expects_generation(interest.id, rules);
        let sent = self
            .last_written
            .get(&slots::UidKey::from_text(&meta.uid))
            .map(|sent| sent.clone())
            .unwrap_or_default();
        let row = parent::read_parent_row(
            meta,
            object,
            interest,
            rules,
            &mut lock_mutex(&self.selectors),
            &before,
            &sent,
        );
        // A parent that no policy selects is of interest only while it carries conditions of Rollcall's.
        (!rules.is_empty() || !row.status.ours.is_empty()).then(|| Box::new(row))
    }
}

pub(super) fn unknown_assessment(reason: Reason) -> Assessment {
    Verdict { level: Level::Unknown, reason }.into()
}

/// Returns `true` if a parent would show the same for both rows.
fn is_unchanged(old: &ObjectRow, new: &ObjectRow) -> bool {
    let parents = match (&old.parent, &new.parent) {
        (None, None) => true,
        (Some(old), Some(new)) => {
            old.view == new.view && old.has_equal_targets(new) && old.progress == new.progress
        }
        _ => false,
    };
    parents
        && old.links == new.links
        && old.generation == new.generation
        && old.assessment == new.assessment
        && old.extras == new.extras
}
