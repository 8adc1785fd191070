//! Events that are not transitions: several writers contend for an object, or another writer overwrites Rollcall's
//! entries.

use std::collections::BTreeSet;

use aggregator::{ObjectId, PolicyId};

use super::EventLoop;
use crate::event_recorder::EventNotice;
use crate::snapshot::rival_managers;

impl EventLoop {
    /// Counts finalizers that are repeatedly added and removed, and creates one Event per object.
    pub(super) fn report_flaps(&mut self) {
        let counts = self.core.take_flap_counts();
        if let Some(plan) = self.plan.as_ref().filter(|_| !counts.is_empty()) {
            for (policy, count) in counts {
                if let Some((_, words)) = plan.policies.get(&policy) {
                    self.metrics.count_flaps(&words.name, count);
                }
            }
        }
        for (parent, note) in self.core.take_new_flaps() {
            let notice = self.build_notice(parent, "FinalizerFlapping", note);
            if let Some((notices, notice)) = self.channels.notices.as_ref().zip(notice) {
                notices.send_notice(notice);
            }
        }
    }

    /// Creates one Event per parent whose condition is repeatedly overwritten.
    pub(super) fn report_overwrites(&mut self, fights: &BTreeSet<ObjectId>) {
        let before = std::mem::replace(&mut self.overwritten, fights.clone());
        for parent in fights.difference(&before) {
            let rivals = self.core.reflector.read_row(*parent, |row| {
                row.parent.as_ref().map(|of| rival_managers(&of.status)).unwrap_or_default()
            });
            let rivals = rivals.filter(|rivals| !rivals.is_empty());
            let by =
                rivals.map(|rivals| format!(" ({rivals} writes conditions here too)")).unwrap_or_default();
            let note = format!(
                "the condition that Rollcall writes is repeatedly overwritten{by}; it now writes at most once a minute"
            );
            let notice = self.build_notice(*parent, "ConditionOverwritten", note);
            if let Some((notices, notice)) = self.channels.notices.as_ref().zip(notice) {
                notices.send_notice(notice);
            }
        }
    }

    /// Creates one Event per parent whose condition is owned by another field manager, so that nothing is written.
    pub(super) fn report_owners(&mut self, owned: &BTreeSet<(ObjectId, PolicyId, String)>) {
        let before = std::mem::replace(&mut self.owned, owned.clone());
        for (parent, policy, owner) in owned.difference(&before) {
            let Some((_, words)) = self.plan.as_ref().and_then(|plan| plan.policies.get(policy)) else {
                continue;
            };
            let whose = if owner.is_empty() { "somebody else" } else { owner };
            let note = format!(
                "the condition that policy {} is to write belongs to {whose}: nothing is written; \
                 set spec.condition.fallback or takeover",
                words.name
            );
            let notice = self.build_notice(*parent, "ConditionOwned", note);
            if let Some((notices, notice)) = self.channels.notices.as_ref().zip(notice) {
                notices.send_notice(notice);
            }
        }
    }

    fn build_notice(&self, parent: ObjectId, reason: &'static str, note: String) -> Option<EventNotice> {
        let (about, uid, kind) = self.core.parent_ref(parent)?;
        let version = self.channels.transitions.version_of(kind)?;
        Some(EventNotice { about, version, uid, reason, note, warning: true })
    }
}
