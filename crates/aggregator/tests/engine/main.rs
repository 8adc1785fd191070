//! The invariants that the engine carries, each by its name.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

mod answers;
mod ask;
mod blindness;
mod expectations;
mod histories;
mod identity;
mod invariants;
mod naive;
mod object;
mod pace;
mod pass;
mod policies;
mod server;
mod shapes;
mod silence;
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
