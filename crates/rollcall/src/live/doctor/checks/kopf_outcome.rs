//! Kopf operators of which no failure can be seen: the mark that they leave is the same after a failure and after a success.

use std::collections::BTreeMap;

use policy::CompiledPolicy;

use super::super::checked_object::CheckedObject;
use super::super::finding::{DoctorFinding, DoctorSeverity};
use super::super::inventory::DoctorInventory;

pub(super) const CHECK_NAME: &str = "kopf-outcome";

const LAST_HANDLED_SUFFIX: &str = "/last-handled-configuration";
const LAST_OUTCOME_SUFFIX: &str = "/last-outcome";

pub(super) fn run_check(world: &DoctorInventory) -> Vec<DoctorFinding> {
    let is_parent = |seen: &CheckedObject| {
        let lacks_proof = |(_, policy): &(String, CompiledPolicy)| policy.proof.is_none();
        let mut without_proof = world.policies.iter().filter(|policy| lacks_proof(policy));
        without_proof.any(|(_, policy)| world.is_parent(policy, seen) == Some(true))
    };
    let mut kinds: BTreeMap<(&str, &str), Vec<&CheckedObject>> = BTreeMap::new();
    for seen in
        world.objects.iter().filter(|seen| has_annotation(seen, LAST_HANDLED_SUFFIX) && is_parent(seen))
    {
        kinds.entry((&seen.group, &seen.kind)).or_default().push(seen);
    }
    kinds.retain(|_, marked| !marked.iter().any(|seen| has_annotation(seen, LAST_OUTCOME_SUFFIX)));
    let findings = kinds.into_iter().map(|((group, kind), marked)| {
        let dot = if group.is_empty() { "" } else { "." };
        DoctorFinding::new(DoctorSeverity::Info, CHECK_NAME, format!("{kind}{dot}{group}"))
            .with_evidence(format!(
                "the failures of its operator are invisible: Kopf leaves the same mark on {} whether its handlers \
                 succeeded or failed for good",
                marked[0].display_title()
            ))
            .with_fix(
                "let its operator keep its outcomes with deploy/examples/kopf/rollcall_kopf.py, or set `proof` in the policy; \
                 until then `evidence: kopf` takes no mark for proof of a new spec before a child has changed, and heeds failures \
                 that Kopf posts as Events, as it does by default before 1.44",
            )
    });
    findings.collect()
}

fn has_annotation(seen: &CheckedObject, suffix: &str) -> bool {
    seen.annotations.iter().any(|(key, _)| key.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::super::support::{describe_findings, in_namespaces, object, world};
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_kind_whose_operator_keeps_no_outcome_is_named_once() {
        let mark = json!({ "annotations": { "ops.io/last-handled-configuration": "{}" } });
        let kept = json!({ "annotations": { "ops.io/last-handled-configuration": "{}", "ops.io/last-outcome": "{}" } });
        let of = |kind: &str, name: &str, metadata: &Value| object(kind, name, metadata, &json!({}));
        let found = run_check(&world(&[of("Database", "a", &mark), of("Database", "b", &mark)]));
        assert_eq!(describe_findings(&found), ["info Database.example.com"]);
        assert!(found[0].evidence.contains("invisible"), "{found:?}");
        assert_eq!(run_check(&world(&[of("Database", "a", &mark), of("Database", "b", &kept)])), []);
        assert_eq!(run_check(&world(&[of("Database", "a", &json!({})), of("Job", "b", &mark)])), []);
        let mut elsewhere = in_namespaces(&of("Database", "a", &mark));
        assert_eq!(describe_findings(&run_check(&elsewhere)), ["info Database.example.com"]);
        elsewhere.objects.retain(|seen| &*seen.meta.namespace != "chosen");
        assert_eq!(run_check(&elsewhere), []);
    }
}
