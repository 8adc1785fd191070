//! What a server says that refuses a write as invalid (422).
//!
//! A JSON Patch of which a precondition fails is answered with 422 too, without causes: they name fields, and only a
//! validation knows of fields. The causes are those of `metav1.StatusDetails`; the reasons those of
//! `k8s.io/apimachinery/pkg/util/validation/field`.

use aggregator::{Brevity, DeliveryOutcome};
use serde::Deserialize;
use watcher::reflector::Reflector;
use watcher::status::StatusBounds;

use super::parent_write::ParentWrite;

/// Where the conditions are in a parent, as causes name it.
const CONDITIONS: &str = "status.conditions";

/// Part of a `Status` that says why an object is refused.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RefusedObject {
    message: String,
    details: RefusalDetails,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RefusalDetails {
    causes: Vec<RefusalCause>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RefusalCause {
    reason: String,
    message: String,
    field: String,
}

/// What a refusal says of what may be said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RefusedWords {
    /// Bounds of the schema, which hold for the whole kind.
    bounds: StatusBounds,
    /// There are too many conditions on this parent.
    is_crowded: bool,
    /// A rule of the definition, or an admission, asks for something else: it may be fewer words.
    is_unexplained: bool,
}

impl RefusedWords {
    fn and(self, other: RefusedWords) -> RefusedWords {
        RefusedWords {
            bounds: self.bounds.and(other.bounds),
            is_crowded: self.is_crowded || other.is_crowded,
            is_unexplained: self.is_unexplained || other.is_unexplained,
        }
    }

    /// How much briefer than so the same may be said, the first first.
    fn briefer_than(self, brevity: Brevity) -> impl Iterator<Item = Brevity> {
        let crowded = Brevity { is_main_only: true, ..brevity };
        let short = Brevity { is_short: true, ..brevity };
        let least = Brevity { is_short: true, is_main_only: true };
        let by_number = self.is_crowded.then_some(crowded).into_iter();
        by_number.chain([short, least].into_iter().filter(move |_| self.is_unexplained))
    }
}

impl RefusalCause {
    fn words(&self) -> RefusedWords {
        let nothing = RefusedWords::default();
        let bounded = |bounds| RefusedWords { bounds, ..nothing };
        let free = StatusBounds::default();
        let Some(place) = self.place() else { return nothing };
        match (&*self.reason, place) {
            ("FieldValueRequired", _) if self.field == CONDITIONS => {
                bounded(StatusBounds { requires_list: true, ..free })
            }
            ("FieldValueTooMany", "") => RefusedWords { is_crowded: true, ..nothing },
            ("FieldValueTooLong", ".message") if self.number().is_some() => {
                bounded(StatusBounds { message_length: self.number(), ..free })
            }
            ("FieldValueNotSupported" | "FieldValueInvalid", ".type") => {
                bounded(StatusBounds { is_main_only: true, ..free })
            }
            // They are what they are.
            (_, ".type" | ".status" | ".reason" | ".observedGeneration" | ".lastTransitionTime") => nothing,
            _ => RefusedWords { is_unexplained: true, ..nothing },
        }
    }

    /// Where in a condition it is: empty for the list, and `None` for a field elsewhere. An admission policy names no field, and a
    /// rule of a definition one around what it is about.
    fn place(&self) -> Option<&str> {
        if ["", "<nil>", "status", "self"].contains(&&*self.field) {
            return Some("");
        }
        let inside = self.field.strip_prefix(CONDITIONS)?;
        Some(inside.split_once(']').map_or(inside, |(_, place)| place))
    }

    /// The first number that it names. `Too long: may not be more than 64 bytes`.
    fn number(&self) -> Option<u16> {
        let digits = self.message.split(|letter: char| !letter.is_ascii_digit());
        digits.filter(|digits| !digits.is_empty()).find_map(|digits| digits.parse().ok())
    }
}

fn read_refusal(body: &[u8]) -> RefusedObject {
    serde_json::from_slice(body).unwrap_or_default()
}

/// Returns `true` if an admission webhook refused the object. Its sentence is that of
/// `k8s.io/apiserver/pkg/admission/plugin/webhook/errors`, whatever code it gives.
fn is_denied_by_webhook(refused: &RefusedObject) -> bool {
    refused.message.contains("admission webhook ") && refused.message.contains(" denied the request")
}

/// Returns `true` if a refusal with this body is about the object, and neither about a precondition nor about whoever writes.
pub(super) fn is_about_object(body: &[u8]) -> bool {
    let refused = read_refusal(body);
    !refused.details.causes.is_empty() || is_denied_by_webhook(&refused)
}

