//! Proofs of policies that are awaited: which is evaluated next, and how the last one ended.
//!
//! The loop hands a few in at a time, and goes on: the threads of custom rules evaluate them. All proofs together may spend a
//! bounded number of steps a second, some hundredths of the time of one core, so that whoever writes a costly proof, or
//! changes its objects all the time, delays nothing but proofs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use aggregator::{Engine, ObjectId, ParentDraft, PolicyId, ProofRequest};
use readiness::Time;
use watcher::reflector::{EvaluatedProof, ProofOutcome, ProofTask, ProofVerdict, Reflector};

/// Number of steps that all proofs may spend a second, and at once after a quiet second.
const STEPS_PER_SECOND: i64 = 2_000_000;
/// Number of steps gained a millisecond.
const STEPS_PER_MILLI: i64 = STEPS_PER_SECOND / 1_000;
/// Number of steps that each evaluation costs besides its own.
const BASE_STEPS: i64 = 50;
/// Number of proofs that are handed in and not taken back: enough that a thread need not wait for the loop after each.
const MAX_HANDED_IN: usize = 16;

/// Proofs that wait to be evaluated, and the last verdicts.
#[derive(Debug, Default)]
pub(super) struct ProofQueue {
    waiting: VecDeque<ProofRequest>,
    known: BTreeSet<ProofRequest>,
    verdicts: BTreeMap<(ObjectId, PolicyId), ProofVerdict>,
    /// Those that are handed in and not taken back; `true` where they were asked for again since.
    handed_in: BTreeMap<ProofRequest, bool>,
    /// Steps that were spent beyond what was gained until `as_of`.
    debt: i64,
    as_of: Time,
}

impl ProofQueue {
    /// Hands in the proofs that parents await, and takes in what became of those before, once everything that is known was
    /// observed. Where one holds, its parent is evaluated again; where one fails otherwise than before, its parent has to say
    /// so: it joins the drafts.
    pub(super) fn settle_proofs(
        &mut self,
        engine: &mut Engine,
        reflector: &Reflector,
        now: Time,
        drafts: &mut Vec<ParentDraft>,
    ) {
        self.enqueue_requests(engine.pending_proofs().take_requests());
        let (mut is_given, before) = (false, drafts.len());
        while reflector.dirty_len() == 0 {
            for evaluated in reflector.rule_work().take_evaluated_proofs() {
                let request = evaluated.task.request;
                match self.take_news(engine, &evaluated) {
                    Some(ProofVerdict::Holds) => {
                        engine.pending_proofs().record_proof(request, now);
                        is_given = true;
                    }
                    Some(_) => drafts.push(ParentDraft { parent: request.parent }),
                    None => {}
                }
            }
            if !self.hand_in_next(engine, reflector, now) {
                break;
            }
        }
        if is_given {
            engine.poll(now, drafts);
        }
        if drafts.len() > before {
            drafts.sort_unstable();
            drafts.dedup();
        }
    }

    /// Hands in the proofs whose turn it is, as many as there is room for. Returns `true` if there were any.
    fn hand_in_next(&mut self, engine: &mut Engine, reflector: &Reflector, now: Time) -> bool {
        let before = self.handed_in.len();
        while self.handed_in.len() < MAX_HANDED_IN
            && let Some(request) = self.take_next(now)
        {
            if engine.pending_proofs().is_awaited(request) {
                let children = engine.reader().proof_children(request.parent, request.policy).collect();
                reflector.rule_work().hand_in_proof(ProofTask { request, children });
                self.handed_in.insert(request, false);
            }
        }
        self.handed_in.len() > before
    }

    /// Records what became of a proof. Returns the verdict if something follows from it.
    ///
    /// **Invariant:** a proof holds over the children that count when that is recorded, by the plan in force. One that was
    /// evaluated over others, or by another plan, has to be evaluated again.
    fn take_news(&mut self, engine: &mut Engine, evaluated: &EvaluatedProof) -> Option<ProofVerdict> {
        let EvaluatedProof { task: ProofTask { request, children }, outcome, .. } = evaluated;
        self.spend(outcome.steps);
        let is_asked_again = self.handed_in.remove(request).unwrap_or(false);
        if !engine.pending_proofs().is_awaited(*request) {
            return None;
        }
        let counting = engine.reader().proof_children(request.parent, request.policy);
        if evaluated.is_superseded() || !counting.eq(children.iter().copied()) {
            self.enqueue_requests([*request]);
            return None;
        }
        if is_asked_again && outcome.verdict != ProofVerdict::Holds {
            self.enqueue_requests([*request]);
        }
        let is_news = self.record_outcome(*request, *outcome);
        (is_news || outcome.verdict == ProofVerdict::Holds).then_some(outcome.verdict)
    }

    /// Adds proofs that are awaited. One that waits already keeps its place; one that is handed in waits again afterwards.
    pub(super) fn enqueue_requests(&mut self, requests: impl IntoIterator<Item = ProofRequest>) {
        for request in requests {
            if let Some(is_asked_again) = self.handed_in.get_mut(&request) {
                *is_asked_again = true;
            } else if self.known.insert(request) {
                self.waiting.push_back(request);
            }
        }
    }

