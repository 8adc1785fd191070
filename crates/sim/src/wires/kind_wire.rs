//! The list and the watch of one kind, as far as they have come.

use std::collections::BTreeSet;

use sandbox::store::WatchCursor;
use serde_json::value::RawValue;
use watcher::reflector::{ListPass, RuleWorkMark};

use crate::judges::ShownMoment;

/// State of a kind's list or watch.
#[derive(Default)]
pub(crate) enum WireState {
    /// Neither a list nor a watch is open.
    #[default]
    Down,
    /// Objects of a list that are still to be delivered.
    Listing {
        items: Vec<Box<RawValue>>,
        uids: BTreeSet<String>,
        revision: u64,
        pass: ListPass,
        sent: ShownMoment,
        /// All objects were delivered, and the list is complete when they are judged, or at this time.
        ending: Option<(RuleWorkMark, i64)>,
    },
    /// An open watch.
    Watching(Box<WatchCursor>),
}

/// List and watch of one kind.
#[derive(Default)]
pub(crate) struct KindWire {
    pub(crate) state: WireState,
    /// Revision from which a watch can resume.
    pub(crate) resume_revision: Option<u64>,
    pub(crate) refusals: u32,
    pub(crate) deliver_at: Option<i64>,
    /// End of the current outage: nothing gets through before.
    pub(crate) down_until: i64,
    /// End of the current permission loss: lists and watches are refused before.
    pub(crate) forbidden_until: i64,
    /// Usual delay, in milliseconds.
    pub(crate) lag: i64,
    /// Everything was listed once in this life of the process.
    pub(crate) synced: bool,
    /// Time of the server's last answer, or of the start of the process.
    pub(crate) last_heard: i64,
    /// Nothing was heard for longer than blindness takes, and no list was completed since.
    pub(crate) unproven: bool,
    pub(crate) repeatable_line: Option<Box<[u8]>>,
}

impl KindWire {
    pub(crate) fn reset_for_restart(&mut self, now: i64) {
        let (down_until, forbidden_until, lag) = (self.down_until, self.forbidden_until, self.lag);
        *self = KindWire { down_until, forbidden_until, lag, last_heard: now, ..KindWire::default() };
    }

    /// Ends list and watch: what comes next is a list.
    pub(crate) fn stop(&mut self) {
        (self.state, self.resume_revision, self.deliver_at) = (WireState::Down, None, None);
        (self.refusals, self.synced, self.repeatable_line) = (0, false, None);
    }

    pub(crate) fn clear_faults(&mut self) {
        (self.down_until, self.forbidden_until, self.lag) = (0, 0, 0);
    }
}
