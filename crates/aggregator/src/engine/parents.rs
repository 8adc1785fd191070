//! What a parent says, and what it is to be told.

use std::time::Duration;

use readiness::Time;
use readiness::rollup::ParentReason;

use super::{Cause, Engine};
use crate::delivery::{Apart, Decision, Outcome};
use crate::roll::Phase;
use crate::types::{Answer, AnswerView, Digest, ObjectId, ParentView, PolicyId, RollId, SelectorId, Told};

impl Engine {
    pub(super) fn set_parent(&mut self, now: Time, id: ObjectId, view: Option<&ParentView>) {
        let answers = view.map_or(&[][..], |v| &v.answers);
        let selects: Vec<_> =
            answers.iter().flat_map(|a| a.selects.iter().map(move |s| (a.policy, *s))).collect();
        if view.is_none() {
            self.set_selects(now, id, &[]);
        }
        let withdrawn = self.withdrawn_word(id);
        for roll in self.graph.rolls_of(id).to_vec() {
            let policy = self.graph.roll(roll).map(|r| r.policy);
            if !answers.iter().any(|a| Some(a.policy) == policy) {
                self.unanswer(roll);
                // What was said for a policy that no longer applies is to be taken back.
                self.redeliver.arm_by(id, now);
            }
        }
        let Some(view) = view else {
            self.resync.withdraw(id);
            self.redeliver.disarm(id);
            self.held.remove(&id);
            if let Some(parent) = self.graph.parent_mut(id) {
                (parent.enrolled, parent.passed) = (false, false);
            }
            return;
        };
        let mut anew = false;
        for answer in answers {
            let first = self
                .graph
                .roll_for(id, answer.policy)
                .and_then(|r| self.graph.roll(r)?.view.as_ref())
                .is_none();
            anew |= self.set_answer(now, id, view, answer);
            if let Some(word) = withdrawn.filter(|_| first) {
                self.inherit(now, id, answer, word);
            }
        }
        self.set_selects(now, id, &selects);
        self.hear(now, id, view, anew);
    }

    /// What the parent says is compared with what it was told.
    fn hear(&mut self, now: Time, id: ObjectId, view: &ParentView, anew: bool) {
        // Once something was said of its end, only what still says otherwise is set right.
        let mut said = view.answers.iter().filter(|a| !a.owned).filter_map(|a| a.told).peekable();
        let leaves =
            view.deleting && said.peek().is_some() && said.all(|t| t.reason == ParentReason::Terminating);
        let parent = self.graph.node_mut(id).parent.get_or_insert_default();
        parent.taken_leave = leaves || (view.deleting && parent.taken_leave);
        let (before, apart) = (parent.delivery, Apart { seed: self.seed, key: u64::from(id.0) });
        if anew {
            parent.delivery.hurry();
        }
        parent.delivery.read(view.digest, apart, now);
        if before != parent.delivery {
            self.redeliver.arm_by(id, now);
        }
        self.await_calm(id);
    }

    fn await_calm(&mut self, id: ObjectId) {
        let Some(parent) = self.graph.parent_mut(id) else { return };
        let at = parent.delivery.calm_at();
        let awaited = std::mem::replace(&mut parent.fighting, at.is_some());
        match at {
            Some(at) => self.calm.arm(id, at),
            None if awaited => _ = self.calm.disarm(id),
            None => {}
        }
    }

    pub(super) fn calm_down(&mut self, now: Time) {
        while let Some(id) = self.calm.take_due(now) {
            if let Some(parent) = self.graph.parent_mut(id) {
                parent.fighting = false;
                parent.delivery.calm();
            }
        }
    }

    fn unanswer(&mut self, roll: RollId) {
        if let Some(r) = self.graph.roll_mut(roll) {
            r.view = None;
            r.answer = None;
            r.known = None;
            r.judged = false;
            r.withdrawn = false;
            r.doubted = false;
            r.phase = Phase::default();
            r.well = None;
            r.missing = None;
        }
        self.speak(roll);
        self.drop_if_idle(roll);
    }

    /// It is known by now how this roll stands, or it is gone; `true` where that is news.
    pub(super) fn speak(&mut self, roll: RollId) -> bool {
        let spoke = self.graph.roll_mut(roll).is_some_and(|r| std::mem::take(&mut r.mute));
        self.mute -= usize::from(spoke);
        spoke
    }

