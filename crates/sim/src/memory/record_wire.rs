//! The way of records to one life of the process and back: their list and watch, and the operations on them.

use std::collections::VecDeque;

use rollcall_core::records::{RecordOperation, RecordOperationResult, RecordStore};
use serde_json::Value;
use watcher::reflector::{ParentOutcomes, Reflector};

use super::job_cluster::JobCluster;
use super::record_server::apply_record_operation;
use crate::scenario::Sabotage;

/// The list or watch of records.
enum RecordWatch {
    /// A list is due.
    Down,
    /// Records that the list under way has brought, those that it is still to bring, and the position of what it shows among the
    /// lines of the watch.
    Listing { brought: Vec<Value>, left: VecDeque<Value>, position: usize },
    /// Position among the lines.
    Watching(usize),
}

/// The records as one life of the process reads and writes them.
pub(super) struct RecordWire {
    keeper: RecordStore,
    watch: RecordWatch,
    /// A list was complete.
    is_read: bool,
    in_flight: Vec<(String, RecordOperation)>,
    /// Records about which something was done whose answer was lost: the watch will tell of it.
    unread: Vec<String>,
}

fn known_outcomes(reflector: &Reflector, world: &JobCluster) -> Vec<Option<ParentOutcomes>> {
    world.parents.iter().map(|parent| reflector.outcomes().parent_outcomes(&parent.uid)).collect()
}

impl RecordWire {
    pub(super) fn new(keeper: RecordStore) -> RecordWire {
        RecordWire {
            keeper,
            watch: RecordWatch::Down,
            is_read: false,
            in_flight: Vec::new(),
            unread: Vec::new(),
        }
    }

    /// Begins to write.
    pub(super) fn lead(&mut self) {
        self.keeper.set_leading(true);
    }

    /// Returns `true` if a list was complete.
    pub(super) fn is_read(&self) -> bool {
        self.is_read
    }

    /// Returns `true` if what happens to records is told by a watch.
    pub(super) fn is_watching(&self) -> bool {
        matches!(self.watch, RecordWatch::Watching(_))
    }

    /// Returns `true` if no operation is in flight.
    pub(super) fn is_at_rest(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// The watch loses its place: records are listed again.
    pub(super) fn lose_watch(&mut self) {
        if self.is_watching() {
            self.watch = RecordWatch::Down;
        }
    }

    /// Begins a list, or goes on with it; it may break off. What half of it has brought counts for nothing.
    pub(super) fn step_list(&mut self, reflector: &Reflector, world: &mut JobCluster, is_calm: bool) {
        let before = known_outcomes(reflector, world);
        if matches!(self.watch, RecordWatch::Down) {
            world.log_event("records are listed");
            self.keeper.begin_list();
            let left = world.records.values().cloned().collect();
            self.watch =
                RecordWatch::Listing { brought: Vec::new(), left, position: world.record_lines.len() };
        }
        self.bring_records(reflector, world, is_calm);
        if self.is_watching() {
            world.log_event("the list of records is complete");
        } else {
            let is_same = before == known_outcomes(reflector, world);
            world.demand_invariant(
                "no answer rests on half a list",
                is_same,
                "half a list of records counts",
            );
        }
    }

    fn bring_records(&mut self, reflector: &Reflector, world: &mut JobCluster, is_calm: bool) {
        let RecordWatch::Listing { brought, left, position } = &mut self.watch else { return };
        let is_whole = is_calm || world.record_list_dice.chance(60);
        let count = if is_whole { left.len() } else { world.record_list_dice.below(left.len() + 1) };
        for record in left.drain(..count) {
            self.keeper.stage_record(&record);
            brought.push(record);
        }
        if !is_calm && world.record_list_dice.chance(20) {
            world.log_event(format_args!("their list breaks off after {} of them", brought.len()));
            world.half_lists += 1;
            self.watch = RecordWatch::Down;
        } else if left.is_empty() {
            self.keeper.finish_list(reflector);
            (self.watch, self.is_read) = (RecordWatch::Watching(*position), true);
            // The watch goes on from what the list shows.
            self.unread.clear();
        } else if world.sabotage == Some(Sabotage::HalfRecordsBelieved) {
            self.keeper.finish_list(reflector);
            self.keeper.begin_list();
            for record in brought {
                self.keeper.stage_record(record);
            }
        }
    }

    /// Applies some lines of the watch.
    pub(super) fn follow_lines(&mut self, reflector: &Reflector, world: &JobCluster, count: usize) {
        let RecordWatch::Watching(position) = &mut self.watch else { return };
        let lines = world.record_lines.iter().skip(*position).take(count);
        *position += lines.len();
        for (name, record) in lines {
            self.observe_record(reflector, name, record.as_ref());
        }
    }

    /// The watch tells at once what became of a record.
    pub(super) fn observe_record(&mut self, reflector: &Reflector, name: &str, record: Option<&Value>) {
        if !self.is_watching() {
            return;
        }
        match record {
            Some(record) => _ = self.keeper.observe_record(reflector, record),
            None => self.keeper.observe_deletion(reflector, name),
        }
    }

    /// The watch tells what became of operations whose answers were lost.
    pub(super) fn observe_unread(&mut self, reflector: &Reflector, world: &JobCluster) {
        if !self.is_watching() {
            return;
        }
        for name in std::mem::take(&mut self.unread) {
            self.observe_record(reflector, &name, world.records.get(&name));
        }
    }

    /// Begins operations that are due, and ends one of those in flight, or none.
    pub(super) fn step_operations(&mut self, reflector: &Reflector, world: &mut JobCluster) {
        self.in_flight.extend(self.keeper.take_operations(reflector));
        let at = world.below(self.in_flight.len());
        if self.in_flight.is_empty() || world.chance(30) {
            return;
        }
        let (name, operation) = self.in_flight.swap_remove(at);
        let fate = world.below(100);
        let mut done = if fate < 10 {
            RecordOperationResult::Failed
        } else {
            apply_record_operation(world, &name, &operation)
        };
        if fate > 94 {
            // The operation was applied, but its answer was lost.
            done = RecordOperationResult::Failed;
            self.unread.push(name.clone());
        }
        self.keeper.settle_operation(reflector, &name, &done);
    }

    /// Begins operations that are due, and ends the last one in flight.
    pub(super) fn end_operation(&mut self, reflector: &Reflector, world: &mut JobCluster) {
        self.in_flight.extend(self.keeper.take_operations(reflector));
        if let Some((name, operation)) = self.in_flight.pop() {
            let done = apply_record_operation(world, &name, &operation);
            self.keeper.settle_operation(reflector, &name, &done);
        }
    }

    /// Asks what a process that stands by asks: it writes nothing.
    pub(super) fn ask_questions(&mut self, reflector: &Reflector, world: &mut JobCluster) {
        for (name, operation) in self.keeper.take_operations(reflector) {
            let is_question = matches!(operation, RecordOperation::CheckParent(_));
            world.demand(is_question, format_args!("a process that stands by writes: {operation:?}"));
            let done = apply_record_operation(world, &name, &operation);
            self.keeper.settle_operation(reflector, &name, &done);
        }
    }

    /// Ends with the process; operations that it had sent may still arrive.
    pub(super) fn stop(&mut self, world: &mut JobCluster) {
        for (name, operation) in std::mem::take(&mut self.in_flight) {
            if world.chance(50) {
                apply_record_operation(world, &name, &operation);
            }
        }
    }
}
