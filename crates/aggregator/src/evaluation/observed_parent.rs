//! What is observed of a parent for one policy.

use readiness::rollup::{ChildWeight, ParentReason};
use readiness::{Level, Steadiness, Time};

use super::generation_phase::{FoundWord, shows_handled};
use super::{ChildCounts, EvaluationStage, GenerationPhase, GenerationProof, StageEvent};
use crate::answer_view::{AnswerView, WrittenAnswer};
use crate::critical_tally::CriticalTally;
use crate::evidence::{HandledEvidence, ReportedFailure};
use crate::list_gate::{ListGate, PolicyGate};
use crate::types::{EnginePolicy, ParentView, PolicyAnswer};

/// What is observed of a parent for one policy, and the stage of its answer.
#[derive(Clone, Debug)]
pub(crate) struct ObservedParent {
    /// Answer on the parent as last observed.
    pub(crate) view: AnswerView,
    pub(crate) evidence: HandledEvidence,
    pub(crate) deleting: bool,
    pub(crate) phase: GenerationPhase,
    pub(crate) stage: EvaluationStage,
    /// Last published reason: the one on the parent, or the one returned by [`crate::Engine::take_changed_answers`].
    pub(crate) last_published: Option<ParentReason>,
    /// Reason that was last sent to the parent by this process.
    last_sent: Option<ParentReason>,
    /// The answer says True, and the newest version of some child awaits its rule.
    rests_on_unjudged: bool,
    /// Somebody has taken the condition away from the parent, and nothing was read on it since.
    is_taken_away: bool,
}

impl ObservedParent {
    /// Returns what is first observed of a parent, with this answer on it. `is_recorded` is false where no condition
    /// records what was known before.
    pub(crate) fn new(
        view: &ParentView,
        answer: &AnswerView,
        is_recorded: bool,
        now: Time,
    ) -> ObservedParent {
        ObservedParent {
            view: answer.clone(),
            evidence: answer.evidence(view.evidence),
            deleting: view.deleting,
            phase: begin_generation(view, answer, now),
            stage: EvaluationStage::first_of(answer.written.map(restore_answer), is_recorded),
            last_published: answer.written.map(|written| written.reason),
            last_sent: None,
            rests_on_unjudged: false,
            is_taken_away: false,
        }
    }

    /// Returns `true` if the last answer says True of this generation: of the one before it, it says nothing.
    pub(crate) fn stands_ready(&self) -> bool {
        self.stage.says_true() && (self.stage.is_own() || self.phase.found == FoundWord::Ready)
    }

    /// Returns `true` if the parent does not say, of this generation, that it is ready: there is no True to keep. It was not told
    /// yet, the replica that leads has taken it back, because this one began to count later, or somebody turned it or took it
    /// away. Where nothing was ever read, the first True may be on its way.
    pub(crate) fn is_told_otherwise(&self) -> bool {
        (self.is_taken_away || self.view.written.is_some()) && !self.view.says_true()
    }

    /// Records that the answer is on its way to the parent.
    pub(crate) fn record_sent(&mut self) {
        self.last_sent = self.stage.answer().map(|answer| answer.reason);
    }

    /// Returns `true` if the parent shows what this process last sent to it.
    pub(crate) fn shows_sent(&self, answer: &AnswerView) -> bool {
        self.last_sent.is_some() && answer.written.map(|written| written.reason) == self.last_sent
    }

    /// Returns `true` if the answer that stands on the parent now is to be taken over as if the parent were first observed: it
    /// is about this generation and shows that the operator has handled it, it is not the one that was read before, and
    /// nothing was evaluated since. Such a write was under way when the process, or the policy, was replaced. Where it was not
    /// decided since (`is_older`), it is taken over from an answer that time alone would end, too.
    pub(crate) fn is_superseded_by(&self, view: &ParentView, answer: &AnswerView, is_older: bool) -> bool {
        (self.stage.is_as_read() || is_older && self.stage.settles())
            && answer.written != self.view.written
            && self.phase.generation == view.generation
            && written_about_generation(answer).is_some_and(|written| shows_handled(&written))
    }

    /// Returns `true` if the answer was read from the parent, where it stands no more. Of a policy that is refused nobody else
    /// knows it, and who restarts finds none. What the first list does not show may have been read before it: there it stood
    /// under a policy that is gone.
    pub(crate) fn is_taken_from(&self, answer: &AnswerView) -> bool {
        !self.stage.is_own() && self.view.written.is_some() && answer.written.is_none()
    }

