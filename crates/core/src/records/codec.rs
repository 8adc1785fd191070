//! Encoding of records.

use std::collections::BTreeMap;

use aggregator::KindId;
use serde_json::{Map, Value, json};
use watcher::reflector::{MAX_PARENT_OUTCOMES, OutcomeParent, ParentOutcomes, RememberedOutcome, RunEnd};
use watcher::status::time;

/// Group and kind of the objects named in records, with the ids under which they are followed.
pub type RecordedKinds = BTreeMap<(String, String), KindId>;

/// Encodes the reflector's memory. Sorted, so that equal memory gives equal text.
pub(super) fn encode_spec(memories: &ParentOutcomes, spoken_of: &RecordedKinds) -> Value {
    let OutcomeParent { group, kind, namespace, name, .. } = &memories.parent;
    let mut outcomes: Vec<&RememberedOutcome> = memories.outcomes.iter().collect();
    outcomes.sort_by_key(|o| (&o.namespace, &o.name, &o.uid));
    let named = outcomes.into_iter().filter_map(|outcome| {
        let key = spoken_of.iter().find(|(_, id)| **id == outcome.kind)?.0;
        Some(encode_outcome(outcome, &key.0, &key.1))
    });
    let parent = json!({ "group": &**group, "kind": &**kind, "namespace": &**namespace, "name": &**name });
    json!({ "parent": without_empty(parent), "outcomes": named.collect::<Vec<_>>() })
}

fn encode_outcome(outcome: &RememberedOutcome, group: &str, kind: &str) -> Value {
    let (word, reason) = match &outcome.end {
        RunEnd::Open if outcome.deleted => ("Unseen", ""),
        RunEnd::Open => ("Running", ""),
        RunEnd::Complete => ("Complete", ""),
        RunEnd::Failed(why) => ("Failed", &**why),
    };
    let labels: Map<String, Value> =
        outcome.labels.iter().map(|(key, value)| (key.to_string(), json!(&**value))).collect();
    without_empty(json!({
        "group": group, "kind": kind, "namespace": &*outcome.namespace, "name": &*outcome.name,
        "slot": &*outcome.slot, "uid": &*outcome.uid, "created": outcome.created.map(time::format_seconds),
        "resourceVersion": (outcome.first_version > 0).then(|| outcome.first_version.to_string()),
        "labels": labels, "generation": outcome.generation.map(u64::cast_signed),
        "outcome": word, "reason": reason, "heard": outcome.known_from_events.then_some(true),
    }))
}

fn without_empty(mut value: Value) -> Value {
    if let Some(map) = value.as_object_mut() {
        map.retain(|_, value| match value {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Object(map) => !map.is_empty(),
            _ => true,
        });
    }
    value
}

/// Decodes a record, with complaints about invalid content. An invalid outcome counts as Unseen.
pub(super) fn decode_spec(
    name: &str,
    spec: &Value,
    spoken_of: &RecordedKinds,
) -> (OutcomeParent, Vec<RememberedOutcome>, Vec<String>) {
    let parent = &spec["parent"];
    let whose = OutcomeParent {
        group: text_field(parent, "group"),
        kind: text_field(parent, "kind"),
        namespace: text_field(parent, "namespace"),
        name: text_field(parent, "name"),
        uid: name.into(),
    };
    let (mut outcomes, mut complaints) = (Vec::new(), Vec::new());
    for entry in spec["outcomes"].as_array().into_iter().flatten().take(MAX_PARENT_OUTCOMES) {
        let key = (text_field(entry, "group").to_string(), text_field(entry, "kind").to_string());
        match spoken_of.get(&key) {
            Some(kind) if !text_field(entry, "uid").is_empty() && !text_field(entry, "name").is_empty() => {
                outcomes.push(decode_outcome(entry, *kind, &mut complaints));
            }
            Some(_) => complaints.push("an outcome without name or uid is passed over".to_owned()),
            None => {}
        }
    }
    (whose, outcomes, complaints)
}

