//! Data kept about an object that is a parent.

mod answer;
mod deletion;
mod extras;
mod targets;
mod text_reads;

use std::num::NonZeroI64;

use aggregator::{HandledEvidence, ParentView, PolicyId};
use arcstr::ArcStr;
use serde_json::value::RawValue;

use super::generation_practice::{GenerationPractice, SeenPractice, concludes, kept_generation};
use super::kopf::generation_start::GenerationStart;
use super::kopf::log::{KopfLogs, LoggedEnd};
use super::kopf::outcomes::{SeenFailure, judge_outcome, told_failure};
use super::kopf::{self, KopfMark};
use super::last_written::LastWrite;
use super::rules_of_parent::{OutrankedPolicy, RulesOfParent};
use super::selector_interner::Selectors;
use super::uid_key::{FullUid, UidKey};
use crate::plan::{Interest, ParentRule};
use crate::status::{OwnedCondition, ParentStatus, conditions_digest};
use crate::wire::{ChildObject, WireMeta};
use answer::{ReadParent, build_answer};
use deletion::explains_deletion;
pub(super) use extras::ParentExtras;
pub(super) use targets::TargetExtras;
use text_reads::{handled_evidence, heed_failure, read_status, spec_hash, told_in_field};

pub use deletion::ParentDeletion;
pub use targets::AnswerTarget;

/// A parent, as the renderer and the writer need it.
#[derive(Clone, Debug)]
pub struct ParentRow {
    /// `metadata.uid` in full: the precondition of every write.
    pub uid: FullUid,
    /// `metadata.generation`; `None` where the object has none.
    generation: Option<NonZeroI64>,
    /// Parsed status.
    pub status: ParentStatus,
    /// View passed to the engine.
    pub view: ParentView,
    /// Write targets, one per policy.
    pub targets: Box<[AnswerTarget]>,
    /// The operator is waited for because it keeps `status.observedGeneration` elsewhere, or may.
    pub awaits_generation: bool,
    /// What the operator's `status.observedGeneration`, and its absence, say of this parent.
    pub(super) practice: GenerationPractice,
    /// What other parents of its kind carry says something about this one.
    pub(super) concludes_from_others: bool,
    /// The mark of a Kopf operator.
    pub(super) kopf_mark: KopfMark,
    /// Since when the log of its Kopf operator is about its generation, where nothing else says how the handlers ended.
    pub(super) logged_since: GenerationStart,
    /// What few parents have.
    pub(super) extras: Option<Box<ParentExtras>>,
}

// Every parent has one for as long as it exists.
const _: () = assert!(size_of::<ParentRow>() <= 176);

/// Previous state of a parent, and knowledge from other parents of its policies, used when it is read again.
#[derive(Debug, Default)]
pub(super) struct PreviousParentState {
    /// The operator leaves a mark on parents that it has handled.
    pub(super) expects_mark: bool,
    /// The operator writes `status.observedGeneration` on parents that it has handled.
    pub(super) expects_generation: bool,
    /// Generations that the conditions were last observed to be about.
    pub(super) observed_generations: Vec<(PolicyId, u64)>,
    pub(super) overwritten_types: Vec<ArcStr>,
    pub(super) failure: Option<SeenFailure>,
    /// What it was told of a failure is what its status said. The schema may leave no message that shows it.
    pub(super) tells_status: bool,
    /// Condition types for which the fallback may stand there without having been overwritten: it stood there before, or
    /// another client owned the type.
    pub(super) left_types: Vec<ArcStr>,
    /// Conditions of others with the managers that wrote them, where the server may forget these.
    pub(super) managers: Vec<(Box<str>, Box<str>)>,
}

