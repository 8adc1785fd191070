//! What refused policies hold on to.

use std::time::Duration;

use policy::rbac::{DemandedRight, GrantDemand, ListedRole, decide_grants};
use policy::{IdRegistry, PolicySettings, UnreadLibraries, read_policy};
use rollcall_core::StagedList;
use serde_json::{Value, json};

use super::*;

/// The rights that policies with these specs and statuses need after a start.
fn needs(policies: &[(Value, Value)]) -> RightNeeds {
    let found = policies.iter().enumerate().map(|(at, (spec, status))| {
        let object = json!({
            "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy",
            "metadata": { "name": format!("p{at}"), "uid": format!("u{at}"), "resourceVersion": "1", "generation": 2 },
            "spec": spec, "status": status,
        });
        read_policy(&serde_json::from_value(object).expect("a policy"))
    });
    let found = StagedList::of_complete(found.enumerate());
    let found = found.complete_list().expect("a complete list");
    let (mut book, mut registry) = (PolicyBook::default(), IdRegistry::default());
    let settings = PolicySettings::with_stuck_after(Duration::from_mins(10));
    book.decide(found, std::iter::empty(), &settings, &UnreadLibraries, &mut registry);
    let resolved = [("example.com", "Database"), ("apps", "Deployment")];
    let scope = NeedScope {
        names: CrdNames::default(),
        resolved: resolved.map(|(group, kind)| (group.to_owned(), kind.to_owned())).into(),
        namespaces: &[],
        records_namespace: "rollcall-system",
    };
    RightNeeds::of_policies(&book, &Released::new(), &scope)
}

/// A listed role that grants all verbs on these resources of `example.com`.
fn role(resources: &[&str]) -> ListedRole {
    let rule = json!({ "apiGroups": ["example.com"], "resources": resources, "verbs": ["get", "list", "watch", "patch"] });
    ListedRole::from_manifest("databases", &json!({ "rules": [rule] }))
}

/// Whether the role is bound after a decision, where it was before, or was not.
fn is_bound(needs: &RightNeeds, before: bool) -> bool {
    let demanded = |(policy, need): &(String, AccessNeed)| DemandedRight {
        policy: policy.clone(),
        need: need.clone(),
        lacking: false,
    };
    let rights = needs.needed.iter().chain(&needs.held).map(demanded).collect();
    let demand =
        GrantDemand { rights, unresolved_groups: needs.unresolved_groups.clone(), awaits_releases: false };
    let bound =
        before.then(|| ("databases".to_owned(), std::collections::BTreeSet::new())).into_iter().collect();
    !decide_grants(&demand, &[role(&["databases", "databases/status"])], &bound).roles.is_empty()
}

#[test]
fn a_role_stays_bound_while_a_policy_is_refused_of_which_no_accepted_spec_can_be_read() {
    let mut spec = json!({ "parent": { "group": "example.com", "kind": "Database" } });
    spec["future"] = json!("on");
    for status in [
        Value::Null,
        json!({ "accepted": { "generation": 1, "spec": spec.to_string() } }),
        json!({ "accepted": { "generation": 1, "omitted": "the spec has more than 64 KiB" } }),
        json!({ "acceptedGeneration": 1 }),
    ] {
        let needs = needs(&[(spec.clone(), status.clone())]);
        assert!(needs.needed.is_empty(), "nothing is asked for");
        assert!(is_bound(&needs, true), "{status}");
        assert!(!is_bound(&needs, false), "{status}");
        let held: Vec<_> = needs.held.iter().map(|(policy, need)| format!("{policy}: {need}")).collect();
        for right in ["p0: list databases.example.com", "p0: patch databases/status.example.com"] {
            assert!(held.iter().any(|held| held == right), "{right}: {held:?}");
        }
    }
    assert!(!is_bound(&needs(&[]), true), "it goes with the policy");
}

#[test]
fn a_policy_in_whose_place_nothing_can_judge_loses_no_right_that_it_was_accepted_with() {
    let child = json!({ "kind": { "group": "apps", "kind": "Deployment" } });
    let accepted = |condition: &str| {
        json!({ "parent": { "group": "example.com", "kind": "Database" }, "children": [child],
            "condition": { "type": condition } })
    };
    let kept = |spec: &Value| json!({ "accepted": { "generation": 2, "spec": spec.to_string() } });
    // Both were accepted for the same: the second one gives way.
    let twice = (accepted("Ready"), kept(&accepted("Ready")));
    let needs = needs(&[twice.clone(), twice]);
    let of = |rights: &[(String, AccessNeed)], policy: &str| {
        let own = rights.iter().filter(|(name, _)| name == policy);
        own.map(|(_, need)| need.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(of(&needs.needed, "p0"), of(&needs.held, "p1"));
    assert!(of(&needs.held, "p1").contains(&"watch deployments.apps".to_owned()));
}
