//! What else is ready: the rules of others, run unchanged.
//!
//! Three peers judge one object here exactly as they do at home ([`Profile`]); none of it reads a clock.

mod argocd;
mod json;
mod kstatus;
mod profile;
mod rfc3339;

pub(crate) use json::Gvk;
pub use profile::{PeerVerdict, Profile, UnknownProfile};
