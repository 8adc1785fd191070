//! Groups that come before another one.

use super::*;
use crate::group_shape::policy_of_group;
use crate::protected_kinds::PolicySettings;

fn group(name: &str, spec: &Value) -> ParentObject {
    let value = json!({ "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessGroup", "spec": spec,
        "metadata": { "name": name, "namespace": "shop", "uid": name, "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z" } });
    serde_json::from_value(value).unwrap()
}

/// A ConfigMap, which is ready while it exists.
fn map(tier: &str) -> ParentObject {
    let value = json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": tier, "namespace": "shop", "uid": format!("map-{tier}"), "labels": { "tier": tier },
            "creationTimestamp": "2026-01-01T00:00:00Z" } });
    serde_json::from_value(value).unwrap()
}

fn members(tier: &str, more: &Value) -> Value {
    let mut member = json!({ "kinds": [{ "kind": "ConfigMap" }], "labels": { "tier": tier } });
    let fields = more.as_object().cloned().unwrap_or_default();
    member.as_object_mut().unwrap().extend(fields);
    json!([member])
}

/// What group `web` says, which comes after group `base` that has its only member.
fn said(own: &Value, has_member: bool) -> (String, String) {
    let base = json!({ "members": members("base", &json!({})), "settle": "0s" });
    let web = json!({ "members": members("web", own), "after": [{ "name": "base" }], "settle": "0s" });
    let settings = PolicySettings::with_stuck_after(Duration::from_mins(10));
    let policies = [("base", &base), ("web", &web)].map(|(name, spec)| {
        let found = policy_of_group(&serde_json::from_value(spec.clone()).unwrap()).unwrap();
        (name.to_owned(), found.compile_spec(&settings).unwrap())
    });
    let mut objects = vec![group("base", &base), group("web", &web), map("base")];
    objects.extend(has_member.then(|| map("web")));
    let objects: Vec<&ParentObject> = objects.iter().collect();
    let trees = roll_up(&policies, &objects, &BTreeSet::new(), NOW);
    let web = trees.iter().find(|tree| tree.name == "web").unwrap();
    (format!("{:?}", web.reason), web.detail.clone())
}

#[test]
fn a_group_that_comes_first_is_no_member() {
    let any = json!({ "expect": { "min": 0 } });
    for own in [json!({}), any.clone(), json!({ "role": "optional" })] {
        let (reason, detail) = said(&own, false);
        assert!(reason.contains("ChildrenMissing"), "{own}: {reason} {detail}");
    }
    assert_eq!(said(&any, false).1, "no children yet (at least 1 expected)");
    assert_eq!(said(&any, true).1, "2 of 2 ready");
}
