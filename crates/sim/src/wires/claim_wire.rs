//! What the service says in the status of policies of who has them, on its way to the server; and when it looks at those again that it
//! does not select any more.

use std::collections::BTreeSet;

use aggregator::KindState;

use super::sim_stage::SimStage;
use crate::scenario::{Dice, DiceStream, kind_id};
use crate::service::PolicyFollower;
use crate::timeline::{ClaimWrite, PolicyEvent};

/// Interval at which parents are looked through for entries that are to be taken back, in milliseconds.
const RELEASE_CHECK_MS: i64 = 3_000;

/// The wire on which claims travel. Nothing does where there is one release.
pub(super) struct ClaimWire {
    dice: Dice,
    /// When parents are looked through next for entries that are to be taken back.
    release_check_at: Option<i64>,
    /// When something is decided next of policies of another release.
    step_at: Option<i64>,
}

impl ClaimWire {
    pub(super) fn new(seed: u64) -> ClaimWire {
        ClaimWire { dice: DiceStream::ClaimWire.dice(seed), release_check_at: None, step_at: None }
    }

    /// Forgets what the process was to do.
    pub(super) fn reset_for_restart(&mut self) {
        (self.release_check_at, self.step_at) = (None, None);
    }

    /// Sends what is to be said of policies.
    pub(super) fn send_claims(&mut self, stage: &mut SimStage, follower: &mut PolicyFollower) {
        for claim in follower.claim_writes(stage.world.now()) {
            let late = self.dice.between(5, 1_500);
            stage.world.timeline.schedule_policy_event(late, PolicyEvent::WriteClaim(Box::new(claim)));
        }
    }

    /// Schedules what is to be decided of policies of another release, and looks for what is to be taken back.
    pub(super) fn schedule_steps(&mut self, stage: &mut SimStage, follower: &PolicyFollower) {
        let now = stage.world.now();
        let is_news = |at: &i64| self.step_at.is_none_or(|known| known <= now || *at < known);
        if let Some(at) = follower.next_step().filter(is_news) {
            self.step_at = Some(at);
            stage.world.timeline.schedule_policy_event(at - now, PolicyEvent::Redecide);
        }
        self.schedule_release_check(stage, follower);
    }

    pub(super) fn schedule_release_check(&mut self, stage: &mut SimStage, follower: &PolicyFollower) {
        let now = stage.world.now();
        if follower.has_left() && self.release_check_at.is_none_or(|at| at <= now) {
            self.release_check_at = Some(now + RELEASE_CHECK_MS);
            stage.world.timeline.schedule_policy_event(RELEASE_CHECK_MS, PolicyEvent::CheckRelease);
        }
    }
}

/// A claim arrives at the server.
pub(super) fn write_claim(stage: &mut SimStage, claim: &ClaimWrite) {
    let (now, of) = (stage.world.now(), (claim.number, claim.uid));
    let done = stage.world.policy_server.patch_status(of, &claim.patch, now);
    let (number, patch) = (claim.number, &claim.patch);
    stage.world.timeline.log_event(format_args!("claim on policy-{number}: {patch}, done: {done}"));
}

/// Looks whether what policies wrote is gone that are not this release's any more; returns `true` if a new plan is due.
pub(super) fn is_release_over(stage: &SimStage, follower: &mut PolicyFollower) -> bool {
    let core = &stage.service.core;
    follower.check_release(|kind: usize, types: &BTreeSet<String>| {
        let mut found = core.engine.kind_state(kind_id(kind)) != KindState::Synced;
        core.reflector.for_each_row_in(kind_id(kind), None, |_, row| {
            let mut written = row.parent.iter().flat_map(|parent| parent.status.written());
            found |= written.any(|own| types.contains(own.kind()));
        });
        found
    })
}
