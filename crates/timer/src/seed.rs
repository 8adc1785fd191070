//! Randomness as a value.

use std::time::Duration;

/// The one source of randomness. The same seed and the same key give the same answer, whatever was asked before:
/// there is no state to be in the wrong order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// A number for this key, evenly spread over all 64 bits (the finaliser of SplitMix64).
    pub const fn number(self, key: u64) -> u64 {
        let mut z = (self.0 ^ key.rotate_left(32)).wrapping_add(key.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A span below `span` for this key, to the millisecond; zero where `span` is shorter than that.
    pub fn below(self, span: Duration, key: u64) -> Duration {
        let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        if millis == 0 { Duration::ZERO } else { Duration::from_millis(self.number(key) % millis) }
    }

    /// A seed of its own for one part of the program, so that parts do not move in step.
    pub const fn derive(self, part: u64) -> Seed {
        Seed(self.number(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_spread_evenly_over_the_interval() {
        let mut tenths = [0_u32; 10];
        for key in 0..10_000 {
            let at = Seed(7).below(Duration::from_secs(30), key).as_millis();
            tenths[usize::try_from(at / 3_000).unwrap()] += 1;
        }
        assert!(tenths.iter().all(|n| (850..1_150).contains(n)), "{tenths:?}");
    }

    #[test]
    fn the_same_seed_and_key_give_the_same_span() {
        let ask = || Seed(3).below(Duration::from_secs(1), 42);
        assert_eq!(ask(), ask());
        assert_eq!(Seed(3).below(Duration::ZERO, 42), Duration::ZERO);
    }
}
