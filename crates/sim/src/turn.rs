//! The loop, as `controller::drive` runs it: stop, deadline, write outcome, news, at most 256 objects that moved.

use std::time::Duration;

use aggregator::{KindId, KindState};
use controller::core::News;

use crate::sim::{Event, Sim};

/// So many objects are taken in one turn.
const TURN: usize = 256;
/// A loop that goes around so often in one instant does not rest.
const RESTLESS: u32 = 2_000;

impl Sim {
    /// Something happened: the loop looks around, sooner or later.
    pub(crate) fn wake_loop(&mut self) {
        let late = match self.fate.below(20) {
            0 if !self.calm => self.fate.between(20, 150),
            1..5 => self.fate.between(1, 8),
            _ => 0,
        };
        self.turn_by(self.now + late);
    }

    fn turn_by(&mut self, at: i64) {
        if self.turn_at.is_none_or(|old| old > at) {
            self.turn_at = Some(at);
            self.at(at - self.now, Event::Turn);
        }
    }

    /// Goes around until nothing is left to do at this instant.
    pub(crate) fn turn(&mut self) {
        if self.turn_at != Some(self.now) {
            return;
        }
        self.turn_at = None;
        let mut rounds = 0;
        while self.failure.is_none() && self.round() {
            rounds += 1;
            if rounds > RESTLESS {
                return self.fail("the loop rests", "it goes around and around in one instant");
            }
        }
        self.check_answers();
        if let Some(next) = self.deadline() {
            self.turn_by(next);
        }
    }

    fn deadline(&self) -> Option<i64> {
        let deadlines = [self.core.next_deadline(), self.health.next_deadline()];
        deadlines.into_iter().flatten().min().map(|t| t.0)
    }

    /// One turn of the loop; `false` where there was nothing to do.
    fn round(&mut self) -> bool {
        let now = self.time();
        for write in self.core.turn(now) {
            self.decided(write);
        }
        while let Some(parent) = self.core.engine.take_pass(now) {
            let reads = self.core.reads(parent);
            self.order(reads);
        }
        if self.deadline().is_some_and(|at| at <= self.now) {
            while let Some((kind, state)) = self.health.overdue(now) {
                self.say_of(usize::from(kind.0), format_args!("{state:?}"));
                self.core.engine.set_kind(now, kind, state);
            }
            return true;
        }
        if let Some((parent, outcome)) = self.settled.pop_front() {
            self.core.settle(now, parent, outcome);
            return true;
        }
        if let Some((kind, news)) = self.news.pop_front() {
            self.hear(kind, &news);
            return true;
        }
        if self.core.reflector.dirty() > 0 {
            let moved = self.core.reflector.take_dirty(TURN);
            self.core.take_in(now, &moved);
            self.take_in();
            return true;
        }
        // What the product thought not worth a turn was taken in by it all the same.
        self.take_in();
        false
    }

    fn hear(&mut self, kind: KindId, news: &News) {
        let now = self.time();
        if *news == News::Synced {
            let moved = self.core.reflector.take_dirty(usize::MAX);
            self.core.take_in(now, &moved);
            self.take_in();
        }
        if let Some(state) = self.health.hear(kind, news, now) {
            if self.core.engine.kind(kind) != state {
                self.say_of(usize::from(kind.0), format_args!("{state:?}"));
            }
            self.core.engine.set_kind(now, kind, state);
            self.watch.kind_state(kind, state);
        }
    }
}

/// Nothing is said of a kind that was blind for so long.
pub(crate) const BLIND: Duration = Duration::from_mins(2);

impl crate::check::Watch {
    fn kind_state(&mut self, kind: KindId, state: KindState) {
        if state == KindState::Synced {
            self.open_kinds.insert(kind);
        }
    }
}
