//! Commands on a live cluster, run as a user does: against an in-memory cluster, with terminals, sizes and credentials
//! that are hard to set up elsewhere.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

mod asked_rights;
mod beside;
mod budgets;
mod certain;
mod cluster;
mod credentials;
mod deletion;
mod diamonds;
mod doctor;
mod drift;
mod edited_rules;
mod goals;
mod groups;
mod heavy_object;
mod hostile_library;
mod in_force;
mod kept_scripts;
mod large;
mod least_grants;
mod least_rights;
mod least_roles;
mod left_behind;
mod many_policies;
mod memory;
mod narrow;
mod no_groups;
mod operator_recording;
mod page_below;
mod page_bounds;
mod past;
mod picture;
mod plan;
mod proofs;
mod rbac_all;
mod reading;
mod release;
mod released_policies;
mod relists;
mod rights;
mod server_clock;
mod service;
mod slow;
mod slow_rules;
mod strangers;
mod suggest;
mod suggest_operators;
mod terminal;
mod tokens;
mod unchosen;
mod uncounted;
mod unlisted_policies;
mod watching;
mod written_ahead;