fn read_words(body: &[u8]) -> RefusedWords {
    let refused = read_refusal(body);
    let by_webhook =
        RefusedWords { is_unexplained: is_denied_by_webhook(&refused), ..RefusedWords::default() };
    refused.details.causes.iter().map(RefusalCause::words).fold(by_webhook, RefusedWords::and)
}

/// Bounds of the schema that a refusal with this body tells of.
pub fn read_bounds(body: &[u8]) -> StatusBounds {
    read_words(body).bounds
}

/// Outcome of a write that was refused with this body. Where the same can be said within bounds that it went beyond, or more
/// briefly than it was, it is.
pub fn outcome_of(reflector: &Reflector, write: &ParentWrite, body: &[u8]) -> DeliveryOutcome {
    let refused = read_words(body);
    let bounds = reflector.learn_bounds(write.kind, refused.bounds);
    let says_less = |brevity: &Brevity| bounds.shorten(*brevity, &mut write.wanted.clone());
    let keeps_list = bounds.requires_list && !write.requires_list && write.wanted.entries.is_empty();
    if keeps_list || says_less(&write.brevity) {
        return DeliveryOutcome::Shortened(write.brevity);
    }
    let briefer = refused.briefer_than(write.brevity).find(says_less);
    briefer.map_or(DeliveryOutcome::Invalid, DeliveryOutcome::Shortened)
}

#[cfg(test)]
mod tests {
    use aggregator::{EntriesDigest, KindId, ObjectId, WriteTicket};
    use serde_json::json;
    use watcher::status::{ConditionEntry, WantedConditions};

    use super::*;

    fn refused(causes: &serde_json::Value) -> Vec<u8> {
        let status = json!({ "kind": "Status", "status": "Failure", "reason": "Invalid", "code": 422,
            "details": { "name": "db", "kind": "Database", "causes": causes } });
        status.to_string().into_bytes()
    }

    #[test]
    fn causes_tell_what_is_about_the_object_from_a_guard_that_fails_and_a_right_that_lacks() {
        let guard = json!({ "kind": "Status", "code": 422, "reason": "Invalid", "details": {},
            "message": "the server rejected our request due to an error in our request" });
        let right = json!({ "kind": "Status", "code": 403, "reason": "Forbidden",
            "details": { "name": "db", "group": "example.com", "kind": "databases" },
            "message": "databases \"db\" is forbidden: User \"x\" cannot patch resource" });
        let bodies = [guard.to_string(), right.to_string(), "no object".to_owned(), String::new()]
            .map(String::into_bytes);
        for body in bodies.into_iter().chain([refused(&json!(null)), refused(&json!([]))]) {
            assert!(!is_about_object(&body), "{}", String::from_utf8_lossy(&body));
            assert_eq!(read_words(&body), RefusedWords::default());
        }
        assert!(is_about_object(&refused(
            &json!([{ "reason": "FieldValueRequired", "field": "status.phase" }])
        )));
        let webhook = json!({ "kind": "Status", "code": 400,
            "message": "admission webhook \"words.example.com\" denied the request: too long" });
        let webhook = webhook.to_string().into_bytes();
        assert!(is_about_object(&webhook) && read_words(&webhook).is_unexplained);
    }

    #[test]
    fn a_cause_tells_what_may_be_said() {
        let nothing = RefusedWords::default();
        let bounded = |bounds| RefusedWords { bounds, ..nothing };
        let free = StatusBounds::default();
        let unexplained = RefusedWords { is_unexplained: true, ..nothing };
        let main_only = StatusBounds { is_main_only: true, ..free };
        for (reason, field, message, expected) in [
            (
                "FieldValueRequired",
                "status.conditions",
                "",
                bounded(StatusBounds { requires_list: true, ..free }),
            ),
            ("FieldValueRequired", "status.phase", "Required value", nothing),
            ("FieldValueInvalid", "spec.size", "Invalid value: 3", nothing),
            (
                "FieldValueTooLong",
                "status.conditions[0].message",
                "Too long: may not be more than 64 bytes",
                bounded(StatusBounds { message_length: Some(64), ..free }),
            ),
            ("FieldValueTooLong", "status.conditions[1].message", "Too long", unexplained),
            (
                "FieldValueTooLong",
                "status.conditions[1].reason",
                "Too long: may not be more than 4 bytes",
                nothing,
            ),
            ("FieldValueNotSupported", "status.conditions[1].reason", "Unsupported value", nothing),
            (
                "FieldValueNotSupported",
                "status.conditions[1].type",
                "Unsupported value: \"Stalled\"",
                bounded(main_only),
            ),
            (
                "FieldValueTooMany",
                "status.conditions",
                "Too many: 3: must have at most 1 items",
                RefusedWords { is_crowded: true, ..nothing },
            ),
            (
                "FieldValueInvalid",
                "status.conditions",
                "Invalid value: failed rule: self.all(…)",
                unexplained,
            ),
            ("FieldValueInvalid", "status", "Invalid value: no words", unexplained),
            ("", "", "ValidatingAdmissionPolicy 'words' denied request", unexplained),
        ] {
            let body = refused(&json!([{ "reason": reason, "field": field, "message": message }]));
            assert_eq!(read_words(&body), expected, "{reason} {field}");
        }
        let two = json!([
            { "reason": "FieldValueTooLong", "field": "status.conditions[0].message", "message": "at most 99" },
            { "reason": "FieldValueNotSupported", "field": "status.conditions[1].type" }]);
        assert_eq!(read_bounds(&refused(&two)), StatusBounds { message_length: Some(99), ..main_only });
    }

