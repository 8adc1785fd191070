//! The loop, in the order of `controller::event_loop`: stop, deadline, write outcome, reflector news, then at most 256
//! changed objects.

use std::time::Duration;

use aggregator::{KindId, KindState};
use rollcall_core::{BlindKind, KindEvent};

use crate::sim::{Sim, SimEvent};

/// Largest number of changed objects taken in one turn.
const MAX_OBJECTS_PER_TURN: usize = 256;
/// Largest number of turns in one instant; a loop that exceeds it does not come to rest.
const MAX_TURNS_PER_INSTANT: u32 = 2_000;

impl Sim {
    /// Schedules a turn of the loop after a random delay.
    pub(crate) fn wake_loop(&mut self) {
        let late = match self.fault_dice.below(20) {
            0 if !self.calm => self.fault_dice.between(20, 150),
            1..5 => self.fault_dice.between(1, 8),
            _ => 0,
        };
        self.schedule_turn_by(self.now + late);
    }

    fn schedule_turn_by(&mut self, at: i64) {
        if self.turn_at.is_none_or(|old| old > at) {
            self.turn_at = Some(at);
            self.schedule_event(at - self.now, SimEvent::Turn);
        }
    }

    /// Runs turns until no work is left at this instant.
    pub(crate) fn run_turns(&mut self) {
        if self.turn_at != Some(self.now) {
            return;
        }
        self.turn_at = None;
        let mut rounds = 0;
        while self.failure.is_none() && self.run_turn_step() {
            rounds += 1;
            if rounds > MAX_TURNS_PER_INSTANT {
                return self.fail_invariant("the loop rests", "it goes around and around in one instant");
            }
        }
        self.check_answers();
        if let Some(next) = self.next_loop_deadline() {
            self.schedule_turn_by(next);
        }
    }

    fn next_loop_deadline(&self) -> Option<i64> {
        let deadlines = [self.core.next_deadline(), self.health.next_deadline(), self.next_swap_deadline()];
        deadlines.into_iter().flatten().min().map(|t| t.0)
    }

    /// Runs one turn of the loop; returns `false` if there was no work.
    fn run_turn_step(&mut self) -> bool {
        let now = self.current_time();
        // A turn begins with what the watches have brought.
        self.observe_shown();
        for write in self.core.run_turn(now) {
            self.send_write(write);
        }
        while let Some(parent) = self.core.engine.take_due_resync(now) {
            let reads = self.core.resync_reads(parent);
            self.enqueue_reads(reads);
        }
        if self.next_loop_deadline().is_some_and(|at| at <= self.now) {
            while let Some(BlindKind { kind, state, needs_list }) = self.health.take_overdue(now) {
                self.log_kind_event(usize::from(kind.0), format_args!("{state:?}"));
                self.core.engine.set_kind_state(now, kind, state);
                if needs_list {
                    self.relist(usize::from(kind.0));
                }
            }
            self.withdraw_unswapped_rules();
            return true;
        }
        if let Some((parent, ticket, outcome)) = self.write_outcomes.pop_front() {
            self.core.settle_write(now, parent, ticket, outcome);
            return true;
        }
        if let Some((kind, news)) = self.news.pop_front() {
            self.handle_news(kind, &news);
            return true;
        }
        if self.take_plan() {
            return true;
        }
        if self.core.reflector.dirty_len() > 0 {
            let moved = self.core.reflector.take_dirty(MAX_OBJECTS_PER_TURN);
            self.core.observe_objects(now, &moved);
            self.observe_shown();
            return true;
        }
        // Changes that the product skipped as irrelevant count as observed too.
        self.observe_shown();
        false
    }

    fn handle_news(&mut self, kind: KindId, news: &KindEvent) {
        let now = self.current_time();
        if *news == KindEvent::Synced {
            let moved = self.core.reflector.take_dirty(usize::MAX);
            self.core.observe_objects(now, &moved);
            self.observe_shown();
        }
        self.observe_policy_news(usize::from(kind.0), news);
        if let Some(state) = self.health.observe_event(kind, news, now) {
            if self.core.engine.kind_state(kind) != state {
                self.log_kind_event(usize::from(kind.0), format_args!("{state:?}"));
            }
            self.core.engine.set_kind_state(now, kind, state);
            self.watch.record_kind_state(kind, state);
        }
    }
}

/// Time without contact after which a kind counts as blind. 2 min.
pub(crate) const BLIND_LIMIT: Duration = Duration::from_mins(2);

impl crate::invariant_watch::InvariantWatch {
    fn record_kind_state(&mut self, kind: KindId, state: KindState) {
        if state == KindState::Synced {
            self.open_kinds.insert(kind);
        }
    }
}
