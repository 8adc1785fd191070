//! How a change climbs: touched, quiet, judged, and what moved goes on to the owners at once.

use readiness::Time;
use readiness::rollup::ParentReason;

use super::{Cause, Draft, Engine};
use crate::judge::{Gate, is_urgent, is_well};
use crate::roll::{Roll, Waits};
use crate::types::{Evidence, ObjectId, RollId};

/// A roll judged so often in one poll is in a loop that the cycle guard did not see; it goes on in the next.
const CLIMBS: u8 = 64;
/// How much later that is.
const BREATH: std::time::Duration = std::time::Duration::from_secs(1);

impl Engine {
    /// Something about this roll moved: it is judged once it is quiet, or at once where it has been quiet for long, or where
    /// it has failed or is stuck. How often that is written is for its delivery to bound.
    pub(super) fn touch(&mut self, id: RollId, now: Time, cause: Cause) {
        let Some(roll) = self.graph.roll_mut(id) else { return };
        let at = usize::from(roll.policy.0);
        let Some(Some(policy)) = self.policies.get(at) else { return };
        if self.gates[at].awaits_a_list() {
            return self.touch_unlisted(id, now, self.gates[at]);
        }
        let at = roll.touched.touch(now, policy.debounce);
        roll.reworded = true;
        roll.provoked |= cause == Cause::Others;
        if at <= now || is_urgent(roll, policy) {
            return self.at_once(id, now, cause);
        }
        let Some(roll) = self.graph.roll_mut(id).filter(|r| !r.waits.now) else { return };
        roll.waits.quiet = true;
        self.quiet.arm(id, at);
        self.doubt(id);
    }

    /// This roll is judged in the next poll.
    pub(super) fn at_once(&mut self, id: RollId, now: Time, cause: Cause) {
        let Some(roll) = self.graph.roll_mut(id) else { return };
        roll.provoked |= cause == Cause::Others;
        if !std::mem::replace(&mut roll.waits.now, true) {
            self.at_once.push_back(id);
            self.at_once_since.get_or_insert(now);
        }
    }

    /// Those that quote `id` hear that its words moved.
    pub(super) fn touch_owners(&mut self, id: ObjectId, now: Time, cause: Cause) {
        let edges = self.graph.edges_of(id);
        edges.iter().filter(|e| !e.cyclic).for_each(|edge| self.touch(edge.roll, now, cause));
    }

    /// What there is to say of this object beside its verdict has moved, by others.
    pub fn reword(&mut self, id: ObjectId, now: Time) {
        for at in 0..self.graph.rolls_of(id).len() {
            let roll = self.graph.rolls_of(id)[at];
            self.touch(roll, now, Cause::Others);
        }
        self.touch_owners(id, now, Cause::Others);
    }

    /// What waits to be judged must not be taken for well by those above meanwhile.
    pub(super) fn doubt(&mut self, id: RollId) {
        let mut work = vec![id];
        while let Some(id) = work.pop() {
            let Some(roll) = self.graph.roll(id) else { continue };
            let Some(policy) = self.policy(roll.policy) else { continue };
            let said = roll.answer.is_some_and(|a| a.reason == ParentReason::AllChildrenReady);
            let (parent, doubted) = (roll.parent, said && !is_well(roll, policy));
            if doubted != roll.doubted {
                if let Some(roll) = self.graph.roll_mut(id) {
                    roll.doubted = doubted;
                }
                self.reweigh(parent);
                work.append(&mut self.moved);
            }
        }
    }

    /// Moves what `child` weighs for its owners; the rolls that moved by it are in `self.moved`.
    pub(super) fn reweigh(&mut self, child: ObjectId) {
        self.moved.clear();
        self.graph.reweigh(child, &mut self.moved);
    }

    /// Judges what is due; every parent whose words may have moved is added to `drafts`, once.
    pub fn poll(&mut self, now: Time, drafts: &mut Vec<Draft>) {
        self.polls = self.polls.wrapping_add(1);
        self.calm_down(now);
        let mut parents = std::mem::take(&mut self.drafted);
        while let Some(parent) = self.redeliver.take_due(now) {
            self.resolve(parent, now);
            parents.push(parent);
        }
        while let Some(id) = self.next_due(now) {
            if self.goes_round(id) {
                self.dated.arm_by(id, now + BREATH);
            } else if let Some(parent) = self.judge(id, now) {
                if self.graph.rolls_of(parent).len() > 1 {
                    self.resolve(parent, now);
                }
                parents.push(parent);
            }
        }
        self.at_once_since = None;
        self.awaiting = self.is_awaiting();
        parents.sort_unstable();
        parents.dedup();
        parents.retain(|parent| self.has_a_say(*parent));
        drafts.extend(parents.drain(..).map(|parent| Draft { parent }));
        self.drafted = parents;
    }

    /// Nobody is told that all is well while it is known that it is not.
    fn resolve(&mut self, parent: ObjectId, now: Time) {
        for at in 0..self.graph.rolls_of(parent).len() {
            let id = self.graph.rolls_of(parent)[at];
            if self.graph.roll(id).is_some_and(|r| r.doubted) {
                self.at_once(id, now, Cause::Perhaps);
            }
        }
    }

    fn next_due(&mut self, now: Time) -> Option<RollId> {
        while let Some(id) = self.at_once.pop_front() {
            if self.graph.roll_mut(id).is_some_and(|r| std::mem::take(&mut r.waits.now)) {
                return Some(id);
            }
        }
        self.quiet.take_due(now).or_else(|| self.dated.take_due(now))
    }

