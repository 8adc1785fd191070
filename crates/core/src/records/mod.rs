//! ReadinessRecords, which store what must survive a restart: their content, and the operations on them.
//!
//! A record is believed until this process, as the leader, has agreed with it: what the leader before has written is not
//! lost to a standby that saw less. From then on the reflector's memory is authoritative: edits by others are reverted,
//! unless they supply an outcome that was Unseen.
//!
//! What a list brings is believed when the list is complete; until then what was known goes on to count.

mod codec;
mod held_records;
mod job_events;
mod parent_row_state;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use watcher::reflector::{OutcomeParent, Reflector};

pub use codec::RecordedKinds;
use held_records::{HeldRecord, HeldRecords};
pub use job_events::JobEvents;
use parent_row_state::{ParentRowState, row_state};

/// Operation on one record.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordOperation {
    /// Creates the record.
    Create(Value),
    /// Patches the record.
    Patch {
        /// JSON Patch.
        patch: Value,
        /// Number of times the same content was written before in a row.
        again: u32,
    },
    /// Deletes the record, with uid and resourceVersion as preconditions.
    Delete {
        /// Uid of the record.
        uid: String,
        /// resourceVersion of the record.
        version: String,
    },
    /// Checks whether the parent, which is not cached, still exists.
    CheckParent(OutcomeParent),
}

/// Result of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordOperationResult {
    /// Current content of the record; `None` if it no longer exists.
    Current(Option<Value>),
    /// The parent does not exist.
    ParentGone,
    /// The parent exists.
    ParentExists,
    /// The operation failed and is retried.
    Failed,
}

/// Number of rounds for which a record without use is kept: a policy may be about to return.
const DESELECTED_ROUNDS: u32 = 3;

/// Number of contents sent to one record by which it is recognized as our own: one more than are in flight after answers
/// were lost.
const MAX_SENT_CONTENTS: usize = 4;

/// Records of one process.
#[derive(Debug, Default)]
pub struct RecordStore {
    recorded_kinds: RecordedKinds,
    records: HeldRecords,
    /// This process may write.
    leads: bool,
    /// Records that had, since this process leads, the content that it remembers.
    agreed: BTreeSet<String>,
    pending: BTreeSet<String>,
    in_flight: BTreeSet<String>,
    /// Parents without a row that were observed to exist.
    parents_present: BTreeSet<String>,
    /// Records deleted while an operation was in flight: its result may describe the deleted one.
    deleted_in_flight: BTreeSet<String>,
    /// Parents that were observed to be deleted, and whose records are to be deleted.
    parents_gone: BTreeSet<String>,
    /// Parents selected by a policy that remembers outcomes. Records of others may be kept by another installation.
    selected: BTreeSet<String>,
    /// Parents that are no longer selected, with the number of rounds since.
    deselected: BTreeMap<String, u32>,
    /// Content last written to records, and the number of times in a row.
    last_written: BTreeMap<String, (Value, u32)>,
    /// Contents last sent to records, of which some may arrive late: a record with one of them was not changed by another writer.
    last_sent: BTreeMap<String, Vec<Value>>,
}

impl RecordStore {
    /// Creates a store for records that name these kinds.
    pub fn new(spoken_of: RecordedKinds) -> Self {
        RecordStore { recorded_kinds: spoken_of, ..RecordStore::default() }
    }

    /// Begins or ceases to write. While it does not, another process may know more: records are believed again, until this one has
    /// looked at each of them as the leader.
    pub fn set_leading(&mut self, leads: bool) {
        if std::mem::replace(&mut self.leads, leads) == leads {
            return;
        }
        if leads {
            self.pending.extend(self.records.names().cloned());
        } else {
            self.agreed.clear();
            self.last_sent.clear();
        }
    }

    /// Begins a list; what another one that broke off has brought counts for nothing.
    pub fn begin_list(&mut self) {
        self.records.begin_list();
    }

    /// Stages a record of the list under way.
    pub fn stage_record(&mut self, object: &Value) {
        self.records.stage_record(object);
    }

    /// Completes a list: what it has brought is believed. What it lacks of all that is remembered is written, also what a store
    /// before this one could not write. Returns complaints about invalid content, by record.
    pub fn finish_list(&mut self, reflector: &Reflector) -> Vec<(String, Vec<String>)> {
        let (listed, gone) = self.records.finish_list();
        let mut complaints = Vec::new();
        for name in listed {
            let about_it = self.believe_record(reflector, &name);
            if !about_it.is_empty() {
                complaints.push((name, about_it));
            }
        }
        for name in gone {
            self.observe_deletion(reflector, &name);
        }
        let remembered = reflector.outcomes().parents_with_outcomes().into_iter().map(String::from);
        self.pending.extend(remembered.filter(|name| self.records.get(name).is_none()));
        complaints
    }

