//! One condition of Rollcall's.

use std::borrow::Borrow;
use std::hash::Hasher;

use aggregator::EntriesDigest;
use readiness::rollup::{ConditionStatus, ParentReason};
use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};

/// Field manager of all writes.
pub const FIELD_MANAGER: &str = "rollcall";

/// One entry of `status.conditions`, as `metav1.Condition` has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionEntry {
    /// `Ready`, or the type that the policy names; `Reconciling`; `Stalled`.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Generation that the condition is about; absent only in conditions that Rollcall did not write in this form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Time of the last status change, RFC 3339 in seconds.
    #[serde(default)]
    pub last_transition_time: String,
    /// One of [`ParentReason`].
    pub reason: String,
    /// Message for people; at most 1 KiB.
    #[serde(default)]
    pub message: String,
}

impl ConditionEntry {
    /// Returns the reason if it is one of Rollcall's.
    pub fn parent_reason(&self) -> Option<ParentReason> {
        ParentReason::parse_reason(&self.reason)
    }

    /// The status, if it is one that a condition can have.
    pub fn condition_status(&self) -> Option<ConditionStatus> {
        [ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown]
            .into_iter()
            .find(|status| status.as_str() == self.status)
    }

    /// Returns `true` if the status is `True`.
    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::True.as_str()
    }
}

/// All conditions that a parent should carry, for all its policies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedConditions {
    /// Conditions; each type occurs once.
    pub entries: Vec<ConditionEntry>,
    /// `status.observedGeneration`, if Rollcall writes it.
    pub observed_generation: Option<i64>,
}

/// Fingerprint of conditions in any order, without `lastTransitionTime`: if both the wanted and the current one have
/// the same `whole`, no write is needed.
pub fn conditions_digest(
    entries: impl IntoIterator<Item = impl Borrow<ConditionEntry>>,
    observed_generation: Option<i64>,
) -> EntriesDigest {
    let mut sum = EntriesDigest::default();
    for entry in entries {
        let entry = entry.borrow();
        let mut gist = FxHasher::default();
        for text in [&entry.r#type, &entry.status, &entry.reason] {
            gist.write(text.as_bytes());
            gist.write_u8(0xff);
        }
        gist.write_i64(entry.observed_generation.unwrap_or(-1));
        sum.without_messages = sum.without_messages.wrapping_add(spread_hash(gist.finish()));
        gist.write(entry.message.as_bytes());
        sum.whole = sum.whole.wrapping_add(spread_hash(gist.finish()));
    }
    if let Some(generation) = observed_generation {
        let number = spread_hash(generation.cast_unsigned() ^ 0x6f62_7365);
        sum = EntriesDigest {
            whole: sum.whole.wrapping_add(number),
            without_messages: sum.without_messages.wrapping_add(number),
        };
    }
    sum
}

/// Spreads a hash: FxHash is weak in its low bits, and sums of it must not cancel out.
fn spread_hash(hash: u64) -> u64 {
    timer::Seed(0).number_for(hash)
}
