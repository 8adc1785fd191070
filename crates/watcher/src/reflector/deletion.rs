//! Deleted objects: by a DELETE event, by their absence from a complete list, or because their kind is no longer
//! followed.

use aggregator::{KindId, ObjectId};

use super::awaited::AwaitedVersion;
use super::memory;
use super::parts::ReflectorParts;
use super::planned::ListPass;
use super::row::ObjectRow;
use super::row_place::RowPlace;
use super::slots::RowSlot;
use super::uid_key::UidKey;
use crate::wire::ChildObject;

/// Handles a DELETE event, which contains the final state and may be the only observation of the object.
pub(super) fn on_deleted(parts: &ReflectorParts, kind: KindId, child: &ChildObject) {
    let (meta, uid) = (&child.meta, UidKey::from_text(&child.meta.uid));
    let plan = parts.store.plans.planned(kind).filter(|plan| plan.interest.remembers_outcomes());
    if let Some(plan) = &plan {
        memory::observe_final_state(&parts.memory, &parts.store, plan, child);
    }
    delete_object(parts, &meta.uid, meta.resource_version);
    if plan.is_some() {
        memory::mark_run_deleted(&parts.memory, &parts.store, uid);
    }
}

/// An object is gone, as a DELETE event says. `version` is that of the deletion; where it is not known (0), the one that
/// is held.
pub(super) fn delete_object(parts: &ReflectorParts, uid: &str, version: u64) {
    let (uid, rows) = (UidKey::from_text(uid), &parts.store.rows);
    parts.awaited.on_deletion(uid);
    let id = rows.find_key(uid);
    let held = || id.and_then(|id| rows.read(id, |row| row.version)).unwrap_or(0);
    let version = if version == 0 { held() } else { version };
    parts.store.tombstones.add(uid, version);
    if let Some(id) = id {
        remove_deleted_row(parts, id, |row| row.version <= version);
    }
}

/// Ends a list and removes what it did not have. Returns the number of removed objects; `None` where the list is void, because
/// it was begun under another plan or begun again.
pub(super) fn finish_list(parts: &ReflectorParts, pass: &ListPass) -> Option<usize> {
    if !parts.store.plans.is_current(pass) {
        return None;
    }
    parts.awaited.on_list_finished(pass.kind);
    // From here on nothing that was read before counts, and then what counted is looked through.
    parts.store.plans.end_list(pass);
    let place = RowPlace { kind: pass.kind, namespace: pass.scope.as_deref() };
    let unlisted =
        |row: &ObjectRow| place.contains(row) && !row.epoch.is_of(pass.number) && !row.is_remembered();
    let found = parts.store.rows.find_rows_in(place, unlisted);
    let swept = found.into_iter().filter(|id| sweep_row(parts, *id, unlisted)).count();
    memory::on_list_finished(&parts.memory, &parts.store, pass.kind, pass.scope.as_deref());
    Some(swept)
}

/// What the list does not have is gone, and what was read before of it does not bring it back.
fn sweep_row(parts: &ReflectorParts, id: ObjectId, unlisted: impl Fn(&ObjectRow) -> bool) -> bool {
    let seen =
        |slot: &mut RowSlot| slot.row.as_ref().filter(|row| unlisted(row)).map(|row| (slot.uid, row.version));
    let Some((uid, version)) = parts.store.rows.with_slot(id, seen).flatten() else { return false };
    parts.store.tombstones.bury_absent(uid, version);
    remove_deleted_row(parts, id, |row| unlisted(row) && row.version <= version)
}

/// Forgets a kind that is not followed any more, or whose API is gone: it has no objects, and nothing of it is taken in.
pub(super) fn forget_kind(parts: &ReflectorParts, kind: KindId) -> usize {
    parts.store.plans.remove_interest(kind);
    parts.store.plans.forget_breakers(kind);
    parts.judgements.forget_kind(kind);
    let forgotten = parts.store.rows.find_rows_in(RowPlace::of_kind(kind), |_| true);
    for id in &forgotten {
        parts.store.drop_row(*id, |row| row.kind == kind);
    }
    memory::drop_memory_interest(&parts.memory, &parts.store, kind);
    forgotten.len()
}

/// A live read found that an object is gone that was held at `version` when it was sent. Nothing up to that version
/// brings it back but a list or a live read that begins from now on; the watch is awaited to say so too.
pub(super) fn apply_live_absence(
    parts: &ReflectorParts,
    id: ObjectId,
    version: u64,
) -> Option<AwaitedVersion> {
    let gone = |row: &ObjectRow| !row.is_remembered() && row.version <= version;
    let there =
        |slot: &mut RowSlot| slot.row.as_ref().filter(|row| gone(row)).map(|row| (slot.uid, row.kind));
    let (uid, kind) = parts.store.rows.with_slot(id, there).flatten()?;
    // The watch may deliver it while it is applied here.
    let awaited = parts.awaited.expect_deletion(uid, kind);
    parts.store.tombstones.bury_absent(uid, version);
    if remove_deleted_row(parts, id, gone) {
        return Some(awaited.0);
    }
    parts.awaited.withdraw(awaited);
    None
}

/// Takes an object away that does not exist any more, if the row that is there is one that is `gone`; where its outcome
/// is to be remembered, that takes its place. Whether it did.
pub(super) fn remove_deleted_row(
    parts: &ReflectorParts,
    id: ObjectId,
    gone: impl Fn(&ObjectRow) -> bool,
) -> bool {
    let there = |slot: &mut RowSlot| slot.row.as_ref().is_some_and(&gone).then_some(slot.uid);
    let Some(uid) = parts.store.rows.with_slot(id, there).flatten() else { return false };
    let buried = memory::mark_run_deleted(&parts.memory, &parts.store, uid) || parts.store.drop_row(id, gone);
    if buried {
        memory::on_parent_removed(&parts.memory, uid);
    }
    buried
}
