//! The threads that evaluate custom rules: an object is judged some time after it was brought, now and then so late that what
//! stood for it does not any more.

use watcher::reflector::Judgement;

use super::sim_stage::SimStage;
use crate::timeline::SimEvent;
use crate::world::{FaultConcern, SimWorld};

/// Number of threads.
const RULE_THREADS: usize = 2;

/// The threads, and the object that each evaluates.
#[derive(Default)]
pub(crate) struct RuleWire {
    threads: [Option<Judgement>; RULE_THREADS],
}

/// How long an evaluation takes, with the wait for a processor.
fn evaluation_time(world: &mut SimWorld) -> i64 {
    match () {
        () if world.faults.of(FaultConcern::Rules).strikes(1) => {
            world.faults.of(FaultConcern::Rules).between(5_000, 50_000)
        }
        () if world.faults.of(FaultConcern::Rules).strikes(6) => {
            world.faults.of(FaultConcern::Rules).between(100, 5_000)
        }
        () => world.faults.of(FaultConcern::Rules).between(0, 20),
    }
}

impl RuleWire {
    pub(crate) fn reset_for_restart(&mut self) {
        *self = RuleWire::default();
    }

    /// Gives idle threads something to do.
    pub(crate) fn start_evaluations(&mut self, stage: &mut SimStage) {
        for (number, thread) in self.threads.iter_mut().enumerate().filter(|(_, thread)| thread.is_none()) {
            let Some(taken) = stage.feed.reflector.rule_work().take() else { return };
            *thread = Some(taken);
            let after = evaluation_time(&mut stage.world);
            stage.world.timeline.schedule_event(after, SimEvent::Judged(number));
        }
    }

    /// A thread is done.
    pub(crate) fn finish_evaluation(&mut self, stage: &mut SimStage, number: usize) {
        if let Some(judgement) = self.threads.get_mut(number).and_then(Option::take) {
            stage.feed.reflector.rule_work().evaluate(judgement);
            stage.service.wake_loop(&mut stage.world);
        }
    }
}
