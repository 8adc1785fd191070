//! Root causes as text: at most three kinds of cause with three names each, deterministic for the same state.

use std::collections::BTreeMap;
use std::fmt::Write;

use aggregator::{Engine, GroupRole, HandledEvidence, ObjectId, PolicyId, UnreadyChild};
use readiness::rollup::ParentReason;
use readiness::{Level, Reason, Time};
use watcher::reflector::{ObjectRow, Reflector, name_hash};
use watcher::status::{ARE_TOO_MANY, IS_MISSING, NO_CHILDREN};

use super::kind_names::KindNames;
use super::policy_summary::{ParentOperator, PolicySummary};
use super::quote_texts::QuoteTexts;

/// Maximum number of kinds of cause in a message.
const MAX_CAUSE_KINDS: usize = 3;
/// Maximum number of names per kind of cause.
pub(super) const MAX_NAMES_PER_CAUSE: usize = 3;
/// Maximum size of a message, in bytes.
pub(super) const MAX_MESSAGE_BYTES: usize = 1_024;

/// Causes of one severity and kind: the first few names, and their number.
#[derive(Default)]
struct CauseGroup {
    first: BTreeMap<String, UnreadyChild>,
    count: usize,
}

/// One line of a message: severity, kind, text.
type CauseLine = (Level, String, String);

/// Finds the causes for which parents are not ready, and puts them into words.
#[derive(Clone, Copy)]
pub(super) struct CauseFinder<'a> {
    pub(super) engine: &'a Engine,
    pub(super) reflector: &'a Reflector,
    pub(super) kinds: &'a KindNames,
    pub(super) policies: &'a BTreeMap<PolicyId, PolicySummary>,
    pub(super) quotes: &'a QuoteTexts,
}

