//! Renders answers as conditions of a parent.
//!
//! **Invariant:** rendering is deterministic: the same state gives the same text. Messages name objects and points in
//! time, never ages.

use aggregator::{GroupRole, HandledEvidence, KindState, ObjectId, PolicyAnswer, PolicyId};
use readiness::Time;
use readiness::rollup::{ConditionStatus, ParentReason};
use watcher::reflector::{AnswerTarget, ObjectRow, ParentRow, ProofVerdict};
use watcher::status::{
    AWAITS_MEMBERS, AWAITS_OPERATOR, BEING_DELETED, ConditionEntry, FAILED_TO_HANDLE, NOT_HANDLED,
    NOT_IN_TIME, NOT_PERMITTED, NOT_SEEN, OwnedCondition, POLICY_IS_REFUSED, STATUS_REPORTS,
    WantedConditions, is_in_our_words, time, truncate_text, withhold_added_types,
};

use super::awaited_children::awaited_children_text;
use super::causes::{CauseFinder, MAX_MESSAGE_BYTES};
use super::churn_text::churn_text;
use super::finalizer_flaps::FinalizerFlaps;
use super::policy_summary::ParentOperator;
use super::proof_queue::ProofQueue;

/// Why an operator that says nothing is waited for, where others of its parents carry its `observedGeneration`, or where it
/// writes a status in which Rollcall wrote that field.
const GENERATION_AWAITED: &str = "it may keep status.observedGeneration, and has not written this one; if it does not keep \
                                  the field, set observedGeneration: write in the policy";
/// Why Kopf's mark is not enough, where no child shows that its handlers did anything.
const OUTCOME_UNKNOWN: &str = "Kopf's mark names it, but no child has changed since, and a handler that failed leaves the same \
                               mark: let the operator keep its outcomes (rollcall_kopf.py), or set proof or evidence: own in the policy";
/// What is said beside a True where Kopf's mark alone says that the spec was handled.
const OUTCOME_HIDDEN: &str = "whether its Kopf operator succeeded cannot be seen";
/// The same, where only Rollcall ever wrote a status, and no child has changed since.
const GENERATION_MASKED: &str = "no child has changed since, and status.observedGeneration is Rollcall's own; if the \
                                 operator does not keep the field, set observedGeneration: write in the policy";

/// Renders the conditions of parents.
#[derive(Clone, Copy)]
pub(super) struct ConditionRenderer<'a> {
    pub(super) causes: CauseFinder<'a>,
    pub(super) flaps: &'a FinalizerFlaps,
    pub(super) proofs: &'a ProofQueue,
}