    fn goes_round(&mut self, id: RollId) -> bool {
        let Some(roll) = self.graph.roll_mut(id) else { return false };
        if roll.climbs.0 != self.polls {
            roll.climbs = (self.polls, 0);
        }
        roll.climbs.1 += 1;
        roll.climbs.1 > CLIMBS
    }

    /// One of its policies has judged it, or none applies any more: before that, what it says is left as it is. The
    /// same where it is known that what was judged does not hold, and it could not be judged anew.
    fn has_a_say(&self, parent: ObjectId) -> bool {
        let Some(parent) = self.graph.parent(parent).filter(|p| !p.taken_leave) else { return false };
        let rolls = parent.rolls.iter().filter_map(|r| self.graph.roll(*r));
        let (mut any, mut say) = (false, false);
        for roll in rolls {
            if roll.doubted && self.is_open(roll.policy) {
                return false;
            }
            (any, say) = (true, say || self.has_word(roll) || roll.view.is_none());
        }
        say || !any
    }

    fn judge(&mut self, id: RollId, now: Time) -> Option<ObjectId> {
        let roll = self.graph.roll(id)?;
        let (parent, at, gate) = (roll.parent, usize::from(roll.policy.0), self.gate(roll.policy));
        if !self.is_judgeable(roll, gate) {
            return None;
        }
        let waits = gate != Gate::Withdrawn && roll.phase.announced && !roll.deleting;
        let held = waits && self.awaits(roll);
        let policy = self.policies.get(at)?.as_ref()?;
        let roll = self.graph.roll_mut(id)?;
        if held {
            roll.held = true;
            return None;
        }
        let news = roll.renew(policy, gate, now);
        let seen = roll.view.is_some();
        let settled = roll.answer.is_none_or(|a| a.reason != ParentReason::ChildrenPending);
        let spoke = settled && self.speak(id);
        self.counts.judged += 1;
        self.requeue(id, news.waited, news.again);
        if !seen {
            return None;
        }
        let (cause, left) = self.stirred(parent, news.provoked, now);
        if news.moved {
            self.climb(parent, cause, now);
        }
        // Where nothing is written, nobody renders its words: whoever quotes them is told that they may have moved.
        if news.awaited || spoke || (news.reworded && (news.silent || left)) {
            self.touch_owners(parent, now, cause);
        }
        Some(parent)
    }

    fn requeue(&mut self, id: RollId, waited: Waits, again: Option<Time>) {
        if waited.quiet {
            self.quiet.disarm(id);
        }
        match again {
            Some(at) => self.dated.arm(id, at),
            None if waited.date => _ = self.dated.disarm(id),
            None => {}
        }
    }

    /// A list is awaited under some policy.
    fn is_awaiting(&self) -> bool {
        let mut used = self.policies.iter().zip(&self.gates);
        used.any(|(policy, gate)| policy.is_some() && gate.awaits_a_list())
    }

    /// Among what keeps it from being ready is a parent that was not judged yet, because a list is awaited: it is not
    /// known to be ready, and not known not to be. What was said of those above stays until it is.
    fn awaits(&self, roll: &Roll) -> bool {
        (self.awaiting || self.mute > 0) && roll.troubles.iter().any(|t| self.is_awaited(t.child))
    }

    fn is_awaited(&self, child: ObjectId) -> bool {
        let mut rolls = self.graph.rolls_of(child).iter().filter_map(|r| self.graph.roll(*r));
        let unknown = |r: &Roll| !r.judged || (r.mute && r.evidence == Evidence::Silent) || self.awaits(r);
        rolls.any(|r| r.view.is_some() && !r.deleting && unknown(r))
    }

    /// A roll of `parent` was judged. The pass begins to be patient anew; and if others have moved something, we may
    /// write about it. Who moved what is said of it, since it was last offered; and whether it has taken leave.
    fn stirred(&mut self, id: ObjectId, provoked: bool, now: Time) -> (Cause, bool) {
        let Some(parent) = self.graph.parent_mut(id) else { return (Cause::Perhaps, false) };
        if provoked {
            parent.provoked = true;
            parent.delivery.provoke(now);
        }
        let cause = if parent.provoked { Cause::Others } else { Cause::Perhaps };
        let left = parent.taken_leave;
        if std::mem::take(&mut parent.passed) {
            self.resync.moved(id, now);
        }
        (cause, left)
    }

    /// The answer about `parent` moved; its owners are judged in the same poll, so that a cascade costs one debounce.
    fn climb(&mut self, parent: ObjectId, cause: Cause, now: Time) {
        self.counts.moved += 1;
        self.enroll(parent, now);
        self.reweigh(parent);
        for at in 0..self.moved.len() {
            let owner = self.moved[at];
            self.at_once(owner, now, cause);
        }
    }

    /// The pass looks after parents that are not ready, and no others.
    fn enroll(&mut self, id: ObjectId, now: Time) {
        if self.graph.parent(id).is_some_and(|p| !p.enrolled)
            && self.is_unready(id)
            && let Some(parent) = self.graph.parent_mut(id)
        {
            parent.enrolled = true;
            self.resync.enroll(id, now);
        }
    }

    pub(super) fn is_unready(&self, parent: ObjectId) -> bool {
        let rolls = self.graph.rolls_of(parent).iter().filter_map(|r| self.graph.roll(*r));
        let mut answers = rolls.filter(|r| !r.deleting).filter_map(|r| r.answer);
        answers.any(|a| a.reason != ParentReason::AllChildrenReady)
    }
}