impl CauseFinder<'_> {
    /// Text of a parent's causes, worst first; empty if there are none.
    pub(super) fn causes_text(
        &self,
        parent: ObjectId,
        policy: PolicyId,
        role: GroupRole,
        now: Time,
    ) -> String {
        self.causes_text_of(parent, policy, role, now, &|_| true)
    }

    /// The same of the children that `counts` chooses, and of those that are missing.
    pub(super) fn causes_text_of(
        &self,
        parent: ObjectId,
        policy: PolicyId,
        role: GroupRole,
        now: Time,
        counts: &dyn Fn(&UnreadyChild) -> bool,
    ) -> String {
        let lines = self.cause_lines((parent, policy), role, now, counts);
        let more = lines.len().saturating_sub(MAX_CAUSE_KINDS);
        let mut text: Vec<String> =
            lines.into_iter().take(MAX_CAUSE_KINDS).map(|(_, _, text)| text).collect();
        if more > 0 {
            text.push(format!("and {more} more kinds of trouble"));
        }
        text.join(", ")
    }

    /// Name of a policy, by which what several of them say is ordered.
    pub(super) fn policy_name(&self, policy: PolicyId) -> Option<&str> {
        self.policies.get(&policy).map(|words| words.name.as_str())
    }

    /// Returns `true` if an operator is to handle the parents of this policy.
    pub(super) fn has_operator(&self, policy: PolicyId) -> bool {
        self.operator(policy) != ParentOperator::None
    }

    /// Who creates the children of the parents of this policy.
    pub(super) fn operator(&self, policy: PolicyId) -> ParentOperator {
        self.policies.get(&policy).map_or(ParentOperator::default(), |words| words.operator)
    }

    /// The first of these troubles.
    pub(super) fn first_cause(&self, parent: ObjectId, policy: PolicyId, now: Time) -> Option<String> {
        let lines = self.cause_lines((parent, policy), GroupRole::Critical, now, &|_| true);
        lines.into_iter().next().map(|(_, _, text)| text)
    }

    fn cause_lines(
        &self,
        (parent, policy): (ObjectId, PolicyId),
        role: GroupRole,
        now: Time,
        counts: &dyn Fn(&UnreadyChild) -> bool,
    ) -> Vec<CauseLine> {
        let mut lines = self.trouble_lines((parent, policy), role, now, counts);
        if role == GroupRole::Critical {
            lines.extend(self.missing_lines(parent, policy));
        }
        lines.sort();
        lines
    }

    fn trouble_lines(
        &self,
        (parent, policy): (ObjectId, PolicyId),
        role: GroupRole,
        now: Time,
        counts: &dyn Fn(&UnreadyChild) -> bool,
    ) -> Vec<CauseLine> {
        let mut heaps: BTreeMap<(Level, &str), CauseGroup> = BTreeMap::new();
        let namespace = self.reflector.read_row(parent, |row| row.namespace.clone()).unwrap_or_default();
        for trouble in self.engine.unready_children(parent, policy, role).filter(counts) {
            let named = self.reflector.read_row(trouble.child, |row| name_beside(row, &namespace));
            let heap = heaps.entry((trouble.weight.level(), self.kinds.name(trouble.kind))).or_default();
            heap.count += 1;
            heap.first.insert(named.unwrap_or_default(), trouble);
            if heap.first.len() > MAX_NAMES_PER_CAUSE {
                heap.first.pop_last();
            }
        }
        let line = |((level, kind), heap): ((Level, &str), CauseGroup)| {
            (level, kind.to_owned(), self.cause_line(level, kind, &heap, now))
        };
        heaps.into_iter().map(line).collect()
    }

    fn cause_line(&self, level: Level, kind: &str, heap: &CauseGroup, now: Time) -> String {
        let told = heap.first.iter().map(|(name, trouble)| {
            let detail = self.cause_detail(trouble, now);
            let detail = if detail.is_empty() { detail } else { format!(" ({detail})") };
            format!("{kind} {name} {}{detail}", level.as_str().to_lowercase())
        });
        let mut text = told.collect::<Vec<_>>().join(", ");
        if heap.count > heap.first.len() {
            _ = write!(text, " and {} more", heap.count - heap.first.len());
        }
        text
    }

    /// Why this child is not ready: in its own words where it is a parent itself, else what its rule says.
    pub(super) fn cause_detail(&self, trouble: &UnreadyChild, now: Time) -> String {
        let mut answers = self.engine.policies_of(trouble.child);
        let judged = answers.any(|policy| self.engine.answer_of(trouble.child, policy).is_some());
        if judged && !self.is_held_by_itself(trouble, now) {
            return self.quotes.of(trouble.child).to_owned();
        }
        if trouble.rule_changed {
            return Reason::RuleChanged.to_string();
        }
        let through =
            |row: &ObjectRow| row.assessment_for(trouble.rule_index).verdict_at(now).reason.to_string();
        self.reflector.read_row(trouble.child, through).unwrap_or_default()
    }

    /// Being deleted, and being stuck in that, is what a parent says itself, whatever is below it.
    pub(super) fn is_held_by_itself(&self, trouble: &UnreadyChild, now: Time) -> bool {
        let held = |level| matches!(level, Level::Terminating | Level::Stuck);
        let own = |row: &ObjectRow| held(row.assessment_for(trouble.rule_index).verdict_at(now).level);
        self.engine.reader().is_deleting(trouble.child)
            && self.reflector.read_row(trouble.child, own).unwrap_or(true)
    }

    /// Lines about missing and surplus children.
    pub(super) fn missing_lines(&self, parent: ObjectId, policy: PolicyId) -> Vec<CauseLine> {
        let Some(words) = self.policies.get(&policy) else { return Vec::new() };
        let mut lines = Vec::new();
        let mut total = 0;
        for (at, group) in (0..=u8::MAX).zip(&words.groups) {
            if self.engine.group_role(policy, at) == Some(GroupRole::Optional) {
                continue;
            }
            let (count, min) = (
                self.engine.group_tally(parent, policy, at).total_count(),
                self.engine.expected(parent, policy, at),
            );
            total += if self.engine.is_prerequisite(policy, at) { 0 } else { count };
            if count < min {
                let text = format!("{}{IS_MISSING} ({count} of at least {min} found)", group.kind);
                lines.push((Level::Missing, group.kind.clone(), text));
            }
            if let Some(max) = group.max.filter(|max| count > *max) {
                let text = format!("{}{ARE_TOO_MANY} ({count} found, at most {max} expected)", group.kind);
                lines.push((Level::Missing, group.kind.clone(), text));
            }
        }
        lines.extend(self.jointly_missing(parent, policy, words));
        lines.extend(self.missing_names(parent, policy, words));
        let min = words.min.max(1);
        if lines.is_empty() && total < min {
            let text = match total {
                0 => format!("{NO_CHILDREN} (at least {min} expected)"),
                _ => format!("children{IS_MISSING} ({total} of at least {min} found)"),
            };
            lines.push((Level::Missing, String::new(), text));
        }
        lines
    }

    /// Lines about groups that have fewer children together than are expected of them, or more.
    fn jointly_missing(&self, parent: ObjectId, policy: PolicyId, words: &PolicySummary) -> Vec<CauseLine> {
        let mut lines = Vec::new();
        for (what, joint) in &words.joint {
            let critical = joint
                .groups
                .clone()
                .filter(|at| self.engine.group_role(policy, *at) == Some(GroupRole::Critical));
            let count: u32 =
                critical.map(|at| self.engine.group_tally(parent, policy, at).total_count()).sum();
            let text = if count < joint.min {
                format!("{what}{IS_MISSING} ({count} of at least {} found)", joint.min)
            } else if let Some(max) = joint.max.filter(|max| count > *max) {
                format!("{what}{ARE_TOO_MANY} ({count} found, at most {max} expected)")
            } else {
                continue;
            };
            lines.push((Level::Missing, String::new(), text));
        }
        lines
    }

    fn missing_names(&self, parent: ObjectId, policy: PolicyId, words: &PolicySummary) -> Vec<CauseLine> {
        let names = self.reflector.read_row(parent, |row| {
            let target = row.parent.as_ref()?.targets.iter().find(|t| t.policy == policy)?;
            Some(target.names().to_vec())
        });
        let kind = |group: u8| words.groups.get(usize::from(group)).map_or("", |g| &g.kind).to_owned();
        let mut missing = names.flatten().unwrap_or_default();
        missing.retain(|(group, name)| {
            !self.engine.reader().has_named_child(parent, policy, *group, name_hash(name))
        });
        missing.sort();
        missing
            .into_iter()
            .map(|(group, name)| (Level::Missing, kind(group), format!("{} {name}{IS_MISSING}", kind(group))))
            .collect()
    }

    /// Does a parent that says so name its children as the causes of that?
    pub(super) fn names_causes(&self, parent: ObjectId, policy: PolicyId, reason: ParentReason) -> bool {
        let named = match reason {
            ParentReason::DeadlineExceeded => {
                self.template_error(parent, policy).is_empty()
                    && !self.is_generation_unhandled(parent, policy)
            }
            _ => true,
        };
        named && names_children(reason)
    }

    /// True if the operator has not handled the current generation.
    pub(super) fn is_generation_unhandled(&self, parent: ObjectId, policy: PolicyId) -> bool {
        if self.engine.reader().lacks_proof(parent, policy) {
            return true;
        }
        let evidence = self.reflector.read_row(parent, |row| row.parent.as_ref().map(|p| p.view.evidence));
        match evidence.flatten() {
            Some(
                HandledEvidence::NotYet
                | HandledEvidence::Unmarked
                | HandledEvidence::Failed
                | HandledEvidence::GivenUp,
            ) => true,
            Some(HandledEvidence::Masked | HandledEvidence::Unproven) => {
                !self.engine.is_handled(parent, policy)
            }
            _ => false,
        }
    }

    /// Why a template of the policy cannot be rendered for this parent; empty where it can.
    pub(super) fn template_error(&self, parent: ObjectId, policy: PolicyId) -> String {
        let error = self.reflector.read_row(parent, |row| {
            let target = row.parent.as_ref()?.targets.iter().find(|t| t.policy == policy)?;
            Some(target.unrendered()?.to_owned())
        });
        error.flatten().unwrap_or_default()
    }
}

/// Name of an object in a text about one of this namespace.
pub(super) fn name_beside(row: &ObjectRow, namespace: &str) -> String {
    if *row.namespace == *namespace || row.namespace.is_empty() {
        row.name.to_string()
    } else {
        format!("{}/{}", row.namespace, row.name)
    }
}

/// True if children are the cause, so that the message names them.
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
