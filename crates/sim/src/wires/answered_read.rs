//! A live read on its way to the server, and back.

use std::collections::BTreeMap;

use rollcall_core::{HeldObject, KnownObject, LiveRead};
use serde_json::value::RawValue;
use watcher::reflector::ReadStart;

use crate::judges::ShownMoment;

/// A live read that the product has sent.
#[derive(Debug)]
pub(crate) struct SentRead {
    pub(crate) read: LiveRead,
    /// The object that the product expects under that name, as it held it by then.
    pub(crate) expected: Option<KnownObject>,
    /// UIDs and versions under that name that the second cache held by then.
    pub(crate) known: BTreeMap<String, u64>,
    /// Objects that the product held by then, if this is a list.
    pub(crate) held: Vec<HeldObject>,
}

/// A live read with the server's answer.
#[derive(Debug)]
pub(crate) struct AnsweredRead {
    pub(crate) request: SentRead,
    /// The objects; empty if the object is gone.
    pub(crate) objects: Vec<Box<RawValue>>,
    /// When the read was sent, for the product and for the second cache.
    pub(crate) start: ReadStart,
    pub(crate) sent: ShownMoment,
}
