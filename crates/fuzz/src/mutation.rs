//! Seeded changes to an input: the same seed makes the same inputs everywhere.

use timer::Seed;

/// Longest input that is made.
const MAX_INPUT_BYTES: usize = 64 * 1024;
/// Bytes on which readers turn.
const SPECIAL_BYTES: [u8; 25] = *b"\0\n\r\t \"\\'{}[](),:;*?%&<-_\xff";

/// Makes inputs out of those of a corpus.
#[derive(Clone, Debug)]
pub struct InputMutator<'c> {
    seed: Seed,
    /// Numbers drawn so far.
    drawn: u64,
    corpus: &'c [Vec<u8>],
    words: &'c [&'c str],
}

impl<'c> InputMutator<'c> {
    /// Mutations of the inputs of `corpus`, with `words` strewn in.
    pub fn new(seed: Seed, corpus: &'c [Vec<u8>], words: &'c [&'c str]) -> Self {
        InputMutator { seed, drawn: 0, corpus, words }
    }

    /// The next input.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.pick_input();
        for _ in 0..=self.below(6) {
            self.mutate(&mut input);
            input.truncate(MAX_INPUT_BYTES);
        }
        input
    }

    /// A number below `limit`; 0 for a limit of 0.
    fn below(&mut self, limit: usize) -> usize {
        self.drawn += 1;
        let number = self.seed.number_for(self.drawn) % u64::try_from(limit.max(1)).unwrap();
        usize::try_from(number).unwrap()
    }

    fn pick_input(&mut self) -> Vec<u8> {
        let at = self.below(self.corpus.len());
        self.corpus.get(at).cloned().unwrap_or_default()
    }

    /// A range of an input, most often a short one.
    fn pick_range(&mut self, length: usize) -> std::ops::Range<usize> {
        let from = self.below(length);
        let longest = if self.below(4) == 0 { length } else { length.min(16) };
        from..(from + 1 + self.below(longest)).min(length)
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let range = self.pick_range(input.len());
        match self.below(8) {
            0 => {
                let word = self.words.get(self.below(self.words.len())).copied().unwrap_or_default();
                input.splice(at..at, word.bytes());
            }
            1 => drop(input.drain(range)),
            2 => {
                let copied = input[range].to_vec();
                input.splice(at..at, copied);
            }
            3 => {
                // What is small may not grow without end when it is said often.
                let times = [2, 9, 70, 1_500][self.below(4)];
                let repeated = input[range].repeat(times);
                input.splice(at..at, repeated.into_iter().take(MAX_INPUT_BYTES));
            }
            4 => {
                let other = self.pick_input();
                let other_range = self.pick_range(other.len());
                input.splice(range, other[other_range].iter().copied());
            }
            5 => {
                let word = self.words.get(self.below(self.words.len())).copied().unwrap_or_default();
                input.splice(range, word.bytes());
            }
            6 => {
                let byte = SPECIAL_BYTES[self.below(SPECIAL_BYTES.len())];
                input.insert(at, byte);
            }
            _ => {
                let bit = self.below(8);
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
        }
    }
}
