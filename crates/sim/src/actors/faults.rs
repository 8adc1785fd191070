//! Injected faults: unreachable kinds, revoked and restored permissions, compacted histories, restarts.

use crate::wires::{KindWires, SimStage};
use crate::world::FaultConcern;

/// Injects a fault; returns `true` if it is the end of the process.
pub(crate) fn inject_fault(stage: &mut SimStage, wires: &mut KindWires) -> bool {
    let world = &mut stage.world;
    let kind = world.faults.of(FaultConcern::Outages).below(wires.all().len());
    let name = world.scenario.kind_name(kind).to_owned();
    match world.faults.of(FaultConcern::Outages).below(20) {
        0..6 => {
            let span = if world.faults.of(FaultConcern::Outages).chance(15) {
                world.faults.of(FaultConcern::Outages).between(60_000, 300_000)
            } else {
                world.faults.of(FaultConcern::Outages).between(100, 8_000)
            };
            world.timeline.log_event(format_args!("{name} cannot be reached for {span} ms"));
            wires.wire_mut(kind).down_until = world.now() + span;
            // An open watch notices the outage.
            wires.deliver_watch(stage, kind);
        }
        6..9 => {
            let span = world.faults.of(FaultConcern::Outages).between(1_000, 240_000);
            world.timeline.log_event(format_args!("{name} may not be read for {span} ms"));
            wires.wire_mut(kind).forbidden_until = world.now() + span;
        }
        9..11 => {
            let upto = world.store.revision();
            world.timeline.log_event(format_args!("history is forgotten up to {upto}"));
            world.store.compact(upto);
        }
        11..15 => {
            let lag = world.faults.of(FaultConcern::Outages).between(0, 3_000);
            world.timeline.log_event(format_args!("{name} lags by {lag} ms"));
            wires.wire_mut(kind).lag = lag;
        }
        15..17 => return true,
        _ => {}
    }
    false
}
