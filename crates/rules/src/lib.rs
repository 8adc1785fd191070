//! What else is ready: the rules of others, run unchanged.
//!
//! Three peers judge one object here exactly as they do at home ([`Profile`]); Argo CD's health scripts run as they
//! are ([`lua`]). Nothing here decides by a clock: the moment is an input.

mod argocd;
mod json;
mod kstatus;
pub mod lua;
mod profile;
mod rfc3339;

pub(crate) use json::Gvk;
pub use profile::{PeerVerdict, Profile, UnknownProfile};
