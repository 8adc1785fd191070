//! What may be said in the status of a kind, and how to say it within that.
//!
//! A schema may bound the message of a condition, name the types it knows, or bound their number; a rule of the definition, or an
//! admission policy, may ask for anything. The server tells of such a bound by refusing what goes beyond it. A False that is
//! refused for its length would leave a True standing, so it is said in fewer words.

use aggregator::Brevity;

use super::entry::WantedConditions;
use super::own;

/// Most bytes of a message where the server refused a longer one and did not say which bound it has.
const BRIEF_MESSAGE_BYTES: usize = 63;

/// What the schema of a kind allows, as the server was heard to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusBounds {
    /// A status needs the list of conditions: it stays when it is empty.
    pub requires_list: bool,
    /// Most characters of a message, where the schema bounds them.
    pub message_length: Option<u16>,
    /// No conditions stand beside those that policies name: `Reconciling` and `Stalled` are left out.
    pub is_main_only: bool,
}

impl StatusBounds {
    /// Both of these bounds.
    #[must_use]
    pub fn and(self, other: StatusBounds) -> StatusBounds {
        let length = [self.message_length, other.message_length].into_iter().flatten().min();
        StatusBounds {
            requires_list: self.requires_list || other.requires_list,
            message_length: length,
            is_main_only: self.is_main_only || other.is_main_only,
        }
    }

    /// Says the same within these bounds, and as briefly as the parent takes it. Returns `true` if that is less than before.
    pub fn shorten(self, brevity: Brevity, wanted: &mut WantedConditions) -> bool {
        if self == StatusBounds::default() && brevity == Brevity::default() {
            return false;
        }
        let length = self.message_length.map_or(usize::MAX, usize::from);
        let length = if brevity.is_short { length.min(BRIEF_MESSAGE_BYTES) } else { length };
        let all = wanted.entries.len();
        if self.is_main_only || brevity.is_main_only {
            wanted.entries.retain(|entry| !own::is_beside_ready(&entry.r#type));
        }
        let mut is_less = wanted.entries.len() < all;
        for entry in &mut wanted.entries {
            is_less |= entry.message.len() > length;
            entry.message = truncate_text(std::mem::take(&mut entry.message), length);
        }
        is_less
    }
}

/// Truncates a text to this number of bytes, on a character's boundary; where there is room for it, an ellipsis says so.
pub fn truncate_text(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let ellipsis = if limit < '…'.len_utf8() { "" } else { "…" };
        text.truncate(text.floor_char_boundary(limit - ellipsis.len()));
        text.push_str(ellipsis);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::ConditionEntry;

    fn wanted(entries: &[(&str, &str)]) -> WantedConditions {
        let entry = |(kind, message): &(&str, &str)| ConditionEntry {
            r#type: (*kind).to_owned(),
            status: "False".to_owned(),
            observed_generation: Some(1),
            last_transition_time: String::new(),
            reason: "ChildrenFailed".to_owned(),
            message: (*message).to_owned(),
        };
        WantedConditions { entries: entries.iter().map(entry).collect(), observed_generation: None }
    }

    #[test]
    fn words_are_said_within_the_bounds_and_what_stands_beside_them_is_left_out() {
        let length =
            |message_length| StatusBounds { message_length: Some(message_length), ..Default::default() };
        let main_only = StatusBounds { is_main_only: true, ..Default::default() };
        let long = "1 of 2 not ready: Deployment web: every replica of it fails for good, says its operator";
        let (full, free) = (Brevity::default(), StatusBounds::default());
        let (short, main) =
            (Brevity { is_short: true, ..full }, Brevity { is_short: true, is_main_only: true });
        let cut = "1 of 2 not ready: Deployment web: every replica of it fails …";
        let both = [("Ready", long), ("Stalled", long)];
        for (bounds, brevity, said, expected, is_less) in [
            (free, full, &both[..], &both[..], false),
            (
                length(12),
                full,
                &[("Ready", long), ("Stalled", "short")],
                &[("Ready", "1 of 2 no…"), ("Stalled", "short")],
                true,
            ),
            (length(2), full, &[("Ready", "aé")], &[("Ready", "a")], true),
            (length(3), full, &[("Ready", "aé")], &[("Ready", "aé")], false),
            (length(0), full, &[("Ready", "a")], &[("Ready", "")], true),
            (main_only, full, &both, &both[..1], true),
            (main_only, full, &[("Healthy", long)], &[("Healthy", long)], false),
            (free, short, &both, &[("Ready", cut), ("Stalled", cut)], true),
            (free, main, &both, &[("Ready", cut)], true),
            (length(100), main, &[("Ready", "short")], &[("Ready", "short")], false),
        ] {
            let mut said = wanted(said);
            assert_eq!(bounds.shorten(brevity, &mut said), is_less, "{said:?}");
            assert_eq!(said, wanted(expected));
            assert!(!bounds.shorten(brevity, &mut said), "twice is once: {said:?}");
        }
    }

    #[test]
    fn of_two_bounds_both_hold() {
        let bound = |message_length, is_main_only| StatusBounds {
            message_length,
            is_main_only,
            ..Default::default()
        };
        assert_eq!(bound(Some(64), false).and(bound(Some(32), true)), bound(Some(32), true));
        assert_eq!(bound(None, true).and(bound(Some(32), false)), bound(Some(32), true));
        let required = StatusBounds { requires_list: true, ..Default::default() };
        assert_eq!(required.and(StatusBounds::default()), required);
    }
}
