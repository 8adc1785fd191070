//! Writes, their rendering and their possible outcomes.

use std::collections::BTreeMap;
use std::time::Duration;

use aggregator::{EntriesDigest, GroupRole, ObjectId, PolicyAnswer, PolicyId, WriteTicket};
use readiness::rollup::{self, ParentReason};
use readiness::{Level, Time};

use crate::harness::{EngineHarness, hash};

/// All conditions of one parent, by policy.
pub(crate) type Status = BTreeMap<PolicyId, ParentEntry>;

/// Condition on a parent for one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParentEntry {
    pub(crate) reason: ParentReason,
    pub(crate) about: u32,
    pub(crate) stalled: bool,
    pub(crate) reconciling: bool,
    pub(crate) message: String,
    pub(crate) since: Time,
    /// Somebody turned the status to this one.
    pub(crate) turned: Option<rollup::ConditionStatus>,
}

impl ParentEntry {
    pub(crate) fn status(&self) -> rollup::ConditionStatus {
        self.turned.unwrap_or(self.reason.condition_status())
    }

    pub(crate) fn brief(&self) -> String {
        format!("{}{}", self.reason.as_str(), if self.stalled { "!" } else { "" })
    }
}

/// Digest of a parent's conditions, as the reflector and the renderer compute it.
pub(crate) fn digest(status: &Status) -> EntriesDigest {
    let mut sum = EntriesDigest::default();
    for (policy, entry) in status {
        let gist = hash(&format!(
            "{}/{:?}/{:?}/{}/{}/{}",
            policy.0, entry.reason, entry.turned, entry.about, entry.stalled, entry.reconciling
        ));
        sum.without_messages = sum.without_messages.wrapping_add(gist);
        sum.whole = sum.whole.wrapping_add(hash(&format!("{gist}/{}", entry.message)));
    }
    sum
}

/// Simulated outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteFate {
    /// Accepted, if its preconditions hold.
    Lands,
    /// Refused for now.
    Retry(Duration),
    /// Accepted, but the response is lost.
    Unheard(Duration),
    /// Refused because a precondition failed.
    Conflict,
    /// Accepted, but the server drops the fields.
    Pruned,
}

/// A write in flight.
#[derive(Clone, Debug)]
pub(crate) struct PendingWrite {
    pub(crate) lands: Time,
    pub(crate) name: String,
    pub(crate) id: ObjectId,
    pub(crate) ticket: WriteTicket,
    pub(crate) uid: u32,
    pub(crate) generation: u32,
    pub(crate) before: Status,
    pub(crate) wanted: Status,
    pub(crate) fate: WriteFate,
}

impl EngineHarness {
    /// Renders the conditions of a parent from the engine's answers. A policy without an answer leaves its condition as
    /// it is.
    pub(crate) fn render(&self, name: &str) -> Option<Status> {
        let object = &self.objects[name];
        let parent = object.parent.as_ref()?;
        let mut wanted = Status::new();
        for (policy, answer) in self.engine.answers_to_write(object.id) {
            assert!(parent.policies.contains(&policy), "{name} is told for a policy that does not apply");
            wanted.insert(policy, self.entry(name, policy, answer));
        }
        let undecided = parent.policies.iter().filter(|p| !self.engine.has_evaluated(object.id, **p));
        for policy in undecided {
            if let Some(entry) = parent.status.get(policy) {
                wanted.insert(*policy, entry.clone());
            }
        }
        Some(wanted)
    }

    fn entry(&self, name: &str, policy: PolicyId, answer: PolicyAnswer) -> ParentEntry {
        let object = &self.objects[name];
        let told = object.parent.as_ref().and_then(|p| p.status.get(&policy));
        let stands = told.filter(|e| e.status() == answer.reason.condition_status());
        ParentEntry {
            reason: answer.reason,
            about: object.generation,
            stalled: answer.stalled,
            reconciling: answer.reconciling,
            message: self.message(object.id, policy, answer),
            since: stands.map_or(self.now, |e| e.since),
            turned: None,
        }
    }

    fn message(&self, id: ObjectId, policy: PolicyId, answer: PolicyAnswer) -> String {
        match answer.reason {
            ParentReason::ChildrenPending | ParentReason::OperatorSilent | ParentReason::Terminating => {
                String::new()
            }
            _ => format!("{} of {}: {}", answer.ready, answer.total, self.causes(id, policy)),
        }
    }

    /// Lists every unready child with its own causes.
    pub(crate) fn causes(&self, id: ObjectId, policy: PolicyId) -> String {
        let cause = |trouble: aggregator::UnreadyChild| {
            let name = self.name(trouble.child).unwrap_or_default();
            // What is being deleted says itself why it is there.
            let quote =
                self.quotes.get(&trouble.child).filter(|_| trouble.weight.level() != Level::Terminating);
            format!("{name} {}[{}]", trouble.weight.level(), quote.map_or("", |quote| quote))
        };
        self.engine.unready_children(id, policy, GroupRole::Critical).map(cause).collect::<Vec<_>>().join(" ")
    }
}
