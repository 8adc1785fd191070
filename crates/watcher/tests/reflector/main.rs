//! Contents of the reflector, and their removal.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

mod beside;
mod finalizers;
mod generation;
mod kopf_outcomes;
mod links;
mod live;
mod managers;
mod objects;
mod parents;
mod plans;
mod refused;
mod reported_failures;
mod rewritten;
mod rows;
mod scaled;
mod since;
mod slow_rules;
mod succession;
mod waiting_for_rules;
