//! The work of custom rules, for the threads that do it.

use std::time::Duration;

use aggregator::KindId;
use readiness::Assessment;

use super::interim::{INTERIM_LIMIT, settle_rule};
use super::judgement_queue::Judgement;
use super::parts::ReflectorParts;
use super::proof_work::{EvaluatedProof, ProofTask};
use super::proofs::evaluate_proof;
use super::rule_breaker::RuleSuspension;
use super::uid_key::UidKey;
use crate::plan::UserRule;

/// The custom rules of all kinds, and the objects that await them.
#[derive(Clone, Copy)]
pub struct RuleWork<'r>(&'r ReflectorParts);

/// A moment in the order in which objects begin to await rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleWorkMark(u64);

impl<'r> RuleWork<'r> {
    pub(super) fn new(parts: &'r ReflectorParts) -> RuleWork<'r> {
        RuleWork(parts)
    }

    /// Longest time for which a verdict stands for a newer version of an object than it was given on.
    pub const INTERIM_LIMIT: Duration = INTERIM_LIMIT;

    /// Has rules evaluated beside the ingest of objects from now on, by the threads that take from the queue. `wake` is called when
    /// something waits.
    pub fn set_waker(self, wake: impl Fn() + Send + Sync + 'static) {
        self.0.judgements.set_waker(Box::new(wake));
    }

    /// Takes an object that awaits a rule. Rules take turns; an object is taken in its newest version. It has to be given to
    /// [`RuleWork::evaluate`]: until then its rule has nothing else to do.
    pub fn take(self) -> Option<Judgement> {
        self.0.judgements.take(self.0.assessor.now())
    }

    /// Evaluates the rule on the object, and takes in what it says. Takes as long as the limits of rules allow.
    pub fn evaluate(self, judgement: Judgement) {
        if self.is_awaited(&judgement) {
            let own = self.0.assessor.evaluate_judgement(&judgement);
            self.settle(&judgement, own);
        }
        self.0.judgements.finish(judgement);
    }

    /// Returns `true` if the object is still there, and is still judged by this rule.
    fn is_awaited(self, judgement: &Judgement) -> bool {
        let uid = UidKey::from_text(&judgement.uid);
        let read = |slot: &mut super::slots::RowSlot| {
            let row = slot.row.as_ref().filter(|row| slot.uid == uid && !row.is_remembered())?;
            Some(row.version == judgement.version || row.awaited_since(judgement.rule_index).is_some())
        };
        judgement.plan.holds() && self.0.store.rows.with_slot(judgement.id, read).flatten() == Some(true)
    }

    fn settle(self, judgement: &Judgement, own: Assessment) {
        let (rows, uid) = (&self.0.store.rows, UidKey::from_text(&judgement.uid));
        let Judgement { plan, rule_index, version, taken_at, .. } = judgement;
        let moved = rows.change_slot(judgement.id, |slot| {
            let is_same = slot.uid == uid && plan.holds();
            let row = slot.row.as_mut().filter(|row| is_same && row.kind == plan.interest.id)?;
            (!row.is_remembered()).then(|| settle_rule(row, (*rule_index, *version), own, *taken_at))
        });
        if moved.flatten() == Some(true) {
            rows.mark_dirty(judgement.id);
        }
    }

    /// Has a proof evaluated: by the threads, where rules are evaluated beside the ingest of objects, else at once.
    pub fn hand_in_proof(self, task: ProofTask) {
        if self.0.judgements.is_used() {
            self.0.proofs.hand_in(task);
            self.0.judgements.wake();
        } else {
            self.evaluate_proof(task);
        }
    }

    /// Takes a proof that was handed in. It has to be given to [`RuleWork::evaluate_proof`].
    pub fn take_proof(self) -> Option<ProofTask> {
        self.0.proofs.take_waiting()
    }

    /// Evaluates a proof, and wakes the loop. Takes as long as the limits of proofs allow.
    pub fn evaluate_proof(self, task: ProofTask) {
        let (outcome, plan) = evaluate_proof(self.0, &task);
        if self.0.proofs.hand_back(EvaluatedProof { task, outcome, plan }) {
            self.0.store.rows.wake();
        }
    }

    /// Takes the proofs that were evaluated since the last call.
    pub fn take_evaluated_proofs(self) -> Vec<EvaluatedProof> {
        self.0.proofs.take_evaluated()
    }

    /// Returns `true` if another object of this kind finds room to wait, or there is no use in waiting for that: a rule of the
    /// kind is so slow that what finds no room is Unknown.
    pub fn has_room(self, kind: KindId) -> bool {
        self.0.judgements.has_room(kind, self.0.assessor.now())
    }

    /// Marks the moment for [`RuleWork::is_done_before`].
    pub fn mark(self) -> RuleWorkMark {
        RuleWorkMark(self.0.judgements.next_number())
    }

    /// Returns `true` if all objects of this kind are evaluated that began to wait before the mark.
    pub fn is_done_before(self, kind: KindId, mark: RuleWorkMark) -> bool {
        self.0.judgements.is_done_before(kind, mark.0)
    }

    /// Number of objects that wait, one for each rule that they await, and the bytes held for them.
    pub fn waiting(self) -> (usize, usize) {
        self.0.judgements.size()
    }

    /// The rules of a kind that are not evaluated for a while, or not in time, on some objects or on all.
    pub fn suspended_rules(self, kind: KindId) -> Vec<(UserRule, RuleSuspension)> {
        let (plans, now) = (&self.0.store.plans, self.0.assessor.now());
        let mut suspended = plans.suspended_rules(kind, now);
        let Some(plan) = plans.planned(kind) else { return suspended };
        for (rule_index, rule) in (0..).zip(&plan.interest.assessment_rules) {
            let Some(rule) = &rule.rule else { continue };
            let late = self.0.judgements.count_overdue((kind, rule_index), INTERIM_LIMIT, now);
            if late == 0 {
                continue;
            }
            match suspended.iter_mut().find(|(held, _)| held == rule) {
                Some((_, held)) => held.late += late,
                None => suspended.push((rule.clone(), RuleSuspension { late, ..RuleSuspension::default() })),
            }
        }
        suspended
    }

    /// Number of evaluations of custom rules, and their total duration.
    pub fn usage(self) -> (u64, Duration) {
        self.0.assessor.user_rule_usage()
    }
}