/// Reads a parent; `last` is the last write, for servers that drop fields from it, or put others in.
pub(super) fn read_parent_row(
    child: &ChildObject,
    object: &RawValue,
    interest: &Interest,
    of_parent: &RulesOfParent<'_>,
    selectors: &Selectors,
    (before, logs): (&PreviousParentState, &KopfLogs),
    last: Option<&LastWrite>,
) -> ParentRow {
    let (RulesOfParent { rules, outranked, .. }, meta) = (of_parent, &child.meta);
    let mut status = read_status(object, interest, of_parent, last);
    status.restore_managers(&before.managers);
    let counted = NonZeroI64::new(meta.generation.max(0));
    let generation = if interest.counted { meta.generation.max(0).unsigned_abs() } else { spec_hash(object) };
    let kopf = kopf::read_kopf_state(object);
    let overwritten_types = find_overwritten_types(&status, rules, before);
    let said = handled_evidence(meta, &kopf, &status, (interest.counted, before.expects_mark));
    let kopf_mark = KopfMark::of_state(&kopf);
    let logged_since = GenerationStart::where_heeded(kopf_mark, rules, object, meta);
    let logged = logs.find_end(UidKey::from_text(&meta.uid), logged_since, meta.generation);
    let logged = (logged, judge_outcome(said, &kopf, false, &status, rules));
    let told = (before.failure.as_ref(), before.tells_status);
    let failure = SeenFailure::find(&kopf, logged, meta.generation, told, &status);
    let said = judge_outcome(said, &kopf, failure.is_some(), &status, rules);
    let practice = GenerationPractice::of(&status, rules, interest.counted, said, before.expects_generation);
    let evidence = practice.evidence(&status, meta.generation, said);
    let reported = heed_failure(child, interest, rules, &status);
    let extras = ParentExtras {
        progress: kopf.progress.or_else(|| failure.as_ref()?.handlers.clone()),
        failure,
        tells_status: reported.is_some()
            || (before.tells_status && told_failure(meta.generation, &status).is_some()),
        reported,
        deletion: ParentDeletion::read(meta),
        overwritten_types,
        outranked: outranked.clone(),
    };
    let mut row = ParentRow {
        uid: FullUid::from_text(&meta.uid),
        generation: counted,
        view: ParentView {
            generation,
            evidence,
            deleting: meta.deleted.is_some(),
            deletion_unexplained: false,
            status_shape: status.shape,
            digest: conditions_digest(
                status.written().map(OwnedCondition::to_entry),
                kept_generation(&status, rules, practice),
            ),
            answers: Box::default(),
        },
        status,
        targets: Box::default(),
        awaits_generation: evidence == HandledEvidence::Unmarked && said == HandledEvidence::Silent,
        practice,
        concludes_from_others: concludes(rules),
        kopf_mark,
        logged_since,
        extras: extras.into_boxed(),
    };
    let told = told_in_field(child, interest);
    let read =
        ReadParent { told, ..row.as_read(meta, object, interest.counted, &before.observed_generations) };
    let (answers, targets): (Vec<_>, Vec<_>) =
        rules.iter().map(|rule| build_answer(read, (rule, rules), selectors)).unzip();
    (row.view.answers, row.targets) = (answers.into(), targets.into());
    row.view.deletion_unexplained = is_deletion_unexplained(&row);
    row
}

/// Returns `true` if what Rollcall says on a parent that is being deleted is to be said otherwise, or to be taken away. Where its
/// children go first, what holds it is more than itself can show.
fn is_deletion_unexplained(row: &ParentRow) -> bool {
    row.deletion().is_some_and(|deletion| {
        if deletion.is_in_foreground {
            return true;
        }
        let conditions: Vec<&str> =
            row.targets.iter().filter_map(|target| target.condition.as_deref()).collect();
        !explains_deletion(&row.status, &conditions, &deletion.text)
            || row.status.has_others_than(&conditions)
    })
}

/// Returns the condition types of the policies with a fallback that are known to keep being overwritten. Where the
/// fallback stands alone and nothing else explains it, an earlier process, or the replica that leads, has given the type
/// up: to take it back would only begin the fight again.
fn find_overwritten_types(
    status: &ParentStatus,
    rules: &[&ParentRule],
    before: &PreviousParentState,
) -> Vec<ArcStr> {
    let is_overwritten = |rule: &&&ParentRule| {
        let Some(fallback) = &rule.fallback else { return false };
        let vacant = !status.is_foreign(&rule.condition) && status.our_entry(&rule.condition).is_none();
        let stands_in = vacant && status.our_entry(fallback).is_some();
        before.overwritten_types.contains(&rule.condition)
            || (stands_in && !before.left_types.contains(&rule.condition))
    };
    rules.iter().filter(is_overwritten).map(|rule| rule.condition.clone()).collect()
}

