//! Parents that are held when their operator's log says how its handlers ended.

use super::super::rows::Rows;
use super::super::slots::RowSlot;
use super::super::uid_key::UidKey;
use super::log::{KopfLogs, LoggedLine};

/// Adds lines to what was logged, in their order, and then tells the parents that are held: none hears of what a later line takes back.
pub(in crate::reflector) fn note_lines(
    logs: &KopfLogs,
    rows: &Rows,
    lines: impl IntoIterator<Item = LoggedLine>,
) {
    for uid in logs.note(lines) {
        tell_parent(logs, rows, uid);
    }
}

/// Lets the stored parent of this uid have failed where the log says so, or takes that back. Must be called after a parent is
/// stored that was read without the line.
pub(in crate::reflector) fn tell_parent(logs: &KopfLogs, rows: &Rows, uid: UidKey) {
    let Some(id) = rows.find_key(uid) else { return };
    let of_generation = rows.read(id, |row| {
        let parent = row.parent.as_ref()?;
        Some((parent.logged_since, parent.generation().unwrap_or(0)))
    });
    let Some((start, generation)) = of_generation.flatten() else { return };
    let Some(end) = logs.find_end(uid, start, generation) else { return };
    let tell = |slot: &mut RowSlot| {
        let parent = slot.row.as_mut()?.parent.as_mut()?;
        let is_same = parent.logged_since == start && parent.generation().unwrap_or(0) == generation;
        Some(is_same && parent.note_logged_end(end))
    };
    if rows.change_slot(id, tell).flatten() == Some(true) {
        rows.mark_dirty(id);
    }
}
