//! What else is ready: the rules of others, run unchanged.
//!
//! Three peers judge one object here exactly as they do at home ([`Profile`]); Argo CD's health scripts run as they
//! are ([`lua`]), and so do the expressions of Flux and kro ([`cel`]). A policy's own rule is one of them ([`Rule`]).
//! Nothing here decides by a clock: the moment is an input.

mod argocd;
mod branch;
pub mod cel;
#[cfg(test)]
mod cost;
mod effort;
mod json;
mod key;
mod kstatus;
pub mod lua;
mod profile;
mod rfc3339;
mod rule;

pub use branch::Branch;
pub use effort::timed;
pub(crate) use json::Gvk;
pub use lua::{Limit, Object};
pub use profile::{PeerVerdict, Profile, UnknownProfile};
pub use rule::{Judged, Rule, RuleError, Spec, level};
