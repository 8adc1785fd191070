//! A write on its way to the server, and its answer on the way back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aggregator::DeliveryOutcome;
use rollcall_core::{KnownObject, ParentWrite};
use serde_json::Value;
use watcher::reflector::ReadStart;

use crate::judges::ShownMoment;
use crate::world::ModelCondition;

/// A write on its way to the server.
#[derive(Debug)]
pub(crate) struct WriteInFlight {
    /// The process that sent it.
    pub(crate) life: u32,
    pub(crate) write: ParentWrite,
    /// When it was decided, the loop had been shown for long enough that the operator had handled the parent's generation.
    pub(crate) was_shown_handled: bool,
    /// The process knew the parent's operator to have handled the generation.
    pub(crate) was_known_handled: bool,
    /// Our entries of the parent as the process knew them when it sent the write.
    pub(crate) known: BTreeMap<String, ModelCondition>,
}

/// The process that sent a write, as seen from the one that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteSender {
    /// The one that runs.
    Running,
    /// A former one, which goes on beside it.
    Beside,
    /// One that has ended.
    Ended,
}

/// Status, `Retry-After` and body of the server's answer.
pub(crate) type ServerAnswer = (u16, Duration, Vec<u8>);

/// A write that the server has committed.
#[derive(Debug)]
pub(crate) struct CommittedWrite {
    /// The parent before and after it.
    pub(crate) before: Arc<Value>,
    pub(crate) after: Arc<Value>,
    /// Number of changes that it made in the store.
    pub(crate) changes: u64,
}

/// Start of a re-read of a parent, with the state that was held then.
#[derive(Debug, Default)]
pub(crate) struct RereadStart {
    pub(crate) start: ReadStart,
    pub(crate) known: Option<KnownObject>,
    pub(crate) sent: ShownMoment,
    pub(crate) shown_version: u64,
}

/// An answer on its way back.
#[derive(Debug)]
pub(crate) struct LandedWrite {
    /// The process that sent it.
    pub(crate) life: u32,
    pub(crate) write: ParentWrite,
    /// The server's answer; `None` if none came.
    pub(crate) answer: Option<ServerAnswer>,
    pub(crate) outcome: DeliveryOutcome,
    pub(crate) live: Option<Vec<u8>>,
    /// Start of the re-read of the parent, for the product and for the second cache.
    pub(crate) reread: RereadStart,
}
