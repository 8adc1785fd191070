//! Events that are not transitions: several writers contend for an object, or another writer overwrites Rollcall's
//! entries.

use std::collections::BTreeSet;

use aggregator::{ObjectId, PolicyId};

use super::loop_channels::LoopChannels;
use crate::event_recorder::EventNotice;
use policy::WatchPlan;
use rollcall_core::{Core, rival_managers};

/// Sends the notices of one turn.
pub(super) struct NoticeRecorder<'a> {
    pub(super) core: &'a Core,
    pub(super) channels: &'a LoopChannels,
}

impl NoticeRecorder<'_> {
    /// Creates one Event about a parent, if Events are wanted.
    pub(super) fn send_notice(&self, parent: ObjectId, reason: &'static str, note: String) {
        let notice = self.build_notice(parent, reason, note);
        if let Some((notices, notice)) = self.channels.notices.as_ref().zip(notice) {
            notices.send_notice(notice);
        }
    }

    fn build_notice(&self, parent: ObjectId, reason: &'static str, note: String) -> Option<EventNotice> {
        let (about, uid, kind) = self.core.parent_ref(parent)?;
        let version = self.channels.transitions.version_of(kind)?;
        Some(EventNotice { about, version, uid, reason, note, warning: true })
    }
}

/// Conflicts about conditions for which an Event was created.
#[derive(Debug, Default)]
pub(super) struct ConflictNotices {
    overwritten: BTreeSet<ObjectId>,
    owned: BTreeSet<(ObjectId, PolicyId, String)>,
}

impl ConflictNotices {
    /// Creates one Event per parent whose condition is repeatedly overwritten.
    pub(super) fn report_overwrites(&mut self, recorder: &NoticeRecorder<'_>, fights: &BTreeSet<ObjectId>) {
        let before = std::mem::replace(&mut self.overwritten, fights.clone());
        for parent in fights.difference(&before) {
            let rivals = recorder.core.reflector.read_row(*parent, |row| {
                row.parent.as_ref().map(|of| rival_managers(&of.status)).unwrap_or_default()
            });
            let rivals = rivals.filter(|rivals| !rivals.is_empty());
            let by =
                rivals.map(|rivals| format!(" ({rivals} writes conditions here too)")).unwrap_or_default();
            let note = format!(
                "the condition that Rollcall writes is repeatedly overwritten{by}; it now writes at most once a minute"
            );
            recorder.send_notice(*parent, "ConditionOverwritten", note);
        }
    }

    /// Creates one Event per parent whose condition is owned by another field manager, so that nothing is written.
    pub(super) fn report_owners(
        &mut self,
        recorder: &NoticeRecorder<'_>,
        plan: Option<&WatchPlan>,
        owned: &BTreeSet<(ObjectId, PolicyId, String)>,
    ) {
        let before = std::mem::replace(&mut self.owned, owned.clone());
        for (parent, policy, owner) in owned.difference(&before) {
            let Some((_, words)) = plan.and_then(|plan| plan.policies.get(policy)) else { continue };
            let whose = if owner.is_empty() { "another manager" } else { owner };
            let note = format!(
                "the condition that policy {} is to write belongs to {whose}: nothing is written; \
                 set spec.condition.fallback or takeover",
                words.name
            );
            recorder.send_notice(*parent, "ConditionOwned", note);
        }
    }
}
