//! The randomness of faults and delays.

use crate::scenario::{Dice, DiceStream, SeedStreams, StreamLayout};

/// What faults and delays are about. Each has a stream of its own, so that what is added to one leaves the others as they
/// were.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FaultConcern {
    /// Outages of kinds, of rights and of the process, and when they come.
    Outages,
    /// When the loop runs, and when the process begins to work.
    Turns,
    /// Lists and watches of objects.
    Lists,
    /// Live reads.
    Reads,
    /// Status writes and their answers.
    Writes,
    /// Evaluations of custom rules.
    Rules,
}

/// Randomness of everything between the API server and the service. After faults have stopped it still draws delays, but
/// nothing fails any more.
pub(crate) struct FaultDice {
    /// One stream of each concern; in the order of [`FaultConcern`].
    streams: [Dice; 6],
    layout: StreamLayout,
    /// Nothing fails by chance in this history.
    is_calm: bool,
    /// Faults have stopped.
    pub(crate) have_stopped: bool,
    /// Nothing fails for some hours.
    pub(crate) are_asleep: bool,
}

/// The stream of one concern.
pub(crate) struct ConcernDice<'a> {
    dice: &'a mut Dice,
    is_off: bool,
}

impl FaultDice {
    /// Creates the dice of a seed; in a calm history they draw delays alone.
    pub(crate) fn new(SeedStreams { seed, layout }: SeedStreams, is_calm: bool) -> FaultDice {
        use DiceStream as S;
        let streams = [S::Faults, S::FaultTurns, S::FaultLists, S::FaultReads, S::FaultWrites, S::FaultRules];
        FaultDice {
            streams: streams.map(|stream| stream.dice(seed)),
            layout,
            is_calm,
            have_stopped: false,
            are_asleep: false,
        }
    }

    /// Returns the stream of a concern.
    pub(crate) fn of(&mut self, concern: FaultConcern) -> ConcernDice<'_> {
        let at = match self.layout {
            StreamLayout::Shared => 0,
            StreamLayout::Split { .. } => concern as usize,
        };
        ConcernDice { is_off: self.is_off(), dice: &mut self.streams[at] }
    }

    /// Returns `true` if nothing fails by chance now.
    pub(crate) fn is_off(&self) -> bool {
        self.is_calm || self.have_stopped || self.are_asleep
    }
}

impl ConcernDice<'_> {
    /// Returns `true` if a fault with this probability, in per cent, happens now.
    pub(crate) fn strikes(self, percent: usize) -> bool {
        !self.is_off && self.dice.chance(percent)
    }

    /// Returns `true` with a probability of `percent`, in calm times too.
    pub(crate) fn chance(self, percent: usize) -> bool {
        self.dice.chance(percent)
    }

    pub(crate) fn below(self, n: usize) -> usize {
        self.dice.below(n)
    }

    pub(crate) fn between(self, from: i64, to: i64) -> i64 {
        self.dice.between(from, to)
    }
}
