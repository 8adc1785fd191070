//! Seeded, stateless randomness.

use std::time::Duration;

/// The only source of randomness. The same seed and key always give the same number, regardless of earlier calls: there
/// is no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// Returns a number for this key, evenly distributed over all 64 bits (the finaliser of SplitMix64).
    pub const fn number_for(self, key: u64) -> u64 {
        let mut z = (self.0 ^ key.rotate_left(32)).wrapping_add(key.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a duration below `span` for this key, in whole milliseconds; zero if `span` is shorter than that.
    pub fn duration_below(self, span: Duration, key: u64) -> Duration {
        let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        if millis == 0 { Duration::ZERO } else { Duration::from_millis(self.number_for(key) % millis) }
    }

    /// Derives the seed of one part of the program, so that parts do not act in lockstep.
    pub const fn derive(self, part: u64) -> Seed {
        Seed(self.number_for(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_spread_evenly_over_the_interval() {
        let mut tenths = [0_u32; 10];
        for key in 0..10_000 {
            let at = Seed(7).duration_below(Duration::from_secs(30), key).as_millis();
            tenths[usize::try_from(at / 3_000).unwrap()] += 1;
        }
        assert!(tenths.iter().all(|n| (850..1_150).contains(n)), "{tenths:?}");
    }

    #[test]
    fn the_same_seed_and_key_give_the_same_span() {
        let ask = || Seed(3).duration_below(Duration::from_secs(1), 42);
        assert_eq!(ask(), ask());
        assert_eq!(Seed(3).duration_below(Duration::ZERO, 42), Duration::ZERO);
    }
}
