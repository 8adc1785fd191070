//! A transition: the previous answer about a parent, the new one, and its root causes.
//!
//! It is recorded at the decision, so it exists in shadow mode too, and if a write is rejected. A change that is
//! reverted within one turn is none, and neither is a new message with the same reason.

use aggregator::{GroupRole, KindId, ObjectId, PolicyAnswer, PolicyId};
use readiness::rollup::ParentReason;
use readiness::{Reason, Time};
use serde::{Serialize, Serializer};
use watcher::reflector::ObjectRow;
use watcher::status::time;

use super::causes::{CauseFinder, names_children};
use super::node_reason::NodeReason;
use super::render::ConditionRenderer;

/// Maximum number of root causes.
pub const MAX_ROOT_CAUSES: usize = 5;
/// Maximum depth of the descent from cause to cause.
const MAX_CAUSE_DEPTH: usize = 6;

/// Reference to an object by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ObjectRef {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name; empty for a missing object that has none yet.
    pub name: String,
}

/// Object that keeps a parent from being ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RootCause {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// Verdict: `Failed`, `Stuck`, `Missing`, …
    pub verdict: &'static str,
    /// Reason.
    pub reason: NodeReason,
    /// Human-readable reason.
    pub detail: String,
}

/// Transition of one parent under one policy. Serialized, it is one line of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    /// Time of the decision.
    #[serde(serialize_with = "written::moment")]
    pub at: Time,
    /// The policy.
    pub policy: String,
    /// The parent.
    #[serde(flatten)]
    pub parent: ObjectRef,
    /// API version under which the parent is watched; set by the loop.
    pub version: String,
    /// The parent's uid.
    pub uid: String,
    /// The parent's `metadata.generation`.
    pub generation: Option<i64>,
    /// Previous reason; `None` if the parent is new.
    #[serde(serialize_with = "written::reason_before")]
    pub from: Option<ParentReason>,
    /// New reason. It determines verdict and status: [`ParentReason::child_level`], [`ParentReason::condition_status`].
    #[serde(serialize_with = "written::reason")]
    pub to: ParentReason,
    /// Condition message, at most 1 KiB.
    pub message: String,
    /// Root causes, worst first, at most five.
    pub causes: Vec<RootCause>,
    /// The policy is in shadow mode: nothing was written.
    pub shadow: bool,
    /// The parent's kind.
    #[serde(skip)]
    pub kind: KindId,
}

/// Serialized form of an answer.
#[derive(Serialize)]
struct AnswerSummary {
    verdict: &'static str,
    status: &'static str,
    reason: &'static str,
}

impl From<ParentReason> for AnswerSummary {
    fn from(reason: ParentReason) -> AnswerSummary {
        AnswerSummary {
            verdict: reason.child_level().as_str(),
            status: reason.condition_status().as_str(),
            reason: reason.as_str(),
        }
    }
}

/// Serializers of fields; serde passes references.
#[expect(clippy::trivially_copy_pass_by_ref, clippy::ref_option, reason = "serde's signature")]
mod written {
    use super::{AnswerSummary, ParentReason, Serialize, Serializer, Time, time};

    pub(super) fn reason<S: Serializer>(reason: &ParentReason, to: S) -> Result<S::Ok, S::Error> {
        AnswerSummary::from(*reason).serialize(to)
    }

    pub(super) fn reason_before<S: Serializer>(
        reason: &Option<ParentReason>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        reason.map(AnswerSummary::from).serialize(to)
    }

    pub(super) fn moment<S: Serializer>(at: &Time, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&time::format_millis(*at))
    }
}

/// Builds transitions from what is known now.
pub(super) struct TransitionBuilder<'a> {
    pub(super) renderer: ConditionRenderer<'a>,
}

