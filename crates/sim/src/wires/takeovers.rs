//! When another process takes over while the former one goes on.

use super::ghost_process::GhostProcess;
use super::kind_wires::KindWires;
use super::sim_stage::SimStage;
use super::status_write_wire::{StatusWriteWire, receive_answer, receive_reread};
use super::write_in_flight::{LandedWrite, WriteSender};
use crate::scenario::{Dice, DiceStream, Sabotage, SeedStreams};
use crate::timeline::{SimEvent, SimTimeline};
use crate::world::SimWorld;

/// Chance of a history to have takeovers from a process that goes on, in per cent.
const TAKEOVERS_PERCENT: usize = 60;

/// The takeovers of a history, and the former process for as long as it goes on.
pub(crate) struct Takeovers {
    /// `None` where there are none.
    dice: Option<Dice>,
    ghost: Option<GhostProcess>,
    sabotage: Option<Sabotage>,
}

impl Takeovers {
    /// Draws whether a history has any.
    pub(crate) fn new(streams: SeedStreams, sabotage: Option<Sabotage>) -> Takeovers {
        let has_any = |dice: &mut Dice| dice.chance(TAKEOVERS_PERCENT);
        let dice = streams.widened_by(DiceStream::Overlap);
        let dice = dice.and_then(|mut dice| has_any(&mut dice).then_some(dice));
        Takeovers { dice, ghost: None, sabotage }
    }

    /// Schedules the first.
    pub(crate) fn schedule_first(&mut self, timeline: &mut SimTimeline) {
        if let Some(dice) = &mut self.dice {
            timeline.schedule_event(dice.between(2_000, 60_000), SimEvent::Takeover);
        }
    }

    /// Puts another process on the stage, and schedules the next takeover; returns `false` if the one before is not over.
    pub(crate) fn begin(&mut self, stage: &mut SimStage) -> bool {
        let Some(dice) = &mut self.dice else { return false };
        let timeline = &mut stage.world.timeline;
        timeline.schedule_event(dice.between(10_000, 120_000), SimEvent::Takeover);
        if self.ghost.is_some() {
            return false;
        }
        timeline.counts.overlaps += 1;
        timeline.remove_events(|event| !event.outlives_takeover());
        self.ghost = Some(GhostProcess::leave_behind(stage, dice, self.sabotage));
        true
    }

    /// The former process notices that its lease is lost. What it has sent may still arrive.
    pub(crate) fn end(&mut self, world: &SimWorld) {
        if self.ghost.take().is_some() {
            world.timeline.log_event("the former process stands by");
        }
    }

    /// Forgets the former process: all end.
    pub(crate) fn reset_for_restart(&mut self) {
        self.ghost = None;
    }

    /// Returns which process this is that sent a write.
    pub(crate) fn sender_of(&self, stage: &SimStage, life: u32) -> WriteSender {
        match &self.ghost {
            _ if life == stage.service.life => WriteSender::Running,
            Some(ghost) if ghost.life() == life => WriteSender::Beside,
            _ => WriteSender::Ended,
        }
    }

    /// Runs the loop of the former process.
    pub(crate) fn run_turns(&mut self, stage: &mut SimStage, writes: &mut StatusWriteWire) {
        if let Some(ghost) = &mut self.ghost {
            ghost.run_turns(stage, writes);
        }
    }

    /// Delivers the answer to a write to the process that sent it.
    pub(crate) fn receive_answer(&mut self, stage: &mut SimStage, wires: &KindWires, landed: LandedWrite) {
        if landed.life == stage.service.life {
            receive_answer(stage, wires, landed);
        } else if let Some(ghost) = self.ghost.as_mut().filter(|ghost| ghost.life() == landed.life) {
            ghost.receive_answer(stage, wires, landed);
        }
    }

    /// Delivers the answer to a read of a parent to the process that sent it.
    pub(crate) fn receive_reread(&mut self, stage: &mut SimStage, landed: Box<LandedWrite>) {
        if landed.life == stage.service.life {
            receive_reread(stage, &landed);
        } else if let Some(ghost) = self.ghost.as_mut().filter(|ghost| ghost.life() == landed.life) {
            ghost.receive_reread(stage, landed);
        }
    }
}
