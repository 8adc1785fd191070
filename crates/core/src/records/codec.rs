//! Conversion between what the reflector remembers and the content of records.

use std::collections::BTreeMap;

use aggregator::KindId;
use rollcall_record::{OutcomeWord, RecordContent, RecordedOutcome, RecordedParent, read_content};
use serde_json::Value;
use watcher::reflector::{
    MAX_DISCARDED_RUNS, MAX_PARENT_OUTCOMES, OutcomeParent, ParentOutcomes, RememberedOutcome, RunEnd,
};
use watcher::status::time;

/// Group and kind of the objects named in records, with the ids under which they are followed.
pub type RecordedKinds = BTreeMap<(String, String), KindId>;

/// Encodes the reflector's memory. Sorted, so that equal memory gives equal text.
pub(super) fn encode_spec(memories: &ParentOutcomes, spoken_of: &RecordedKinds) -> Value {
    let OutcomeParent { group, kind, namespace, name, .. } = &memories.parent;
    let mut outcomes: Vec<&RememberedOutcome> = memories.outcomes.iter().collect();
    outcomes.sort_by_key(|o| (&o.namespace, &o.name, &o.uid));
    let named = outcomes.into_iter().filter_map(|outcome| {
        let (group, kind) = spoken_of.iter().find(|(_, id)| **id == outcome.kind)?.0;
        Some(record_outcome(outcome, group, kind))
    });
    let parent = RecordedParent {
        group: group.to_string(),
        kind: kind.to_string(),
        namespace: namespace.to_string(),
        name: name.to_string(),
    };
    let content = RecordContent { parent, outcomes: named.collect() };
    serde_json::to_value(content).expect("invariant: texts and numbers alone")
}

fn record_outcome(outcome: &RememberedOutcome, group: &str, kind: &str) -> RecordedOutcome {
    let (word, reason) = match &outcome.end {
        RunEnd::Open if outcome.deleted => (OutcomeWord::Unseen, ""),
        RunEnd::Open => (OutcomeWord::Running, ""),
        RunEnd::Complete => (OutcomeWord::Complete, ""),
        RunEnd::Failed(why) => (OutcomeWord::Failed, &**why),
    };
    let labels = outcome.labels.iter().map(|(key, value)| (key.to_string(), value.to_string()));
    let version = Some(outcome.first_version).filter(|version| *version > 0);
    RecordedOutcome {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: outcome.namespace.to_string(),
        name: outcome.name.to_string(),
        slot: outcome.slot.to_string(),
        uid: outcome.uid.to_string(),
        created: outcome.created.map(time::format_seconds),
        resource_version: version.map(|version| version.to_string()).unwrap_or_default(),
        labels: labels.collect(),
        generation: outcome.generation.map(u64::cast_signed),
        outcome: word,
        reason: reason.to_owned(),
        heard: outcome.known_from_events,
        discarded: outcome.discarded.iter().map(ToString::to_string).collect(),
    }
}

/// Decodes a record, with complaints about invalid content. An invalid outcome counts as Unseen.
pub(super) fn decode_spec(
    name: &str,
    spec: &Value,
    spoken_of: &RecordedKinds,
) -> (OutcomeParent, Vec<RememberedOutcome>, Vec<String>) {
    let (parent, recorded) = read_content(spec);
    let whose = OutcomeParent {
        group: parent.group.into(),
        kind: parent.kind.into(),
        namespace: parent.namespace.into(),
        name: parent.name.into(),
        uid: name.into(),
    };
    let (mut outcomes, mut complaints) = (Vec::new(), Vec::new());
    for read in recorded.into_iter().take(MAX_PARENT_OUTCOMES) {
        let mut entry = read.value;
        let key = (std::mem::take(&mut entry.group), std::mem::take(&mut entry.kind));
        let Some(kind) = spoken_of.get(&key) else { continue };
        let unread = read.left_out.iter();
        complaints
            .extend(unread.map(|field| format!("{}: not understood and left out: {field}", entry.name)));
        if entry.uid.is_empty() || entry.name.is_empty() {
            complaints.push("an outcome without name or uid is passed over".to_owned());
        } else if outcomes.iter().any(|earlier: &RememberedOutcome| *earlier.uid == *entry.uid) {
            // Rollcall has each object once. Of two words about one the second would count in the place of the first.
            complaints.push(format!("{}: told of twice: the second is passed over", entry.name));
        } else {
            outcomes.push(recall_outcome(entry, *kind));
        }
    }
    (whose, outcomes, complaints)
}

fn recall_outcome(entry: RecordedOutcome, kind: KindId) -> RememberedOutcome {
    let end = match entry.outcome {
        OutcomeWord::Complete => RunEnd::Complete,
        OutcomeWord::Failed => RunEnd::Failed(entry.reason.into()),
        OutcomeWord::Running | OutcomeWord::Unseen => RunEnd::Open,
    };
    let name: Box<str> = entry.name.into();
    RememberedOutcome {
        kind,
        uid: entry.uid.into(),
        namespace: entry.namespace.into(),
        slot: if entry.slot.is_empty() { name.clone() } else { entry.slot.into() },
        name,
        labels: entry.labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
        created: entry.created.as_deref().and_then(time::parse_rfc3339),
        generation: entry.generation.map(i64::cast_unsigned),
        known_from_events: entry.heard && end == RunEnd::Open,
        end,
        deleted: false,
        unlisted: false,
        version: 0,
        first_version: entry.resource_version.parse().unwrap_or(0),
        discarded: entry.discarded.into_iter().take(MAX_DISCARDED_RUNS).map(Into::into).collect(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "what fails here is a failed test")]

    use readiness::Time;
    use serde_json::json;

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
    fn garbage_in_one_outcome_leaves_that_one_unseen_and_is_named() {
        let mut spec = encode_spec(&memories(), &spoken_of());
        spec["outcomes"][2]["outcome"] = json!("Splendid");
        spec["outcomes"][3]["uid"] = json!(12);
        let (_, outcomes, complaints) = decode_spec("u-1", &spec, &spoken_of());
        assert_eq!(outcomes.len(), 3);
        assert!(outcomes.iter().all(|o| o.end == RunEnd::Open));
        let expected = [
            "migrate: not understood and left out: outcome \"Splendid\"",
            "seed: not understood and left out: uid 12",
            "an outcome without name or uid is passed over",
        ];
        assert_eq!(complaints, expected);
        for garbage in [json!(null), json!("text"), json!({ "outcomes": "text" }), json!({ "parent": 1 })] {
            assert_eq!(decode_spec("u-1", &garbage, &spoken_of()).1, Vec::new());
        }
    }
}
