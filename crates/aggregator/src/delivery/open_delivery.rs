//! What a delivery to a parent has only while it is under way, or after something went wrong with it.

use std::ops::{Deref, DerefMut};

use readiness::Time;

use super::contention::Contention;
use crate::types::EntriesDigest;

/// Names one write among all that this engine asked for, so that its outcome is taken for no other's: the place of a parent
/// that is gone is given to another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteTicket(pub u64);

/// How much less is said on one parent than there is to say, because the server refuses more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Brevity {
    /// Messages are short.
    pub is_short: bool,
    /// Nothing stands beside the conditions that policies name.
    pub is_main_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeliveryState {
    /// No write is in flight.
    Idle,
    /// A write is in flight: the digest that was sent, and the digest of the parent at that time.
    InFlight { ticket: WriteTicket, sent: EntriesDigest, basis: EntriesDigest },
    /// The server drops these conditions, identified by their digest.
    Pruned(EntriesDigest),
}

/// A write in flight, and what is known of those before that did not go well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OpenDelivery {
    pub(super) state: DeliveryState,
    /// Digest of a write whose outcome is unknown. Later writes that fail say nothing about it, and may fail because of it.
    pub(super) unconfirmed: Option<EntriesDigest>,
    /// Earliest time of the next write.
    pub(super) not_before: Option<Time>,
    /// How briefly the parent takes its conditions, and until when no more is tried.
    pub(super) brevity: Option<(Brevity, Time)>,
    /// The last write was refused because the parent would be invalid with it.
    pub(super) is_invalid: bool,
    /// The parent has lost what it held before, and kept nothing since: its schema is not what drops it, or was not.
    pub(super) is_stripped: bool,
    pub(super) conflicts: u32,
    pub(super) contention: Contention,
    /// Number of consecutive writes that failed or were denied.
    pub(super) failures: u32,
    pub(super) overwrites: u32,
    pub(super) overwritten_at: Option<Time>,
}

/// Nothing is under way, and nothing went wrong.
static AT_REST: OpenDelivery = OpenDelivery {
    state: DeliveryState::Idle,
    unconfirmed: None,
    not_before: None,
    brevity: None,
    is_invalid: false,
    is_stripped: false,
    conflicts: 0,
    contention: Contention::NONE,
    failures: 0,
    overwrites: 0,
    overwritten_at: None,
};

/// An [`OpenDelivery`] that takes no room at rest.
///
/// **Invariant:** after [`OpenDeliverySlot::compact`] two that are equal compare as equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OpenDeliverySlot(Option<Box<OpenDelivery>>);

impl Deref for OpenDeliverySlot {
    type Target = OpenDelivery;

    fn deref(&self) -> &OpenDelivery {
        self.0.as_deref().unwrap_or(&AT_REST)
    }
}

impl DerefMut for OpenDeliverySlot {
    fn deref_mut(&mut self) -> &mut OpenDelivery {
        self.0.get_or_insert_with(|| Box::new(AT_REST.clone()))
    }
}

impl OpenDeliverySlot {
    /// Gives the room back if everything is at rest.
    pub(super) fn compact(&mut self) {
        self.0.take_if(|open| **open == AT_REST);
    }
}
