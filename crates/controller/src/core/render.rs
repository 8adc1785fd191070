//! From answers to entries: the words that a parent will say.
//!
//! **Invariant:** the same world gives the same words. Messages name objects and instants, never ages.

use aggregator::{Answer, Evidence, KindState, ObjectId, PolicyId, Role};
use readiness::Time;
use readiness::rollup::{ParentReason, Status};
use watcher::reflector::{AnswerTarget, ParentRow};
use watcher::status::{Entry, ParentStatus, Wanted, time};

use super::Core;
use super::causes::bounded;

impl Core {
    /// Everything that `parent` is to say; `None` where it is not a parent any more.
    pub fn render(&self, parent: ObjectId, now: Time) -> Option<Wanted> {
        let answers = self.engine.answers(parent);
        let messages: Vec<String> =
            answers.iter().map(|(policy, a)| self.message(parent, *policy, *a, now)).collect();
        self.reflector
            .read(parent, |row| {
                let row = row.parent.as_ref()?;
                let mut wanted = Wanted::default();
                for ((policy, answer), message) in answers.iter().zip(messages) {
                    if let Some(target) = row.targets.iter().find(|t| t.policy == *policy) {
                        push_entries(&mut wanted, row, target, *answer, &message, now);
                    }
                }
                keep_while_undecided(&mut wanted, row, self.undecided(parent, row));
                Some(wanted)
            })
            .flatten()
    }

    /// Policies that apply to this parent but have nothing to say yet: what stands for them stays.
    fn undecided(&self, parent: ObjectId, row: &ParentRow) -> Vec<Box<str>> {
        let silent = |target: &&AnswerTarget| !self.engine.has_judged(parent, target.policy);
        row.targets.iter().filter(silent).filter_map(|t| t.condition.clone()).collect()
    }

    pub(super) fn message(&self, parent: ObjectId, policy: PolicyId, answer: Answer, now: Time) -> String {
        let Answer { total, ready, .. } = answer;
        // Where status writes move the generation too, naming it would make each write call for another.
        let counted = |p: &ParentRow| p.generation.filter(|n| *n as u64 == p.view.generation);
        let generation = self.reflector.read(parent, |row| row.parent.as_deref().and_then(counted)).flatten();
        let generation = generation.map_or_else(|| " its spec".to_owned(), |n| format!(" generation {n}"));
        let text = match answer.reason {
            ParentReason::AllChildrenReady => {
                let optional = self.causes(parent, policy, Role::Optional, now);
                let beside = if optional.is_empty() { optional } else { format!("; optional: {optional}") };
                format!("{ready} of {total} ready{beside}")
            }
            ParentReason::ChildrenSettling => format!("{ready} of {total} ready, settling"),
            ParentReason::ChildrenPending => {
                format!("waiting for the operator to handle{generation}{}", self.progress(parent))
            }
            ParentReason::OperatorSilent => {
                format!("the operator has not handled{generation}{}", self.progress(parent))
            }
            ParentReason::Terminating => "being deleted".to_owned(),
            ParentReason::KindNotVisible => {
                format!("not permitted to list and watch {}", self.kinds_in(policy, KindState::Forbidden))
            }
            ParentReason::WatchStale => {
                format!("can neither watch nor list {}", self.kinds_in(policy, KindState::Stale))
            }
            ParentReason::TemplateFailed => self.unrendered(parent, policy),
            // What it was waiting for when its time was up; that is as true then.
            ParentReason::DeadlineExceeded if !self.unrendered(parent, policy).is_empty() => {
                self.unrendered(parent, policy)
            }
            ParentReason::DeadlineExceeded if self.is_unhandled(parent) => {
                format!("the operator has not handled{generation}{}", self.progress(parent))
            }
            // The policy that it knows them by is another one now.
            ParentReason::ChildrenUnknown if !self.has_troubles(parent, policy) => {
                format!("the rule for its children changed; {total} not judged anew yet")
            }
            _ => {
                let causes = self.causes(parent, policy, Role::Critical, now);
                match total - ready {
                    0 => causes,
                    unready => format!("{unready} of {total} not ready: {causes}"),
                }
            }
        };
        let cycles = self.engine.cycles(parent, policy);
        let cycles = if cycles == 0 {
            String::new()
        } else {
            format!("; not counted: {cycles} in a cycle of owners or references")
        };
        let finalizers = self.finalizer_words(parent, policy);
        let between = if finalizers.is_empty() { "" } else { "; " };
        bounded(text + &cycles + between + &finalizers)
    }

    /// What holds the operator up, where that says so.
    fn progress(&self, parent: ObjectId) -> String {
        let said = self.reflector.read(parent, |row| row.parent.as_ref()?.progress.clone()).flatten();
        said.map(|said| format!(": {said}")).unwrap_or_default()
    }

