//! Reading of content that may not fit the types: written by another version, or under a schema that is not this one. What
//! can be read of it counts.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{RecordedOutcome, RecordedParent};

/// A value as far as it could be read; fields that could not have their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LenientRead<T> {
    /// The value.
    pub value: T,
    /// Fields that were left out, each with what it contains.
    pub left_out: Vec<String>,
}

/// Parts of a record, each to be read by itself.
#[derive(Default, Deserialize)]
#[serde(default)]
struct UnreadContent {
    parent: Value,
    outcomes: Value,
}

/// Reads the parent and the outcomes of a record's `spec`.
pub fn read_content(spec: &Value) -> (RecordedParent, Vec<LenientRead<RecordedOutcome>>) {
    let UnreadContent { parent, outcomes } = UnreadContent::deserialize(spec).unwrap_or_default();
    let outcomes = outcomes.as_array().into_iter().flatten().map(read_fields);
    (read_fields(&parent).value, outcomes.collect())
}

/// Reads as many fields as can be read together.
fn read_fields<T: Default + Serialize + DeserializeOwned>(text: &Value) -> LenientRead<T> {
    if let Ok(value) = T::deserialize(text) {
        return LenientRead { value, left_out: Vec::new() };
    }
    let mut read = LenientRead::<T>::default();
    let Ok(mut held) = serde_json::to_value(&read.value) else { return read };
    for (field, content) in text.as_object().into_iter().flatten() {
        let before = held.get(field).cloned();
        held[field] = content.clone();
        if let Ok(value) = T::deserialize(&held) {
            read.value = value;
            continue;
        }
        read.left_out.push(format!("{field} {content}"));
        match (before, held.as_object_mut()) {
            (Some(before), Some(held)) => _ = held.insert(field.clone(), before),
            (None, Some(held)) => _ = held.remove(field),
            (_, None) => {}
        }
    }
    read
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "what fails here is a failed test")]

    use serde_json::json;

    use super::*;
    use crate::{OutcomeWord, RecordContent};

    fn spec() -> Value {
        let outcome = |name: &str, word: &str| {
            json!({ "group": "batch", "kind": "Job", "namespace": "shop", "name": name, "slot": name, "uid": name,
                "created": "2026-08-14T09:12:33Z", "resourceVersion": "5", "labels": { "app": "db" }, "generation": -1,
                "outcome": word, "heard": true, "discarded": ["u9"] })
        };
        let outcomes = [outcome("seed", "Failed"), outcome("migrate", "Complete")];
        json!({ "parent": { "kind": "Database", "name": "orders" }, "outcomes": outcomes })
    }

    #[test]
    fn what_fits_the_types_is_read_as_by_them() {
        let strict = RecordContent::deserialize(&spec()).unwrap();
        let (parent, outcomes) = read_content(&spec());
        assert_eq!(parent, strict.parent);
        assert!(outcomes.iter().all(|outcome| outcome.left_out.is_empty()));
        assert_eq!(outcomes.into_iter().map(|o| o.value).collect::<Vec<_>>(), strict.outcomes);
    }

    #[test]
    fn a_field_of_another_version_costs_that_field_alone() {
        let (known, _) = read_content(&spec());
        let strict = RecordContent::deserialize(&spec()).unwrap();
        let mut newer = spec();
        newer["retention"] = json!("forever");
        newer["parent"]["cluster"] = json!("west");
        newer["outcomes"][0]["exitCode"] = json!(3);
        newer["outcomes"][1]["outcome"] = json!("Splendid");
        newer["outcomes"][1]["labels"] = json!({ "app": 7 });
        let (parent, outcomes) = read_content(&newer);
        assert_eq!(parent, known);
        assert_eq!(outcomes[0].value, strict.outcomes[0]);
        assert_eq!(outcomes[0].left_out, ["exitCode 3"]);
        let expected = RecordedOutcome {
            outcome: OutcomeWord::default(),
            labels: std::collections::BTreeMap::new(),
            ..strict.outcomes[1].clone()
        };
        assert_eq!(outcomes[1].value, expected);
        assert_eq!(outcomes[1].left_out, [r#"labels {"app":7}"#, r#"outcome "Splendid""#]);
    }

    #[test]
    fn what_an_older_version_did_not_write_is_absent() {
        let older = json!({ "outcomes": [{ "name": "seed", "uid": "u-1", "outcome": "Failed" }] });
        let (_, outcomes) = read_content(&older);
        let seed = &outcomes[0].value;
        assert_eq!((&*seed.name, &*seed.uid, seed.outcome), ("seed", "u-1", OutcomeWord::Failed));
        assert_eq!(outcomes[0].left_out, Vec::<String>::new());
    }

    #[test]
    fn garbage_is_nothing() {
        for garbage in [json!(null), json!("text"), json!({ "outcomes": "text" }), json!({ "parent": 1 })] {
            assert_eq!(read_content(&garbage), (RecordedParent::default(), Vec::new()), "{garbage}");
        }
        let (_, outcomes) = read_content(&json!({ "outcomes": [7, null, []] }));
        assert_eq!(outcomes, vec![LenientRead::default(); 3]);
    }
}
