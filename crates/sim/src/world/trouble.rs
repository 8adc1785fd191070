//! Bad luck: kinds that cannot be reached, rights that vanish and come back, histories that are forgotten, restarts.

use crate::sim::{Event, Sim};

impl Sim {
    /// The next misfortune.
    pub(crate) fn trouble(&mut self) {
        let kind = self.fate.below(self.wires.len());
        let name = self.scenario.name(kind).to_owned();
        match self.fate.below(20) {
            0..6 => {
                let span = if self.fate.chance(15) {
                    self.fate.between(60_000, 300_000)
                } else {
                    self.fate.between(100, 8_000)
                };
                self.say(format_args!("{name} cannot be reached for {span} ms"));
                self.wires[kind].down_until = self.now + span;
                // An open watch notices.
                self.deliver(kind);
            }
            6..9 => {
                let span = self.fate.between(1_000, 240_000);
                self.say(format_args!("{name} may not be read for {span} ms"));
                self.wires[kind].forbidden_until = self.now + span;
            }
            9..11 => {
                let upto = self.store.revision();
                self.say(format_args!("history is forgotten up to {upto}"));
                self.store.compact(upto);
            }
            11..15 => {
                let lag = self.fate.between(0, 3_000);
                self.say(format_args!("{name} lags by {lag} ms"));
                self.wires[kind].lag = lag;
            }
            15..17 => self.restart(),
            _ => {}
        }
        let after = self.fate.between(500, 30_000);
        self.at(after, Event::Trouble);
    }
}
