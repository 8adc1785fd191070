//! One condition of ours.

use std::hash::Hasher;

use aggregator::Digest;
use readiness::rollup::{ParentReason, Status};
use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};

/// The field manager under which everything is written.
pub const MANAGER: &str = "rollcall";

/// One entry of `status.conditions`, as `metav1.Condition` has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// `Ready`, or what the policy calls it; `Reconciling`; `Stalled`.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The generation that this is about; absent only in entries that are not as we write them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the status last changed, RFC 3339 in seconds.
    #[serde(default)]
    pub last_transition_time: String,
    /// One of [`ParentReason`].
    pub reason: String,
    /// For people; at most 1 KiB.
    #[serde(default)]
    pub message: String,
}

impl Entry {
    /// The reason, if it is one of ours.
    pub fn reason(&self) -> Option<ParentReason> {
        ParentReason::parse(&self.reason)
    }

    /// It says `True`.
    pub fn is_true(&self) -> bool {
        self.status == Status::True.word()
    }
}

/// Everything that a parent is to say for all its policies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The entries, each type once.
    pub entries: Vec<Entry>,
    /// `status.observedGeneration`, where it is ours to keep.
    pub observed_generation: Option<i64>,
}

/// A fingerprint of entries in any order, without `lastTransitionTime`: two with the same whole need no write.
pub fn digest<'a>(entries: impl IntoIterator<Item = &'a Entry>, observed_generation: Option<i64>) -> Digest {
    let mut sum = Digest::default();
    for entry in entries {
        let mut gist = FxHasher::default();
        for text in [&entry.r#type, &entry.status, &entry.reason] {
            gist.write(text.as_bytes());
            gist.write_u8(0xff);
        }
        gist.write_i64(entry.observed_generation.unwrap_or(-1));
        sum.gist = sum.gist.wrapping_add(spread(gist.finish()));
        gist.write(entry.message.as_bytes());
        sum.whole = sum.whole.wrapping_add(spread(gist.finish()));
    }
    if let Some(generation) = observed_generation {
        let number = spread(generation as u64 ^ 0x6f62_7365);
        sum = Digest { whole: sum.whole.wrapping_add(number), gist: sum.gist.wrapping_add(number) };
    }
    sum
}

/// FxHash is weak in its low bits; sums of it must not cancel out.
fn spread(hash: u64) -> u64 {
    timer::Seed(0).number(hash)
}