    /// Observes a record that its watch or the answer to a write has brought. Returns complaints about invalid content.
    pub fn observe_record(&mut self, reflector: &Reflector, object: &Value) -> Vec<String> {
        let applied = self.records.apply_record(object);
        applied.map(|name| self.believe_record(reflector, &name)).unwrap_or_default()
    }

    /// Believes the content of a record, or takes it for evidence alone. Returns complaints about invalid content.
    fn believe_record(&mut self, reflector: &Reflector, name: &str) -> Vec<String> {
        let Some(held) = self.records.get(name) else { return Vec::new() };
        let spec = held.spec();
        let (whose, outcomes, mut complaints) = codec::decode_spec(name, &spec, &self.recorded_kinds);
        complaints.extend(held.complaint());
        if self.last_sent.get(name).is_some_and(|sent| sent.contains(&spec)) {
            // More may be known by now than when it was sent.
            self.agree(name);
        } else if self.agreed.contains(name) {
            reflector.outcomes().consider_edit(&outcomes);
        } else {
            reflector.outcomes().recall_record(whose, outcomes);
        }
        self.pending.insert(name.to_owned());
        complaints
    }

    /// Observes the deletion of a record. Where this process stands by, the leader remembers nothing more of its parent.
    pub fn observe_deletion(&mut self, reflector: &Reflector, name: &str) {
        if !self.leads {
            reflector.outcomes().forget_recorded(name);
        }
        self.forget_record(name);
        self.pending.insert(name.to_owned());
        if self.in_flight.contains(name) {
            self.deleted_in_flight.insert(name.to_owned());
        }
    }

    fn agree(&mut self, name: &str) {
        if self.leads {
            self.agreed.insert(name.to_owned());
        }
    }

    fn forget_record(&mut self, name: &str) {
        self.records.remove_record(name);
        self.parents_gone.remove(name);
    }

    /// Operations that are due, at most one at a time per record. A process that stands by only asks whether parents exist.
    pub fn take_operations(&mut self, reflector: &Reflector) -> Vec<(String, RecordOperation)> {
        self.pending.extend(reflector.outcomes().take_dirty_parents().into_iter().map(String::from));
        let free: Vec<_> =
            self.pending.iter().filter(|name| !self.in_flight.contains(*name)).cloned().collect();
        let mut errands = Vec::new();
        for name in free {
            match self.next_operation(reflector, &name) {
                NextOperation::Nothing => _ = self.pending.remove(&name),
                NextOperation::Later => {}
                NextOperation::Do(errand) => {
                    self.pending.remove(&name);
                    self.in_flight.insert(name.clone());
                    errands.push((name, errand));
                }
            }
        }
        errands
    }

    /// Settles an operation. Returns complaints about invalid content.
    pub fn settle_operation(
        &mut self,
        reflector: &Reflector,
        name: &str,
        done: &RecordOperationResult,
    ) -> Vec<String> {
        self.in_flight.remove(name);
        self.pending.insert(name.to_owned());
        let went = self.deleted_in_flight.remove(name);
        match done {
            // If the record exists all the same, creating it again fails, and it is read then.
            RecordOperationResult::Current(Some(_)) if went => {}
            RecordOperationResult::Current(Some(object)) => return self.observe_record(reflector, object),
            RecordOperationResult::Current(None) => self.forget_record(name),
            RecordOperationResult::ParentGone => {
                reflector.outcomes().forget_parent(name);
                self.forget_parent(name);
                if self.records.get(name).is_some() {
                    self.parents_gone.insert(name.to_owned());
                }
            }
            RecordOperationResult::ParentExists => _ = self.parents_present.insert(name.to_owned()),
            RecordOperationResult::Failed => {}
        }
        Vec::new()
    }

    /// Counts a round.
    pub fn count_round(&mut self) {
        self.deselected.values_mut().for_each(|rounds| *rounds = rounds.saturating_add(1));
    }

    /// True if an operation waits for a parent's kind to be listed.
    pub fn has_pending(&self) -> bool {
        self.pending.iter().any(|name| !self.in_flight.contains(name))
    }

