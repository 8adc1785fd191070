//! Short texts of what an object says, for reasons.

use crate::facts::{ConditionFacts, TruthValue};
use crate::text::BoundedText;

/// Returns a short text of a condition: its reason, or else its message.
pub(super) fn quote_condition(c: &ConditionFacts) -> BoundedText {
    let name = &c.name;
    let status = if c.status == TruthValue::True { String::new() } else { format!("={}", c.status.as_str()) };
    match (&*c.reason, &*c.message) {
        ("", "") => BoundedText::new(&format!("{name}{status}")),
        ("", message) => BoundedText::from_foreign(&format!("{name}{status}: {message}")),
        (reason, _) => BoundedText::new(&format!("{name}{status}: {reason}")),
    }
}