impl TransitionBuilder<'_> {
    /// The transition of a parent that turned to this answer; `None` if it is no longer a parent.
    pub(super) fn build_transition(
        &self,
        now: Time,
        parent: ObjectId,
        policy: PolicyId,
        from: Option<ParentReason>,
        answer: PolicyAnswer,
    ) -> Option<Transition> {
        let mut causes = Vec::new();
        if names_children(answer.reason) {
            self.collect_root_causes(parent, policy, now, 0, &mut causes);
        }
        let generation =
            self.renderer.causes.reflector.read_row(parent, |row| row.parent.as_ref()?.generation())?;
        let (place, uid, kind) = self.parent_ref(parent)?;
        Some(Transition {
            at: now,
            policy: self.renderer.causes.policies.get(&policy).map(|p| p.name.clone()).unwrap_or_default(),
            parent: place,
            version: String::new(),
            uid,
            generation,
            from,
            to: answer.reason,
            message: self.renderer.render_message(parent, policy, answer, now),
            causes,
            shadow: self.renderer.causes.engine.is_shadow(policy),
            kind,
        })
    }

    /// Reference, uid and kind of a parent.
    pub(super) fn parent_ref(&self, parent: ObjectId) -> Option<(ObjectRef, String, KindId)> {
        let read =
            |row: &ObjectRow| Some((self.object_ref(row), row.parent.as_ref()?.uid.to_string(), row.kind));
        self.renderer.causes.reflector.read_row(parent, read)?
    }

    fn object_ref(&self, row: &ObjectRow) -> ObjectRef {
        ObjectRef {
            group: self.renderer.causes.kinds.group(row.kind).to_owned(),
            kind: self.renderer.causes.kinds.name(row.kind).to_owned(),
            namespace: row.namespace.to_string(),
            name: row.name.to_string(),
        }
    }

    /// Collects the objects at the bottom: for a child that is itself a parent, the causes of that one.
    fn collect_root_causes(
        &self,
        parent: ObjectId,
        policy: PolicyId,
        now: Time,
        depth: usize,
        into: &mut Vec<RootCause>,
    ) {
        let CauseFinder { engine, reflector, .. } = self.renderer.causes;
        for trouble in engine.unready_children(parent, policy, GroupRole::Critical) {
            if into.len() >= MAX_ROOT_CAUSES {
                return;
            }
            let answers = engine.policies_of(trouble.child).filter_map(|policy| {
                Some((policy, engine.answer_of(trouble.child, policy)?.counted_reason()))
            });
            let below = answers.min_by_key(|(policy, reason)| (reason.child_level(), *policy));
            let own = self.renderer.causes.is_held_by_itself(&trouble, now);
            let before = into.len();
            let names = |policy, reason| self.renderer.causes.names_causes(trouble.child, policy, reason);
            if let Some((below, _)) =
                below.filter(|(p, reason)| !own && depth < MAX_CAUSE_DEPTH && names(*p, *reason))
            {
                self.collect_root_causes(trouble.child, below, now, depth + 1, into);
            }
            if into.len() == before {
                let culprit = reflector.read_row(trouble.child, |row| {
                    let reason = &row.assessment_for(trouble.rule_index).verdict_at(now).reason;
                    let (reason, detail) = match below {
                        Some((_, said)) if !own => (NodeReason::Parent(said), String::new()),
                        _ => (NodeReason::Object(reason.clone()), reason.to_string()),
                    };
                    RootCause {
                        object: self.object_ref(row),
                        verdict: trouble.weight.level().as_str(),
                        reason,
                        detail,
                    }
                });
                into.extend(culprit.filter(|culprit| !into.contains(culprit)));
            }
        }
        let missing =
            self.renderer.causes.missing_lines(parent, policy).into_iter().map(|(level, kind, detail)| {
                RootCause {
                    object: ObjectRef { kind, ..ObjectRef::default() },
                    verdict: level.as_str(),
                    reason: NodeReason::Object(Reason::Missing),
                    detail,
                }
            });
        into.extend(missing.take(MAX_ROOT_CAUSES.saturating_sub(into.len())));
    }
}
