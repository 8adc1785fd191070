//! Identities that the server gives to objects: UIDs, generated names and allocated numbers, all from one seed.

/// Letters of generated names: no vowels, so that no words result.
const GENERATED_NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Longest prefix of a generated name. Five generated letters fill it up to 63.
const MAX_GENERATED_NAME_PREFIX: usize = 58;

/// The sequence of numbers that a seed determines, and what is made of them.
#[derive(Debug)]
pub(super) struct IdentitySource {
    seed: u64,
    numbers_drawn: u64,
}

impl IdentitySource {
    pub(super) fn new(seed: u64) -> IdentitySource {
        IdentitySource { seed, numbers_drawn: 0 }
    }

    /// Returns the next number of the seed's sequence (SplitMix64).
    pub(super) fn draw_number(&mut self) -> u64 {
        self.numbers_drawn += 1;
        let mut z = self.seed.wrapping_add(self.numbers_drawn.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn new_uid(&mut self) -> String {
        let (a, b) = (self.draw_number(), self.draw_number());
        let (high, mid, low) = (a >> 32, (a >> 16) & 0xffff, a & 0xfff);
        format!(
            "{high:08x}-{mid:04x}-4{low:03x}-{:04x}-{:012x}",
            0x8000 | ((b >> 48) & 0x3fff),
            b & 0xffff_ffff_ffff
        )
    }

    /// Returns a name for an object with this `generateName`.
    pub(super) fn generate_name(&mut self, prefix: &str) -> String {
        let mut number = self.draw_number();
        let mut name: String = prefix.chars().take(MAX_GENERATED_NAME_PREFIX).collect();
        for _ in 0..5 {
            let at = usize::try_from(number % GENERATED_NAME_LETTERS.len() as u64).unwrap_or(0);
            name.push(char::from(GENERATED_NAME_LETTERS[at]));
            number /= GENERATED_NAME_LETTERS.len() as u64;
        }
        name
    }
}
