//! What a parent's own status says of a failure.

use aggregator::ReportedFailure::{self, Final, Temporary, Unattributed};
use serde_json::{Value, json};
use watcher::plan::OwnStatusRule;
use watcher::reflector::Reflector;

use crate::objects::{NOW, apply, parents, uid, widget};

/// Reads the parent; returns the failure that its status reports, and in which words.
fn read(own_status: OwnStatusRule, parent: &Value) -> (ReportedFailure, Option<String>) {
    let reflector = Reflector::new(|| ());
    let mut interest = parents(vec![]);
    interest.parent[0].own_status = own_status;
    apply(&reflector, &interest, parent);
    let id = reflector.find_object(&uid(1_000)).unwrap();
    let failure =
        reflector.with_view(id, NOW, |view| view.unwrap().parent.unwrap().answers[0].reported_failure());
    let text =
        reflector.read_row(id, |row| row.parent.as_ref().unwrap().reported_failure().map(str::to_owned));
    (failure, text.flatten())
}

fn failure_of(generation: u32, status: &Value) -> (ReportedFailure, Option<String>) {
    read(OwnStatusRule::Failures, &widget(5, generation, status))
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message})
}

#[test]
fn a_failure_is_read_from_a_phase_and_from_conditions_of_whichever_name() {
    for (generation, status, failure, text) in [
        (1, json!({"phase": "Failed"}), Final, "phase Failed"),
        (1, json!({"jobStatus": "FAILED"}), Temporary, "jobStatus FAILED"),
        (1, json!({"phase": "Error"}), Temporary, "phase Error"),
        (2, json!({"phase": "Failed"}), Unattributed, "phase Failed"),
        (2, json!({"phase": "Failed", "observedGeneration": 2}), Final, "phase Failed"),
        (
            1,
            json!({"conditions": [condition("Stalled", "True", "BadImage", "no such image")]}),
            Final,
            "Stalled: BadImage",
        ),
        (
            3,
            json!({"conditions": [condition("Degraded", "True", "DiskFull", "")]}),
            Unattributed,
            "Degraded: DiskFull",
        ),
    ] {
        assert_eq!(failure_of(generation, &status), (failure, Some(text.to_owned())), "{status}");
    }
}

#[test]
fn what_is_no_failure_and_what_is_of_another_generation_counts_for_nothing() {
    for status in [
        json!(null),
        json!({}),
        json!({"phase": "Running"}),
        json!({"phase": "Pending"}),
        json!({"phase": "Failed", "observedGeneration": 1}),
        json!({"conditions": [condition("Ready", "False", "Waiting", "")]}),
        json!({"conditions": [condition("Failed", "False", "", "")]}),
    ] {
        assert_eq!(failure_of(2, &status), (ReportedFailure::None, None), "{status}");
    }
}

#[test]
fn what_rollcall_said_of_whichever_release_is_no_failure_of_the_parents() {
    for (kind, status, reason, message) in [
        ("Ready", "False", "ChildrenFailed", "1 of 2 not ready: Pod web failed"),
        (
            "Ready",
            "False",
            "OperatorFailed",
            "the operator failed to handle generation 1: its status says phase Failed",
        ),
        ("Stalled", "True", "ChildrenFailed", "1 of 2 not ready: Pod web failed"),
        ("WholeReady", "False", "ChildrenFailed", "1 of 2 not ready: Pod web failed"),
        ("Stalled", "True", "DeadlineExceeded", "not in time: 1 of 2 not ready: Pod web progressing"),
        ("Ready", "False", "TooManyChildren", "Pod too many (3 found, at most 2 expected)"),
    ] {
        let said = json!({"conditions": [condition(kind, status, reason, message)]});
        assert_eq!(failure_of(1, &said), (ReportedFailure::None, None), "{said}");
        let beside = json!({"phase": "Failed", "conditions": [condition(kind, status, reason, message)]});
        assert_eq!(failure_of(1, &beside), (Final, Some("phase Failed".to_owned())), "{beside}");
    }
}

#[test]
fn a_copy_of_what_rollcall_said_of_a_part_is_no_failure_of_the_whole() {
    let said = condition("Ready", "False", "ChildrenFailed", "1 of 1 not ready: Pod a failed");
    let copied = json!({"phase": "Running", "clusterStatus": {"state": "ready", "conditions": [said]}});
    assert_eq!(failure_of(1, &copied), (ReportedFailure::None, None));
    let own = condition("Ready", "False", "HeadFailed", "no head");
    let theirs = json!({"phase": "Running", "clusterStatus": {"state": "ready", "conditions": [own]}});
    assert_eq!(failure_of(1, &theirs), (Temporary, Some("Ready=False: HeadFailed".to_owned())));
}

#[test]
fn a_generation_that_rollcall_or_a_default_keeps_says_nothing_of_the_failure() {
    for manager in ["rollcall", "kube-apiserver"] {
        let mut parent = widget(5, 2, &json!({"phase": "Failed", "observedGeneration": 2}));
        let fields = if manager == "rollcall" {
            json!({"f:status": {"f:observedGeneration": {}}})
        } else {
            json!({"f:status": {"f:phase": {}}})
        };
        parent["metadata"]["managedFields"] =
            json!([{"manager": manager, "operation": "Update", "fieldsV1": fields}]);
        let read = read(OwnStatusRule::Failures, &parent);
        assert_eq!(read, (Unattributed, Some("phase Failed".to_owned())), "{manager}");
    }
}

#[test]
fn a_policy_may_ignore_what_the_parent_says_of_itself() {
    let parent = widget(5, 1, &json!({"phase": "Failed"}));
    assert_eq!(read(OwnStatusRule::Ignored, &parent), (ReportedFailure::None, None));
}

#[test]
fn what_the_status_said_of_a_failure_is_no_failure_of_a_kopf_handler_once_it_is_over() {
    use aggregator::HandledEvidence::{GivenUp, Handled};
    for (message, evidence) in [
        ("the operator failed to handle generation 3: its status says phase Failed", Handled),
        ("the operator failed to handle generation 3", Handled),
        ("the operator failed to handle generation 3: handler a failed: no such image", GivenUp),
    ] {
        let reflector = Reflector::new(|| ());
        let told = json!({"type": "Ready", "status": "False", "reason": "OperatorFailed", "message": message,
            "observedGeneration": 3});
        let mut parent = widget(5, 3, &json!({"phase": "Running", "conditions": [told]}));
        parent["metadata"]["annotations"] =
            json!({"kopf.zalando.org/last-handled-configuration": "{\"spec\":{\"size\":1}}\n"});
        apply(&reflector, &parents(vec![]), &parent);
        let id = reflector.find_object(&uid(1_000)).unwrap();
        let read = reflector.with_view(id, NOW, |view| view.unwrap().parent.unwrap().evidence);
        assert_eq!(read, evidence, "{message}");
    }
}
