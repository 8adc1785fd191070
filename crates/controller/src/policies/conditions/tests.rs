//! What keeps a policy from being carried out is in its status, with what mends it.

use aggregator::{Acceptance, PolicyId};
use rollcall_core::FindingCounts;
use std::collections::BTreeMap;

use policy::PolicySettings;
use policy::rbac::{CrdNames, access_needs, policy_rights};
use serde_json::json;

use super::*;

const NOW: Time = Time(1_800_000_000_000);

fn policy_of_jobs() -> (FoundPolicy, PolicyInUse) {
    let object = json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy",
        "metadata": { "name": "db", "uid": "u", "resourceVersion": "1", "generation": 1 },
        "spec": {
            "parent": { "group": "example.com", "kind": "Database" },
            "children": [{ "kind": { "group": "batch", "kind": "Job" }, "afterDeletion": "remember" }],
        },
    });
    let found = policy::read_policy(&serde_json::from_value(object).expect("a policy"));
    let compiled = found
        .compile_spec(&PolicySettings::with_stuck_after(std::time::Duration::from_mins(10)))
        .expect("it is valid");
    let used =
        PolicyInUse { id: PolicyId(1), name: "db".to_owned(), compiled, acceptance: Acceptance::Accepted };
    (found, used)
}

/// The status of that policy, where these of its rights lack.
fn status(lacks: fn(&AccessNeed) -> bool, records: Option<&RecordsTrouble>) -> ReadinessPolicyStatus {
    let (found, used) = policy_of_jobs();
    let rights = policy_rights(&used.compiled, &CrdNames::default());
    let needs = access_needs(&rights, &[], "home").into_iter().filter(lacks).collect();
    let findings = RightsFindings::with_lacking("db", needs);
    let missing = MissingRights::of_policy("db", &findings, &GrantFindings::default());
    let decided = DecidedPolicy { refused: None, accepted: None, used: Some(&used), missing, records };
    let numbers = PolicyNumbers { synced: true, ..PolicyNumbers::default() };
    let old = ReadinessPolicyStatus::default();
    policy_status(&found, &decided, Some(&numbers), &StatsSnapshot::default(), &old, NOW)
}

fn condition<'s>(status: &'s ReadinessPolicyStatus, kind: &str) -> &'s PolicyCondition {
    status.conditions.iter().find(|condition| condition.r#type == kind).expect("every condition is there")
}

#[test]
fn a_policy_that_lacks_nothing_is_ready() {
    let status = status(|_| false, None);
    assert_eq!(condition(&status, "Ready").status, "True");
    assert!(status.missing_rights.is_empty());
}

#[test]
fn a_kind_that_may_not_be_read_is_named_with_the_command_that_grants_it() {
    let status = status(|need| need.resource == "databases", None);
    let watching = condition(&status, "Watching");
    assert_eq!((&*watching.status, &*watching.reason), ("False", "Forbidden"));
    assert_eq!(
        watching.message,
        "not permitted: get,list,watch databases.example.com: the parents of the policy; \
         grant it with `rollcall rbac db | kubectl apply -f -`"
    );
    assert_eq!(status.missing_rights, ["get,list,watch databases.example.com: the parents of the policy"]);
    assert_eq!(condition(&status, "Ready").status, "False");
}

#[test]
fn a_status_that_may_not_be_written_is_not_ready() {
    let status = status(|need| need.verb == "patch" && need.resource == "databases/status", None);
    assert_eq!(condition(&status, "Watching").status, "True");
    let ready = condition(&status, "Ready");
    assert_eq!((&*ready.status, &*ready.reason), ("False", "Forbidden"));
    assert!(
        ready.message.contains("patch databases/status.example.com: conditions of the parents"),
        "{}",
        ready.message
    );
}

#[test]
fn what_only_explains_leaves_it_ready_and_is_named() {
    let status = status(|need| !need.essential, None);
    let ready = condition(&status, "Ready");
    assert_eq!(ready.status, "True");
    assert!(ready.message.contains("events.events.k8s.io"), "{}", ready.message);
    assert!(!status.missing_rights.is_empty());
}

#[test]
fn outcomes_that_cannot_be_saved_are_a_reason() {
    let trouble =
        RecordsTrouble { reason: PolicyReason::RecordsNamespaceMissing, message: "create it".to_owned() };
    let status = status(|_| false, Some(&trouble));
    let ready = condition(&status, "Ready");
    assert_eq!((&*ready.status, &*ready.reason), ("False", "RecordsNamespaceMissing"));
    assert_eq!(ready.message, "create it");
}

