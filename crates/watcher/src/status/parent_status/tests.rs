use super::*;
use crate::status::own_words::opening_of;
use crate::status::{PatchGuard, guarded_patch};
use serde_json::{Value, json};

fn read(object: &Value) -> ParentStatus {
    let own = OwnTypes::of(["Ready", "Reconciling", "Stalled"]);
    ParentStatus::read(&RawValue::from_string(object.to_string()).unwrap(), &own)
}

fn ours(reason: &str) -> Value {
    json!({"type": "Ready", "status": "True", "reason": reason, "message": opening_of(reason),
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

#[test]
fn an_entry_is_ours_if_it_says_what_we_say() {
    let read = read(
        &json!({"status": {"conditions": [{"type": "Synced", "status": "True"}, ours("AllChildrenReady")]}}),
    );
    assert_eq!(read.our_entry("Ready").map(OwnedCondition::index), Some(1));
    assert!(read.is_foreign("Synced") && !read.is_foreign("Ready"));
}

#[test]
fn a_list_says_whether_anything_in_it_is_not_ours() {
    let mine = ours("ChildrenFailed");
    for (list, only_ours) in [
        (json!([mine]), true),
        (json!([mine, {"type": "Synced", "status": "True"}]), false),
        (json!([mine, {"status": "True"}]), false),
        (json!([mine, null]), false),
    ] {
        let read = read(&json!({"status": {"conditions": list}})).list;
        let (all, some) = (matches!(read, ListShape::OnlyOurs), matches!(read, ListShape::WithOurs));
        assert_eq!((all, some), (only_ours, !only_ours), "{list}");
    }
}

#[test]
fn a_list_that_holds_null_is_named_in_no_precondition() {
    let wanted = WantedConditions {
        entries: vec![serde_json::from_value(ours("AllChildrenReady")).unwrap()],
        ..WantedConditions::default()
    };
    for (list, is_written) in [
        (json!([null]), false),
        (json!([{"type": "Synced", "status": "True"}, null]), false),
        (json!([{"type": "Synced", "status": "True"}]), true),
        // What was said before has to be taken back, and only that is named.
        (json!([ours("ChildrenFailed"), null]), true),
    ] {
        let status = read(&json!({"status": {"conditions": list}}));
        let guard =
            PatchGuard { uid: "u", generation: Some(1), version: 7, status: &status, requires_list: false };
        let patch = guarded_patch(&guard, &wanted);
        assert_eq!(patch.is_some(), is_written, "{list}");
        let tests = patch.iter().flat_map(|ops| ops.as_array().unwrap()).filter(|op| op["op"] == "test");
        assert!(tests.map(|op| op["value"].to_string()).all(|value| !value.contains("null")), "{list}");
    }
}

#[test]
fn the_default_of_a_schema_is_not_what_we_wrote() {
    let default = json!({"type": "Ready", "status": "Unknown", "reason": "ChildrenPending", "message": "Waiting for Rollcall",
        "lastTransitionTime": "1970-01-01T00:00:00Z", "observedGeneration": 0});
    let count = |entry: &Value| read(&json!({"status": {"conditions": [entry]}})).written().count();
    assert_eq!(count(&default), 0);
    let changed = [
        json!({"status": "False"}),
        json!({"reason": "ChildrenMissing", "message": "Deployment web missing"}),
        json!({"observedGeneration": 1}),
        json!({"message": "waiting for the operator to handle generation 1"}),
    ];
    for fields in changed {
        let mut written = default.clone();
        written.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        assert_eq!(count(&written), 1, "{written}");
    }
    let twice = read(&json!({"status": {"conditions": [default, ours("ChildrenFailed")]}}));
    assert_eq!(twice.written().count(), 2, "the second makes it what stands in the way");
}

#[test]
fn an_entry_with_a_foreign_reason_is_not_ours() {
    let read = read(&json!({"status": {"conditions": [ours("MinimumReplicasAvailable")]}}));
    assert!(read.is_foreign("Ready"));
    assert!(matches!(read.list, ListShape::WithoutOurs(_)));
}

#[test]
fn an_entry_whose_manager_is_another_is_not_ours_whatever_its_reason() {
    let field = |manager: &str| {
        json!([{"manager": manager, "operation": "Update",
            "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {"f:status": {}}}}}}])
    };
    let object = |manager: &str| json!({"metadata": {"managedFields": field(manager)}, "status": {"conditions": [ours("AllChildrenReady")]}});
    assert!(read(&object("kopf")).is_foreign("Ready"));
    assert!(read(&object("rollcall")).our_entry("Ready").is_some());
}

#[test]
fn an_entry_that_we_alone_wrote_is_ours_whatever_a_webhook_made_of_its_reason() {
    let field = |manager: &str| {
        json!({"manager": manager, "operation": "Update", "subresource": "status",
            "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {"f:reason": {}}}}}})
    };
    for (managers, is_ours) in [(vec!["rollcall"], true), (vec!["rollcall", "db-operator"], false)] {
        let fields: Vec<_> = managers.iter().map(|manager| field(manager)).collect();
        let object = json!({"metadata": {"managedFields": fields}, "status": {"conditions": [ours("PolicyOfTheHouse")]}});
        assert_eq!(read(&object).our_entry("Ready").is_some(), is_ours, "{managers:?}");
    }
}

/// Somebody has claimed part of the entry, and let go of it: what is left is in nobody else's name.
#[test]
fn an_entry_that_we_alone_have_is_ours_whatever_is_left_of_it() {
    for (managers, is_ours) in
        [(vec!["rollcall"], true), (vec!["rollcall", "db-operator"], false), (vec![], false)]
    {
        let field = |manager: &&str| {
            json!({"manager": manager, "operation": "Update", "subresource": "status",
                "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {"f:status": {}}}}}})
        };
        let fields: Vec<_> = managers.iter().map(field).collect();
        for left in [
            json!({"type": "Ready", "status": "True"}),
            json!({"type": "Ready", "status": "True", "reason": 5}),
        ] {
            let object = json!({"metadata": {"managedFields": fields}, "status": {"conditions": [left]}});
            let read = read(&object);
            assert_eq!(read.our_entry("Ready").is_some(), is_ours, "{managers:?} {left}");
            assert_eq!(read.is_foreign("Ready"), !is_ours);
        }
    }
}

/// An atomic list that this manager wrote last.
fn atomic(manager: &str, conditions: &Value) -> Value {
    let fields = json!([{"manager": manager, "operation": "Update", "subresource": "status",
        "fieldsV1": {"f:status": {"f:conditions": {}}}}]);
    json!({"metadata": {"managedFields": fields}, "status": {"conditions": conditions}})
}

fn types(read: &ParentStatus) -> (Vec<&str>, Vec<&str>) {
    let ours = read.ours.iter().map(OwnedCondition::kind);
    (ours.collect(), read.foreign.iter().map(|(kind, ..)| &**kind).collect())
}

#[test]
fn a_type_that_no_policy_writes_is_never_ours_whatever_its_reason_and_whoever_wrote_the_list_last() {
    let theirs = json!({"type": "BackupFailed", "status": "True", "reason": "DeadlineExceeded",
        "message": "2 of 3 not ready: even so", "observedGeneration": 2});
    for manager in ["db-operator", "rollcall"] {
        let object = atomic(manager, &json!([ours("ChildrenFailed"), theirs]));
        assert_eq!(types(&read(&object)), (vec!["Ready"], vec!["BackupFailed"]), "{manager}");
    }
}

#[test]
fn what_an_operator_put_back_as_it_read_it_is_ours_still() {
    let theirs = json!({"type": "Synced", "status": "True", "reason": "Done", "observedGeneration": 3});
    let deleting = json!({"type": "Ready", "status": "False", "reason": "Terminating",
        "message": "being deleted", "observedGeneration": 2});
    for mine in [ours("ChildrenFailed"), deleting] {
        let read = read(&atomic("db-operator", &json!([theirs, mine])));
        assert_eq!(types(&read), (vec!["Ready"], vec!["Synced"]));
        assert_eq!(read.foreign_generation(), Some(3));
    }
}

#[test]
fn an_operator_may_use_the_types_of_kstatus_and_our_ordinary_words() {
    let theirs = json!([
        {"type": "Reconciling", "status": "True", "reason": "Terminating", "message": "draining"},
        {"type": "Stalled", "status": "True", "reason": "DeadlineExceeded", "message": "backup too slow"},
    ]);
    for manager in ["db-operator", "rollcall"] {
        let (ours, foreign) = (Vec::new(), vec!["Reconciling", "Stalled"]);
        assert_eq!(types(&read(&atomic(manager, &theirs))), (ours, foreign), "{manager}");
    }
}

#[test]
fn a_second_entry_of_ours_is_ours_too_and_proves_nothing() {
    let entry = |generation: i64| {
        let mut entry = ours("ChildrenFailed");
        entry["observedGeneration"] = json!(generation);
        entry
    };
    let read = read(&atomic("rollcall", &json!([entry(1), entry(2)])));
    assert_eq!(types(&read), (vec!["Ready", "Ready"], vec![]));
    assert_eq!(read.foreign_generation(), None);
}

#[test]
fn what_we_said_by_a_type_that_no_policy_writes_any_more_proves_nothing() {
    let mut left = ours("AllChildrenReady");
    (left["type"], left["observedGeneration"]) = (json!("Healthy"), json!(7));
    let read = read(&atomic("rollcall", &json!([left])));
    assert_eq!((types(&read), read.foreign_generation()), ((vec![], vec!["Healthy"]), None));
}

#[test]
fn strange_shapes_of_status_are_named_and_not_written() {
    for (status, writable) in [
        (json!(null), true),
        (json!({}), true),
        (json!({"conditions": null}), true),
        (json!({"conditions": []}), true),
        (json!(true), false),
        (json!({"conditions": "none"}), false),
        (json!({"conditions": {"Ready": true}}), false),
    ] {
        let list = read(&json!({"status": status})).list;
        assert_eq!(!matches!(list, ListShape::Unwritable(_)), writable, "{status} {list:?}");
    }
}

#[test]
fn an_observed_generation_that_a_default_supplied_is_nobodys_evidence() {
    let fields = json!([{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {}}}]);
    let supplied = read(&json!({"metadata": {"managedFields": fields}, "status": {"observedGeneration": 0}}));
    assert!(!supplied.has_foreign_generation() && supplied.has_own_generation());
    assert!(!supplied.holds_generation(), "nobody wrote it");
    let by = |manager: &str, generation: i64| {
        let fields = json!([{"manager": manager, "operation": "Update", "fieldsV1": {"f:status": {"f:observedGeneration": {}}}}]);
        read(&json!({"metadata": {"managedFields": fields}, "status": {"observedGeneration": generation}}))
    };
    assert!(by("rollcall", 1).holds_generation());
    let back = by("rollcall", 0);
    assert!(!back.holds_generation() && back.has_own_generation(), "ours was taken away");
    let fields = json!([{"manager": "op", "operation": "Update", "fieldsV1": {"f:status": {"f:observedGeneration": {}}}}]);
    let written = read(&json!({"metadata": {"managedFields": fields}, "status": {"observedGeneration": 3}}));
    assert!(written.has_foreign_generation() && !written.has_own_generation());
}

#[test]
fn only_an_answer_that_leaves_while_the_others_stand_is_a_mere_loss() {
    let held = [("Ready", "ChildrenFailed"), ("Stalled", "ChildrenFailed"), ("Synced", "AllChildrenReady")];
    let entry = |kind: &str, reason: &str| {
        let mut entry = ours(reason);
        entry["type"] = kind.into();
        entry["observedGeneration"] = 1.into();
        entry
    };
    let list: Vec<Value> = held.iter().map(|(kind, reason)| entry(kind, reason)).collect();
    let object = json!({"status": {"conditions": list}}).to_string();
    let own = OwnTypes::of(["Ready", "Reconciling", "Stalled", "Synced"]);
    let status = ParentStatus::read(&RawValue::from_string(object).unwrap(), &own);
    for (wanted, mere_loss) in [
        (vec![], true),
        (vec![("Synced", "AllChildrenReady")], true),
        (vec![("Ready", "ChildrenFailed")], true),
        (vec![("Ready", "ChildrenFailed"), ("Synced", "AllChildrenReady")], false),
        (vec![("Synced", "ChildrenFailed")], false),
        (vec![("Fallback", "ChildrenFailed"), ("Synced", "AllChildrenReady")], false),
    ] {
        let entries = wanted
            .iter()
            .map(|(kind, reason)| serde_json::from_value(entry(kind, reason)).unwrap())
            .collect();
        let wanted = WantedConditions { entries, observed_generation: None };
        assert_eq!(status.only_loses(&wanted), mere_loss, "{wanted:?}");
    }
    let default = json!({"type": "Ready", "status": "Unknown", "reason": "ChildrenPending", "message": "Waiting for Rollcall",
        "lastTransitionTime": "1970-01-01T00:00:00Z", "observedGeneration": 0});
    let unwritten = read(&json!({"status": {"conditions": [default]}}));
    assert!(!unwritten.only_loses(&WantedConditions::default()), "the schema says that, not we");
}
