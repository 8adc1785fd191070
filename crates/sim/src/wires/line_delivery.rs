//! The lines of a watch on their way to the service: lost, repeated, or disturbed.

use serde_json::Value;
use watcher::ApiFailureCause;

use super::kind_wire::{KindWire, reopen_later};
use super::sim_stage::SimStage;
use super::wire_bodies::WireWatchLine;
use crate::perturbation::{Disturbance, HELD_MS, PointKind};
use crate::scenario::Sabotage;
use crate::world::{FaultConcern, ModelObject};

/// Time for which a kind that is cut off cannot be reached, in milliseconds: longer than blindness is borne.
const CUT_OFF_MS: i64 = 150_000;

/// The delivery of lines of one kind's watch.
pub(super) struct LineDelivery<'w> {
    pub(super) wire: &'w mut KindWire,
    pub(super) kind: usize,
    pub(super) sabotage: Option<Sabotage>,
}

impl LineDelivery<'_> {
    /// Delivers one line of a watch; returns `false` if it ended the watch.
    pub(super) fn deliver(&mut self, stage: &mut SimStage, bytes: &[u8], value: &Value) -> bool {
        let kind = self.kind;
        let Ok(line) = serde_json::from_slice::<WireWatchLine<'_>>(bytes) else {
            stage.world.timeline.fail_invariant("a line can be read", String::from_utf8_lossy(bytes));
            return false;
        };
        match line.r#type {
            "BOOKMARK" => return true,
            "ERROR" => {
                self.wire.resume_revision = None;
                self.wire.report_trouble(stage, kind, ApiFailureCause::Gone);
                reopen_later(&mut stage.world, kind, 10..500);
                return false;
            }
            _ => {}
        }
        let disturbance = stage.world.disturb_point(PointKind::Notification);
        if let Some(disturbance) = disturbance
            && let Some(goes_on) = self.disturb(stage, disturbance)
        {
            return goes_on;
        }
        let model = stage.world.read_object(kind, value);
        let deleted = line.r#type == "DELETED";
        let lost = stage.world.faults.of(FaultConcern::Lists).strikes(2);
        if lost || (deleted && self.sabotage == Some(Sabotage::DeletesLost)) {
            stage.world.timeline.counts.lost += 1;
            stage
                .world
                .timeline
                .log_kind_event(kind, format_args!("lost {} {}", line.r#type, describe_object(&model)));
            return true;
        }
        apply_line(stage, kind, &line, model);
        let repeats = disturbance == Some(Disturbance::Repeated);
        if stage.world.faults.of(FaultConcern::Lists).strikes(5) || repeats {
            self.repeat(stage);
        }
        if self.wire.repeatable_line.is_none() || stage.world.faults.of(FaultConcern::Lists).chance(30) {
            self.wire.repeatable_line = Some(bytes.into());
        }
        true
    }

    /// Disturbs the delivery of a line; returns whether the watch goes on, or `None` if the line is delivered as ever.
    fn disturb(&mut self, stage: &mut SimStage, disturbance: Disturbance) -> Option<bool> {
        let (wire, kind) = (&mut *self.wire, self.kind);
        match disturbance {
            Disturbance::Lost => return Some(true),
            // What it knew ends with it.
            Disturbance::KilledBefore => return Some(false),
            Disturbance::Relisted => {
                wire.resume_revision = None;
                wire.report_trouble(stage, kind, ApiFailureCause::Gone);
            }
            Disturbance::Held => wire.report_trouble(stage, kind, ApiFailureCause::Connection),
            Disturbance::CutOff => {
                wire.down_until = stage.world.now() + CUT_OFF_MS;
                wire.report_trouble(stage, kind, ApiFailureCause::Connection);
            }
            _ => return None,
        }
        reopen_later(&mut stage.world, kind, HELD_MS..HELD_MS + 1);
        Some(false)
    }

    /// Delivers an earlier line again.
    fn repeat(&self, stage: &mut SimStage) {
        let kind = self.kind;
        let Some(bytes) = self.wire.repeatable_line.clone() else { return };
        let mut bytes = bytes.to_vec();
        if self.sabotage == Some(Sabotage::StaleLooksNew)
            && let Ok(mut line) = serde_json::from_slice::<Value>(&bytes)
        {
            line["object"]["metadata"]["resourceVersion"] = stage.world.store.revision().to_string().into();
            bytes = line.to_string().into_bytes();
            stage.world.timeline.log_event("a repeated line looks new");
            let Ok(line) = serde_json::from_slice::<WireWatchLine<'_>>(&bytes) else { return };
            // The second cache recognises it as stale.
            return stage.feed.feed_reflector_alone(kind, line.object);
        }
        if let Ok(line) = serde_json::from_slice::<WireWatchLine<'_>>(&bytes) {
            let model = stage.feed.model_object(kind, line.object);
            apply_line(stage, kind, &line, model);
        }
    }
}

/// Name of an object in the log.
fn describe_object(model: &ModelObject) -> String {
    format!("{}/{} at {}", model.namespace, model.name, model.version)
}

fn apply_line(stage: &mut SimStage, kind: usize, line: &WireWatchLine<'_>, model: ModelObject) {
    stage.world.timeline.log_kind_event(kind, format_args!("{} {}", line.r#type, describe_object(&model)));
    if line.r#type == "DELETED" {
        stage.feed.feed_deletion(&model);
    } else {
        stage.feed.feed_watched(kind, model, line.object);
    }
    stage.service.wake_loop(&mut stage.world);
}