    fn is_unhandled(&self, parent: ObjectId) -> bool {
        let evidence = self.reflector.read(parent, |row| row.parent.as_ref().map(|p| p.view.evidence));
        matches!(evidence.flatten(), Some(Evidence::NotYet | Evidence::Unmarked))
    }

    fn has_troubles(&self, parent: ObjectId, policy: PolicyId) -> bool {
        self.engine.troubles(parent, policy, Role::Critical).next().is_some()
    }

    fn kinds_in(&self, policy: PolicyId, state: KindState) -> String {
        let kinds = self.policies.get(&policy).map(|p| p.kinds.as_slice()).unwrap_or_default();
        let mut names: Vec<_> =
            kinds.iter().filter(|k| self.engine.kind(**k) == state).map(|k| self.kind_label(*k)).collect();
        names.sort_unstable();
        names.dedup();
        names.join(", ")
    }

    fn unrendered(&self, parent: ObjectId, policy: PolicyId) -> String {
        let error = self.reflector.read(parent, |row| {
            let target = row.parent.as_ref()?.targets.iter().find(|t| t.policy == policy)?;
            Some(target.unrendered.as_ref()?.to_string())
        });
        error.flatten().unwrap_or_default()
    }
}

fn push_entries(
    wanted: &mut Wanted,
    row: &ParentRow,
    target: &AnswerTarget,
    answer: Answer,
    message: &str,
    now: Time,
) {
    let Some(condition) = &target.condition else { return };
    let about = row.view.answers.iter().find(|a| a.policy == target.policy).and_then(|a| a.about);
    let current = about == Some(row.view.generation);
    let mut push = |kind: &str, status: Status| {
        let entry = entry(&row.status, kind, status, answer.reason, message, now);
        wanted.entries.push(dated(entry, row, current));
    };
    push(condition, answer.reason.status());
    if &**condition == "Ready" {
        for (kind, holds) in [("Reconciling", answer.reconciling), ("Stalled", answer.stalled)] {
            if holds && !row.status.is_foreign(kind) {
                push(kind, Status::True);
            }
        }
    }
    if target.keeps_generation {
        // Claimed together with a verdict, never before, and never dropped once it is ours.
        let decided = answer.reason != ParentReason::ChildrenPending;
        wanted.observed_generation = if decided { row.generation } else { row.status.observed_generation };
    }
}

/// An entry as it is to be; `lastTransitionTime` moves only with the status.
fn entry(
    status: &ParentStatus,
    kind: &str,
    is: Status,
    reason: ParentReason,
    message: &str,
    now: Time,
) -> Entry {
    let since =
        status.ours(kind).filter(|o| o.entry.status == is.word() && !o.entry.last_transition_time.is_empty());
    Entry {
        r#type: kind.to_owned(),
        status: is.word().to_owned(),
        observed_generation: None,
        last_transition_time: since
            .map_or_else(|| time::format(now), |o| o.entry.last_transition_time.clone()),
        reason: reason.word().to_owned(),
        message: message.to_owned(),
    }
}

/// Gives an entry its generation.
///
/// Where status writes move the generation too (no status subresource), our own write is the next one: the entry names
/// the generation that it will find itself in. An entry that says the same of the same spec keeps the one it has, or
/// each write would call for another.
fn dated(mut entry: Entry, row: &ParentRow, current: bool) -> Entry {
    let counted = row.generation.is_none_or(|n| n as u64 == row.view.generation);
    entry.observed_generation = row.generation.map(|n| if counted { n } else { n + 1 });
    let held = row.status.ours(&entry.r#type).map(|o| &o.entry);
    if let Some(held) = held.filter(|_| !counted && current) {
        let undated = Entry { observed_generation: held.observed_generation, ..entry.clone() };
        if undated == *held {
            return undated;
        }
    }
    entry
}

/// Before everything of a policy was listed it has no answer, but its entries are not to be taken away for that.
fn keep_while_undecided(wanted: &mut Wanted, row: &ParentRow, undecided: Vec<Box<str>>) {
    let keeps = |condition: &str| {
        let target = row.targets.iter().find(|target| target.condition.as_deref() == Some(condition));
        target.is_some_and(|target| target.keeps_generation)
    };
    if wanted.observed_generation.is_none() && undecided.iter().any(|condition| keeps(condition)) {
        wanted.observed_generation = row.status.observed_generation;
    }
    for condition in undecided {
        let beside = if &*condition == "Ready" { &["Reconciling", "Stalled"][..] } else { &[] };
        for kind in std::iter::once(&*condition).chain(beside.iter().copied()) {
            if let Some(held) = row.status.ours(kind)
                && !wanted.entries.iter().any(|e| e.r#type == kind)
            {
                wanted.entries.push(held.entry.clone());
            }
        }
    }
}
