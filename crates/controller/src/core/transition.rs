//! A transition: what was said of a parent until now, what is said of it from now on, and whose doing that is.
//!
//! It is noted where the loop decides, so it is there in shadow too, and where a write is refused. A flicker inside one
//! turn is none, and neither is a message that changes under the same reason.

use aggregator::{Answer, KindId, ObjectId, PolicyId, Role};
use readiness::rollup::ParentReason;
use readiness::{Level, Time};
use serde::{Serialize, Serializer};
use watcher::reflector::Row;
use watcher::status::time;

use super::Core;

/// So many root causes are told.
const CULPRITS: usize = 5;
/// A cause below a cause below a cause: no deeper than this.
const DEPTH: usize = 6;

/// An object, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name; empty where one is missing that has none yet.
    pub name: String,
}

/// An object that keeps a parent from being ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Culprit {
    /// Which.
    #[serde(flatten)]
    pub place: Place,
    /// How ready it is: `Failed`, `Stuck`, `Missing`, …
    pub verdict: &'static str,
    /// The reason as a CamelCase word.
    pub reason: String,
    /// The reason for people.
    pub detail: String,
}

/// One transition of one parent under one policy. Serialised it is one line of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    /// When it was decided.
    #[serde(serialize_with = "written::moment")]
    pub at: Time,
    /// The policy.
    pub policy: String,
    /// The parent.
    #[serde(flatten)]
    pub parent: Place,
    /// The version under which the parent is watched: filled in by the loop, which knows it.
    pub version: String,
    /// The parent's uid.
    pub uid: String,
    /// The parent's `metadata.generation`.
    pub generation: Option<i64>,
    /// What was said before; `None` at its first sight.
    #[serde(serialize_with = "written::said_before")]
    pub from: Option<ParentReason>,
    /// What is said now. Verdict and status go with the reason: [`ParentReason::level`], [`ParentReason::status`].
    #[serde(serialize_with = "written::said")]
    pub to: ParentReason,
    /// The message, at most 1 KiB.
    pub message: String,
    /// The root causes, worst first, at most five.
    pub causes: Vec<Culprit>,
    /// The policy is in shadow: nothing of this was written.
    pub shadow: bool,
    /// The parent's kind.
    #[serde(skip)]
    pub kind: KindId,
}

/// What an answer says, for machines.
#[derive(Serialize)]
struct Said {
    verdict: &'static str,
    status: &'static str,
    reason: &'static str,
}

impl From<ParentReason> for Said {
    fn from(reason: ParentReason) -> Said {
        Said { verdict: reason.level().word(), status: reason.status().word(), reason: reason.word() }
    }
}

/// How fields are written; serde hands each over by reference.
#[expect(clippy::trivially_copy_pass_by_ref, clippy::ref_option, reason = "serde's signature")]
mod written {
    use super::{ParentReason, Said, Serialize, Serializer, Time, time};

    pub(super) fn said<S: Serializer>(reason: &ParentReason, to: S) -> Result<S::Ok, S::Error> {
        Said::from(*reason).serialize(to)
    }

    pub(super) fn said_before<S: Serializer>(
        reason: &Option<ParentReason>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        reason.map(Said::from).serialize(to)
    }

    pub(super) fn moment<S: Serializer>(at: &Time, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&time::precise(*at))
    }
}

/// Children are why it says so, and its message names them.
pub(super) const fn names_children(reason: ParentReason) -> bool {
    matches!(
        reason,
        ParentReason::ChildrenProgressing
            | ParentReason::ChildrenTerminating
            | ParentReason::ChildrenFailed
            | ParentReason::ChildrenStuck
            | ParentReason::ChildrenMissing
            | ParentReason::TooManyChildren
            | ParentReason::ChildrenUnknown
            | ParentReason::ChildrenSuspended
            | ParentReason::DeadlineExceeded
    )
}

