//! Uids as keys, and in full.

use std::fmt;

/// A uid as 128 bits: exact for a UUID, a hash for anything else. Not two `u64`, which would be aligned to 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct UidKey([u32; 4]);

impl UidKey {
    pub(super) fn from_text(text: &str) -> UidKey {
        UidKey::from_uuid(text.as_bytes()).unwrap_or_else(|| UidKey::from_hash_of(text))
    }

    /// Reads 32 digits in lower case, and four dashes wherever they stand.
    fn from_uuid(text: &[u8]) -> Option<UidKey> {
        if text.len() != 36 {
            return None;
        }
        let (mut bits, mut digits) = (0_u128, 0);
        for byte in text {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                b'-' => continue,
                _ => return None,
            };
            bits = bits << 4 | u128::from(digit);
            digits += 1;
        }
        (digits == 32).then(|| UidKey::from_bits(bits))
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

/// A uid in full, in the room of its bits if it is a UUID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullUid(UidForm);

#[derive(Clone, Debug, PartialEq, Eq)]
enum UidForm {
    Uuid(UidKey),
    Other(Box<Box<str>>),
}

impl FullUid {
    pub(super) fn from_text(text: &str) -> FullUid {
        let uuid = FullUid(UidForm::Uuid(UidKey::from_text(text)));
        if uuid.to_string() == text { uuid } else { FullUid(UidForm::Other(Box::new(text.into()))) }
    }

    /// Bytes that it holds beside itself.
    pub(super) fn heap_size(&self) -> usize {
        match &self.0 {
            UidForm::Uuid(_) => 0,
            UidForm::Other(text) => size_of_val(&**text) + text.len(),
        }
    }
}

impl fmt::Display for FullUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let halves = |part: u32| (part >> 16, part & 0xffff);
        match &self.0 {
            UidForm::Uuid(UidKey([low, middle, high, node])) => {
                let ((mid, version), (variant, first)) = (halves(*middle), halves(*high));
                write!(f, "{low:08x}-{mid:04x}-{version:04x}-{variant:04x}-{first:04x}{node:08x}")
            }
            UidForm::Other(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_in_full_is_the_one_that_was_read_uuid_or_not() {
        for (text, heap) in [
            ("01234567-89ab-4cde-8f01-23456789abcd", 0),
            ("00000000-0000-0000-0000-000000000000", 0),
            ("01234567-89AB-4cde-8f01-23456789abcd", 52),
            ("0123456789ab-4cde-8f01-23456789-abcd", 52),
            ("0123456789ab4cde8f0123456789abcd", 48),
            ("u", 17),
            ("", 16),
        ] {
            let uid = FullUid::from_text(text);
            assert_eq!((uid.to_string().as_str(), uid.heap_size()), (text, heap));
        }
    }
}
