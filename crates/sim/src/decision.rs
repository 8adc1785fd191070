//! What leaves the loop: nothing before everything was seen, and no True that is not true.

use std::rc::Rc;

use aggregator::{KindId, KindState};
use controller::core::Write;
use readiness::rollup::ParentReason;
use watcher::status::Entry;

use crate::check::BEHIND;
use crate::scenario::PolicyDef;
use crate::sim::Sim;
use crate::thing::{Mark, Thing};
use crate::turn::BLIND;

impl Sim {
    /// A write leaves the loop.
    pub(crate) fn check_decision(&mut self, write: &Write) {
        for policy in self.scenario.policies.clone().iter().filter(|p| write.policies.contains(&p.id)) {
            let types = [Some(policy.condition), policy.fallback];
            let mut entries = write.wanted.entries.iter();
            if let Some(entry) = entries.find(|e| types.contains(&Some(e.r#type.as_str()))) {
                let taken = self.shown.taken.get(&write.uid).cloned();
                if let Some(parent) = taken {
                    self.mature(policy, &parent);
                }
                self.check_word(policy, write, entry);
            }
        }
    }

    fn check_word(&mut self, policy: &PolicyDef, write: &Write, entry: &Entry) {
        let what =
            format!("{}/{} {}={} {}", write.namespace, write.name, entry.r#type, entry.status, entry.reason);
        for kind in policy.kinds() {
            let state = self.core.engine.kind(KindId(kind as u16));
            let blind = matches!(state, KindState::Forbidden | KindState::Stale);
            let seen = self.wires[kind].synced;
            let deleting = entry.reason == ParentReason::Terminating.word();
            if !seen && !deleting && (!blind || entry.is_true()) {
                let kind = self.scenario.name(kind).to_owned();
                self.fail("nothing is said before everything was seen", format_args!("{what}: {kind}"));
            }
            let deaf = self.now - self.wires[kind].heard > BLIND.as_millis() as i64 + BEHIND;
            if entry.is_true() && deaf {
                let kind = self.scenario.name(kind).to_owned();
                self.fail("blindness is not readiness", format_args!("{what}: {kind}"));
            }
        }
        if entry.is_true() && !self.is_true(policy, &write.uid, entry.observed_generation) {
            self.fail("no false ready", what);
        }
    }

    /// Is it true of what the loop has taken in, or of what it was shown since?
    fn is_true(&self, policy: &PolicyDef, uid: &str, generation: Option<i64>) -> bool {
        let true_of = |things: &[Rc<Thing>]| {
            things.iter().find(|t| t.uid == *uid).is_some_and(|parent| {
                let handled = self.watch.phases.get(&(policy.id, uid.to_owned())).is_some_and(|p| p.handled);
                parent.deleted.is_none()
                    && Some(parent.generation) == generation
                    && parent.mark != Mark::NotYet
                    && (handled || parent.mark == Mark::Handled)
                    && self.naive(policy, parent, things).reason.is_none()
            })
        };
        true_of(&self.shown.all_taken()) || true_of(&self.shown.all_held())
    }
}
