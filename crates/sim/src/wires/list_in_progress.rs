//! A list of one kind, whose objects are delivered page by page.

use std::collections::BTreeSet;

use readiness::saturating_millis;
use serde_json::value::RawValue;
use watcher::reflector::{ListPass, RuleWork, RuleWorkMark};

use super::sim_stage::SimStage;
use super::wire_bodies::WireListBody;
use crate::judges::ShownMoment;
use crate::scenario::kind_id;

/// A list that the service has begun, and the server has not answered.
pub(crate) struct AskedList {
    pass: ListPass,
    sent: ShownMoment,
    asked_at: i64,
}

impl AskedList {
    /// Begins a list.
    pub(super) fn begin(stage: &mut SimStage, kind: usize) -> AskedList {
        stage.feed.shown.begin_list(kind);
        AskedList {
            pass: stage.feed.reflector.begin_list(kind_id(kind), None),
            sent: stage.feed.shown.moment(),
            asked_at: stage.world.now(),
        }
    }
}

/// A list that the server has answered and that is not complete.
pub(crate) struct ListInProgress {
    /// Objects that are still to be delivered.
    items: Vec<Box<RawValue>>,
    /// UIDs of those that were delivered.
    uids: BTreeSet<String>,
    revision: u64,
    pass: ListPass,
    sent: ShownMoment,
    /// When the service asked for it.
    pub(super) asked_at: i64,
    /// All objects were delivered, and the list is complete when they are judged, or at this time.
    ending: Option<(RuleWorkMark, i64)>,
}

impl ListInProgress {
    /// Begins to deliver the server's answer.
    pub(super) fn deliver(asked: AskedList, list: WireListBody) -> ListInProgress {
        let AskedList { pass, sent, asked_at } = asked;
        ListInProgress {
            revision: list.revision(),
            items: list.items,
            uids: BTreeSet::new(),
            pass,
            sent,
            asked_at,
            ending: None,
        }
    }

    /// Returns `true` if all objects were delivered and the list is not complete because rules have not judged them.
    pub(super) fn awaits_rules(&mut self, stage: &SimStage, kind: usize) -> bool {
        if !self.items.is_empty() {
            return false;
        }
        let (work, now) = (stage.feed.reflector.rule_work(), stage.world.now());
        let (mark, until) = *self
            .ending
            .get_or_insert_with(|| (work.mark(), now + saturating_millis(RuleWork::INTERIM_LIMIT)));
        now < until && !work.is_done_before(kind_id(kind), mark)
    }

    /// Feeds at most `most` objects to the service; returns `false` if none was left.
    pub(super) fn feed_page(&mut self, stage: &mut SimStage, kind: usize, most: usize) -> bool {
        let page: Vec<_> = self.items.drain(..most.min(self.items.len())).collect();
        for item in &page {
            self.uids.insert(stage.feed.feed_listed(kind, &self.pass, self.sent, item));
        }
        !page.is_empty()
    }

    /// Ends the list: what it did not have is gone, for the service only if it `sweeps`. Returns the revision that it shows.
    pub(super) fn finish(self, stage: &mut SimStage, kind: usize, sweeps: bool) -> u64 {
        if sweeps {
            stage.feed.reflector.finish_list(&self.pass);
        }
        stage.feed.shown.finish_list(kind, self.revision, &self.uids);
        self.revision
    }
}
