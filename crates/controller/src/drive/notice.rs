//! What people should hear of that is no transition: others that fight over an object, or with us.

use std::collections::BTreeSet;

use aggregator::{ObjectId, PolicyId};

use super::Drive;
use crate::events::Notice;
use crate::snapshot::rivals;

impl Drive {
    /// Finalizers that come and go are counted, and an Event tells of each object once.
    pub(super) fn tell_flaps(&mut self) {
        let counts = self.core.take_flap_counts();
        if let Some(plan) = self.plan.as_ref().filter(|_| !counts.is_empty()) {
            for (policy, count) in counts {
                if let Some((_, words)) = plan.policies.get(&policy) {
                    self.metrics.flapped(&words.name, count);
                }
            }
        }
        for (parent, note) in self.core.take_flap_news() {
            let notice = self.notice(parent, "FinalizerFlapping", note);
            if let Some((notices, notice)) = self.wires.notices.as_ref().zip(notice) {
                notices.tell(notice);
            }
        }
    }

    /// An Event tells of each parent once that we yield there.
    pub(super) fn tell_fights(&mut self, fights: &BTreeSet<ObjectId>) {
        let before = std::mem::replace(&mut self.fights, fights.clone());
        for parent in fights.difference(&before) {
            let rivals = self
                .core
                .reflector
                .read(*parent, |row| row.parent.as_ref().map(|of| rivals(&of.status)).unwrap_or_default());
            let rivals = rivals.filter(|rivals| !rivals.is_empty());
            let by =
                rivals.map(|rivals| format!(" ({rivals} writes conditions here too)")).unwrap_or_default();
            let note =
                format!("what Rollcall writes keeps being overwritten{by}; it yields to one write a minute");
            let notice = self.notice(*parent, "ConditionOverwritten", note);
            if let Some((notices, notice)) = self.wires.notices.as_ref().zip(notice) {
                notices.tell(notice);
            }
        }
    }

    /// An Event tells of each parent once whose the condition is, where nothing is written because of that.
    pub(super) fn tell_owners(&mut self, owned: &BTreeSet<(ObjectId, PolicyId, String)>) {
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
            let notice = self.notice(*parent, "ConditionOwned", note);
            if let Some((notices, notice)) = self.wires.notices.as_ref().zip(notice) {
                notices.tell(notice);
            }
        }
    }

    fn notice(&self, parent: ObjectId, reason: &'static str, note: String) -> Option<Notice> {
        let (about, uid, kind) = self.core.whereabouts(parent)?;
        let version = self.wires.transitions.version_of(kind)?;
        Some(Notice { about, version, uid, reason, note, warning: true })
    }
}
