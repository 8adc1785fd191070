//! What the reflector is composed of.

use super::assess::ObjectAssessor;
use super::awaited::AwaitedVersions;
use super::disruption_budgets::BudgetTable;
use super::finalizers::FinalizerLog;
use super::generation_marks::GenerationMarks;
use super::judgement_queue::JudgementQueue;
use super::known_bounds::KnownBounds;
use super::kopf::log::KopfLogs;
use super::kopf::marks::KopfMarks;
use super::last_written::LastWrittenConditions;
use super::memory::OutcomeMemory;
use super::proof_work::ProofExchange;
use super::row_store::RowStore;
use super::rows::Rows;

/// The parts of the reflector.
///
/// Each part has one lock, and so has each part of the row store; slots have one for each shard, rules one for each breaker.
///
/// **Lock order:** the memory of outcomes first, then a shard of slots, then tombstones. All others (plans, breakers, selections,
/// namespaces, dirty set, marks of both kinds, finalizers, awaited versions, conditions last written, kinds that require lists,
/// budgets, logs of Kopf operators, judgements, proofs) are locked for one operation on them alone: whoever holds one of these locks takes no other.
pub(super) struct ReflectorParts {
    pub(super) store: RowStore,
    pub(super) memory: OutcomeMemory,
    pub(super) kopf_marks: KopfMarks,
    pub(super) kopf_logs: KopfLogs,
    pub(super) generation_marks: GenerationMarks,
    pub(super) finalizers: FinalizerLog,
    pub(super) awaited: AwaitedVersions,
    pub(super) assessor: ObjectAssessor,
    /// Objects that await custom rules, where these are not evaluated on ingest.
    pub(super) judgements: JudgementQueue,
    pub(super) proofs: ProofExchange,
    pub(super) last_written: LastWrittenConditions,
    pub(super) known_bounds: KnownBounds,
    pub(super) budgets: BudgetTable,
}

impl ReflectorParts {
    /// The parts over these rows.
    pub(super) fn new(rows: Rows) -> ReflectorParts {
        ReflectorParts {
            store: RowStore::new(rows),
            memory: OutcomeMemory::default(),
            kopf_marks: KopfMarks::default(),
            kopf_logs: KopfLogs::default(),
            generation_marks: GenerationMarks::default(),
            finalizers: FinalizerLog::default(),
            awaited: AwaitedVersions::default(),
            assessor: ObjectAssessor::default(),
            judgements: JudgementQueue::default(),
            proofs: ProofExchange::default(),
            last_written: LastWrittenConditions::default(),
            known_bounds: KnownBounds::default(),
            budgets: BudgetTable::default(),
        }
    }
}
