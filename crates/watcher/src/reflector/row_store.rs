//! Rows with all that decides whether one is put, and all that hangs on it.

use std::sync::Arc;

use aggregator::{ChildLink, KindId, ObjectId};
use readiness::{Assessment, Level, Reason, Verdict};

use super::finalizers::finalizer_fingerprint;
use super::interim::inherit_interim;
use super::links::{LinkTables, release_row};
use super::namespaces::NamespaceTable;
use super::parent::ParentRow;
use super::planned::{BroughtBy, PlannedInterest, Plans};
use super::refinement::{apply_refinement, inherit_from};
use super::row::{ObjectRow, RefinedCause, RowExtras, RowLinks};
use super::rows::Rows;
use super::selector_interner::Selectors;
use super::slots::RowSlot;
use super::tombstones::Tombstones;
use super::uid_key::UidKey;
use super::unready_since::mark_first_seen;
use crate::plan::Interest;
use crate::wire::WireMeta;

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

/// Rows, and what they are put by.
pub(super) struct RowStore {
    pub(super) rows: Rows,
    pub(super) selectors: Selectors,
    pub(super) namespaces: NamespaceTable,
    pub(super) plans: Plans,
    pub(super) tombstones: Tombstones,
}

impl RowStore {
    /// An empty store over these rows.
    pub(super) fn new(rows: Rows) -> RowStore {
        RowStore {
            rows,
            selectors: Selectors::default(),
            namespaces: NamespaceTable::default(),
            plans: Plans::default(),
            tombstones: Tombstones::default(),
        }
    }

    /// What links refer to.
    pub(super) fn link_tables(&self) -> LinkTables<'_> {
        LinkTables { rows: &self.rows, selectors: &self.selectors }
    }

    /// Builds the row of an object that was assessed so.
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
        let namespace = self.namespaces.intern(&meta.namespace);
        ObjectRow {
            kind: interest.id,
            finalizers: finalizer_fingerprint(meta),
            name: meta.name.clone(),
            epoch: self.plans.list_epoch(interest.id, &namespace),
            namespace,
            version: meta.resource_version,
            spec_version: meta.spec_version,
            created: meta.created.map_or(0, |t| u32::try_from(t.0 / 1_000).unwrap_or(0)),
            assessment,
            extras: RowExtras { further_assessments: beside, ..RowExtras::default() }.into_boxed(),
            links: RowLinks::from_vec(links),
            parent,
        }
    }

    /// Puts a row that was derived by a plan, or (without one) from what is remembered. `None` where that plan does not hold
    /// any more: what stands may have been derived by a newer one.
    pub(super) fn store_row(
        &self,
        uid: UidKey,
        row: ObjectRow,
        plan: Option<&PlannedInterest>,
        by: BroughtBy<'_>,
    ) -> Option<ApplyOutcome> {
        let is_parent = row.parent.is_some();
        let mut gives_way = has_outranked(&row);
        let (id, (outcome, released, strangers)) = self.rows.with_slot_of(uid, |slot| {
            let mut new = row;
            if plan.is_some_and(|plan| !plan.holds()) {
                return (None, Some(new), false);
            }
            let overtaken = match &mut slot.row {
                Some(old) => overtakes(old, new.version, by),
                // A deletion may have come while it was judged.
                None => plan.is_some() && self.tombstones.covers(uid, new.version),
            };
            if overtaken {
                return (Some(ApplyOutcome::Stale), Some(new), false);
            }
            if let BroughtBy::LiveRead(start) = by {
                let held = slot.row.as_ref().map(|old| old.epoch);
                let Some(epoch) = self.plans.live_epoch((new.kind, &new.namespace), held, start) else {
                    return (Some(ApplyOutcome::Refused), Some(new), false);
                };
                new.epoch = epoch;
            }
            match &slot.row {
                Some(old) => {
                    let is_of_plan = plan.is_some_and(|plan| plan.has_put(&old.namespace, old.epoch));
                    new.spec_version = new.spec_version.following(old.spec_version);
                    inherit_interim(&mut new, old, is_of_plan);
                    inherit_from(&mut new, old);
                }
                None => mark_first_seen(&mut new),
            }
            let outcome = match &slot.row {
                Some(old) if is_unchanged(old, &new) => ApplyOutcome::Same,
                Some(old) => ApplyOutcome::Moved(old.version),
                None => ApplyOutcome::Moved(0),
            };
            gives_way |= slot.row.as_ref().is_some_and(has_outranked);
            let strangers = slot.row.is_none() && slot.has_references_outside(&new.namespace);
            let old = slot.row.replace(new);
            (Some(outcome), old, strangers)
        });
        if let Some(released) = released {
            release_row(self.link_tables(), &released);
        }
        match outcome {
            Some(ApplyOutcome::Moved(_)) => {
                if strangers {
                    self.rows.mark_owner_with_strangers(id);
                } else {
                    self.rows.mark_dirty(id);
                }
                if gives_way {
                    self.rows.mark_reread(id);
                }
            }
            Some(ApplyOutcome::Same) if is_parent => self.rows.mark_reread(id),
            Some(ApplyOutcome::Stale | ApplyOutcome::Refused) | None => self.let_go_unused(id),
            _ => {}
        }
        outcome
    }

    /// Gives back a slot that was taken for a row which was not put.
    fn let_go_unused(&self, id: ObjectId) {
        let is_unused = |slot: &mut RowSlot| slot.row.is_none() && slot.refs == 0;
        if self.rows.with_slot(id, is_unused) == Some(true) {
            self.rows.mark_dirty(id);
        }
    }

    /// Returns `true` if a list tells whether an object is there that is not held, and that is brought so.
    pub(super) fn awaits_list(&self, kind: KindId, meta: &WireMeta, by: BroughtBy<'_>) -> bool {
        let BroughtBy::LiveRead(start) = by else { return false };
        let namespace = self.namespaces.intern(&meta.namespace);
        self.plans.live_epoch((kind, &namespace), None, start).is_none()
    }

    /// Returns `true` if a newer version of the object is held than this one.
    pub(super) fn is_overtaken(&self, id: ObjectId, version: u64, by: BroughtBy<'_>) -> bool {
        let held = |slot: &mut RowSlot| slot.row.as_mut().is_some_and(|held| overtakes(held, version, by));
        self.rows.with_slot(id, held).unwrap_or(false)
    }

    /// Drops a row where it is `gone`, which is looked at under the slot's lock: a newer one may be there by now.
    pub(super) fn drop_row(&self, id: ObjectId, gone: impl Fn(&ObjectRow) -> bool) -> bool {
        let Some(Some(row)) = self.rows.change_slot(id, |slot| slot.row.take_if(|row| gone(row))) else {
            return false;
        };
        release_row(self.link_tables(), &row);
        self.rows.mark_dirty(id);
        if has_outranked(&row) {
            self.rows.mark_reread(id);
        }
        true
    }

    /// Applies the causes found below an object, or their absence, for each rule index, because limits differ. They
    /// hold until the next resync, until the object is ready, or until its spec changes. The rules are those of `interest`: where
    /// its kind is judged by another one now, nothing is to be told.
    pub(super) fn refine(
        &self,
        id: ObjectId,
        interest: &Arc<Interest>,
        found: Vec<Option<RefinedCause>>,
    ) -> ApplyOutcome {
        let plan = self.plans.planned(interest.id).filter(|plan| Arc::ptr_eq(&plan.interest, interest));
        let Some(plan) = plan else { return ApplyOutcome::Refused };
        let moved = self.rows.change_slot(id, |slot| {
            let row = slot.row.as_mut().filter(|row| row.kind == interest.id && plan.holds())?;
            let before = (row.assessment.clone(), row.extras.clone());
            apply_refinement(row, found);
            Some(before != (row.assessment.clone(), row.extras.clone())).map(|moved| (moved, row.version))
        });
        match moved.flatten() {
            Some((true, version)) => {
                self.rows.mark_dirty(id);
                ApplyOutcome::Moved(version)
            }
            Some((false, _)) => ApplyOutcome::Same,
            None => ApplyOutcome::Unwanted,
        }
    }
}