    fn next_operation(&mut self, reflector: &Reflector, name: &str) -> NextOperation {
        let memories = reflector.outcomes().parent_outcomes(name);
        if !reflector.outcomes().remembers_for_parent(name) {
            let row = reflector
                .find_object(name)
                .and_then(|id| reflector.read_row(id, |row| row_state(reflector, row)));
            if row == Some(ParentRowState::Outdated) {
                return NextOperation::Later;
            }
            if row == Some(ParentRowState::Parent) || self.parents_present.contains(name) {
                return self.operation_for_deselected(reflector, name);
            }
            return self.operation_for_orphan(reflector, name, memories.map(|m| m.parent));
        }
        self.parents_present.remove(name);
        self.deselected.remove(name);
        if !self.leads {
            return NextOperation::Later;
        }
        if memories.is_some() && !self.selected.contains(name) {
            self.selected.insert(name.to_owned());
        }
        let wanted = memories.filter(|m| !m.outcomes.is_empty());
        let wanted = wanted.map(|memories| codec::encode_spec(&memories, &self.recorded_kinds));
        match (wanted, self.records.get(name)) {
            (Some(spec), None) => {
                self.note_sent(name, &spec);
                NextOperation::Do(RecordOperation::Create(new_record(name, &spec)))
            }
            (Some(spec), Some(held)) if spec != held.spec() => {
                let patch = json!([
                    { "op": "test", "path": "/metadata/uid", "value": held.uid },
                    { "op": "test", "path": "/metadata/resourceVersion", "value": held.version },
                    { "op": "add", "path": "/spec", "value": spec },
                ]);
                let before = self.last_written.remove(name).filter(|(written, _)| *written == spec);
                let again = before.map_or(0, |(_, again)| again + 1);
                self.note_sent(name, &spec);
                self.last_written.insert(name.to_owned(), (spec, again));
                NextOperation::Do(RecordOperation::Patch { patch, again })
            }
            (None, Some(held)) => NextOperation::Do(delete_operation(held)),
            (Some(_), Some(_)) => {
                self.agree(name);
                NextOperation::Nothing
            }
            (None, None) => NextOperation::Nothing,
        }
    }

    /// Operation for a parent that exists and is no longer selected by a policy that remembers outcomes.
    fn operation_for_deselected(&mut self, reflector: &Reflector, name: &str) -> NextOperation {
        if !self.selected.contains(name) {
            return NextOperation::Nothing;
        }
        if !self.leads {
            return NextOperation::Later;
        }
        if *self.deselected.entry(name.to_owned()).or_default() < DESELECTED_ROUNDS {
            return NextOperation::Later;
        }
        reflector.outcomes().forget_parent(name);
        if let Some(held) = self.records.get(name) {
            return NextOperation::Do(delete_operation(held));
        }
        self.forget_parent(name);
        NextOperation::Nothing
    }

    fn note_sent(&mut self, name: &str, spec: &Value) {
        let sent = self.last_sent.entry(name.to_owned()).or_default();
        sent.retain(|earlier| earlier != spec);
        sent.push(spec.clone());
        let over = sent.len().saturating_sub(MAX_SENT_CONTENTS);
        sent.drain(..over);
    }

    fn forget_parent(&mut self, name: &str) {
        self.parents_present.remove(name);
        self.selected.remove(name);
        self.deselected.remove(name);
        self.last_written.remove(name);
        self.last_sent.remove(name);
        self.agreed.remove(name);
    }

    /// Deletes a record that is of no use, if there is one.
    fn sweep(&self, held: Option<&HeldRecord>) -> NextOperation {
        match held {
            Some(_) if !self.leads => NextOperation::Later,
            Some(held) => NextOperation::Do(delete_operation(held)),
            None => NextOperation::Nothing,
        }
    }

    /// Operation for a parent without a row: it may be deleted, selected by no policy, or not listed yet.
    fn operation_for_orphan(
        &self,
        reflector: &Reflector,
        name: &str,
        known: Option<OutcomeParent>,
    ) -> NextOperation {
        let held = self.records.get(name);
        if self.parents_gone.contains(name) {
            // A late event of a child may have brought it back.
            reflector.outcomes().forget_parent(name);
            return self.sweep(held);
        }
        let recorded = held.map(|held| codec::decode_spec(name, &held.spec(), &self.recorded_kinds).0);
        let Some(whose) = known.or(recorded) else { return self.sweep(held) };
        if held.is_some() && whose.name.is_empty() {
            // The owner is unknown by now.
            return self.sweep(held);
        }
        let kind = self.recorded_kinds.get(&(whose.group.to_string(), whose.kind.to_string()));
        match kind {
            Some(kind) if reflector.outcomes().was_listed(*kind) => {
                NextOperation::Do(RecordOperation::CheckParent(whose))
            }
            Some(_) => NextOperation::Later,
            None => NextOperation::Nothing,
        }
    }
}

enum NextOperation {
    Nothing,
    Later,
    Do(RecordOperation),
}

fn delete_operation(held: &HeldRecord) -> RecordOperation {
    RecordOperation::Delete { uid: held.uid.clone(), version: held.version.clone() }
}

fn new_record(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessRecord",
        "metadata": { "name": name, "labels": { "app.kubernetes.io/managed-by": "rollcall" } },
        "spec": spec,
    })
}
