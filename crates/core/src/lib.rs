//! The event loop without clock and network: the work of one turn, shared by the service and the simulator.
//!
//! [`Core`] holds the engine and reads the reflector. Its inputs are changed objects and the time; its outputs are
//! writes. Nothing in here waits, and nothing in here depends on kube.

mod awaited_children;
mod causes;
mod churn_text;
pub mod event_causes;
mod failure_budget;
mod finalizer_flaps;
mod fleet_numbers;
mod kind_names;
mod listed_budgets;
pub mod live_reads;
mod loop_core;
mod metadata_comparison;
mod node_reason;
mod outage_end;
mod parent_detail;
mod parent_feed;
mod parent_findings;
mod parent_write;
pub mod pod_causes;
mod pod_digest;
mod policy_summary;
mod proof_queue;
mod quote_texts;
mod quotes;
pub mod records;
mod recount;
pub mod refusal;
mod release_pace;
mod render;
mod rule_swaps;
mod staged_list;
mod top_cause;
mod transition;
mod tree;
mod watch_health;
mod write_breaker;
mod write_queue;
pub mod write_reply;
mod write_schedule;

pub use awaited_children::NOT_DELETED_YET;
pub use fleet_numbers::{FindingCounts, FleetNumbers, ParentPolicy};
pub use listed_budgets::ListedBudgets;
pub use live_reads::{HeldObject, KnownObject, LiveRead, WatchLag};
pub use loop_core::Core;
pub use metadata_comparison::{MetadataComparison, OutdatedReads};
pub use node_reason::{NodeReason, NodeToken};
pub use parent_detail::{GroupTally, ParentDetail};
pub use parent_feed::{ClusterNames, ParentAnswer, ParentChanges};
pub use parent_findings::{ParentFindings, rival_managers};
pub use parent_write::ParentWrite;
pub use pod_causes::UnreadyWorkload;
pub use pod_digest::PodDigest;
pub use policy_summary::{GroupSummary, ParentOperator, PolicySummary};
pub use recount::{RecountDrift, RecountSchedule};
pub use rule_swaps::RuleSwaps;
pub use staged_list::{CompleteList, StagedList};
pub use top_cause::TopCause;
pub use transition::{MAX_ROOT_CAUSES, ObjectRef, RootCause, Transition};
pub use tree::{TreeNode, VerdictAges};
pub use watch_health::{BlindKind, KindEvent, WatchHealth};
pub use write_reply::WriteReply;
pub use write_schedule::ReleaseProgress;
