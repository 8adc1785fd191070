//! Recognition of our own entries: those of a type that a policy writes, with a message that no other manager writes.
//!
//! In a list-map the server knows who wrote an entry. An atomic list has one owner, the manager that wrote it last: an operator
//! that puts the list back as it read it owns what we said in it, and we own what it said as soon as we add a word. What
//! is ours there can be told by the entry alone, and has to be: a restart knows nothing else.

use readiness::rollup::ParentReason;

use super::entry::ConditionEntry;

/// Opening of the message of a parent that is being deleted.
pub const BEING_DELETED: &str = "being deleted";
/// Opening of the message of a parent that its operator has still to handle. A schema's default has the same reason.
pub const AWAITS_OPERATOR: &str = "waiting for the operator to handle";
/// Opening of the message of a parent that its operator leaves alone.
pub const NOT_HANDLED: &str = "the operator has not handled";
/// Opening of the message of a parent that its operator failed to handle.
pub const FAILED_TO_HANDLE: &str = "the operator failed to handle";
/// Opening of the message of a parent whose time is up, where nothing else there is counted.
pub const NOT_IN_TIME: &str = "not in time: ";

/// Written beside `Ready`, for readers that know kstatus.
const BESIDE_READY: [&str; 2] = ["Reconciling", "Stalled"];

/// Types of conditions that a policy with this condition and this fallback writes.
pub fn written_types<'a>(condition: &'a str, fallback: Option<&'a str>) -> impl Iterator<Item = &'a str> {
    let is_ready = condition == "Ready" || fallback == Some("Ready");
    let beside = if is_ready { &BESIDE_READY[..] } else { &[] };
    std::iter::once(condition).chain(fallback).chain(beside.iter().copied())
}

/// Returns `true` for what is written beside `Ready`, and comes and goes with the answer.
pub(crate) fn is_beside_ready(kind: &str) -> bool {
    BESIDE_READY.contains(&kind)
}

/// Types of conditions that are ours on a parent.
#[derive(Clone, Debug, Default)]
pub struct OwnTypes<'a> {
    /// `None` for any, where it is not known what policies wrote.
    written: Option<Vec<&'a str>>,
    taken: Vec<&'a str>,
    returned: &'a [ConditionEntry],
}