    /// Takes the proof whose turn it is, if it may be evaluated now.
    pub(super) fn take_next(&mut self, now: Time) -> Option<ProofRequest> {
        let gained = now.0.saturating_sub(self.as_of.0).max(0).saturating_mul(STEPS_PER_MILLI);
        self.debt = self.debt.saturating_sub(gained).max(0);
        self.as_of = self.as_of.max(now);
        if self.debt >= STEPS_PER_SECOND {
            return None;
        }
        let request = self.waiting.pop_front()?;
        self.known.remove(&request);
        Some(request)
    }

    /// Records how an evaluation ended. Returns `true` if that is to be said otherwise than before.
    pub(super) fn record_outcome(&mut self, request: ProofRequest, outcome: ProofOutcome) -> bool {
        let of = (request.parent, request.policy);
        let before = match outcome.verdict {
            ProofVerdict::Holds => self.verdicts.remove(&of),
            verdict => self.verdicts.insert(of, verdict),
        };
        before != Some(outcome.verdict)
    }

    /// Counts the steps of an evaluation.
    fn spend(&mut self, steps: u32) {
        self.debt = self.debt.saturating_add(i64::from(steps) + BASE_STEPS);
    }

    /// The last verdict on a parent, if it was not that the proof holds.
    pub(super) fn last_verdict(&self, parent: ObjectId, policy: PolicyId) -> Option<ProofVerdict> {
        self.verdicts.get(&(parent, policy)).copied()
    }

    /// Forgets an object that is gone.
    pub(super) fn forget_parent(&mut self, parent: ObjectId) {
        while let Some((of, _)) = self.verdicts.range((parent, PolicyId(0))..).next()
            && of.0 == parent
        {
            let of = *of;
            self.verdicts.remove(&of);
        }
    }

    /// Forgets a policy that is gone.
    pub(super) fn forget_policy(&mut self, policy: PolicyId) {
        self.verdicts.retain(|(_, of), _| *of != policy);
    }

    /// Time at which the next proof may be evaluated though nothing else happens. Where there is no room for it, one that is
    /// evaluated wakes the loop.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let waits = u64::try_from((self.debt - STEPS_PER_SECOND).max(0) / STEPS_PER_MILLI + 1).unwrap_or(0);
        (!self.waiting.is_empty() && self.handed_in.len() < MAX_HANDED_IN)
            .then(|| self.as_of + Duration::from_millis(waits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1_800_000_000_000);

    fn request(parent: u32) -> ProofRequest {
        ProofRequest { parent: ObjectId(parent), policy: PolicyId(1), generation: 1 }
    }

    fn outcome(verdict: ProofVerdict, steps: u32) -> ProofOutcome {
        ProofOutcome { verdict, steps }
    }

    #[test]
    fn proofs_are_evaluated_in_order_and_each_waits_once() {
        let mut queue = ProofQueue::default();
        queue.enqueue_requests([request(1), request(2), request(1)]);
        let all: Vec<_> =
            std::iter::from_fn(|| queue.take_next(NOW)).map(|request| request.parent.0).collect();
        assert_eq!(all, [1, 2]);
        assert_eq!(queue.next_deadline(), None);
        queue.enqueue_requests([request(1)]);
        assert_eq!(queue.take_next(NOW), Some(request(1)));
    }

    #[test]
    fn costly_proofs_are_evaluated_at_a_bounded_rate_and_ask_to_be_woken_in_time() {
        let mut queue = ProofQueue::default();
        queue.enqueue_requests((0..1_000).map(request));
        let (mut now, mut evaluated) = (NOW, Vec::new());
        while let Some(at) = (evaluated.len() < 1_000).then_some(now) {
            while let Some(request) = queue.take_next(at) {
                evaluated.push(at);
                queue.spend(50_000);
                queue.record_outcome(request, outcome(ProofVerdict::Stopped, 50_000));
            }
            if let Some(next) = queue.next_deadline() {
                assert!(next > now, "it does not ask to be woken in vain");
                now = next;
            }
        }
        let within = |span: u64| evaluated.iter().filter(|at| **at < NOW + Duration::from_secs(span)).count();
        assert!((40..=42).contains(&evaluated.iter().filter(|at| **at == NOW).count()));
        assert!((75..=85).contains(&within(1)), "{}", within(1));
        assert!((435..=445).contains(&within(10)), "{}", within(10));
    }

    #[test]
    fn a_verdict_is_news_where_it_is_another_one() {
        let mut queue = ProofQueue::default();
        let mut record = |parent, verdict| queue.record_outcome(request(parent), outcome(verdict, 1));
        let news = [
            record(1, ProofVerdict::DoesNotHold),
            record(1, ProofVerdict::DoesNotHold),
            record(1, ProofVerdict::FieldAbsent),
            record(2, ProofVerdict::DoesNotHold),
        ];
        assert_eq!(news, [true, false, true, true]);
        assert_eq!(queue.last_verdict(ObjectId(1), PolicyId(1)), Some(ProofVerdict::FieldAbsent));
        queue.record_outcome(request(1), outcome(ProofVerdict::Holds, 1));
        assert_eq!(queue.last_verdict(ObjectId(1), PolicyId(1)), None);
        queue.forget_parent(ObjectId(2));
        assert_eq!(queue.last_verdict(ObjectId(2), PolicyId(1)), None);
        queue.record_outcome(request(3), outcome(ProofVerdict::NoValue, 1));
        queue.forget_policy(PolicyId(1));
        assert_eq!(queue.last_verdict(ObjectId(3), PolicyId(1)), None);
    }
}
