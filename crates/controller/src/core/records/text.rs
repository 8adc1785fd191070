//! What a record says.

use aggregator::KindId;
use serde_json::{Map, Value, json};
use watcher::reflector::{End, MOST_OUTCOMES, Memories, Outcome, Whose};
use watcher::status::time;

use super::SpokenOf;

/// As the reflector remembers it. Sorted, so that the same memory is always the same text.
pub(super) fn write(memories: &Memories, spoken_of: &SpokenOf) -> Value {
    let Whose { group, kind, namespace, name, .. } = &memories.whose;
    let mut outcomes: Vec<&Outcome> = memories.outcomes.iter().collect();
    outcomes.sort_by_key(|o| (&o.namespace, &o.name, &o.uid));
    let named = outcomes.into_iter().filter_map(|outcome| {
        let key = spoken_of.iter().find(|(_, id)| **id == outcome.kind)?.0;
        Some(entry(outcome, &key.0, &key.1))
    });
    let parent = json!({ "group": &**group, "kind": &**kind, "namespace": &**namespace, "name": &**name });
    json!({ "parent": without_empty(parent), "outcomes": named.collect::<Vec<_>>() })
}

fn entry(outcome: &Outcome, group: &str, kind: &str) -> Value {
    let (word, reason) = match &outcome.end {
        End::Open if outcome.gone => ("Unseen", ""),
        End::Open => ("Running", ""),
        End::Complete => ("Complete", ""),
        End::Failed(why) => ("Failed", &**why),
    };
    let labels: Map<String, Value> =
        outcome.labels.iter().map(|(key, value)| (key.to_string(), json!(&**value))).collect();
    without_empty(json!({
        "group": group, "kind": kind, "namespace": &*outcome.namespace, "name": &*outcome.name,
        "slot": &*outcome.slot, "uid": &*outcome.uid, "created": outcome.created.map(time::format),
        "resourceVersion": (outcome.first > 0).then(|| outcome.first.to_string()),
        "labels": labels, "generation": outcome.generation.map(|generation| generation as i64),
        "outcome": word, "reason": reason, "heard": outcome.heard.then_some(true),
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

/// What can be understood of a record, and complaints about the rest: an outcome that is none was not seen.
pub(super) fn read(name: &str, spec: &Value, spoken_of: &SpokenOf) -> (Whose, Vec<Outcome>, Vec<String>) {
    let parent = &spec["parent"];
    let whose = Whose {
        group: word(parent, "group"),
        kind: word(parent, "kind"),
        namespace: word(parent, "namespace"),
        name: word(parent, "name"),
        uid: name.into(),
    };
    let (mut outcomes, mut complaints) = (Vec::new(), Vec::new());
    for entry in spec["outcomes"].as_array().into_iter().flatten().take(MOST_OUTCOMES) {
        let key = (word(entry, "group").to_string(), word(entry, "kind").to_string());
        match spoken_of.get(&key) {
            Some(kind) if !word(entry, "uid").is_empty() && !word(entry, "name").is_empty() => {
                outcomes.push(outcome(entry, *kind, &mut complaints));
            }
            Some(_) => complaints.push("an outcome without name or uid is passed over".to_owned()),
            None => {}
        }
    }
    (whose, outcomes, complaints)
}

fn outcome(entry: &Value, kind: KindId, complaints: &mut Vec<String>) -> Outcome {
    let name = word(entry, "name");
    let end = match &*word(entry, "outcome") {
        "Complete" => End::Complete,
        "Failed" => End::Failed(word(entry, "reason")),
        "Running" | "Unseen" => End::Open,
        other => {
            complaints.push(format!("{name}: {other:?} is no outcome; it counts as not seen"));
            End::Open
        }
    };
    let heard = entry["heard"] == json!(true) && end == End::Open;
    let labels = entry["labels"].as_object().into_iter().flatten();
    let slot = word(entry, "slot");
    Outcome {
        kind,
        uid: word(entry, "uid"),
        namespace: word(entry, "namespace"),
        slot: if slot.is_empty() { name.clone() } else { slot },
        name,
        labels: labels
            .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())))
            .collect(),
        created: entry["created"].as_str().and_then(time::parse),
        generation: entry["generation"].as_i64().map(|generation| generation as u64),
        end,
        gone: false,
        version: 0,
        first: entry["resourceVersion"].as_str().and_then(|version| version.parse().ok()).unwrap_or(0),
        heard,
        before: None,
    }
}

fn word(value: &Value, field: &str) -> Box<str> {
    value[field].as_str().unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "what fails here is a failed test")]

    use readiness::Time;

    use super::*;

    fn spoken_of() -> SpokenOf {
        SpokenOf::from([(("batch".to_owned(), "Job".to_owned()), KindId(4))])
    }

    fn memories() -> Memories {
        let whose = Whose {
            group: "example.com".into(),
            kind: "Database".into(),
            namespace: "shop".into(),
            name: "orders".into(),
            uid: "u-1".into(),
        };
        let job = |name: &str, end: End, gone: bool| Outcome {
            kind: KindId(4),
            uid: format!("uid-{name}").into(),
            namespace: "shop".into(),
            name: name.into(),
            slot: name.into(),
            labels: vec![("app".into(), "db".into())],
            created: Some(Time(1_800_000_000_000)),
            generation: Some(u64::MAX),
            end,
            gone,
            version: 7,
            first: 5,
            ..Outcome::default()
        };
        let outcomes = vec![
            job("seed", End::Failed("BackoffLimitExceeded".into()), true),
            job("migrate", End::Complete, true),
            job("index", End::Open, false),
            Outcome { heard: true, ..job("check", End::Open, true) },
        ];
        Memories { whose, outcomes }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let (whose, outcomes, complaints) = read("u-1", &write(&memories(), &spoken_of()), &spoken_of());
        assert_eq!((whose, complaints), (memories().whose, Vec::<String>::new()));
        let ends: Vec<_> = outcomes.iter().map(|o| (&*o.name, o.end.clone())).collect();
        let failed = End::Failed("BackoffLimitExceeded".into());
        let expected =
            [("check", End::Open), ("index", End::Open), ("migrate", End::Complete), ("seed", failed)];
        assert_eq!(ends, expected);
        let known = outcomes.iter().all(|o| {
            (o.generation, o.created, o.labels.len(), o.first)
                == (Some(u64::MAX), Some(Time(1_800_000_000_000)), 1, 5)
        });
        assert!(known, "{outcomes:?}");
        assert!(outcomes.iter().all(|o| o.heard == (&*o.name == "check")), "{outcomes:?}");
        let mut vouched = write(&memories(), &spoken_of());
        vouched["outcomes"][0]["outcome"] = json!("Complete");
        assert!(!read("u-1", &vouched, &spoken_of()).1[0].heard, "a person said so");
    }

    #[cfg(feature = "io")]
    #[test]
    fn what_is_written_is_what_the_schema_promises() {
        let spec: api::ReadinessRecordSpec =
            serde_json::from_value(write(&memories(), &spoken_of())).unwrap();
        assert_eq!(serde_json::to_value(spec).unwrap(), write(&memories(), &spoken_of()));
    }

    #[test]
    fn garbage_in_one_outcome_leaves_that_one_unseen_and_is_named() {
        let mut spec = write(&memories(), &spoken_of());
        spec["outcomes"][2]["outcome"] = json!("Splendid");
        spec["outcomes"][3]["uid"] = json!(12);
        let (_, outcomes, complaints) = read("u-1", &spec, &spoken_of());
        assert_eq!(outcomes.len(), 3);
        assert!(outcomes.iter().all(|o| o.end == End::Open));
        assert!(complaints[0].contains("migrate") && complaints.len() == 2, "{complaints:?}");
        for garbage in [json!(null), json!("text"), json!({ "outcomes": "text" }), json!({ "parent": 1 })] {
            assert_eq!(read("u-1", &garbage, &spoken_of()).1, Vec::new());
        }
    }
}
