//! The randomness of faults and delays.

use crate::scenario::Dice;

/// Randomness of everything between the API server and the service. After faults have stopped it still draws delays, but
/// nothing fails any more.
pub(crate) struct FaultDice {
    dice: Dice,
    /// Faults have stopped.
    pub(crate) have_stopped: bool,
}

impl FaultDice {
    pub(crate) fn new(seed: u64) -> FaultDice {
        FaultDice { dice: Dice::new(seed, 2), have_stopped: false }
    }

    /// Returns `true` if a fault with this probability, in per cent, happens now.
    pub(crate) fn strikes(&mut self, percent: usize) -> bool {
        !self.have_stopped && self.dice.chance(percent)
    }

    /// Returns `true` with a probability of `percent`, in calm times too.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.dice.chance(percent)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.dice.below(n)
    }

    pub(crate) fn between(&mut self, from: i64, to: i64) -> i64 {
        self.dice.between(from, to)
    }
}
