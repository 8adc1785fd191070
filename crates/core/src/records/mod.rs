//! ReadinessRecords, which store what must survive a restart: their content, and the operations on them.
//!
//! A record is believed until this process, as the leader, has agreed with it: what the leader before has written is not
//! lost to a standby that saw less. From then on the reflector's memory is authoritative: edits by others are reverted,
//! unless they supply an outcome that was Unseen.

mod codec;
mod job_events;
mod parent_row_state;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use watcher::reflector::{OutcomeParent, Reflector};

pub use codec::RecordedKinds;
pub use job_events::JobEvents;
use parent_row_state::{ParentRowState, row_state};

/// Record as last read.
#[derive(Clone, Debug, PartialEq)]
struct HeldRecord {
    uid: String,
    version: String,
    spec: Value,
    /// Number of lists that had begun when it was read.
    lists: u64,
}

impl HeldRecord {
    /// True if this is a later version of the same record. Since Kubernetes 1.35 resourceVersions of one kind may be
    /// compared as numbers.
    fn is_newer(&self, other: &HeldRecord) -> bool {
        let number = |held: &HeldRecord| held.version.parse::<u64>().ok();
        self.uid == other.uid && number(self).zip(number(other)).is_some_and(|(own, others)| own > others)
    }
}

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
    records: BTreeMap<String, HeldRecord>,
    /// This process may write.
    leads: bool,
    /// Records that had, since this process leads, the content that it remembers.
    agreed: BTreeSet<String>,
    listed: Option<BTreeSet<String>>,
    /// Number of lists that have begun.
    lists: u64,
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
            self.pending.extend(self.records.keys().cloned());
        } else {
            self.agreed.clear();
            self.last_sent.clear();
        }
    }

    /// Begins a list.
    pub fn begin_list(&mut self) {
        self.listed = Some(BTreeSet::new());
        self.lists += 1;
    }

    /// Completes a list. What it lacks of all that is remembered is written, also what a store before this one could not write.
    pub fn finish_list(&mut self, reflector: &Reflector) {
        let listed = self.listed.take().unwrap_or_default();
        let gone: Vec<_> = self.records.keys().filter(|name| !listed.contains(*name)).cloned().collect();
        for name in gone {
            self.observe_deletion(reflector, &name);
        }
        let remembered = reflector.outcomes().parents_with_outcomes().into_iter().map(String::from);
        self.pending.extend(remembered.filter(|name| !self.records.contains_key(name)));
    }

    /// Observes a record. Returns complaints about invalid content.
    pub fn observe_record(&mut self, reflector: &Reflector, object: &Value) -> Vec<String> {
        let word = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (name, version) = (word("name"), word("resourceVersion"));
        if let Some(listed) = &mut self.listed {
            listed.insert(name.clone());
        }
        let held = HeldRecord { uid: word("uid"), version, spec: object["spec"].clone(), lists: self.lists };
        // The response to a write may arrive after newer events of the watch. A list is never older than what was known as
        // it began: then the server's history has gone back.
        let is_former = |known: &HeldRecord| self.listed.is_some() && known.lists < self.lists;
        if self.records.get(&name).is_some_and(|known| known.is_newer(&held) && !is_former(known)) {
            return Vec::new();
        }
        let (whose, outcomes, complaints) = codec::decode_spec(&name, &held.spec, &self.recorded_kinds);
        if self.last_sent.get(&name).is_some_and(|sent| sent.contains(&held.spec)) {
            // More may be known by now than when it was sent.
            self.agree(&name);
        } else if self.agreed.contains(&name) {
            reflector.outcomes().consider_edit(&outcomes);
        } else {
            reflector.outcomes().recall_record(whose, outcomes);
        }
        self.records.insert(name.clone(), held);
        self.pending.insert(name);
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
        self.records.remove(name);
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
                if self.records.contains_key(name) {
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
            (Some(spec), Some(held)) if spec != held.spec => {
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
        let recorded = held.map(|held| codec::decode_spec(name, &held.spec, &self.recorded_kinds).0);
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