    /// Records what is observed now. Returns `true` if the parent begins a new generation.
    pub(crate) fn update_view(
        &mut self,
        view: &ParentView,
        answer: &AnswerView,
        is_unwritten: bool,
        now: Time,
    ) -> bool {
        let written = written_about_generation(answer);
        let is_renewed = self.phase.generation != view.generation;
        if is_renewed {
            self.phase = begin_generation(view, answer, now);
            self.phase.awaits_movement |= view.generation > 1;
        }
        // A condition type that its owner has released carries no earlier answer of Rollcall's.
        if self.view.owned_by_other && !answer.owned_by_other {
            self.phase.progress.retract();
        }
        if written.is_some() || is_unwritten {
            self.phase.progress.announce();
        }
        let was_shown = self.is_taken_away || self.view.written.is_some();
        self.is_taken_away = was_shown && answer.written.is_none() && !is_unwritten;
        (self.evidence, self.deleting) = (answer.evidence(view.evidence), view.deleting);
        self.view.clone_from(answer);
        is_renewed
    }

    /// Takes the time at which the generation was first observed, if the parent now reports it ready for the first time.
    pub(crate) fn take_first_ready(&mut self) -> Option<Time> {
        let (view, phase) = (&self.view, &mut self.phase);
        let says = view.written.filter(|_| view.is_about_generation)?;
        let ready = phase.found == FoundWord::Nothing && says.reason == ParentReason::AllChildrenReady;
        if ready {
            phase.found = FoundWord::Other;
        }
        ready.then_some(phase.since)
    }

    /// Takes the answer if its reason changed since the last call, with the reason before.
    pub(crate) fn take_changed_answer(&mut self) -> Option<(Option<ParentReason>, PolicyAnswer)> {
        let before = self.last_published;
        let answer = self.stage.answer().filter(|answer| before != Some(answer.reason))?;
        self.last_published = Some(answer.reason);
        Some((before, answer))
    }

    /// Nobody was told what this process has found since the parent was last written.
    pub(crate) fn forget_published(&mut self) {
        self.last_published = self.view.written.map(|written| written.reason);
    }

    /// Returns the weight of the answer if the parent is itself a child.
    pub(crate) fn weight(&self) -> ChildWeight {
        // Known regardless of everything else.
        if self.deleting {
            let is_stuck = self.stage.answer().is_some_and(|a| a.reason == ParentReason::DeletionStuck);
            let level = if is_stuck { Level::Stuck } else { Level::Terminating };
            return ChildWeight::of(level);
        }
        let weight = self.stage.weight();
        if self.rests_on_unjudged && weight.is_ready() { weight.unjudged() } else { weight }
    }

    /// Records whether an answer that says True rests on children that await their rule. Returns `true` if that changed.
    pub(crate) fn rest_on_unjudged(&mut self, awaits_rules: bool) -> bool {
        let rests = awaits_rules && self.stage.says_true();
        std::mem::replace(&mut self.rests_on_unjudged, rests) != rests
    }

    /// Moves to the next stage; returns the one before.
    #[inline]
    pub(crate) fn advance_stage(&mut self, event: StageEvent) -> EvaluationStage {
        let before = self.stage;
        self.stage = before.after(event);
        before
    }

    /// Returns `true` if it could have settled twice since it, and its lists, could be seen, and it waited for nobody below: it may
    /// never, and those above would go on saying what they said before this process began.
    pub(crate) fn is_overdue(&self, policy: &EnginePolicy, listed_at: Time, now: Time) -> bool {
        let settles_within = policy.debounce.quiet + policy.settle + policy.hold;
        listed_at.max(self.phase.first_evaluated_at()) + settles_within * 2 <= now
    }

    /// Returns the time from which the parent needs no first word where all of its children turn out to be ready: everything was
    /// listed, the parent among it, nobody was told anything of it but Unknown, and no child is so young that more may come.
    /// `None` where it has to be told Unknown first, because it may still change. Each kind has a list of its own, and what
    /// one shows may have come about after another was read. Whose operator reports nothing has to settle first, unless its
    /// policy gives that no time.
    pub(crate) fn rests_from(
        &self,
        children: &ChildCounts,
        policy: &EnginePolicy,
        PolicyGate { gate, listed_at }: PolicyGate,
    ) -> Option<Time> {
        let is_untold = self
            .view
            .written
            .is_none_or(|told| told.reason == ParentReason::ChildrenPending && !told.stalled);
        let is_found = gate == ListGate::Open && self.phase.observed_at <= listed_at;
        // What keeps a True back for a while has to be waited for, and is said.
        let is_plain = policy.hold.is_zero() && !policy.requires_proof && !self.view.template_failed;
        let is_failed = self.view.reported_failure() != ReportedFailure::None;
        let quiet = policy.debounce.quiet;
        let has_settled = || children.changed_at + quiet + policy.settle <= listed_at;
        if !is_untold || !is_found || !is_plain || is_failed || self.deleting || !has_settled() {
            return None;
        }
        let rests_from = listed_at + quiet;
        self.check_handled(children, policy, listed_at, rests_from).is_ok().then_some(rests_from)
    }

