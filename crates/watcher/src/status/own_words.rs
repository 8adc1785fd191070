//! How what Rollcall says opens, and how it is known again by that.
//!
//! In a list-map the server knows who wrote an entry. An atomic list has one owner, the manager that wrote it last: an operator
//! that puts the list back as it read it owns what we said in it, and we own what it said as soon as we add a word. What
//! is ours there can be told by the entry alone, and has to be: a restart knows nothing else. A reason alone proves nothing, so
//! the message has to open as ours do; what an older version wrote is to be known too, so these openings stay.

use readiness::Level;
use readiness::rollup::{ConditionStatus, ParentReason};

use super::entry::ConditionEntry;

/// Opening of the message of a parent that is being deleted.
pub const BEING_DELETED: &str = "being deleted";
/// Message of the default that Rollcall proposes for a schema: what a parent says before anybody has said anything.
pub const AWAITS_ROLLCALL: &str = "Waiting for Rollcall";
/// Opening of the message of a parent that its operator has still to handle. A schema's default has the same reason.
pub const AWAITS_OPERATOR: &str = "waiting for the operator to handle";
/// Opening of the message of a parent that its operator leaves alone.
pub const NOT_HANDLED: &str = "the operator has not handled";
/// Opening of the message of a parent that its operator failed to handle.
pub const FAILED_TO_HANDLE: &str = "the operator failed to handle";
/// What follows where its own status says so, and with what word: that is read there, and never taken from the message.
pub const STATUS_REPORTS: &str = "its status says ";
/// Opening of the message of a parent that no operator handles.
pub const AWAITS_MEMBERS: &str = "waiting for its members to settle for";
/// Opening of the message of a parent that has children of kinds that Rollcall may not list.
pub const NOT_PERMITTED: &str = "not permitted to list and watch";
/// Opening of the message of a parent that has children of kinds that cannot be seen for now.
pub const NOT_SEEN: &str = "can neither watch nor list";
/// Opening of the message of a parent whose policy is refused.
pub const POLICY_IS_REFUSED: &str = "ReadinessPolicy ";
/// What follows when there is no child at all.
pub const NO_CHILDREN: &str = "no children yet";
/// Opening of what is said of the objects of all kinds of a category together.
pub const OF_CATEGORY: &str = "object of category ";
/// What is said of a child that is expected.
pub const IS_MISSING: &str = " missing";
/// What is said of children beyond their number.
pub const ARE_TOO_MANY: &str = " too many";
/// Opening of the message of a parent whose time is up, where nothing else there is counted.
pub const NOT_IN_TIME: &str = "not in time: ";

/// True if the entry has a reason of ours, and is said as we say it. `has_message` is false where the schema has no messages: then
/// the reason has to do, unless it is a word of others as well.
pub fn is_in_our_words(entry: &ConditionEntry, has_message: bool) -> bool {
    let message = &*entry.message;
    match entry.parent_reason() {
        Some(ParentReason::Terminating | ParentReason::DeletionStuck) => opens(&entry.message, BEING_DELETED),
        Some(ParentReason::OperatorFailed) => opens(&entry.message, FAILED_TO_HANDLE),
        Some(ParentReason::DeadlineExceeded) => {
            let openings = [NOT_IN_TIME, NOT_HANDLED];
            openings.iter().any(|opening| opens(&entry.message, opening)) || counts(&entry.message)
        }
        // To others that is a failure; we do not know then. Turned to True it is ours still, to be put right.
        Some(ParentReason::TemplateFailed | ParentReason::RuleChanged) => entry.status != "False",
        Some(_) if !has_message => true,
        Some(ParentReason::AllChildrenReady | ParentReason::ChildrenSettling) => {
            opens_counting(message, " ready")
        }
        Some(ParentReason::ChildrenPending) => {
            let openings = [AWAITS_OPERATOR, AWAITS_MEMBERS, AWAITS_ROLLCALL];
            is_of_schema(entry) || openings.iter().any(|opening| opens(message, opening))
        }
        Some(ParentReason::OperatorSilent) => opens(message, NOT_HANDLED),
        Some(ParentReason::KindNotVisible) => opens(message, NOT_PERMITTED),
        Some(ParentReason::WatchStale) => opens(message, NOT_SEEN),
        Some(ParentReason::PolicyRefused) => opens(message, POLICY_IS_REFUSED),
        Some(ParentReason::ChildrenMissing | ParentReason::TooManyChildren) => {
            opens_counting(message, " not ready: ") || names_shortfall(message)
        }
        Some(_) => opens_counting(message, " not ready: "),
        None => false,
    }
}

/// The entry is as a schema's default: it names no generation.
fn is_of_schema(entry: &ConditionEntry) -> bool {
    entry.status == ConditionStatus::Unknown.as_str() && matches!(entry.observed_generation, None | Some(0))
}

/// `Pod missing (`, `Pod too many (`, or `Pod web-0 failed`: a kind, or an object of it, and how it is; or as much of it as a bound
/// of the schema lets stand.
fn names_shortfall(message: &str) -> bool {
    let (said, is_cut) = cut_stem(message).map_or((message, false), |stem| (stem, true));
    let words: Vec<&str> = said.splitn(4, ' ').collect();
    let [_, second, third, rest @ ..] = words.as_slice() else { return is_cut };
    let how = third.trim_end_matches(',').to_lowercase();
    let is_last = is_cut && rest.is_empty();
    let mut levels = Level::ALL.map(|level| level.as_str().to_lowercase()).into_iter();
    let is_level = levels.any(|level| level == how || (is_last && level.starts_with(&how)));
    let is_about_kind =
        [IS_MISSING, ARE_TOO_MANY].iter().any(|is| is.split_whitespace().next() == Some(second));
    is_about_kind || is_level || [NO_CHILDREN, OF_CATEGORY].iter().any(|opening| opens(message, opening))
}