    fn write_of(message: &str, brevity: Brevity) -> ParentWrite {
        let entry = |kind: &str| ConditionEntry {
            r#type: kind.to_owned(),
            status: "False".to_owned(),
            observed_generation: Some(1),
            last_transition_time: String::new(),
            reason: "ChildrenFailed".to_owned(),
            message: message.to_owned(),
        };
        let mut wanted =
            WantedConditions { entries: vec![entry("Ready"), entry("Stalled")], observed_generation: None };
        StatusBounds::default().shorten(brevity, &mut wanted);
        ParentWrite {
            parent: ObjectId(1),
            ticket: WriteTicket(1),
            kind: KindId(1),
            namespace: String::new(),
            name: "db".to_owned(),
            uid: "u".to_owned(),
            policies: Vec::new(),
            patch: json!([]),
            wanted,
            digest: EntriesDigest::default(),
            requires_list: false,
            is_bound_to_version: false,
            brevity,
            status_transition: None,
        }
    }

    const FULL: Brevity = Brevity { is_short: false, is_main_only: false };
    const SHORT: Brevity = Brevity { is_short: true, is_main_only: false };
    const MAIN: Brevity = Brevity { is_short: false, is_main_only: true };
    const LEAST: Brevity = Brevity { is_short: true, is_main_only: true };

    #[test]
    fn what_is_refused_is_said_otherwise_as_long_as_it_can_be() {
        use DeliveryOutcome::{Invalid, Shortened};
        let too_long = |bytes: u16| {
            let message = format!("Too long: may not be more than {bytes} bytes");
            let cause = json!({ "reason": "FieldValueTooLong", "field": "status.conditions[0].message", "message": message });
            refused(&json!([cause]))
        };
        let cause = |reason: &str, field: &str| refused(&json!([{ "reason": reason, "field": field }]));
        let by_rule = cause("FieldValueInvalid", "status");
        let elsewhere = cause("FieldValueRequired", "status.phase");
        let crowded = cause("FieldValueTooMany", "status.conditions");
        let reflector = Reflector::new(|| ());
        let long = "x".repeat(100);
        for (message, brevity, body, expected) in [
            (&*long, FULL, &elsewhere, Invalid),
            (&long, FULL, &by_rule, Shortened(SHORT)),
            (&long, SHORT, &by_rule, Shortened(LEAST)),
            // To be brief does not help, so that it is not kept up.
            (&long, LEAST, &by_rule, Invalid),
            ("short", FULL, &by_rule, Shortened(LEAST)),
            (&long, FULL, &crowded, Shortened(MAIN)),
            (&long, MAIN, &crowded, Invalid),
            (&long, FULL, &too_long(90), Shortened(FULL)),
            // Another one that was under way before that was known.
            (&long, FULL, &too_long(90), Shortened(FULL)),
            (&long[..90], FULL, &too_long(90), Invalid),
            (&long[..90], FULL, &too_long(80), Shortened(FULL)),
        ] {
            let write = write_of(message, brevity);
            assert_eq!(outcome_of(&reflector, &write, body), expected, "{} letters", message.len());
        }
        let bounds = StatusBounds { message_length: Some(80), ..StatusBounds::default() };
        assert_eq!(reflector.status_bounds(KindId(1)), bounds);
        assert_eq!(
            reflector.status_bounds(KindId(2)),
            StatusBounds::default(),
            "nothing is said of other kinds"
        );
    }

    #[test]
    fn a_list_that_is_required_stays_where_two_removals_are_under_way() {
        let reflector = Reflector::new(|| ());
        let body = refused(&json!([{ "reason": "FieldValueRequired", "field": "status.conditions" }]));
        let mut removal = write_of("", FULL);
        removal.wanted.entries.clear();
        for (requires_list, expected) in [
            (false, DeliveryOutcome::Shortened(FULL)),
            (false, DeliveryOutcome::Shortened(FULL)),
            (true, DeliveryOutcome::Invalid),
        ] {
            removal.requires_list = requires_list;
            assert_eq!(outcome_of(&reflector, &removal, &body), expected);
        }
    }
}