impl<'a> OwnTypes<'a> {
    /// Whatever the type: to look at a parent, not to write on it.
    pub fn any() -> OwnTypes<'a> {
        OwnTypes::default()
    }

    /// These, where they are in our words.
    pub fn of(written: impl IntoIterator<Item = &'a str>) -> OwnTypes<'a> {
        OwnTypes { written: Some(written.into_iter().collect()), ..OwnTypes::default() }
    }

    /// These too, even in the words of others.
    pub fn taking(mut self, taken: impl IntoIterator<Item = &'a str>) -> OwnTypes<'a> {
        self.taken.extend(taken);
        self
    }

    /// These entries too, as they stand: the server returned them for what was written, without our reasons.
    pub(crate) fn returning(mut self, returned: &'a [ConditionEntry]) -> OwnTypes<'a> {
        self.returned = returned;
        self
    }

    /// Not these.
    pub fn leaving(mut self, left: &[&str]) -> OwnTypes<'a> {
        if let Some(written) = &mut self.written {
            written.retain(|kind| !left.contains(kind));
        }
        self
    }

    /// A policy writes conditions of this type, or did.
    pub(super) fn writes(&self, kind: &str) -> bool {
        self.written.as_ref().is_none_or(|written| written.contains(&kind))
    }

    /// The server returned this entry for one that was written.
    pub(super) fn has_returned(&self, entry: &ConditionEntry) -> bool {
        self.returned.contains(entry)
    }

    pub(super) fn takes(&self, kind: &str) -> bool {
        self.taken.contains(&kind)
    }
}

/// True if the entry has a reason of ours, and where that is a word of others as well, it is said as we say it.
pub(super) fn is_in_our_words(entry: &ConditionEntry) -> bool {
    match entry.parent_reason() {
        Some(ParentReason::Terminating | ParentReason::DeletionStuck) => opens(&entry.message, BEING_DELETED),
        Some(ParentReason::OperatorFailed) => opens(&entry.message, FAILED_TO_HANDLE),
        Some(ParentReason::DeadlineExceeded) => {
            let openings = [NOT_IN_TIME, NOT_HANDLED];
            openings.iter().any(|opening| opens(&entry.message, opening)) || counts(&entry.message)
        }
        // To others that is a failure; we do not know then. Turned to True it is ours still, to be put right.
        Some(ParentReason::TemplateFailed | ParentReason::RuleChanged) => entry.status != "False",
        Some(_) => true,
        None => false,
    }
}

/// The message has this opening, or as much of it as a bound of the schema lets stand.
fn opens(message: &str, opening: &str) -> bool {
    let is_cut = |stem: &str| !stem.is_empty() && opening.starts_with(stem);
    message.starts_with(opening) || message.strip_suffix('…').is_some_and(is_cut)
}

/// `2 of 3 not ready: `, and what they are.
fn counts(message: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some((unready, rest)) = message.split_once(" of ") else { return false };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    is_number(unready) && digits > 0 && opens(&rest[digits..], " not ready: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: &str, status: &str, reason: &str, message: &str) -> ConditionEntry {
        ConditionEntry {
            r#type: kind.into(),
            status: status.into(),
            observed_generation: Some(1),
            last_transition_time: "2026-01-01T00:00:00Z".into(),
            reason: reason.into(),
            message: message.into(),
        }
    }

    #[test]
    fn an_ordinary_word_is_ours_where_it_is_said_as_we_say_it() {
        for (kind, status, reason, message, ours) in [
            ("Ready", "False", "Terminating", "being deleted", true),
            ("Ready", "True", "Terminating", "being deleted; finalizer a.io/x holds it", true),
            ("Reconciling", "True", "Terminating", "shutting down", false),
            ("Reconciling", "True", "Terminating", "", false),
            ("Stalled", "True", "DeletionStuck", "being deleted: finalizer a.io/x, beyond its limit", true),
            ("Stalled", "True", "DeletionStuck", "volume is busy", false),
            ("Ready", "False", "DeadlineExceeded", "2 of 3 not ready: Pod web-0 failed", true),
            ("Ready", "False", "DeadlineExceeded", "the operator has not handled generation 2", true),
            (
                "Ready",
                "False",
                "DeadlineExceeded",
                "not in time: no children yet (at least 1 expected)",
                true,
            ),
            ("Ready", "False", "DeadlineExceeded", "two of 3 not ready: web", false),
            ("Ready", "False", "DeadlineExceeded", "context deadline exceeded", false),
            (
                "Ready",
                "False",
                "OperatorFailed",
                "the operator failed to handle generation 2: handler x failed",
                true,
            ),
            ("Degraded", "True", "OperatorFailed", "crash loop", false),
            ("Stalled", "True", "DeadlineExceeded", "", false),
            ("Ready", "Unknown", "TemplateFailed", "find.labels: no label can have the value \"a b\"", true),
            ("Ready", "False", "TemplateFailed", "line 3: unexpected end", false),
            ("Ready", "False", "ChildrenFailed", "", true),
            ("Ready", "False", "OperatorFailed", "the operator fail…", true),
            ("Ready", "False", "OperatorFailed", "…", false),
            ("Ready", "False", "DeadlineExceeded", "12 of 13 not…", true),
            ("Ready", "False", "DeadlineExceeded", "12 of 13…", false),
            ("Ready", "False", "DeadlineExceeded", "12 of them not…", false),
            ("Ready", "False", "DeadlineExceeded", "context dead…", false),
            ("Ready", "False", "MinimumReplicasUnavailable", "2 of 3 not ready: web", false),
        ] {
            let entry = entry(kind, status, reason, message);
            assert_eq!(is_in_our_words(&entry), ours, "{entry:?}");
        }
    }

    #[test]
    fn a_policy_writes_its_condition_its_fallback_and_beside_ready_what_kstatus_reads() {
        let types = |condition, fallback| written_types(condition, fallback).collect::<Vec<_>>();
        assert_eq!(types("Ready", None), ["Ready", "Reconciling", "Stalled"]);
        assert_eq!(types("Healthy", None), ["Healthy"]);
        assert_eq!(types("Healthy", Some("Ready")), ["Healthy", "Ready", "Reconciling", "Stalled"]);
        assert_eq!(types("Ready", Some("ChildrenReady"))[..2], ["Ready", "ChildrenReady"]);
    }
}
