//! Conditions of a type that Rollcall has not on the parent yet, in a list where nothing keeps a type from standing twice.
//!
//! There such a condition can be added only as long as nobody else has written the parent since it was read. Beside a client that
//! writes it all the time that never comes true, so what stands is changed without it.

use super::entry::{ConditionEntry, WantedConditions};
use super::own;
use super::owned_condition::OwnedCondition;
use super::parent_status::ParentStatus;

/// Returns `true` if this entry is put beside others of ours in a list that may hold its type already.
pub(super) fn adds_type(status: &ParentStatus, entry: &ConditionEntry) -> bool {
    status.allows_duplicate_types && !status.ours.is_empty() && status.our_entry(&entry.r#type).is_none()
}

/// Leaves out the entries that are of a type to be added, so that those that stand can be changed whatever others write. The
/// condition of a policy is left out only where it takes no other's place: a parent without any would say less than before.
pub fn withhold_added_types(status: &ParentStatus, wanted: &mut WantedConditions) {
    let is_wanted = |held: &OwnedCondition| wanted.entries.iter().any(|entry| entry.r#type == held.kind());
    let mut main = status.ours.iter().filter(|held| !own::is_beside_ready(held.kind())).peekable();
    let all_stay = main.peek().is_some() && main.all(is_wanted);
    wanted.entries.retain(|entry| {
        let may_wait = all_stay || own::is_beside_ready(&entry.r#type);
        !(may_wait && adds_type(status, entry))
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::status::{OwnTypes, ParentStatus};

    fn status(held: &[&str], is_map: bool) -> ParentStatus {
        let entry = |kind: &&str| json!({ "type": kind, "status": "True", "reason": "AllChildrenReady", "message": "1 of 1 ready" });
        let entries: Vec<_> = held.iter().map(entry).collect();
        let fields = held.iter().map(|kind| {
            (format!("k:{{\"type\":\"{kind}\"}}"), json!({ ".": {}, "f:type": {}, "f:status": {} }))
        });
        let list = if is_map { json!(fields.collect::<serde_json::Map<_, _>>()) } else { json!({}) };
        let object = json!({
            "metadata": { "managedFields": [{ "manager": "rollcall", "operation": "Update", "subresource": "status",
                "fieldsV1": { "f:status": { "f:conditions": list } } }] },
            "status": { "conditions": entries },
        });
        let text = serde_json::value::to_raw_value(&object).unwrap();
        ParentStatus::read(&text, &OwnTypes::of(["Ready", "Healthy", "Reconciling", "Stalled"]))
    }

    fn wanted(types: &[&str]) -> WantedConditions {
        let entry = |kind: &&str| ConditionEntry {
            r#type: (*kind).to_owned(),
            status: "False".to_owned(),
            observed_generation: Some(1),
            last_transition_time: String::new(),
            reason: "ChildrenFailed".to_owned(),
            message: String::new(),
        };
        WantedConditions { entries: types.iter().map(entry).collect(), observed_generation: None }
    }

    #[test]
    fn what_is_added_waits_and_a_condition_that_takes_anothers_place_does_not() {
        for (is_map, held, said, expected) in [
            (false, &["Ready"][..], &["Ready", "Reconciling"][..], &["Ready"][..]),
            (false, &["Ready", "Reconciling"], &["Ready", "Stalled"], &["Ready"]),
            (false, &["Ready", "Stalled"], &["Ready", "Stalled"], &["Ready", "Stalled"]),
            (false, &["Ready"], &["Healthy", "Ready"], &["Ready"]),
            (false, &["Ready"], &["Healthy"], &["Healthy"]),
            (false, &["Ready", "Healthy"], &["Ready", "Other", "Reconciling"], &["Ready", "Other"]),
            (false, &["Stalled"], &["Ready", "Reconciling"], &["Ready"]),
            (false, &[], &["Ready", "Reconciling"], &["Ready", "Reconciling"]),
            (true, &["Ready"], &["Ready", "Reconciling"], &["Ready", "Reconciling"]),
        ] {
            let status = status(held, is_map);
            assert_eq!(status.allows_duplicate_types, !is_map, "{held:?}");
            let mut said = wanted(said);
            withhold_added_types(&status, &mut said);
            assert_eq!(said, wanted(expected), "beside {held:?}");
        }
    }
}
