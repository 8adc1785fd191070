//! Which rule decided, by which branch, over which values, and when that changes by itself.

use controller::policies::GroupRule;
use readiness::rollup::ParentReason;
use readiness::{Branch, Facts, Kind, Limits, Place, Time, before_rules, why};
use rules::Object;
use serde::Serialize;
use watcher::Parent;

use super::super::gather::group;

/// So many values are shown.
const SHOWN: usize = 16;

/// A field, and what it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Value {
    pub(super) field: String,
    pub(super) value: String,
}

/// How a verdict came about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ruling {
    pub(super) rule: String,
    pub(super) branch: String,
    pub(super) values: Vec<Value>,
    /// From then on it is something else, if nothing new is said.
    pub(super) then: Option<(Time, String)>,
}

/// Judges the object once more, and says how. `rule` is the policy's own for it.
pub(super) fn ruling(object: &Parent, rule: Option<&GroupRule>, limits: &Limits, now: Time) -> Ruling {
    let facts = &object.child.facts;
    let kind = Kind::of(group(object), &object.child.meta.kind);
    let own = rule.filter(|_| before_rules(kind, facts, limits).is_none());
    let (assessment, rule, branch) = match own {
        Some(GroupRule::Own { rule, source }) => {
            let judged = rule.judge(Object::Text(object.text.get()), now);
            let branch = judged.branch.to_string();
            (judged.assessment, format!("the policy's: {source}"), branch)
        }
        Some(GroupRule::Library(name)) => {
            let (assessment, branch) = why(kind, facts, limits);
            (
                assessment,
                format!("the scripts in ConfigMap {name}, which are not read here"),
                branch.to_string(),
            )
        }
        None => {
            let (assessment, branch) = why(kind, facts, limits);
            (assessment, rule_of(kind, &branch).to_owned(), branch.to_string())
        }
    };
    let then = assessment.then.as_ref().filter(|then| then.0 > now);
    let then = then.map(|then| (then.0, format!("{}: {}", then.1.level, then.1.reason)));
    let mut values = values(facts);
    values.truncate(SHOWN);
    Ruling { rule, branch, values, then }
}

fn rule_of(kind: Kind, branch: &Branch<'_>) -> &'static str {
    match (kind, branch) {
        (_, Branch::Fact("metadata.deletionTimestamp is set")) => "deletion goes before every rule",
        (_, Branch::Generation { .. }) => "what was observed goes before every rule",
        (Kind::Other | Kind::Run, _) => "the conventions of custom resources",
        (Kind::Plain, _) => "its kind has nothing to become ready",
        _ => "built in for its kind",
    }
}

/// What the object says, as far as rules read it.
fn values(facts: &Facts) -> Vec<Value> {
    let mut out = Vec::new();
    let mut add = |field: &str, value: Option<String>| {
        if let Some(value) = value {
            out.push(Value { field: field.to_owned(), value });
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
    for word in &status.words {
        add(&format!("status.{}", word.path), Some(word.word.to_string()));
    }
    // What Rollcall itself has written there is what is being explained.
    let others = status.conditions.iter().filter(|c| ParentReason::parse(&c.reason).is_none());
    for condition in others {
        let name = &condition.name;
        let field = match &condition.place {
            Place::Conditions => format!("conditions[{name}]"),
            Place::Below(path) => format!("{path}.conditions[{name}]"),
            Place::Field(None) => format!("status.{name}"),
            Place::Field(Some(path)) => format!("status.{path}.{name}"),
        };
        let reason =
            if condition.reason.is_empty() { String::new() } else { format!(" {}", condition.reason) };
        let message =
            if condition.message.is_empty() { String::new() } else { format!(": {}", condition.message) };
        add(&field, Some(format!("{}{reason}{message}", condition.status.word())));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use serde_json::value::RawValue;
    use watcher::wire::Child;

    fn object(value: &serde_json::Value) -> Parent {
        let text = RawValue::from_string(value.to_string()).unwrap();
        Parent { child: Child::read(&text), text }
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
        let ruling = ruling(&pending, None, &Limits::default(), NOW);
        assert_eq!(ruling.rule, "built in for its kind");
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
        let library = GroupRule::Library(controller::policies::ConfigMapName {
            namespace: "argocd".to_owned(),
            name: "argocd-cm".to_owned(),
        });
        let ruling = ruling(&leaving, Some(&library), &Limits::default(), NOW);
        assert_eq!(ruling.rule, "deletion goes before every rule");
    }
}