/// An assessment that says why there is none.
pub(super) fn unknown_assessment(reason: Reason) -> Assessment {
    Verdict::new(Level::Unknown, reason).into()
}

/// Number of rules up to the last by which an object with these links counts.
pub(super) fn rules_used_by(links: &[ChildLink]) -> usize {
    links.iter().map(|link| usize::from(link.rule_index) + 1).max().unwrap_or(1)
}

/// Stands for the verdict of a rule by which an object counts for nobody.
pub(super) fn unused_assessment() -> Assessment {
    Verdict::new(Level::Ready, Reason::Exists).into()
}

/// Returns `true` if a parent would show the same for both rows.
fn is_unchanged(old: &ObjectRow, new: &ObjectRow) -> bool {
    let parents = match (&old.parent, &new.parent) {
        (None, None) => true,
        (Some(old), Some(new)) => {
            old.view == new.view
                && old.has_equal_targets(new)
                && old.progress() == new.progress()
                && old.deletion() == new.deletion()
                && old.reported_failure() == new.reported_failure()
        }
        _ => false,
    };
    parents
        && old.links == new.links
        && old.spec_version == new.spec_version
        && old.assessment == new.assessment
        && old.extras == new.extras
}

/// Returns `true` for a parent that policies leave to others. One that none of this release rules has no evaluation: the engine does not
/// tell that it has changed.
fn has_outranked(row: &ObjectRow) -> bool {
    row.parent.as_ref().is_some_and(|parent| !parent.outranked().is_empty())
}

/// Returns `true` if what is held is newer than this version. It is one of the list that brings it, then. Called under the lock
/// of the slot: between a look and this a live read may have brought the newer one.
fn overtakes(held: &mut ObjectRow, version: u64, by: BroughtBy<'_>) -> bool {
    let is_newer = version < held.version;
    if is_newer && let BroughtBy::List(pass) = by {
        held.epoch.list_beside(pass.number);
    }
    is_newer
}
