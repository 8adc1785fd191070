//! All judges of one run, and when each of them looks.

use rollcall_core::ParentWrite;

use super::{
    AnswerJudge, CheckedParents, CommitJudge, JudgedMoment, JudgedScene, LookPace, NumberJudge, OverlapJudge,
    PlanWatch, ReaderJudge, WordsJudge, WriteTroubles, check_decision, check_end,
};
use crate::scenario::PolicyDef;
use crate::timeline::SimulationCounts;
use crate::wires::{CommittedWrite, KindWires, PolicyWatch, SimStage, WriteInFlight, WriteSender};

/// The judges of one run.
#[derive(Default)]
pub(crate) struct Jury {
    /// What the loop has heard of plans and kinds.
    pub(crate) plan_watch: PlanWatch,
    /// What the judges remember of the parents.
    pub(crate) checked: CheckedParents,
    answers: AnswerJudge,
    words: WordsJudge,
    troubles: WriteTroubles,
    pub(crate) numbers: NumberJudge,
    commits: CommitJudge,
    overlaps: OverlapJudge,
    readers: ReaderJudge,
    /// When answers and words are looked at, and when readers look.
    turn_looks: LookPace,
    reader_looks: LookPace,
}

impl Jury {
    /// A process begins that knows nothing.
    pub(crate) fn reset_for_restart(&mut self) {
        self.plan_watch.reset_for_restart();
        self.checked.reset_for_restart();
        self.words.reset_for_restart();
        self.troubles.reset_for_restart();
        self.commits.reset_for_restart();
        self.overlaps.reset_for_restart();
        self.readers.reset_for_restart();
    }

    /// A process ends, or another begins beside it: the policies that it goes by.
    pub(crate) fn note_former_policies(&mut self, policies: &[PolicyDef]) {
        self.commits.note_former_policies(policies);
    }

    /// Adds what was judged to the counts of a run.
    pub(crate) fn count_judged(&self, counts: SimulationCounts) -> SimulationCounts {
        let OverlapJudge { ghost_writes, ghost_trues, .. } = self.overlaps;
        let (trues, messages, looks) = (self.commits.trues, self.words.judged, self.readers.looks);
        SimulationCounts { trues, messages, looks, ghost_writes, ghost_trues, ..counts }
    }

    /// Something has happened that the judges may not pass over.
    pub(crate) fn note_move(&mut self) {
        self.turn_looks.note_move();
        self.reader_looks.note_move();
    }

    /// An event was handled: the server's objects are read as others read them.
    pub(crate) fn check_readers(&mut self, scene: JudgedScene<'_>) {
        let Jury { plan_watch, readers, troubles, .. } = self;
        if !self.reader_looks.begin_look(&scene.0.world) {
            return;
        }
        readers.check_readers(&JudgedMoment::new(scene, plan_watch), troubles);
    }

    /// The turns of an instant are over; `counts` says whether its numbers are judged too.
    pub(crate) fn check_turns(&mut self, scene: JudgedScene<'_>, counts: bool) {
        if !self.turn_looks.begin_look(&scene.0.world) {
            return;
        }
        let at = JudgedMoment::new(scene, &self.plan_watch);
        self.answers.check_answers(&at, &mut self.checked);
        self.words.check_messages(&at, &self.troubles);
        self.overlaps.check_standing(&at, &self.troubles);
        if counts {
            NumberJudge::check_numbers(&at);
        }
    }

    /// The loop has observed what it was shown.
    pub(crate) fn note_observed(&mut self, stage: &mut SimStage, wires: &KindWires, policies: &PolicyWatch) {
        if stage.feed.shown.is_behind() {
            self.note_move();
            let steps = stage.feed.shown.take_changes();
            let at = JudgedMoment::new((stage, wires, policies), &self.plan_watch);
            self.checked.note_changes(&at, &steps);
        }
    }

    /// The parents of a kind are listed.
    pub(crate) fn note_listed_parents(&mut self, scene: JudgedScene<'_>, kind: usize) {
        self.note_move();
        let listed = self.plan_watch.take_unseen(&scene.0.service.policies, kind);
        let at = JudgedMoment::new(scene, &self.plan_watch);
        self.checked.note_listed_parents(&at, kind, &listed);
    }

    /// The loop has decided on a write; returns `true` if its parent was shown as handled.
    pub(crate) fn check_decision(&mut self, scene: JudgedScene<'_>, write: &ParentWrite) -> bool {
        self.note_move();
        let at = JudgedMoment::new(scene, &self.plan_watch);
        check_decision(&at, &mut self.checked, write);
        self.words.note_decision(&at, write);
        self.checked.has_reported_handled(&write.uid, at.now)
    }

    /// The server has committed a write of this sender.
    pub(crate) fn check_commit(
        &mut self,
        scene: JudgedScene<'_>,
        sent: (&WriteInFlight, WriteSender),
        committed: &CommittedWrite,
    ) {
        self.note_move();
        let at = JudgedMoment::new(scene, &self.plan_watch);
        self.commits.check_commit(&at, (&mut self.checked, &self.overlaps), sent, committed);
        self.overlaps.check_commit(&at, sent, committed);
    }

    /// A write was refused, or nobody knows what became of it.
    pub(crate) fn note_failure(&mut self, uid: &str, is_answered: bool, now: i64) {
        self.note_move();
        self.troubles.note_failure(uid, is_answered, now);
        self.overlaps.note_failure(uid, now);
    }

    /// Checks the quiet end state; returns the number of parents.
    pub(crate) fn check_end(&self, scene: JudgedScene<'_>, has_restarted: bool) -> u64 {
        check_end(&JudgedMoment::new(scene, &self.plan_watch), &self.commits, has_restarted)
    }
}