impl ConditionRenderer<'_> {
    /// All entries that `parent` is to have; `None` if it is no longer a parent.
    pub(super) fn render_conditions(&self, parent: ObjectId, now: Time) -> Option<WantedConditions> {
        let mut answers = self.causes.engine.answers_to_write(parent);
        // Every edit and every process gives new ids: the order of entries must not depend on them.
        answers.sort_by_key(|(policy, _)| (self.causes.policy_name(*policy), *policy));
        let messages: Vec<String> =
            answers.iter().map(|(policy, a)| self.render_message(parent, *policy, *a, now)).collect();
        self.causes
            .reflector
            .read_row(parent, |row| {
                let (kind, row) = (row.kind, row.parent.as_ref()?);
                let mut wanted = WantedConditions::default();
                for ((policy, answer), message) in answers.iter().zip(messages) {
                    if let Some(target) = row.targets.iter().find(|t| t.policy == *policy) {
                        let handled = self.causes.engine.is_handled(parent, *policy);
                        push_entries(&mut wanted, row, target, *answer, handled, &message, now);
                    }
                }
                let brevity = self.causes.engine.brevity(parent, now);
                self.causes.reflector.status_bounds(kind).shorten(brevity, &mut wanted);
                keep_while_undecided(&mut wanted, row, self.undecided_conditions(parent, row));
                if !self.causes.engine.may_add_types(parent, now) {
                    withhold_added_types(&row.status, &mut wanted);
                }
                Some(wanted)
            })
            .flatten()
    }

    /// Condition types of policies that apply to this parent but have no answer yet: their entries stay as they are.
    fn undecided_conditions(&self, parent: ObjectId, row: &ParentRow) -> Vec<String> {
        let silent = |target: &&AnswerTarget| !self.causes.engine.has_evaluated(parent, target.policy);
        let types = |of: &AnswerTarget| {
            of.condition.as_deref().into_iter().chain(of.former_type()).map(str::to_owned).collect::<Vec<_>>()
        };
        row.targets.iter().filter(silent).flat_map(types).collect()
    }

    /// Message of the condition of a parent under one policy, with this answer.
    pub(super) fn render_message(
        &self,
        parent: ObjectId,
        policy: PolicyId,
        answer: PolicyAnswer,
        now: Time,
    ) -> String {
        let causes = self.causes;
        let PolicyAnswer { total, ready, .. } = answer;
        // If status writes change the generation too, naming it would make each write cause another one.
        let counted = |p: &ParentRow| p.generation().filter(|n| u64::try_from(*n) == Ok(p.view.generation));
        let generation =
            self.causes.reflector.read_row(parent, |row| row.parent.as_deref().and_then(counted)).flatten();
        let generation = generation.map_or_else(|| " its spec".to_owned(), |n| format!(" generation {n}"));
        let text = match answer.reason {
            ParentReason::AllChildrenReady => self.ready_text(parent, policy, answer, now),
            ParentReason::ChildrenSettling => format!("{ready} of {total} ready, settling"),
            ParentReason::ChildrenPending if !self.causes.has_operator(policy) => {
                format!("{AWAITS_MEMBERS}{generation}")
            }
            ParentReason::ChildrenPending => {
                format!("{AWAITS_OPERATOR}{generation}{}", self.pending_text(parent, policy))
            }
            ParentReason::OperatorSilent => {
                format!("{NOT_HANDLED}{generation}{}", self.silence_text(parent, policy))
            }
            ParentReason::OperatorFailed => {
                format!("{FAILED_TO_HANDLE}{generation}{}", self.failure_text(parent))
            }
            ParentReason::Terminating | ParentReason::DeletionStuck => {
                self.deletion_text(parent, policy, answer)
            }
            ParentReason::KindNotVisible => {
                format!("{NOT_PERMITTED} {}", self.kinds_in(policy, KindState::Forbidden))
            }
            ParentReason::WatchStale => {
                format!("{NOT_SEEN} {}", self.kinds_in(policy, KindState::Stale))
            }
            ParentReason::PolicyRefused => {
                let name = self.causes.policy_name(policy).unwrap_or_default();
                format!("{POLICY_IS_REFUSED}{name} is refused, and there is no accepted version to judge by")
            }
            ParentReason::TemplateFailed => causes.template_error(parent, policy),
            // Reports the cause it was waiting for when the deadline passed; it still holds.
            ParentReason::DeadlineExceeded if !causes.template_error(parent, policy).is_empty() => {
                format!("{NOT_IN_TIME}{}", causes.template_error(parent, policy))
            }
            ParentReason::DeadlineExceeded if causes.is_generation_unhandled(parent, policy) => {
                format!("{NOT_HANDLED}{generation}{}", self.silence_text(parent, policy))
            }
            ParentReason::RuleChanged => {
                "the rule for its children changed, and they could not be evaluated again yet".to_owned()
            }
            _ => self.unready_text(parent, policy, answer, now),
        };
        let cycles = match self.causes.engine.reader().cyclic_edge_count(parent, policy) {
            0 => String::new(),
            cycles => format!("; not counted: {cycles} in a cycle of owners or references"),
        };
        let finalizers = self.flaps.text_about(&self.causes, parent, policy);
        let between = if finalizers.is_empty() { "" } else { "; " };
        truncate_text(text + &cycles + between + &finalizers, MAX_MESSAGE_BYTES)
    }

    /// Describes what keeps a parent from being ready.
    fn unready_text(&self, parent: ObjectId, policy: PolicyId, answer: PolicyAnswer, now: Time) -> String {
        let PolicyAnswer { total, ready, reason, .. } = answer;
        let text = self.causes.causes_text(parent, policy, GroupRole::Critical, now);
        match total - ready {
            // A child that was missing has just come, and the answer is not evaluated anew yet.
            _ if text.is_empty() => {
                format!("0 of {total} not ready: its children have changed, and are evaluated again")
            }
            0 if reason == ParentReason::DeadlineExceeded => format!("{NOT_IN_TIME}{text}"),
            0 => text,
            unready => format!("{unready} of {total} not ready: {text}"),
        }
    }

    /// Describes a ready parent: critical children that are not ready and are counted on all the same, and optional ones.
    fn ready_text(&self, parent: ObjectId, policy: PolicyId, answer: PolicyAnswer, now: Time) -> String {
        let PolicyAnswer { total, ready, .. } = answer;
        let causes = self.causes;
        let after =
            |title: &str, text: String| if text.is_empty() { text } else { format!("; {title}{text}") };
        let is_tolerating = self.causes.engine.is_tolerating(parent, policy);
        let unready = if is_tolerating { churn_text(&causes, parent, policy, now) } else { String::new() };
        let optional = causes.causes_text(parent, policy, GroupRole::Optional, now);
        let hidden = self.hidden_outcome_text(parent, policy);
        format!("{ready} of {total} ready{}{}{hidden}", after("", unready), after("optional: ", optional))
    }

    /// What the parent must not keep to itself: that its operator has handled the spec is known by Kopf's mark, which is the same after
    /// a failure.
    fn hidden_outcome_text(&self, parent: ObjectId, policy: PolicyId) -> String {
        if self.causes.operator(policy) != ParentOperator::TakenByMark {
            return String::new();
        }
        let hidden = self
            .causes
            .reflector
            .read_row(parent, |row| row.parent.as_deref().is_some_and(ParentRow::hides_outcome));
        hidden.filter(|hidden| *hidden).map(|_| format!("; {OUTCOME_HIDDEN}")).unwrap_or_default()
    }

    /// Progress that the operator reports, if it does.
    fn operator_progress(&self, parent: ObjectId) -> String {
        let said = self
            .causes
            .reflector
            .read_row(parent, |row| row.parent.as_ref()?.progress().map(str::to_owned))
            .flatten();
        said.map(|said| format!(": {said}")).unwrap_or_default()
    }

    /// What failed: handlers, as far as the operator reports them, or what the parent's status says of it.
    fn failure_text(&self, parent: ObjectId) -> String {
        let said = self.causes.reflector.read_row(parent, |row| {
            let parent = row.parent.as_ref()?;
            let reported = || Some(format!(": {STATUS_REPORTS}{}", parent.reported_failure()?));
            parent.progress().map(|handlers| format!(": {handlers}")).or_else(reported)
        });
        said.flatten().unwrap_or_default()
    }

    /// Progress that the operator reports; else what is wrong with the proof that is awaited.
    fn pending_text(&self, parent: ObjectId, policy: PolicyId) -> String {
        let progress = self.operator_progress(parent);
        if progress.is_empty() { self.proof_text(parent, policy) } else { progress }
    }

    /// Says why the proof that the policy asks for is not given, if it is awaited.
    fn proof_text(&self, parent: ObjectId, policy: PolicyId) -> String {
        let verdict = self.proofs.last_verdict(parent, policy);
        let text = match verdict.filter(|_| self.causes.engine.reader().lacks_proof(parent, policy)) {
            None | Some(ProofVerdict::Holds | ProofVerdict::Outdated) => return String::new(),
            Some(ProofVerdict::DoesNotHold) => "does not hold yet",
            Some(ProofVerdict::FieldAbsent) => "reads a field that is absent",
            Some(ProofVerdict::TooLarge) => "reads more than 16 KiB of an object",
            Some(ProofVerdict::Stopped) => "was stopped at its limit",
            Some(ProofVerdict::NoValue) => "has no value for these objects",
        };
        format!(": the policy's proof {text}")
    }

    /// The same; else why its silence is not enough, where no later write may ever say more.
    fn silence_text(&self, parent: ObjectId, policy: PolicyId) -> String {
        let progress = self.operator_progress(parent);
        let read = |row: &ObjectRow| row.parent.as_ref().map(|p| (p.view.evidence, p.awaits_generation));
        match self.causes.reflector.read_row(parent, read).flatten() {
            _ if !progress.is_empty() => progress,
            _ if self.causes.engine.reader().lacks_proof(parent, policy) => self.proof_text(parent, policy),
            Some((HandledEvidence::Unmarked, true)) => format!(": {GENERATION_AWAITED}"),
            Some((HandledEvidence::Unproven, _)) => format!(": {OUTCOME_UNKNOWN}"),
            Some((HandledEvidence::Masked, _)) if !self.causes.engine.is_handled(parent, policy) => {
                format!(": {GENERATION_MASKED}")
            }
            _ => progress,
        }
    }

    fn kinds_in(&self, policy: PolicyId, state: KindState) -> String {
        let kinds = self.causes.policies.get(&policy).map(|p| p.kinds.as_slice()).unwrap_or_default();
        let mut names: Vec<_> = kinds
            .iter()
            .filter(|k| self.causes.engine.kind_state(**k) == state)
            .map(|k| self.causes.kinds.label(*k))
            .collect();
        names.sort_unstable();
        names.dedup();
        names.join(", ")
    }

    /// Describes what holds the deletion of a parent, and whether that lasts for too long.
    fn deletion_text(&self, parent: ObjectId, policy: PolicyId, answer: PolicyAnswer) -> String {
        let text = |row: &ObjectRow| Some(row.parent.as_ref()?.deletion()?.text.to_string());
        let children = awaited_children_text(&self.causes, parent, policy);
        let text = self
            .causes
            .reflector
            .read_row(parent, text)
            .flatten()
            .unwrap_or_else(|| BEING_DELETED.to_owned());
        match answer.reason {
            ParentReason::DeletionStuck => {
                format!("{text}; longer than limits.terminating of the policy allows{children}")
            }
            _ => text + &children,
        }
    }
}

