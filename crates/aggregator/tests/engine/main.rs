//! Tests of the engine on an in-memory cluster.
//!
//! Each invariant that the engine upholds has a test of its name: in `invariants`, and, next to related tests,
//! `first_word_is_unknown` and `nothing_is_said_before_everything_was_seen` (`answers`), `eventually_exact`
//! (`histories`), `no_echo` (`silence`), `a_chatty_child_cannot_starve_its_parent` and `yield_do_not_fight` (`pace`).

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

mod answers;
mod ask;
mod behind;
mod beside;
mod blind_levels;
mod blindness;
mod conditions;
mod deadlines;
mod driver;
mod echo;
mod evidence;
mod expectations;
mod found_at_rest;
mod harness;
mod histories;
mod identity;
mod invariants;
mod kept_true;
mod levels;
mod links;
mod naive;
mod object;
mod outcomes;
mod pace;
mod pass;
mod policies;
mod predecessors;
mod proof;
mod queries;
mod refusal;
mod remembered;
mod render;
mod rest;
mod rules;
mod server;
mod shapes;
mod silence;
mod standby;
mod steady;
mod steps;
mod sums;
mod timing;
mod turns;
mod unjudged;
mod waiting;

use std::time::Duration;

use aggregator::{ChildGroup, EnginePolicy, GroupRole, KindId, Quorum};
use timer::DebounceConfig;

use crate::harness::{CHILDREN, PARENTS};

/// A group with at least one child, all of which must be ready.
fn group(kind: KindId) -> ChildGroup {
    ChildGroup {
        kind,
        role: GroupRole::Critical,
        min: 1,
        max: None,
        quorum: Quorum::All,
        is_prerequisite: false,
    }
}

/// A policy with one group of children; quiet 100 ms, cap 1 s, settle 5 s, limits 10 min.
fn policy() -> EnginePolicy {
    groups(vec![group(CHILDREN)])
}

/// The same policy with these groups.
fn groups(groups: Vec<ChildGroup>) -> EnginePolicy {
    let kinds = std::iter::once(PARENTS).chain(groups.iter().map(|g| g.kind)).collect();
    EnginePolicy {
        groups,
        min: 0,
        joint: Vec::new(),
        kinds,
        debounce: DebounceConfig { quiet: Duration::from_millis(100), cap: Duration::from_secs(1) },
        settle: Duration::from_secs(5),
        hold: Duration::ZERO,
        availability: aggregator::Availability::Strict,
        grace: Duration::ZERO,
        pending: Duration::from_mins(10),
        deadline: None,
        shadow: false,
        expects_names: false,
        requires_proof: false,
        acceptance: aggregator::Acceptance::Accepted,
    }
}
