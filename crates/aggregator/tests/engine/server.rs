//! What is written, how it is put in words, and what may become of a write.

use std::collections::BTreeMap;
use std::time::Duration;

use aggregator::{Answer, Digest, ObjectId, PolicyId, Role};
use readiness::Time;
use readiness::rollup::ParentReason;

use crate::world::{World, hash};

/// All entries of one parent, by policy.
pub(crate) type Status = BTreeMap<PolicyId, Entry>;

/// What a parent says for one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) reason: ParentReason,
    pub(crate) about: u32,
    pub(crate) stalled: bool,
    pub(crate) reconciling: bool,
    pub(crate) message: String,
    pub(crate) since: Time,
}

impl Entry {
    pub(crate) fn brief(&self) -> String {
        format!("{}{}", self.reason.word(), if self.stalled { "!" } else { "" })
    }
}

/// As the reflector makes it of what a parent says, and the renderer of what is wanted.
pub(crate) fn digest(status: &Status) -> Digest {
    let mut sum = Digest::default();
    for (policy, entry) in status {
        let gist = hash(&format!(
            "{}/{:?}/{}/{}/{}",
            policy.0, entry.reason, entry.about, entry.stalled, entry.reconciling
        ));
        sum.gist = sum.gist.wrapping_add(gist);
        sum.whole = sum.whole.wrapping_add(hash(&format!("{gist}/{}", entry.message)));
    }
    sum
}

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is accepted, if its guards hold.
    Lands,
    /// It is refused for now.
    Retry(Duration),
    /// It is accepted, but the answer is lost.
    Unheard(Duration),
    /// Something that it was guarded by has changed.
    Conflict,
    /// The server drops it.
    Pruned,
}

/// A write on its way.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) lands: Time,
    pub(crate) name: String,
    pub(crate) id: ObjectId,
    pub(crate) uid: u32,
    pub(crate) generation: u32,
    pub(crate) before: Status,
    pub(crate) wanted: Status,
    pub(crate) fate: Fate,
}

impl World {
    /// What a parent is to say by the engine's answers. A policy that has no say yet leaves what stands.
    pub(crate) fn render(&self, name: &str) -> Option<Status> {
        let object = &self.objects[name];
        let parent = object.parent.as_ref()?;
        let mut wanted = Status::new();
        for (policy, answer) in self.engine.answers(object.id) {
            assert!(parent.policies.contains(&policy), "{name} is told for a policy that does not apply");
            wanted.insert(policy, self.entry(name, policy, answer));
        }
        let undecided = parent.policies.iter().filter(|p| !self.engine.has_judged(object.id, **p));
        for policy in undecided {
            if let Some(entry) = parent.status.get(policy) {
                wanted.insert(*policy, entry.clone());
            }
        }
        Some(wanted)
    }

    fn entry(&self, name: &str, policy: PolicyId, answer: Answer) -> Entry {
        let object = &self.objects[name];
        let told = object.parent.as_ref().and_then(|p| p.status.get(&policy));
        let stands = told.filter(|e| e.reason.status() == answer.reason.status());
        Entry {
            reason: answer.reason,
            about: object.generation,
            stalled: answer.stalled,
            reconciling: answer.reconciling,
            message: self.message(object.id, policy, answer),
            since: stands.map_or(self.now, |e| e.since),
        }
    }

    fn message(&self, id: ObjectId, policy: PolicyId, answer: Answer) -> String {
        match answer.reason {
            ParentReason::ChildrenPending | ParentReason::OperatorSilent | ParentReason::Terminating => {
                String::new()
            }
            _ => format!("{} of {}: {}", answer.ready, answer.total, self.causes(id, policy)),
        }
    }

    /// Every child that holds it back, with what holds that back.
    fn causes(&self, id: ObjectId, policy: PolicyId) -> String {
        let cause = |trouble: aggregator::Trouble| {
            let name = self.name(trouble.child).unwrap_or_default();
            let below = self.engine.policies_of(trouble.child);
            let below: Vec<String> = below.map(|p| self.causes(trouble.child, p)).collect();
            format!("{name} {}[{}]", trouble.weight.level, below.join(" "))
        };
        self.engine.troubles(id, policy, Role::Critical).map(cause).collect::<Vec<_>>().join(" ")
    }
}
