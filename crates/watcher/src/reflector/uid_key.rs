//! Uids as keys.

/// A uid as 128 bits: exact for a UUID, a hash for anything else. Not two `u64`, which would be aligned to 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct UidKey([u32; 4]);

impl UidKey {
    pub(super) fn from_text(text: &str) -> UidKey {
        let mut bits: u128 = 0;
        let mut digits = 0;
        for byte in text.bytes().filter(|b| *b != b'-') {
            match (byte as char).to_digit(16) {
                Some(digit) if byte.is_ascii_digit() || byte.is_ascii_lowercase() => {
                    bits = (bits << 4) | u128::from(digit);
                    digits += 1;
                }
                _ => return UidKey::from_hash_of(text),
            }
        }
        if digits == 32 && text.len() == 36 { UidKey::from_bits(bits) } else { UidKey::from_hash_of(text) }
    }

    fn from_hash_of(text: &str) -> UidKey {
        use std::hash::Hasher;
        let half = |seed: u64| {
            let mut hash = rustc_hash::FxHasher::default();
            hash.write_u64(seed);
            hash.write(text.as_bytes());
            timer::Seed(seed).number_for(hash.finish())
        };
        UidKey::from_bits(u128::from(half(1)) << 64 | u128::from(half(2)))
    }

    /// Any of its bits, evenly spread.
    pub(super) fn low_bits(self) -> u32 {
        self.0[3]
    }

    #[expect(clippy::cast_possible_truncation, reason = "the four parts hold all bits")]
    fn from_bits(bits: u128) -> UidKey {
        UidKey([(bits >> 96) as u32, (bits >> 64) as u32, (bits >> 32) as u32, bits as u32])
    }
}
