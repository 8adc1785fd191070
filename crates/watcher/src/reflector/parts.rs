//! What the reflector is composed of.

use super::assess::ObjectAssessor;
use super::awaited::AwaitedVersions;
use super::finalizers::FinalizerLog;
use super::generation_marks::GenerationMarks;
use super::judgement_queue::JudgementQueue;
use super::kopf::marks::KopfMarks;
use super::last_written::LastWrittenConditions;
use super::memory::OutcomeMemory;
use super::row_store::RowStore;
use super::rows::Rows;

/// The parts of the reflector, each with locks of its own.
///
/// **Lock order:** the memory of outcomes first; then an entry of the index; then a shard of slots; then tombstones. All
/// others (dirty set, selections, namespaces, numbers of lists, marks, finalizers, awaited versions, breakers, judgements) are locked for
/// one operation on them alone, and nothing is locked meanwhile.
pub(super) struct ReflectorParts {
    pub(super) store: RowStore,
    pub(super) memory: OutcomeMemory,
    pub(super) kopf_marks: KopfMarks,
    pub(super) generation_marks: GenerationMarks,
    pub(super) finalizers: FinalizerLog,
    pub(super) awaited: AwaitedVersions,
    pub(super) assessor: ObjectAssessor,
    /// Objects that await custom rules, where these are not evaluated on ingest.
    pub(super) judgements: JudgementQueue,
    pub(super) last_written: LastWrittenConditions,
}

impl ReflectorParts {
    /// The parts over these rows.
    pub(super) fn new(rows: Rows) -> ReflectorParts {
        ReflectorParts {
            store: RowStore::new(rows),
            memory: OutcomeMemory::default(),
            kopf_marks: KopfMarks::default(),
            generation_marks: GenerationMarks::default(),
            finalizers: FinalizerLog::default(),
            awaited: AwaitedVersions::default(),
            assessor: ObjectAssessor::default(),
            judgements: JudgementQueue::default(),
            last_written: LastWrittenConditions::default(),
        }
    }
}
