//! A reflector that remembers the outcomes of Jobs, for one parent and one Job that is there and complete.

use aggregator::{KindId, PolicyId};
use readiness::StuckLimits;
use serde_json::{Value, json};
use watcher::plan::{
    AllowedNamespaces, AssessmentRule, ChildRule, FindChildrenBy, Interest, NamespaceScope, OutcomeRetention,
    ParentRule,
};
use watcher::reflector::{ParentOutcomes, Reflector};
use watcher::{ParentObject, ReflectorObject};

/// The kind of Jobs.
pub(crate) const JOBS: KindId = KindId(1);
/// The kind of parents.
pub(crate) const PARENTS: KindId = KindId(2);
/// The uid of the parent.
pub(crate) const PARENT: &str = "00000000-0000-4000-8000-000000000001";
/// The uid of the Job that is there.
pub(crate) const JOB: &str = "00000000-0000-4000-8000-000000000002";

/// Both kinds are listed; the parent is `shop/orders`, the Job `shop/migrate`.
pub(crate) fn remembering_reflector() -> Reflector {
    let find = FindChildrenBy::Owner { group: "example.com".into(), kind: "Database".into() };
    let judged = AssessmentRule { limits: StuckLimits::default(), rule: None, remembers_outcome: true };
    let jobs = ChildRule {
        policy: PolicyId(1),
        group: 0,
        rule_index: 0,
        find,
        allowed: AllowedNamespaces::default(),
        ignore: None,
        made_by_none_of: [].into(),
        scope: NamespaceScope::default(),
        retention: OutcomeRetention::Remember,
    };
    let reflector = Reflector::new(|| ());
    reflector.set_interest(Interest {
        assessment_rules: vec![judged],
        child: vec![jobs],
        ..Interest::for_kind(JOBS, "batch", "Job")
    });
    let parents = Interest::for_kind(PARENTS, "example.com", "Database");
    reflector.set_interest(Interest { parent: vec![ParentRule::for_policy(PolicyId(1))], ..parents });
    let parent = json!({ "apiVersion": "example.com/v1", "kind": "Database", "spec": {},
        "metadata": { "name": "orders", "namespace": "shop", "uid": PARENT, "resourceVersion": "1", "generation": 1 } });
    let owner =
        json!([{ "apiVersion": "example.com/v1", "kind": "Database", "name": "orders", "uid": PARENT }]);
    let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "spec": {},
        "metadata": { "name": "migrate", "namespace": "shop", "uid": JOB, "resourceVersion": "5",
            "creationTimestamp": "2027-01-15T08:00:00Z", "ownerReferences": owner },
        "status": { "conditions": [{ "type": "Complete", "status": "True" }] } });
    for (kind, object) in [(PARENTS, parent), (JOBS, job)] {
        let pass = reflector.begin_list(kind, None);
        let object = parse_object(&object);
        reflector.apply_object(kind, object.as_child(), object.raw_text());
        assert!(reflector.finish_list(&pass).is_some());
    }
    reflector
}

fn parse_object(object: &Value) -> ParentObject {
    serde_json::from_str(&object.to_string()).unwrap()
}

/// What is remembered for the parent.
pub(crate) fn parent_outcomes(reflector: &Reflector) -> ParentOutcomes {
    reflector.outcomes().parent_outcomes(PARENT).unwrap_or_default()
}