fn push_entries(
    wanted: &mut WantedConditions,
    row: &ParentRow,
    target: &AnswerTarget,
    answer: PolicyAnswer,
    handled: bool,
    message: &str,
    now: Time,
) {
    let Some(condition) = &target.condition else { return };
    let current = row.view.answers.iter().any(|a| a.policy == target.policy && a.is_about_generation);
    let mut push = |kind: &str, status: ConditionStatus| {
        // What a policy said under the type that it had before tells as well since when it is so.
        let held = if *kind == **condition { row.entry_of(target) } else { row.status.our_entry(kind) };
        let entry = condition_entry(held, kind, status, answer.reason, message, now);
        debug_assert!(is_in_our_words(&entry, true), "an earlier process would not be known by {entry:?}");
        wanted.entries.push(with_generation(entry, row, current));
    };
    push(condition, answer.reason.condition_status());
    if &**condition == "Ready" {
        for (kind, holds) in [("Reconciling", answer.reconciling), ("Stalled", answer.stalled)] {
            if holds && !row.status.is_foreign(kind) {
                push(kind, ConditionStatus::True);
            }
        }
    }
    if target.keeps_generation {
        let claims = claims_generation(row, answer, handled);
        wanted.observed_generation = if claims { row.generation() } else { row.status.observed_generation() };
    }
}