    /// Returns `Ok` if the operator has handled this generation by `now`; otherwise the time of the next evaluation if nothing
    /// changes. Nobody has seen what moved before everything was listed.
    pub(crate) fn check_handled(
        &self,
        children: &ChildCounts,
        policy: &EnginePolicy,
        listed_at: Time,
        now: Time,
    ) -> Result<(), Option<Time>> {
        // That a child moved suggests what the proof of the policy shows.
        let is_proven = self.phase.proof == GenerationProof::Given;
        let moved = || is_proven || self.has_moved_since_generation(children, policy);
        match self.evidence {
            HandledEvidence::Handled => Ok(()),
            HandledEvidence::Unproven if !self.phase.awaits_movement || moved() => Ok(()),
            HandledEvidence::NotYet
            | HandledEvidence::Unmarked
            | HandledEvidence::Unproven
            | HandledEvidence::Failed
            | HandledEvidence::GivenUp => Err(None),
            HandledEvidence::Masked if !moved() => Err(None),
            HandledEvidence::Silent | HandledEvidence::Masked => {
                let at = self.phase.since.max(children.changed_at).max(listed_at) + policy.settle;
                if at <= now { Ok(()) } else { Err(Some(at)) }
            }
        }
    }

    /// Returns `true` if every child is known to be ready.
    pub(crate) fn is_whole(&self, children: &ChildCounts, policy: &EnginePolicy) -> bool {
        let stand = CriticalTally::of_children(children, &self.view, policy);
        stand.worst_reason().is_none() && stand.is_ready_as_judged(children, &self.view, policy)
    }

    /// Returns `true` if the parent needs no first word at `now`: it rests, and every child is ready.
    pub(crate) fn is_at_rest(
        &self,
        children: &ChildCounts,
        policy: &EnginePolicy,
        gate: PolicyGate,
        now: Time,
    ) -> bool {
        self.rests_from(children, policy, gate).is_some_and(|from| from <= now)
            && self.is_whole(children, policy)
    }

    /// Records that the generation is ready as it was found: it took no time that anybody saw.
    pub(crate) fn record_at_rest(&mut self) {
        self.phase.progress.handle();
        self.phase.found = FoundWord::Other;
    }

    /// Returns `true` if the parents above have to wait for its evaluation, unless its own children have to be waited for:
    /// its state is unknown.
    pub(crate) fn is_awaited(&self) -> bool {
        // Time alone ends that; an operator that has to act first is waited for by nobody.
        let settles = self.stage.is_unsettled()
            && self.phase.proof != GenerationProof::Awaited
            && matches!(self.evidence, HandledEvidence::Silent | HandledEvidence::Handled);
        !self.stage.is_own() || settles
    }

    /// Returns how far an answer that says True can count on children that are not all ready.
    pub(crate) fn steadiness_of(&self, children: &ChildCounts, policy: &EnginePolicy) -> Steadiness {
        if !self.phase.steady.was_whole_after(children.unready_appeared_at) {
            return Steadiness::Unsteady;
        }
        CriticalTally::steadiness_of(children, &self.view, policy)
    }

    /// Returns `true` if a child was created, deleted or changed in its spec, and not only scaled, for this generation. Each kind has
    /// a watch of its own, so what an operator did at once may be seen a moment before the spec that called for it. What moved before
    /// this process first saw the generation is not known to have moved for it.
    pub(crate) fn has_moved_since_generation(&self, children: &ChildCounts, policy: &EnginePolicy) -> bool {
        let out_of_order = policy.settle.min(policy.debounce.cap);
        children.moved_at + out_of_order >= self.phase.observed_at
    }
}

/// Returns the phase of a generation that is first observed at `now`.
fn begin_generation(view: &ParentView, answer: &AnswerView, now: Time) -> GenerationPhase {
    let told = written_about_generation(answer);
    let mut phase = GenerationPhase::new(view.generation, now, told);
    let says_failed =
        |told: &WrittenAnswer| told.is_untampered() && told.reason == ParentReason::OperatorFailed;
    let Some(told) = told.filter(says_failed) else { return phase };
    let is_unattributed = answer.reported_failure() == ReportedFailure::Unattributed;
    // What was stalled and may pass has exceeded a limit; what was given up, or is over, need not have.
    let may_pass = is_unattributed || answer.evidence(view.evidence) == HandledEvidence::Failed;
    if !told.stalled || !may_pass {
        phase.date_from(told.since.min(now));
    }
    // A failure that may be of an earlier generation was told once this one counted as handled.
    if is_unattributed {
        phase.progress.handle();
    }
    phase
}

/// Returns the answer on a parent if it is about the current generation.
fn written_about_generation(answer: &AnswerView) -> Option<WrittenAnswer> {
    answer.written.filter(|_| answer.is_about_generation)
}

fn restore_answer(told: WrittenAnswer) -> PolicyAnswer {
    let WrittenAnswer { reason, stalled, .. } = told;
    PolicyAnswer { reason, total: 0, ready: 0, reconciling: false, stalled, counted_as: None }
}