fn decode_outcome(entry: &Value, kind: KindId, complaints: &mut Vec<String>) -> RememberedOutcome {
    let name = text_field(entry, "name");
    let end = match &*text_field(entry, "outcome") {
        "Complete" => RunEnd::Complete,
        "Failed" => RunEnd::Failed(text_field(entry, "reason")),
        "Running" | "Unseen" => RunEnd::Open,
        other => {
            complaints.push(format!("{name}: {other:?} is no outcome; it counts as not seen"));
            RunEnd::Open
        }
    };
    let heard = entry["heard"] == json!(true) && end == RunEnd::Open;
    let labels = entry["labels"].as_object().into_iter().flatten();
    let slot = text_field(entry, "slot");
    RememberedOutcome {
        kind,
        uid: text_field(entry, "uid"),
        namespace: text_field(entry, "namespace"),
        slot: if slot.is_empty() { name.clone() } else { slot },
        name,
        labels: labels
            .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())))
            .collect(),
        created: entry["created"].as_str().and_then(time::parse_rfc3339),
        generation: entry["generation"].as_i64().map(i64::cast_unsigned),
        end,
        deleted: false,
        version: 0,
        first_version: entry["resourceVersion"]
            .as_str()
            .and_then(|version| version.parse().ok())
            .unwrap_or(0),
        known_from_events: heard,
    }
}

fn text_field(value: &Value, field: &str) -> Box<str> {
    value[field].as_str().unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "what fails here is a failed test")]

    use readiness::Time;

    use super::*;

    fn spoken_of() -> RecordedKinds {
        RecordedKinds::from([(("batch".to_owned(), "Job".to_owned()), KindId(4))])
    }

    fn memories() -> ParentOutcomes {
        let whose = OutcomeParent {
            group: "example.com".into(),
            kind: "Database".into(),
            namespace: "shop".into(),
            name: "orders".into(),
            uid: "u-1".into(),
        };
        let job = |name: &str, end: RunEnd, gone: bool| RememberedOutcome {
            kind: KindId(4),
            uid: format!("uid-{name}").into(),
            namespace: "shop".into(),
            name: name.into(),
            slot: name.into(),
            labels: vec![("app".into(), "db".into())],
            created: Some(Time(1_800_000_000_000)),
            generation: Some(u64::MAX),
            end,
            deleted: gone,
            version: 7,
            first_version: 5,
            ..RememberedOutcome::default()
        };
        let outcomes = vec![
            job("seed", RunEnd::Failed("BackoffLimitExceeded".into()), true),
            job("migrate", RunEnd::Complete, true),
            job("index", RunEnd::Open, false),
            RememberedOutcome { known_from_events: true, ..job("check", RunEnd::Open, true) },
        ];
        ParentOutcomes { parent: whose, outcomes }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let (whose, outcomes, complaints) =
            decode_spec("u-1", &encode_spec(&memories(), &spoken_of()), &spoken_of());
        assert_eq!((whose, complaints), (memories().parent, Vec::<String>::new()));
        let ends: Vec<_> = outcomes.iter().map(|o| (&*o.name, o.end.clone())).collect();
        let failed = RunEnd::Failed("BackoffLimitExceeded".into());
        let expected = [
            ("check", RunEnd::Open),
            ("index", RunEnd::Open),
            ("migrate", RunEnd::Complete),
            ("seed", failed),
        ];
        assert_eq!(ends, expected);
        let known = outcomes.iter().all(|o| {
            (o.generation, o.created, o.labels.len(), o.first_version)
                == (Some(u64::MAX), Some(Time(1_800_000_000_000)), 1, 5)
        });
        assert!(known, "{outcomes:?}");
        assert!(outcomes.iter().all(|o| o.known_from_events == (&*o.name == "check")), "{outcomes:?}");
        let mut vouched = encode_spec(&memories(), &spoken_of());
        vouched["outcomes"][0]["outcome"] = json!("Complete");
        assert!(!decode_spec("u-1", &vouched, &spoken_of()).1[0].known_from_events, "a person said so");
    }

    #[test]
    fn what_is_written_is_what_the_schema_promises() {
        let spec: api::ReadinessRecordSpec =
            serde_json::from_value(encode_spec(&memories(), &spoken_of())).unwrap();
        assert_eq!(serde_json::to_value(spec).unwrap(), encode_spec(&memories(), &spoken_of()));
    }

    #[test]
    fn garbage_in_one_outcome_leaves_that_one_unseen_and_is_named() {
        let mut spec = encode_spec(&memories(), &spoken_of());
        spec["outcomes"][2]["outcome"] = json!("Splendid");
        spec["outcomes"][3]["uid"] = json!(12);
        let (_, outcomes, complaints) = decode_spec("u-1", &spec, &spoken_of());
        assert_eq!(outcomes.len(), 3);
        assert!(outcomes.iter().all(|o| o.end == RunEnd::Open));
        assert!(complaints[0].contains("migrate") && complaints.len() == 2, "{complaints:?}");
        for garbage in [json!(null), json!("text"), json!({ "outcomes": "text" }), json!({ "parent": 1 })] {
            assert_eq!(decode_spec("u-1", &garbage, &spoken_of()).1, Vec::new());
        }
    }
}