/// Returns `true` if `status.observedGeneration` is to name the current generation: with the answers at which those who read by
/// kstatus stop waiting, and with no other. Until then the operator's own word, whatever it writes, changes the value, so that
/// it is seen. Where nothing but its silence speaks, a generation that it was not taken to have handled is never claimed.
fn claims_generation(row: &ParentRow, answer: PolicyAnswer, handled: bool) -> bool {
    let is_silent = matches!(row.view.evidence, HandledEvidence::Silent | HandledEvidence::Masked);
    let fails = answer.stalled && answer.reason != ParentReason::DeletionStuck;
    let is_final = answer.reason == ParentReason::AllChildrenReady || fails;
    is_final && (handled || !is_silent)
}

/// Entry as wanted; `lastTransitionTime` changes only with the status.
fn condition_entry(
    held: Option<&OwnedCondition>,
    kind: &str,
    is: ConditionStatus,
    reason: ParentReason,
    message: &str,
    now: Time,
) -> ConditionEntry {
    // A CRD's default has the beginning of time.
    let since = held
        .filter(|held| held.condition_status() == Some(is) && held.last_transition() > Some(Time(0)))
        .map(OwnedCondition::last_transition_time)
        .filter(|since| !since.is_empty());
    ConditionEntry {
        r#type: kind.to_owned(),
        status: is.as_str().to_owned(),
        observed_generation: None,
        last_transition_time: since.unwrap_or_else(|| time::format_seconds(now)),
        reason: reason.as_str().to_owned(),
        message: message.to_owned(),
    }
}

/// Sets the generation of an entry.
///
/// If status writes change the generation too (no status subresource), our own write creates the next one, so the entry
/// names that one. An entry with unchanged content for the same spec keeps its generation, or each write would cause
/// another one.
fn with_generation(mut entry: ConditionEntry, row: &ParentRow, current: bool) -> ConditionEntry {
    let counted = row.generation().is_none_or(|n| u64::try_from(n) == Ok(row.view.generation));
    entry.observed_generation = row.generation().map(|n| if counted { n } else { n + 1 });
    let held = row.status.our_entry(&entry.r#type).map(OwnedCondition::to_entry);
    if let Some(held) = held.filter(|_| !counted && current) {
        let undated = ConditionEntry { observed_generation: held.observed_generation, ..entry.clone() };
        if undated == held {
            return undated;
        }
    }
    entry
}

/// Before all kinds of a policy were listed it has no answer, but its existing entries must not be removed for that
/// reason.
fn keep_while_undecided(wanted: &mut WantedConditions, row: &ParentRow, undecided: Vec<String>) {
    let keeps = |condition: &str| {
        let target = row.targets.iter().find(|target| target.condition.as_deref() == Some(condition));
        target.is_some_and(|target| target.keeps_generation)
    };
    if wanted.observed_generation.is_none() && undecided.iter().any(|condition| keeps(condition)) {
        wanted.observed_generation = row.status.observed_generation();
    }
    for condition in undecided {
        let beside = if &*condition == "Ready" { &["Reconciling", "Stalled"][..] } else { &[] };
        for kind in std::iter::once(&*condition).chain(beside.iter().copied()) {
            if let Some(held) = row.status.our_entry(kind)
                && !wanted.entries.iter().any(|e| e.r#type == kind)
            {
                wanted.entries.push(held.to_entry());
            }
        }
    }
}
