//! The API server's handling of records.

use rollcall_core::records::{RecordOperation, RecordOperationResult};
use serde_json::{Value, json};

use super::job_cluster::{JobCluster, make_uid};

/// Applies a record operation and returns the server's answer.
pub(super) fn apply_record_operation(
    world: &mut JobCluster,
    name: &str,
    errand: &RecordOperation,
) -> RecordOperationResult {
    let held = world.records.get(name).cloned();
    let is = |held: &Value, field: &str, value: &Value| held["metadata"][field] == *value;
    world.version += 1;
    let (version, created) = (json!(world.version.to_string()), json!(make_uid(3, world.version)));
    let now = match (errand, held) {
        (RecordOperation::CheckParent(_), _) => {
            let there = world.parents.iter().any(|parent| parent.uid == name && !parent.gone);
            return if there {
                RecordOperationResult::ParentExists
            } else {
                RecordOperationResult::ParentGone
            };
        }
        (RecordOperation::Create(body), None) => {
            let mut record = body.clone();
            record["metadata"]["uid"] = created;
            Some(record)
        }
        (RecordOperation::Patch { patch, .. }, Some(mut held))
            if is(&held, "uid", &patch[0]["value"]) && is(&held, "resourceVersion", &patch[1]["value"]) =>
        {
            held["spec"] = patch[2]["value"].clone();
            Some(held)
        }
        (RecordOperation::Delete { uid, version }, Some(held))
            if is(&held, "uid", &json!(uid)) && is(&held, "resourceVersion", &json!(version)) =>
        {
            None
        }
        // A precondition failed: the answer is the current object.
        (_, held) => return RecordOperationResult::Current(held),
    };
    world.written += 1;
    world.log_event(format_args!("record {name}: {errand:?}"));
    let now = now.map(|mut record| {
        record["metadata"]["resourceVersion"] = version;
        record
    });
    world.store_record(name, now.clone());
    RecordOperationResult::Current(now)
}
