//! The aggregation engine: for which parents a child counts, which conditions they get, and when.
//!
//! Pure and sans-IO: the driver reports observations with the current time ([`Engine::observe_object`]), asks for the
//! conditions to write ([`Engine::poll`], [`Engine::offer_digest`]), reports the outcome of each write
//! ([`Engine::settle_write`]), and sleeps until [`Engine::next_deadline`].
//!
//! The engine owns edges, tallies and an ordered set of unready children, all by small integers. Names, owners and the
//! text of verdicts belong to the reflector.

mod answer_view;
mod changed_rules;
mod critical_tally;
mod delivery;
mod delivery_schedule;
mod engine;
mod evaluate;
mod evaluation;
mod evaluation_queue;
mod evidence;
mod graph;
mod ids;
mod list_gate;
mod observation_schedule;
mod policy_table;
mod thin_list;
mod time_limits;
mod types;

pub use answer_view::{AnswerExtras, AnswerView, WrittenAnswer};
pub use delivery::{Brevity, DeliveryDecision, DeliveryOutcome, UnwrittenBecause, WriteTicket};
pub use engine::{
    ChildOf, Engine, EngineReader, EvaluationCounts, EvaluationState, ParentDraft, PendingProofs,
    ProofRequest, RecountResult, UnreadyChild,
};
pub use evidence::{HandledEvidence, ReportedFailure};
pub use graph::PolicySums;
pub use ids::{EvaluationId, KindId, ObjectId, PolicyId, SelectorId};
pub use thin_list::ThinList;
pub use types::{
    Acceptance, Availability, ChildGroup, ChildLink, ChildSource, CountedAnswer, EnginePolicy, EntriesDigest,
    GroupRole, JointCount, KindState, LinkTarget, MAX_LINK_TARGETS, ObjectView, ParentView, PolicyAnswer,
    Quorum, SpecMark,
};