    /// Whether a new generation of a parent that was known begins; that is judged at once.
    fn set_answer(&mut self, now: Time, id: ObjectId, view: &ParentView, answer: &AnswerView) -> bool {
        let shadow = self.policy(answer.policy).is_some_and(|p| p.shadow);
        let open = self.is_open(answer.policy);
        let at = self.graph.roll_at(id, answer.policy);
        let Some(roll) = self.graph.roll_mut(at) else { return false };
        let first = roll.view.is_none();
        if first && !open && (shadow || answer.owned) && !roll.mute {
            roll.mute = true;
            self.mute += 1;
        }
        let told = answer.told.filter(|_| answer.about == Some(view.generation));
        let begins = first || roll.phase.generation != view.generation;
        if begins {
            roll.phase = Phase::new(view.generation, now, told);
            roll.well = None;
            let overdue = told.filter(|t| t.reason == ParentReason::ChildrenMissing && t.stalled);
            roll.missing = overdue.map(|_| Time::default());
            // What was judged of an older generation must never be rendered for this one.
            (roll.judged, roll.withdrawn) = (false, false);
        }
        if first {
            roll.answer = answer.told.map(restored);
            roll.known = answer.told.map(|t| t.reason);
        }
        // A condition that is given up by somebody else is one that we have said nothing about.
        let given_up = roll.view.as_ref().is_some_and(|v| v.owned) && !answer.owned;
        roll.phase.announced &= !given_up;
        roll.phase.announced |= told.is_some() || shadow || answer.owned;
        roll.evidence = view.evidence;
        roll.deleting = view.deleting;
        roll.view = Some(answer.clone());
        self.touch(at, now, Cause::Perhaps);
        if begins && open {
            self.at_once(at, now, Cause::Perhaps);
        }
        begins && !first
    }

    fn set_selects(&mut self, now: Time, id: ObjectId, selects: &[(PolicyId, SelectorId)]) {
        let Some(parent) = self.graph.parent_mut(id) else { return };
        if parent.selects == selects {
            return;
        }
        let old = std::mem::replace(&mut parent.selects, selects.to_vec());
        for select in old.iter().filter(|s| !selects.contains(s)) {
            self.unselect(now, id, *select, id);
        }
        for select in selects.iter().filter(|s| !old.contains(s)) {
            self.select(now, id, *select, id);
        }
    }

    pub(super) fn select(&mut self, now: Time, id: ObjectId, by: (PolicyId, SelectorId), of: ObjectId) {
        for (child, link) in self.graph.selectors.select(id, by, of, true) {
            let roll = self.graph.roll_at(id, by.0);
            self.attach(now, child, roll, link, now);
        }
    }

    pub(super) fn unselect(&mut self, now: Time, id: ObjectId, by: (PolicyId, SelectorId), of: ObjectId) {
        for (child, link) in self.graph.selectors.select(id, by, of, false) {
            if let Some(roll) = self.graph.roll_for(id, by.0) {
                self.detach(now, child, roll, link.group);
            }
        }
    }

    /// The answers of a draft were rendered, to this digest. Where they moved, the words of its owners may move too.
    pub fn offer(&mut self, parent: ObjectId, digest: Digest, now: Time) -> Decision {
        let window = self.window(parent);
        let standby = self.standby;
        let Some(p) = self.graph.parent_mut(parent) else { return Decision::Same };
        let (decision, again) =
            if standby { p.delivery.compare(digest) } else { p.delivery.offer(digest, window, now) };
        if standby && decision == Decision::Later {
            self.held.insert(parent);
        } else {
            self.held.remove(&parent);
        }
        let Some(p) = self.graph.parent_mut(parent) else { return decision };
        let moved = std::mem::replace(&mut p.offered, digest) != digest;
        let provoked = std::mem::take(&mut p.provoked);
        self.offered(parent, decision, again, window, now);
        if let Some(at) = again {
            self.redeliver.arm_by(parent, at);
        }
        if moved {
            self.touch_owners(parent, now, if provoked { Cause::Others } else { Cause::Perhaps });
        }
        decision
    }

    /// What was written on it keeps being overwritten: where there is another type to say it by, now is the time.
    pub fn is_fought_over(&self, parent: ObjectId) -> bool {
        self.graph.parent(parent).is_some_and(|p| p.delivery.is_fought())
    }

    /// In which a parent is written twice at most: the shortest cap of its policies.
    fn window(&self, parent: ObjectId) -> Duration {
        let rolls = self.graph.rolls_of(parent).iter().filter_map(|r| self.graph.roll(*r));
        let caps = rolls.filter_map(|r| Some(self.policy(r.policy)?.debounce.cap));
        caps.min().unwrap_or_default()
    }

    /// A write that [`Decision::Send`] asked for ended so.
    pub fn settle(&mut self, parent: ObjectId, outcome: Outcome, now: Time) {
        if let Some(orphans) = self.orphans.get_mut(&parent) {
            *orphans -= 1;
            if *orphans == 0 {
                self.orphans.remove(&parent);
            }
            return;
        }
        let apart = Apart { seed: self.seed, key: u64::from(parent.0) };
        if let Some(p) = self.graph.parent_mut(parent) {
            p.delivery.settle(outcome, apart, now);
            if outcome != Outcome::Gone {
                self.redeliver.arm_by(parent, now);
            }
            self.await_calm(parent);
        }
        if outcome == Outcome::Pruned {
            self.unheard(parent, now);
        }
    }

    /// A parent that cannot be told anything is judged all the same, for metrics and for its own parents.
    fn unheard(&mut self, parent: ObjectId, now: Time) {
        for id in self.graph.rolls_of(parent).to_vec() {
            let Some(roll) = self.graph.roll_mut(id).filter(|r| !r.phase.announced) else { continue };
            roll.phase.announced = true;
            self.at_once(id, now, Cause::Perhaps);
        }
    }
}

fn restored(told: Told) -> Answer {
    Answer { reason: told.reason, total: 0, ready: 0, reconciling: false, stalled: told.stalled }
}
