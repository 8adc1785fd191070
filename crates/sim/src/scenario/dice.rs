//! Seeded randomness: one seed and one order of draws give one history.

use timer::Seed;

/// Random number generator.
#[derive(Clone, Debug)]
pub(crate) struct Dice {
    seed: Seed,
    drawn: u64,
}

impl Dice {
    /// Returns a generator of its own for one part of the simulation.
    pub(crate) fn new(seed: u64, part: u64) -> Self {
        Dice { seed: Seed(seed).derive(part), drawn: 0 }
    }

    fn draw_number(&mut self) -> u64 {
        self.drawn += 1;
        self.seed.number_for(self.drawn)
    }

    /// Draws a number below `n`; 0 if `n` is 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        let drawn = self.draw_number();
        if n == 0 { 0 } else { usize::try_from(drawn % n as u64).unwrap_or(0) }
    }

    /// Returns `true` with a probability of `percent`.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Draws a number from `from..to`.
    pub(crate) fn between(&mut self, from: i64, to: i64) -> i64 {
        from + i64::try_from(self.below(usize::try_from(to - from).unwrap_or(0))).unwrap_or(0)
    }

    /// Picks one of the items.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let at = self.below(from.len());
        from.get(at)
    }
}