impl Core {
    /// What turned in the last turn.
    pub fn take_transitions(&mut self) -> Vec<Transition> {
        std::mem::take(&mut self.turned)
    }

    pub(super) fn note_turns(&mut self, now: Time, parent: ObjectId) {
        for (policy, from, answer) in self.engine.take_turns(parent) {
            // After a restart nothing tells what was said in shadow before; that all is well is no news then.
            if from.is_none() && answer.reason == ParentReason::AllChildrenReady {
                continue;
            }
            let noted = self.transition(now, parent, policy, from, answer);
            self.turned.extend(noted);
        }
    }

    fn transition(
        &self,
        now: Time,
        parent: ObjectId,
        policy: PolicyId,
        from: Option<ParentReason>,
        answer: Answer,
    ) -> Option<Transition> {
        let mut causes = Vec::new();
        if names_children(answer.reason) {
            self.culprits(parent, policy, now, 0, &mut causes);
        }
        let generation = self.reflector.read(parent, |row| row.parent.as_ref()?.generation)?;
        let (place, uid, kind) = self.whereabouts(parent)?;
        Some(Transition {
            at: now,
            policy: self.policies.get(&policy).map(|p| p.name.clone()).unwrap_or_default(),
            parent: place,
            version: String::new(),
            uid,
            generation,
            from,
            to: answer.reason,
            message: self.message(parent, policy, answer, now),
            causes,
            shadow: self.engine.is_shadow(policy),
            kind,
        })
    }

    /// Where a parent is found: place, uid and kind.
    pub fn whereabouts(&self, parent: ObjectId) -> Option<(Place, String, KindId)> {
        let read = |row: &Row| Some((self.place(row), row.parent.as_ref()?.uid.to_string(), row.kind));
        self.reflector.read(parent, read)?
    }

    fn place(&self, row: &Row) -> Place {
        Place {
            group: self.kind_group(row.kind).to_owned(),
            kind: self.kind_name(row.kind).to_owned(),
            namespace: row.namespace.to_string(),
            name: row.name.to_string(),
        }
    }

    /// The objects at the bottom of it: where a child is a parent itself, what keeps that one from being ready.
    fn culprits(&self, parent: ObjectId, policy: PolicyId, now: Time, depth: usize, into: &mut Vec<Culprit>) {
        for trouble in self.engine.troubles(parent, policy, Role::Critical) {
            if into.len() >= CULPRITS {
                return;
            }
            let answers = self
                .engine
                .policies_of(trouble.child)
                .filter_map(|policy| Some((policy, self.engine.answer(trouble.child, policy)?)));
            let below = answers.min_by_key(|(policy, answer)| (answer.reason.level(), *policy));
            let own = matches!(trouble.weight.level, Level::Terminating | Level::Stuck);
            let before = into.len();
            if let Some((below, _)) = below.filter(|_| !own && depth < DEPTH) {
                self.culprits(trouble.child, below, now, depth + 1, into);
            }
            if into.len() == before {
                let culprit = self.reflector.read(trouble.child, |row| {
                    let reason = &row.through(trouble.lens).at(now).reason;
                    let (reason, detail) = match below {
                        Some((_, answer)) if !own => (answer.reason.word().to_owned(), String::new()),
                        _ => (reason.token().to_owned(), reason.to_string()),
                    };
                    Culprit { place: self.place(row), verdict: trouble.weight.level.word(), reason, detail }
                });
                into.extend(culprit.filter(|culprit| !into.contains(culprit)));
            }
        }
        let missing = self.missing_lines(parent, policy).into_iter().map(|(level, kind, detail)| Culprit {
            place: Place { kind, ..Place::default() },
            verdict: level.word(),
            reason: level.word().to_owned(),
            detail,
        });
        into.extend(missing.take(CULPRITS.saturating_sub(into.len())));
    }
}

#[cfg(test)]
#[cfg(feature = "io")]
mod tests;