/// What was left of a message that was cut: a bound of the schema of less than an ellipsis leaves only so many bytes.
fn cut_stem(message: &str) -> Option<&str> {
    let bare = (message.len() < '…'.len_utf8()).then_some(message);
    message.strip_suffix('…').or(bare).filter(|stem| !stem.is_empty())
}

/// `2 of 3`, and this; or as much of it as a bound of the schema lets stand.
fn opens_counting(message: &str, tail: &str) -> bool {
    let (mut rest, is_cut) = cut_stem(message).map_or((message, false), |stem| (stem, true));
    for word in [" of ", tail] {
        let counted = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if counted.len() == rest.len() {
            return is_cut && rest.is_empty() && word == tail;
        }
        rest = match counted.strip_prefix(word) {
            Some(after) => after,
            None => return is_cut && word.starts_with(counted),
        };
    }
    true
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

/// A message as a condition with this reason opens it.
#[cfg(test)]
pub(super) fn opening_of(reason: &str) -> &'static str {
    match ParentReason::parse_reason(reason) {
        Some(ParentReason::AllChildrenReady) => "2 of 2 ready",
        Some(ParentReason::ChildrenPending) => AWAITS_OPERATOR,
        Some(_) => "1 of 2 not ready: ",
        None => "",
    }
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
            (
                "Ready",
                "False",
                "ChildrenMissing",
                "object of category all missing (0 of at least 1 found)",
                true,
            ),
            ("Ready", "False", "TooManyChildren", "object of cat…", true),
            ("Ready", "False", "ChildrenMissing", "object of nobody knows what", false),
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
            ("Ready", "False", "ChildrenFailed", "", false),
            ("Ready", "False", "OperatorFailed", "the operator fail…", true),
            ("Ready", "False", "OperatorFailed", "…", false),
            ("Ready", "False", "DeadlineExceeded", "12 of 13 not…", true),
            ("Ready", "False", "DeadlineExceeded", "12 of 13…", false),
            ("Ready", "False", "DeadlineExceeded", "12 of them not…", false),
            ("Ready", "False", "DeadlineExceeded", "context dead…", false),
            ("Ready", "False", "MinimumReplicasUnavailable", "2 of 3 not ready: web", false),
        ] {
            let entry = entry(kind, status, reason, message);
            assert_eq!(is_in_our_words(&entry, true), ours, "{entry:?}");
        }
    }

    #[test]
    fn a_reason_of_ours_alone_proves_nothing_and_as_much_of_our_message_as_a_bound_leaves_does() {
        for (reason, message, ours) in [
            ("AllChildrenReady", "3 of 3 ready; optional: Pod a failed", true),
            ("AllChildrenReady", "3 of 3 re…", true),
            ("AllChildrenReady", "3 of…", true),
            ("AllChildrenReady", "3…", true),
            ("AllChildrenReady", "3", true),
            ("AllChildrenReady", "all replicas are ready", false),
            ("AllChildrenReady", "…", false),
            ("AllChildrenReady", "", false),
            ("ChildrenSettling", "3 of 3 ready, settling", true),
            ("ChildrenPending", "waiting for the operator to handle generation 1", true),
            ("ChildrenPending", "waiting for its members to settle for its spec", true),
            ("ChildrenPending", "creating the replicas", false),
            ("ChildrenFailed", "1 of 3 not ready: Pod web failed", true),
            ("ChildrenFailed", "1 of 3 not rea…", true),
            ("ChildrenFailed", "1 of 3 shards failed", false),
            ("ChildrenFailed", "of 3 not ready: Pod web", false),
            ("ChildrenStuck", "the volume is busy", false),
            ("ChildrenMissing", "no children yet (at least 1 expected)", true),
            ("ChildrenMissing", "Deployment missing (0 of at least 1 found)", true),
            ("ChildrenMissing", "Deployment web missing", true),
            ("ChildrenMissing", "0 of 2 not ready: Pod a failed", true),
            ("ChildrenMissing", "Deployment of-a-long-na…", true),
            ("ChildrenMissing", "one replica is lost", false),
            ("ChildrenMissing", "StatefulSet web progressing (not ready by its rule)", true),
            ("ChildrenMissing", "StatefulSet web, 2 replicas are missing", false),
            ("ChildrenMissing", "no chil…", true),
            ("ChildrenMissing", "StatefulSet web prog…", true),
            ("ChildrenMissing", "the operator waits for it…", false),
            ("TooManyChildren", "Pod too many (3 found, at most 2 expected)", true),
            ("OperatorSilent", "the operator has not handled generation 2", true),
            ("OperatorSilent", "no heartbeat", false),
            ("KindNotVisible", "not permitted to list and watch Pod", true),
            ("WatchStale", "can neither watch nor list Pod", true),
            (
                "PolicyRefused",
                "ReadinessPolicy db is refused, and there is no accepted version to judge by",
                true,
            ),
            ("WatchStale", "stale", false),
        ] {
            let entry = entry("Ready", "False", reason, message);
            assert_eq!(is_in_our_words(&entry, true), ours, "{entry:?}");
        }
        let unsaid = |reason: &str| is_in_our_words(&entry("Ready", "False", reason, ""), false);
        assert!(unsaid("ChildrenFailed"), "where a schema has no messages the reason has to do");
        assert!(!unsaid("DeadlineExceeded"), "unless others have it too");
        let default = ConditionEntry {
            observed_generation: None,
            ..entry("Ready", "Unknown", "ChildrenPending", "later")
        };
        assert!(is_in_our_words(&default, true), "a default says what its author wrote");
    }
}
