//! Nights and weekends: hours in which nobody changes anything, and mostly nothing breaks. Operators finish what they have begun, and the
//! service goes on by itself, with its deadlines, resyncs and audits.

use crate::scenario::Dice;
use crate::timeline::{SimEvent, SimTimeline};
use crate::world::SimWorld;

/// Chance of a history to have any, in per cent.
const NIGHT_PERCENT: usize = 12;
/// Largest number of nights in one history.
const MAX_NIGHTS: i64 = 2;
/// Chance of a night to be a whole weekend, in per cent.
const WEEKEND_PERCENT: usize = 20;
/// Chance of a night in which no request or watch fails either, in per cent.
const CALM_PERCENT: usize = 80;
/// An hour, in milliseconds.
const HOUR_MS: i64 = 3_600_000;

/// When it is quiet.
pub(crate) struct Nights {
    dice: Dice,
    left: i64,
}

impl Nights {
    /// Draws the nights of a history, if it has any.
    pub(crate) fn draw(mut dice: Dice) -> Option<Nights> {
        let left = dice.between(1, MAX_NIGHTS);
        dice.chance(NIGHT_PERCENT).then_some(Nights { dice, left })
    }

    /// Schedules the beginning of the next one after this span, if one is left.
    pub(crate) fn schedule_next(&mut self, timeline: &mut SimTimeline, after: i64) {
        if self.left > 0 {
            self.left -= 1;
            timeline.schedule_event(after + self.dice.between(2_000, 150_000), SimEvent::Night);
        }
    }

    /// Night falls: whatever would change or break something waits for the morning.
    pub(crate) fn fall(&mut self, world: &mut SimWorld) {
        let hours = if self.dice.chance(WEEKEND_PERCENT) { 48 } else { 0 } + self.dice.between(6, 16);
        world.faults.are_asleep = self.dice.chance(CALM_PERCENT);
        let still = if world.faults.are_asleep { "" } else { " but faults of the network" };
        let timeline = &mut world.timeline;
        timeline.log_event(format_args!("nothing happens for {hours} h{still}"));
        timeline.postpone_events(SimEvent::is_unrest, hours * HOUR_MS);
        timeline.schedule_event(hours * HOUR_MS, SimEvent::Morning);
        self.schedule_next(timeline, hours * HOUR_MS);
    }
}