#[test]
fn a_rule_that_is_not_evaluated_for_a_while_is_named() {
    let told = |suspension| {
        let suspended_rules = BTreeMap::from([(3, suspension)]);
        let numbers = PolicyNumbers { suspended_rules, ..PolicyNumbers::default() };
        let (ready, reason, words) = ready_condition(&numbers, &MissingRights::default(), None);
        (ready, reason, words.contains("spec.children[3].ready"), words.contains("on some objects"))
    };
    let some = RuleSuspension { objects: 7, ..RuleSuspension::default() };
    assert_eq!(told(some), (true, PolicyReason::RuleTooSlow, true, true));
    let late = RuleSuspension { late: 7, ..RuleSuspension::default() };
    assert_eq!(told(late), (true, PolicyReason::RuleTooSlow, true, false));
    let entirely = RuleSuspension { entirely: true, objects: 7, late: 7 };
    assert_eq!(told(entirely), (false, PolicyReason::RuleTooSlow, true, false));
}

#[test]
fn an_operator_whose_failures_are_invisible_is_told_of_unless_the_policy_asks_for_a_proof() {
    let (found, mut used) = policy_of_jobs();
    let status = |used: &PolicyInUse, hidden_outcomes| {
        let findings = FindingCounts { hidden_outcomes, ..FindingCounts::default() };
        let numbers = PolicyNumbers { synced: true, findings, ..PolicyNumbers::default() };
        let missing = MissingRights::of_policy("db", &RightsFindings::default(), &GrantFindings::default());
        let decided =
            DecidedPolicy { refused: None, accepted: None, used: Some(used), missing, records: None };
        let old = ReadinessPolicyStatus::default();
        policy_status(&found, &decided, Some(&numbers), &StatsSnapshot::default(), &old, NOW)
    };
    let is_told =
        |status: &ReadinessPolicyStatus| status.conditions.iter().any(|c| c.r#type == "OutcomesHidden");
    assert!(!is_told(&status(&used, 0)));
    let told = status(&used, 3);
    let hidden = condition(&told, "OutcomesHidden");
    assert_eq!((&*hidden.status, &*hidden.reason), ("True", "NoOutcomeKept"));
    assert!(
        hidden.message.contains("on 3 of them") && hidden.message.contains("spec.proof"),
        "{}",
        hidden.message
    );
    assert_eq!(condition(&told, "Ready").status, "True");
    let spec = serde_json::json!({ "parent": { "group": "example.com", "kind": "Shop" }, "proof": "children.size() > 0" });
    let spec = serde_json::from_value(spec).unwrap();
    used.compiled = policy::compile(&spec, std::time::Duration::from_mins(10)).unwrap();
    assert!(!is_told(&status(&used, 3)));
}

#[test]
fn an_owner_of_conditions_who_says_otherwise_than_the_children_is_told_of() {
    let told = |owner_disagreeing| {
        let owned = [("kro".into(), 3)].into();
        let findings = FindingCounts { owned, owner_disagreeing, ..FindingCounts::default() };
        let numbers = PolicyNumbers { synced: true, findings, ..PolicyNumbers::default() };
        let missing = MissingRights::of_policy("db", &RightsFindings::default(), &GrantFindings::default());
        ready_condition(&numbers, &missing, None).2
    };
    assert!(!told(0).contains("otherwise"), "{}", told(0));
    assert!(
        told(2).contains("3 parents by kro (2 of them say otherwise than their children)"),
        "{}",
        told(2)
    );
}

#[test]
fn parents_that_an_older_policy_rules_are_named_and_the_rest_counted() {
    let (found, used) = policy_of_jobs();
    let mut numbers = PolicyNumbers { synced: true, ..PolicyNumbers::default() };
    let status = |numbers: &PolicyNumbers| {
        let missing = MissingRights::of_policy("db", &RightsFindings::default(), &GrantFindings::default());
        let decided =
            DecidedPolicy { refused: None, accepted: None, used: Some(&used), missing, records: None };
        let old = ReadinessPolicyStatus::default();
        policy_status(&found, &decided, Some(numbers), &StatsSnapshot::default(), &old, NOW)
    };
    assert!(status(&numbers).conditions.iter().all(|condition| condition.r#type != "Conflicted"));
    numbers.left = LeftParents::new(30, (0..30).map(|n| (format!("shop/db-{n:02}"), "first".to_owned())));
    let status = status(&numbers);
    let conflicted = condition(&status, "Conflicted");
    assert_eq!((&*conflicted.status, &*conflicted.reason), ("True", "RuledByOlderPolicy"));
    assert!(
        conflicted.message.starts_with("30 parents are ruled by an older policy"),
        "{}",
        conflicted.message
    );
    for part in ["shop/db-00 (by first), ", "shop/db-19 (by first) and 10 more"] {
        assert!(conflicted.message.contains(part), "{}", conflicted.message);
    }
    assert_eq!(condition(&status, "Ready").status, "True");
}
