//! A process that goes on beside the one that took over from it: it was frozen, or cut off from its lease.

use rollcall_core::ParentWrite;

use super::kind_wires::KindWires;
use super::sim_stage::SimStage;
use super::status_write_wire::{StatusWriteWire, describe_write, receive_answer, receive_reread};
use super::write_in_flight::LandedWrite;
use crate::scenario::{Dice, Sabotage};
use crate::service::{ObjectFeed, ServiceUnderTest};
use crate::timeline::SimEvent;

/// Longest time for which a process is frozen, in milliseconds.
const MAX_FROZEN_MS: i64 = 40_000;
/// Longest time for which it goes on until it notices that its lease is lost, in milliseconds: the deadline of its renewals,
/// where the monotonic clock stood still with it.
const MAX_AWAKE_MS: i64 = 10_000;
/// Maximum number of turns in one instant.
const MAX_TURNS_PER_INSTANT: u32 = 2_000;

/// A former leader that does not know it yet. Its watches and live reads bring nothing any more, so that it judges by what it
/// held; but its deadlines come, its writes are sent, and it reads a parent again that has moved under a write.
pub(crate) struct GhostProcess {
    service: ServiceUnderTest,
    feed: ObjectFeed,
    /// It is frozen before this time.
    wakes_at: i64,
    sabotage: Option<Sabotage>,
}

impl GhostProcess {
    /// Begins another process on the stage, and draws how long the former one is frozen and goes on.
    pub(crate) fn leave_behind(
        stage: &mut SimStage,
        dice: &mut Dice,
        sabotage: Option<Sabotage>,
    ) -> GhostProcess {
        let frozen = if dice.chance(40) { 0 } else { dice.between(50, MAX_FROZEN_MS) };
        let awake = if dice.chance(30) { dice.between(10, 500) } else { dice.between(500, MAX_AWAKE_MS) };
        let mut service = stage.service.split_for_takeover();
        let feed = stage.feed.split_for_takeover(stage.service.core.reflector.clone());
        let world = &mut stage.world;
        world.timeline.log_event(format_args!(
            "takeover: the former process is frozen for {frozen} ms, and goes on for {awake} ms"
        ));
        let wakes_at = world.now() + frozen;
        service.schedule_turn_by(world, wakes_at);
        world.timeline.schedule_event(frozen + awake, SimEvent::OverlapEnds);
        GhostProcess { service, feed, wakes_at, sabotage }
    }

    /// Returns the number of this process.
    pub(crate) fn life(&self) -> u32 {
        self.service.life
    }

    /// Runs turns of its loop, if one is due.
    pub(crate) fn run_turns(&mut self, stage: &mut SimStage, writes: &mut StatusWriteWire) {
        let now = stage.world.now();
        if !self.service.begin_turn(now) {
            return;
        }
        if now < self.wakes_at {
            return self.service.schedule_turn_by(&mut stage.world, self.wakes_at);
        }
        self.swap_with(stage);
        let mut rounds = 0;
        while rounds < MAX_TURNS_PER_INSTANT && self.run_turn(stage, writes) {
            rounds += 1;
        }
        stage.service.schedule_deadline(&mut stage.world);
        self.swap_with(stage);
        if rounds == MAX_TURNS_PER_INSTANT {
            stage
                .world
                .timeline
                .fail_invariant("the loop rests", "a former process goes around in one instant");
        }
    }

    /// Runs one turn on the stage of this process; returns `false` if there was no work.
    fn run_turn(&self, stage: &mut SimStage, writes: &mut StatusWriteWire) -> bool {
        let now = stage.world.timeline.current_time();
        stage.feed.shown.take_changes();
        for mut write in stage.service.core.run_turn(now) {
            stage.world.timeline.log_event(format_args!("former process: {}", describe_write(&write)));
            self.sabotage_write(&mut write);
            writes.send_write(stage, write, false);
        }
        // Nobody answers them.
        drop(stage.service.take_resync_reads(now));
        let SimStage { world, service, .. } = stage;
        if service.is_deadline_over(now.0) {
            service.mark_blind_kinds(world);
            service.withdraw_unswapped_rules(world);
            return true;
        }
        service.settle_next_write(now) || service.observe_some_objects(now)
    }

    fn sabotage_write(&self, write: &mut ParentWrite) {
        if self.sabotage == Some(Sabotage::LostLeaseUnguarded)
            && let Some(ops) = write.patch.as_array_mut()
        {
            ops.retain(|op| {
                op["op"] != "test" || op["path"].as_str().is_some_and(|at| at.starts_with("/meta"))
            });
        }
    }

    /// Delivers the answer to one of its writes, once it is awake.
    pub(crate) fn receive_answer(&mut self, stage: &mut SimStage, wires: &KindWires, landed: LandedWrite) {
        if stage.world.now() < self.wakes_at {
            let wait = self.wakes_at - stage.world.now();
            return stage.world.timeline.schedule_event(wait, SimEvent::Landed(Box::new(landed)));
        }
        self.swap_with(stage);
        receive_answer(stage, wires, landed);
        self.swap_with(stage);
    }

    /// Delivers the answer to a read after one of its writes, once it is awake.
    pub(crate) fn receive_reread(&mut self, stage: &mut SimStage, landed: Box<LandedWrite>) {
        if stage.world.now() < self.wakes_at {
            let wait = self.wakes_at - stage.world.now();
            return stage.world.timeline.schedule_event(wait, SimEvent::Reread(landed));
        }
        self.swap_with(stage);
        receive_reread(stage, &landed);
        self.swap_with(stage);
    }

    /// Puts this process on the stage, and the one that was there aside; or the other way around.
    fn swap_with(&mut self, stage: &mut SimStage) {
        std::mem::swap(&mut self.service, &mut stage.service);
        std::mem::swap(&mut self.feed, &mut stage.feed);
    }
}
