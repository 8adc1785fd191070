//! The answer of one policy on a parent, and its target.

use aggregator::{AnswerView, PolicyId, WrittenAnswer};
use arcstr::ArcStr;
use serde_json::value::RawValue;

use super::super::generation_practice::{GenerationPractice, keeps_generation};
use super::super::selector_interner::Selectors;
use super::super::status_owner::ChosenCondition;
use super::targets::{AnswerTarget, RenderedTarget, TargetExtras, render_target};
use crate::plan::{OwnStatusRule, ParentRule};
use crate::status::{OwnedCondition, ParentStatus, StatusFailure};
use crate::wire::WireMeta;

/// What is known of a parent before its answers are read.
#[derive(Clone, Copy)]
pub(super) struct ReadParent<'r> {
    pub(super) meta: &'r WireMeta,
    pub(super) object: &'r RawValue,
    pub(super) status: &'r ParentStatus,
    /// Condition types that are known to keep being overwritten.
    pub(super) overwritten: &'r [ArcStr],
    /// Generation, as the engine counts it.
    pub(super) generation: u64,
    /// `metadata.generation`; `None` where the object has none.
    pub(super) number: Option<i64>,
    /// `metadata.generation` changes with the spec alone.
    pub(super) counted: bool,
    pub(super) practice: GenerationPractice,
    /// Generations that the conditions were last observed to be about.
    pub(super) observed: &'r [(PolicyId, u64)],
    /// Failure that its own status reports.
    pub(super) reported: Option<&'r StatusFailure>,
    /// What it says of itself where no condition does.
    pub(super) told: Option<bool>,
}

/// The answer of one policy, which is among these, as it is read from a parent, and where the next one is to be written.
pub(super) fn build_answer(
    parent: ReadParent<'_>,
    (rule, rules): (&ParentRule, &[&ParentRule]),
    selectors: &Selectors,
) -> (AnswerView, AnswerTarget) {
    let ReadParent { meta, object, status, overwritten, .. } = parent;
    let ChosenCondition { condition, keeper } = ChosenCondition::choose(meta, rule, status, overwritten);
    let ours = condition.and_then(|c| status.our_entry(c));
    let before = |chosen: &ArcStr| rule.former_entry(status, rule.unused_fallback(chosen, rules));
    let former = condition.filter(|_| ours.is_none()).and_then(before);
    let ours = ours.or(former);
    let is_about_generation = ours.and_then(OwnedCondition::observed_generation).is_some_and(|observed| {
        // If status writes also increment the generation, earlier conditions about the same spec remain valid.
        let was_about = (rule.policy, parent.generation);
        Some(observed) == parent.number || (!parent.counted && parent.observed.contains(&was_about))
    });
    let stalled_unrecorded =
        condition.is_none_or(|condition| *condition != "Ready") || status.is_foreign("Stalled");
    let written = ours.and_then(|o| {
        let since = o.last_transition().unwrap_or_default();
        let stalled = !stalled_unrecorded && status.our_entry("Stalled").is_some_and(OwnedCondition::is_true);
        Some(WrittenAnswer { reason: o.parent_reason()?, status: o.condition_status(), since, stalled })
    });
    let foreign = |kind: &str| status.foreign.iter().find(|(known, ..)| **known == *kind);
    let theirs = foreign(&rule.condition);
    // Whoever keeps the whole status says there how the parent is, if not by this type.
    let kept = keeper.filter(|_| condition.is_none()).and_then(|_| foreign("Ready"));
    let owner = keeper.or_else(|| theirs.map(|(_, owner, _)| &**owner));
    let mut rendered = RenderedTarget::default();
    rendered.for_engine.deletion_stuck_at =
        meta.deleted.zip(rule.deletion_limit).map(|(deleted, limit)| deleted + limit);
    let heeded = parent.reported.filter(|_| rule.own_status == OwnStatusRule::Failures);
    rendered.for_engine.reported_failure = heeded.map(|reported| reported.failure).unwrap_or_default();
    let refusal = rule.shape.as_ref().and_then(|shape| shape.refusal_of(&meta.namespace, object.get()));
    let unrendered = refusal.or_else(|| render_target(meta, object, rule, selectors, &mut rendered).err());
    let view = AnswerView {
        policy: rule.policy,
        written,
        is_about_generation,
        owned_by_other: condition.is_none(),
        template_failed: unrendered.is_some(),
        stalled_unrecorded,
        extras: rendered.for_engine.into_boxed(),
    };
    let extras = TargetExtras {
        owner: owner.map(Into::into),
        owner_says_true: theirs.or(kept).map(|(_, _, is_true)| *is_true).or(parent.told),
        names: rendered.names,
        unrendered: unrendered.map(Into::into),
        former_type: former.map(|former| former.kind().into()),
    };
    let target = AnswerTarget {
        policy: rule.policy,
        condition: condition.cloned(),
        keeps_generation: keeps_generation(status, rule, parent.practice),
        extras: extras.into_boxed(),
    };
    (view, target)
}
