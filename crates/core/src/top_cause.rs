//! The worst cause that holds a parent back, as words of closed sets and the name of one object: for metrics.

use aggregator::{GroupRole, ObjectId, PolicyId, UnreadyChild};
use readiness::rollup::ParentReason;
use readiness::{Level, ReasonToken, Time};

use super::causes::{CauseFinder, names_children};
use super::node_reason::NodeToken;

/// Reason of what does not exist.
const MISSING_TOKEN: NodeToken = NodeToken::Object(ReasonToken::Missing);
/// Maximum depth of the descent from cause to cause.
const MAX_CAUSE_DEPTH: usize = 6;

/// Worst cause that holds a parent back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopCause {
    /// Kind of the object as in metrics; empty if the cause is the parent itself, or if no child was created.
    pub kind: String,
    /// Name of the object; empty if it is missing.
    pub child: String,
    /// Verdict of the object.
    pub level: Level,
    /// Reason of the object's verdict, of the parent's answer, or `Missing`.
    pub reason: NodeToken,
}

/// Finds the worst causes that hold parents back.
pub(super) struct TopCauseFinder<'a> {
    pub(super) causes: CauseFinder<'a>,
}

impl TopCauseFinder<'_> {
    /// Worst cause of a parent with the reason `said`: the object at the bottom, if a child is itself a parent.
    pub(super) fn top_cause(
        &self,
        parent: ObjectId,
        policy: PolicyId,
        said: ParentReason,
        now: Time,
    ) -> TopCause {
        self.top_cause_below(parent, policy, said, now, 0)
    }

    fn top_cause_below(
        &self,
        parent: ObjectId,
        policy: PolicyId,
        said: ParentReason,
        now: Time,
        depth: usize,
    ) -> TopCause {
        let own = |level, reason| TopCause { kind: String::new(), child: String::new(), level, reason };
        let first = names_children(said)
            .then(|| self.causes.engine.unready_children(parent, policy, GroupRole::Critical).next());
        let first = first.flatten();
        if let Some(trouble) = first.filter(|trouble| trouble.weight.level() <= Level::Missing) {
            return self.top_cause_of(&trouble, now, depth);
        }
        // Before any child was created there is no other cause.
        let expects = names_children(said) || said == ParentReason::ChildrenPending;
        let missing = expects.then(|| self.causes.missing_lines(parent, policy).into_iter().min()).flatten();
        match (missing, first) {
            (Some((_, kind, _)), _) => {
                let surplus = said == ParentReason::TooManyChildren;
                let (level, reason) = if surplus {
                    (said.child_level(), NodeToken::Parent(said))
                } else {
                    (Level::Missing, MISSING_TOKEN)
                };
                TopCause { kind: self.kind_label_in(policy, &kind), ..own(level, reason) }
            }
            (None, Some(trouble)) => self.top_cause_of(&trouble, now, depth),
            (None, None) => own(said.child_level(), NodeToken::Parent(said)),
        }
    }

    fn top_cause_of(&self, trouble: &UnreadyChild, now: Time, depth: usize) -> TopCause {
        let level = trouble.weight.level();
        let (kind, child) = (self.causes.kinds.label(trouble.kind), trouble.child);
        let row = self.causes.reflector.read_row(child, |row| {
            let reason = &row.assessment_for(trouble.rule_index).verdict_at(now).reason;
            (row.name.to_string(), NodeToken::Object(reason.token()))
        });
        let (name, reason) = row.unwrap_or_else(|| (String::new(), MISSING_TOKEN));
        let named = |reason| TopCause { kind, child: name, level, reason };
        // An object being deleted is explained by its own state, regardless of its descendants.
        if self.causes.is_held_by_itself(trouble, now) {
            return named(reason);
        }
        let answers = self
            .causes
            .engine
            .policies_of(child)
            .filter_map(|p| Some((p, self.causes.engine.answer_of(child, p)?.counted_reason())));
        match answers.min_by_key(|(policy, reason)| (reason.child_level(), *policy)) {
            None => named(reason),
            Some((_, reason)) if depth >= MAX_CAUSE_DEPTH => named(NodeToken::Parent(reason)),
            Some((policy, reason)) => {
                let below = self.top_cause_below(child, policy, reason, now, depth + 1);
                if below.kind.is_empty() { named(below.reason) } else { below }
            }
        }
    }

    /// Metric label of a kind that a policy names.
    fn kind_label_in(&self, policy: PolicyId, kind: &str) -> String {
        let kinds = self.causes.policies.get(&policy).map(|words| words.kinds.as_slice()).unwrap_or_default();
        let known = kinds.iter().find(|id| self.causes.kinds.name(**id) == kind);
        known.map_or_else(|| kind.to_owned(), |id| self.causes.kinds.label(*id))
    }
}
