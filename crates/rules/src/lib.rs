//! The readiness rules of other tools, run unchanged.
//!
//! Three peers evaluate one object here exactly as in their own code ([`PeerProfile`]); Argo CD's health scripts run
//! unmodified ([`lua`]), and so do the expressions of Flux and kro ([`rollcall_cel`]). A policy's own rule is one of them
//! ([`CompiledRule`]). No verdict depends on the system clock: the current time is an input.

mod argocd;
mod branch;
mod effort;
mod json;
mod kstatus;
pub mod lua;
mod peer_verdict;
mod profile;
mod rule;

pub use branch::RuleBranch;
pub use effort::measure_time;
pub(crate) use json::ObjectGvk;
pub use kstatus::judge_by_flux_expressions;
pub use peer_verdict::PeerVerdict;
pub use profile::{PeerProfile, UnknownProfile};
pub use rule::{CompiledRule, RuleDefinition, RuleError, RuleEvaluation, level_from_word};
