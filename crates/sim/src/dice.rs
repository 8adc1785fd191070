//! Randomness as a stream: one seed, one order of questions, one history.

use timer::Seed;

/// Draws numbers one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Dice {
    seed: Seed,
    drawn: u64,
}

impl Dice {
    /// A stream of its own for one part of the simulation.
    pub(crate) fn new(seed: u64, part: u64) -> Self {
        Dice { seed: Seed(seed).derive(part), drawn: 0 }
    }

    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.seed.number(self.drawn)
    }

    /// A number below `n`; 0 where `n` is 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        let drawn = self.draw();
        if n == 0 { 0 } else { (drawn % n as u64) as usize }
    }

    /// True so many times of a hundred.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A number of `from..to`.
    pub(crate) fn between(&mut self, from: i64, to: i64) -> i64 {
        from + self.below(usize::try_from(to - from).unwrap_or(0)) as i64
    }

    /// One of them.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let at = self.below(from.len());
        from.get(at)
    }
}
