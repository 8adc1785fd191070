//! Finds the rule that decided, its branch, the values it read, and the time at which the verdict changes by itself.

use inspect::api_group;
use policy::GroupRule;
use readiness::rollup::ParentReason;
use readiness::{
    Branch, ConditionLocation, Facts, RuleKind, StuckLimits, Time, assess_before_rules, assess_with_branch,
};
use rollcall_cel::ObjectJson;
use serde::Serialize;
use watcher::ParentObject;

/// Maximum number of values shown.
const MAX_VALUES_SHOWN: usize = 16;

/// A field and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ExplainedField {
    pub(super) field: String,
    pub(super) value: String,
}

/// Derivation of a verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ExplainedRuling {
    pub(super) rule: String,
    pub(super) branch: String,
    pub(super) values: Vec<ExplainedField>,
    /// Time from which another verdict holds if nothing changes, and that verdict.
    pub(super) then: Option<(Time, String)>,
}

/// Evaluates the object again and records the derivation. `rule` is the policy's own rule for it.
pub(super) fn explain_ruling(
    object: &ParentObject,
    rule: Option<&GroupRule>,
    limits: &StuckLimits,
    now: Time,
) -> ExplainedRuling {
    let facts = &object.child.facts;
    let kind = RuleKind::from_group_kind(api_group(object), &object.child.meta.kind);
    let own = rule.filter(|_| assess_before_rules(kind, facts, limits).is_none());
    let (assessment, rule, branch) = match own {
        Some(GroupRule::Own { rule, source }) => {
            let judged = rule.judge_object(ObjectJson::Text(object.text.get()), now);
            let branch = judged.branch.to_string();
            (judged.assessment, format!("the policy's rule: {source}"), branch)
        }
        Some(GroupRule::Library(name)) => {
            let (assessment, branch) = assess_with_branch(kind, facts, limits);
            (
                assessment,
                format!("the scripts in ConfigMap {name}, which are not read here"),
                branch.to_string(),
            )
        }
        None => {
            let (assessment, branch) = assess_with_branch(kind, facts, limits);
            (assessment, rule_name(kind, &branch).to_owned(), branch.to_string())
        }
    };
    let then = assessment.then.as_ref().filter(|then| then.0 > now);
    let then = then.map(|then| (then.0, format!("{}: {}", then.1.level, then.1.reason)));
    let mut values = field_values(facts);
    values.truncate(MAX_VALUES_SHOWN);
    ExplainedRuling { rule, branch, values, then }
}

fn rule_name(kind: RuleKind, branch: &Branch<'_>) -> &'static str {
    match (kind, branch) {
        (_, Branch::Fact("metadata.deletionTimestamp is set")) => "deletion takes precedence over every rule",
        (_, Branch::Generation { .. }) => "the observed generation takes precedence over every rule",
        (RuleKind::Other | RuleKind::Run, _) => "the conventions of custom resources",
        (RuleKind::Plain, _) => "objects of its kind are always ready",
        _ => "the built-in rule of its kind",
    }
}

/// Returns the values of the object that rules read.
fn field_values(facts: &Facts) -> Vec<ExplainedField> {
    let mut out = Vec::new();
    let mut add = |field: &str, value: Option<String>| {
        if let Some(value) = value {
            out.push(ExplainedField { field: field.to_owned(), value });
        }
    };
    let number = |n: Option<i64>| n.map(|n| n.to_string());
    let (spec, status) = (&facts.spec, &facts.status);
    add("metadata.generation", number(facts.generation));
    add("status.observedGeneration", number(status.observed));
    for (field, value) in [
        ("spec.replicas", spec.replicas),
        ("status.replicas", status.replicas),
        ("status.updatedReplicas", status.updated),
        ("status.readyReplicas", status.ready),
        ("status.availableReplicas", status.available),
        ("spec.completions", spec.completions),
        ("status.active", status.active),
        ("status.succeeded", status.succeeded),
    ] {
        add(field, number(value));
    }
    add("spec.suspend", spec.suspended.filter(|yes| *yes).map(|yes| yes.to_string()));
    add("spec.paused", spec.paused.filter(|yes| *yes).map(|yes| yes.to_string()));
    for word in &status.state_fields {
        add(&format!("status.{}", word.path), Some(word.value.to_string()));
    }
    // Rollcall's own conditions are excluded: they are being explained.
    let others = status.conditions.iter().filter(|c| ParentReason::parse_reason(&c.reason).is_none());
    for condition in others {
        let name = &condition.name;
        let field = match &condition.location {
            ConditionLocation::Conditions => format!("conditions[{name}]"),
            ConditionLocation::Below(path) => format!("{path}.conditions[{name}]"),
            ConditionLocation::Field(None) => format!("status.{name}"),
            ConditionLocation::Field(Some(path)) => format!("status.{path}.{name}"),
        };
        let reason =
            if condition.reason.is_empty() { String::new() } else { format!(" {}", condition.reason) };
        let message =
            if condition.message.is_empty() { String::new() } else { format!(": {}", condition.message) };
        add(&field, Some(format!("{}{reason}{message}", condition.status.as_str())));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use serde_json::value::RawValue;
    use watcher::wire::ChildObject;

    fn object(value: &serde_json::Value) -> ParentObject {
        let text = RawValue::from_string(value.to_string()).unwrap();
        ParentObject { child: ChildObject::from_raw(&text), text }
    }

    const NOW: Time = Time(1_767_225_600_000);

    #[test]
    fn the_field_that_decided_is_named_with_its_value_and_what_comes_by_itself() {
        let pending = object(&json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "a", "creationTimestamp": "2025-12-31T23:59:50Z" },
            "status": { "phase": "Pending", "conditions": [
                { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node" },
            ] },
        }));
        let ruling = explain_ruling(&pending, None, &StuckLimits::default(), NOW);
        assert_eq!(ruling.rule, "the built-in rule of its kind");
        assert!(ruling.branch.contains("PodScheduled"), "{ruling:?}");
        let (at, what) = ruling.then.unwrap();
        assert!(at > NOW && what.starts_with("Stuck: unschedulable: no node"), "{what}");
        let said = ruling.values.iter().find(|value| value.field == "conditions[PodScheduled]").unwrap();
        assert_eq!(said.value, "False Unschedulable: no node");
    }

    #[test]
    fn deletion_goes_before_the_rule_of_a_policy() {
        let leaving = object(&json!({ "apiVersion": "a.io/v1", "kind": "Thing",
            "metadata": { "name": "a", "deletionTimestamp": "2025-12-31T23:59:50Z", "finalizers": ["a.io/x"] } }));
        let library = GroupRule::Library(policy::ConfigMapName {
            namespace: "argocd".to_owned(),
            name: "argocd-cm".to_owned(),
        });
        let ruling = explain_ruling(&leaving, Some(&library), &StuckLimits::default(), NOW);
        assert_eq!(ruling.rule, "deletion takes precedence over every rule");
    }
}
