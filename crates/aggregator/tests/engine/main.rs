//! What the engine promises: a world in memory, told in sentences.
//!
//! The invariants of the house that the engine carries have a test each that bears the name: in `invariants`, and where
//! more sentences of its sort stand `first_word_is_unknown` and `nothing_is_said_before_everything_was_seen` (`answers`),
//! `eventually_exact` (`histories`), `no_echo` (`silence`), `a_chatty_child_cannot_starve_its_parent` and
//! `yield_do_not_fight` (`pace`).

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

mod answers;
mod ask;
mod blindness;
mod deadlines;
mod driver;
mod echo;
mod expectations;
mod histories;
mod identity;
mod invariants;
mod naive;
mod object;
mod pace;
mod pass;
mod policies;
mod remembered;
mod rules;
mod server;
mod shapes;
mod silence;
mod standby;
mod steps;
mod timing;
mod turns;
mod world;

use std::time::Duration;

use aggregator::{Group, KindId, Policy, Quorum, Role};
use timer::Debounce;

use crate::world::{CHILDREN, PARENTS};

/// A group of which every child must be ready, and one must be there.
fn group(kind: KindId) -> Group {
    Group { kind, role: Role::Critical, min: 1, max: None, quorum: Quorum::All }
}

/// One group of children; quiet 100 ms, cap 1 s, settle 5 s, limits 10 min.
fn policy() -> Policy {
    groups(vec![group(CHILDREN)])
}

/// The same with these groups.
fn groups(groups: Vec<Group>) -> Policy {
    let kinds = std::iter::once(PARENTS).chain(groups.iter().map(|g| g.kind)).collect();
    Policy {
        groups,
        min: 0,
        kinds,
        debounce: Debounce { quiet: Duration::from_millis(100), cap: Duration::from_secs(1) },
        settle: Duration::from_secs(5),
        hold: Duration::ZERO,
        pending: Duration::from_mins(10),
        deadline: None,
        shadow: false,
        names: false,
    }
}