impl ParentRow {
    /// `metadata.generation`; `None` where the object has none.
    pub fn generation(&self) -> Option<i64> {
        self.generation.map(NonZeroI64::get)
    }

    /// Handlers that hold up the operator, as far as it reports them.
    pub fn progress(&self) -> Option<&str> {
        self.extras.as_ref()?.progress.as_deref()
    }

    /// What its status says of a failure, in its own words.
    pub fn reported_failure(&self) -> Option<&str> {
        Some(&*self.extras.as_ref()?.reported.as_ref()?.text)
    }

    /// What its answers are read by.
    fn as_read<'r>(
        &'r self,
        meta: &'r WireMeta,
        object: &'r RawValue,
        counted: bool,
        observed: &'r [(PolicyId, u64)],
    ) -> ReadParent<'r> {
        ReadParent {
            meta,
            object,
            status: &self.status,
            overwritten: self.overwritten_types(),
            generation: self.view.generation,
            number: self.generation(),
            counted,
            practice: self.practice,
            observed,
            reported: self.extras.as_ref().and_then(|extras| extras.reported.as_ref()),
            told: None,
        }
    }

    /// What stands on it for a target: an entry of its type, or of the one that its policy wrote before it was edited.
    pub fn entry_of(&self, target: &AnswerTarget) -> Option<&OwnedCondition> {
        let mut kinds = target.condition.as_deref().into_iter().chain(target.former_type());
        kinds.find_map(|kind| self.status.our_entry(kind))
    }

    /// Its deletion; `None` if it is not being deleted.
    pub fn deletion(&self) -> Option<&ParentDeletion> {
        self.extras.as_ref()?.deletion.as_ref()
    }

    /// Policies that select it too, and leave it to an older one.
    pub fn outranked(&self) -> &[OutrankedPolicy] {
        self.extras.as_ref().map_or(&[], |extras| &extras.outranked)
    }

    fn overwritten_types(&self) -> &[ArcStr] {
        self.extras.as_ref().map_or(&[], |extras| &extras.overwritten_types)
    }

    pub(super) fn to_previous_state(&self, rules: &[&ParentRule]) -> PreviousParentState {
        let is_left = |rule: &&&ParentRule| {
            let fallback = rule.fallback.as_deref();
            self.status.is_foreign(&rule.condition)
                || fallback.is_some_and(|fallback| self.status.our_entry(fallback).is_some())
        };
        let about = self.view.answers.iter().filter(|answer| answer.is_about_generation);
        PreviousParentState {
            observed_generations: about.map(|answer| (answer.policy, self.view.generation)).collect(),
            overwritten_types: self.overwritten_types().to_vec(),
            failure: self.extras.as_ref().and_then(|extras| extras.failure.clone()),
            tells_status: self.extras.as_ref().is_some_and(|extras| extras.tells_status),
            left_types: rules.iter().filter(is_left).map(|rule| rule.condition.clone()).collect(),
            managers: self.status.managers_to_keep(),
            expects_mark: false,
            expects_generation: false,
        }
    }

    /// What it tells of its operator's use of `status.observedGeneration`; `counted` if generations are.
    pub(super) fn seen_practice(&self, counted: bool) -> SeenPractice {
        match () {
            () if counted && self.status.has_foreign_generation() => SeenPractice::Keeps,
            () if self.is_unaware_of_practice() => SeenPractice::Unaware,
            () => SeenPractice::Nothing,
        }
    }

    /// It was read before it was known that the operator of its kind keeps `status.observedGeneration`, and would have to know.
    fn is_unaware_of_practice(&self) -> bool {
        let may_keep = matches!(self.practice, GenerationPractice::MayKeep | GenerationPractice::Unseen);
        may_keep && self.concludes_from_others
    }

    /// Its operator keeps `status.observedGeneration`: its silence is no answer any more, and the field is left to it. Returns
    /// `true` if that changes anything.
    pub(super) fn await_generation(&mut self) -> bool {
        if !self.is_unaware_of_practice() {
            return false;
        }
        self.practice = GenerationPractice::Keeps;
        self.view.evidence = HandledEvidence::Unmarked;
        self.awaits_generation = true;
        for target in &mut self.targets {
            target.keeps_generation = false;
        }
        self.view.digest = conditions_digest(self.status.written().map(OwnedCondition::to_entry), None);
        true
    }

    /// Returns `true` if a policy speaks on it that is none of these.
    pub(super) fn is_of_others(&self, rules: &[ParentRule]) -> bool {
        self.targets.iter().any(|target| rules.iter().all(|rule| rule.policy != target.policy))
    }

    /// Lets policies follow those on it that are none of `rules`, by the type of the condition that stands there. Returns `true` if
    /// one does. A policy has one answer on a parent.
    pub(super) fn succeed_policies<'i>(
        &mut self,
        rules: &[ParentRule],
        find: impl Fn(&ArcStr) -> Option<&'i ParentRule>,
    ) -> bool {
        let mut taken: Vec<PolicyId> = self.targets.iter().map(|target| target.policy).collect();
        let mut moved = false;
        for (answer, target) in self.view.answers.iter_mut().zip(&mut self.targets) {
            let is_older = rules.iter().all(|rule| rule.policy != target.policy);
            let Some(condition) = target.condition.as_ref().filter(|_| is_older) else { continue };
            let Some(rule) = find(condition).filter(|rule| !taken.contains(&rule.policy)) else { continue };
            if !rule.writes(condition) {
                // Where somebody else has that type, the entry would stand there twice.
                if self.status.is_foreign(&rule.condition) {
                    continue;
                }
                target.rename(&rule.condition);
            }
            (answer.policy, target.policy) = (rule.policy, rule.policy);
            taken.push(rule.policy);
            moved = true;
        }
        moved
    }

    /// Returns `true` if the parent carries the mark of a Kopf operator, whatever its content.
    pub(super) fn has_kopf_mark(&self) -> bool {
        self.kopf_mark != KopfMark::Absent
    }

    /// Returns `true` if the mark of its Kopf operator would be the same after a failure, and nothing shows which it was.
    pub fn hides_outcome(&self) -> bool {
        self.kopf_mark == KopfMark::Unexplained
    }

    /// Returns `true` if the log of its operator may say how its handlers ended, and nothing else does.
    pub(super) fn heeds_log(&self) -> bool {
        self.logged_since.is_known()
    }

    /// Its operator has logged how the handlers of its generation ended. Returns `true` if that changes anything.
    pub(super) fn note_logged_end(&mut self, end: LoggedEnd) -> bool {
        let evidence = self.view.evidence;
        match (end, self.extras.as_mut().and_then(|extras| extras.failure.as_ref())) {
            (LoggedEnd::Failed(handlers), None) => {
                let generation = self.generation().unwrap_or(0);
                let extras = self.extras.get_or_insert_default();
                extras.progress.clone_from(&handlers);
                extras.failure = Some(SeenFailure { generation, handlers, unlogged: Some(evidence) });
                self.view.evidence = HandledEvidence::GivenUp;
            }
            (LoggedEnd::Succeeded, Some(SeenFailure { unlogged: Some(unlogged), .. })) => {
                self.view.evidence = *unlogged;
                let extras = self.extras.get_or_insert_default();
                (extras.progress, extras.failure) = (None, None);
            }
            _ => return false,
        }
        true
    }

    /// Returns `true` if nothing shows whether the parent was handled, neither a mark nor anything else.
    pub(super) fn has_no_evidence(&self) -> bool {
        self.view.evidence == HandledEvidence::Silent && !self.has_kopf_mark()
    }

    /// Switches to the fallback condition type, for policies that have one. What stands there by Rollcall alone is another
    /// replica's, that did not lead any more: nobody else wants the type.
    pub(super) fn use_fallback_type(&mut self) {
        let types = &mut self.extras.get_or_insert_default().overwritten_types;
        for condition in self.targets.iter().filter_map(|target| target.condition.as_ref()) {
            let is_undisputed = self.status.our_entry(condition).is_some_and(OwnedCondition::is_undisputed);
            if !is_undisputed && !types.contains(condition) {
                types.push(condition.clone());
            }
        }
    }

    /// Returns `true` if the write targets are equal.
    pub(super) fn has_equal_targets(&self, other: &ParentRow) -> bool {
        let key = |target: &AnswerTarget| (target.condition.clone(), target.extras.clone());
        self.targets.iter().map(key).eq(other.targets.iter().map(key))
    }
}
