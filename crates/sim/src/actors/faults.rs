//! Injected faults: unreachable kinds, revoked and restored permissions, compacted histories, restarts.

use crate::sim::{Sim, SimEvent};

impl Sim {
    /// Injects the next fault.
    pub(crate) fn inject_fault(&mut self) {
        let kind = self.fault_dice.below(self.wires.len());
        let name = self.scenario.kind_name(kind).to_owned();
        match self.fault_dice.below(20) {
            0..6 => {
                let span = if self.fault_dice.chance(15) {
                    self.fault_dice.between(60_000, 300_000)
                } else {
                    self.fault_dice.between(100, 8_000)
                };
                self.log_event(format_args!("{name} cannot be reached for {span} ms"));
                self.wires[kind].down_until = self.now + span;
                // An open watch notices the outage.
                self.deliver_watch(kind);
            }
            6..9 => {
                let span = self.fault_dice.between(1_000, 240_000);
                self.log_event(format_args!("{name} may not be read for {span} ms"));
                self.wires[kind].forbidden_until = self.now + span;
            }
            9..11 => {
                let upto = self.store.revision();
                self.log_event(format_args!("history is forgotten up to {upto}"));
                self.store.compact(upto);
            }
            11..15 => {
                let lag = self.fault_dice.between(0, 3_000);
                self.log_event(format_args!("{name} lags by {lag} ms"));
                self.wires[kind].lag = lag;
            }
            15..17 => self.restart_process(),
            _ => {}
        }
        let after = self.fault_dice.between(500, 30_000);
        self.schedule_event(after, SimEvent::Fault);
    }
}
