//! A live read on its way to the server, and back.

use std::collections::BTreeMap;

use rollcall_core::LiveRead;
use serde_json::value::RawValue;
use watcher::reflector::ReadStart;

use crate::judges::ShownMoment;

/// A live read that the product has ordered.
#[derive(Debug)]
pub(crate) struct OrderedRead {
    pub(crate) read: LiveRead,
    /// UIDs and versions under that name that the second cache held by then.
    pub(crate) known: BTreeMap<String, u64>,
}

/// A live read with the server's answer.
#[derive(Debug)]
pub(crate) struct AnsweredRead {
    pub(crate) order: OrderedRead,
    /// The objects; empty if the object is gone.
    pub(crate) objects: Vec<Box<RawValue>>,
    /// When the read was sent, for the product and for the second cache.
    pub(crate) start: ReadStart,
    pub(crate) sent: ShownMoment,
}
