#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;
use crate::{CostLimit, ProjectionError};

const IMAGES: &str = "children.filter(c, c.kind == 'Deployment').all(c, c.spec.template.spec.containers[0].image == \
                      parent.spec.image)";

fn parent() -> Value {
    json!({ "metadata": { "name": "shop", "generation": 2 }, "spec": { "image": "shop:2", "replicas": 3, "tiers": ["web"] } })
}

fn deployment(name: &str, image: &str) -> Value {
    let containers = json!([{ "name": name, "image": image, "env": [{ "name": "A", "value": "1" }] }, { "name": "proxy" }]);
    json!({ "kind": "Deployment", "metadata": { "name": name, "labels": { "tier": name } },
        "spec": { "replicas": 3, "template": { "spec": { "containers": containers } } },
        "status": { "readyReplicas": 3 } })
}

fn reduced(fields: &FieldProjection, object: &Value) -> Result<String, ProjectionError> {
    fields.project_object(&RawValue::from_string(object.to_string()).unwrap(), 16 << 10)
}

/// Evaluates on the whole objects and on the reduced ones, which must agree.
fn proves(source: &str, parent: &Value, children: &[Value]) -> Result<bool, String> {
    let proof = ProofExpression::compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    let whole: Vec<String> = children.iter().map(Value::to_string).collect();
    let parts: Vec<String> = children.iter().map(|child| reduced(&proof.child, child).unwrap()).collect();
    let texts = |texts: &[String], parent: &str| {
        proof
            .evaluate_proof(parent, texts.iter().map(String::as_str))
            .holds
            .map_err(|error| error.to_string())
    };
    let result = texts(&whole, &parent.to_string());
    assert_eq!(texts(&parts, &reduced(&proof.parent, parent).unwrap()), result, "{source}: {parts:?}");
    result
}

#[test]
fn a_generation_is_proven_by_what_its_children_carry() {
    let [old, new, other] =
        [("web", "shop:1"), ("web", "shop:2"), ("api", "shop:2")].map(|(n, i)| deployment(n, i));
    let service = json!({ "kind": "Service", "metadata": { "name": "web" }, "spec": {} });
    assert_eq!(proves(IMAGES, &parent(), &[old.clone(), other.clone(), service.clone()]), Ok(false));
    assert_eq!(proves(IMAGES, &parent(), &[new.clone(), other, service]), Ok(true));
    assert_eq!(proves("children.size() == 1 && size(children) < 2", &parent(), &[old]), Ok(true));
    let by_name = "children.exists_one(c, c.metadata.name == parent.spec.tiers[0] && c.spec.replicas == parent.spec.replicas)";
    assert_eq!(proves(by_name, &parent(), &[new]), Ok(true));
}

/// Expressions of every form, on objects whose fields have unexpected types, too: what is left out of an object is never missed.
#[test]
fn an_expression_yields_the_same_of_what_it_reads_as_of_the_whole() {
    let sources = [
        "children[0].spec.template.spec.containers.all(x, !has(x.image) || x.image.startsWith('shop'))",
        "children[0].spec.template.spec.containers.exists(x, has(x.env))",
        "children.map(c, c.metadata.name).exists(n, n == 'web')",
        "children.filter(c, has(c.status)).size() == children.size()",
        "children.all(c, c.?status.?readyReplicas.orValue(0) >= 3)",
        "children.all(c, c.?status.?missing.optMap(m, m.deep == 1).orValue(true))",
        "children.exists(c, 'tier' in c.metadata.labels && c.metadata.labels['tier'] == 'web')",
        "children.exists(c, c.metadata.labels[parent.spec.key] == 'web')",
        "children.all(c, c.spec.size() == 2)",
        "children.all(c, c.spec.template == children[0].spec.template)",
        "cel.bind(d, children.filter(c, c.kind == 'Deployment'), d.all(c, c.spec.replicas == parent.spec.replicas))",
        "children.exists(i, c, i == 0 && c.metadata.name == 'web')",
        "children[0].metadata.labels.all(k, k.size() > 2)",
        "children[0].metadata.labels.exists(k, true)",
        "children[0].metadata.labels.exists(k, v, v == 'web')",
        "children[0].metadata.labels.all(x, x.image == 'y')",
        "children[0].spec.template.spec.containers.filter(x, x.name != 'proxy').size() == 1",
        "children[0].spec.template.spec.containers.sortBy(x, x.name)[0].name == 'proxy'",
        "children.sortBy(c, c.metadata.name)[0].kind == 'Deployment'",
        "children[parent.spec.replicas - 3].kind == 'Deployment'",
        "has(parent.spec.image) && !has(parent.status)",
        "parent.spec.tiers.all(t, children.exists(c, c.metadata.labels.tier == t))",
        "(parent.spec.replicas > 2 ? children[0].spec : parent.spec).replicas == 3",
        "[children[0].metadata, parent.metadata].exists(m, m.name == 'shop')",
        "{'a': children[0].spec}.a.replicas == 3",
        "parent == children[0] || parent.spec.image == 'shop:2'",
        "children == [] || children[0].kind == 'Deployment'",
    ];
    let odd = |containers: Value, labels: Value, spec: Value| {
        json!({ "kind": "Deployment", "metadata": { "name": "web", "labels": labels },
            "spec": { "replicas": spec, "template": { "spec": { "containers": containers } } } })
    };
    let worlds = [
        vec![deployment("web", "shop:2"), deployment("api", "shop:1")],
        vec![deployment("api", "shop:2")],
        vec![
            odd(json!({ "a": 1 }), json!({}), json!(3)),
            odd(json!({}), json!({ "x": { "image": "y" } }), json!({})),
        ],
        vec![odd(json!([[{ "image": "shop", "name": "n" }]]), json!(["tier"]), json!(null))],
        vec![odd(json!("image"), json!({ "image": "y" }), json!([{ "size": 1 }]))],
        vec![odd(json!([null, 1, "x", { "name": "n" }]), json!(null), json!("3"))],
        vec![],
    ];
    for source in sources {
        let results: Vec<_> = worlds.iter().map(|children| proves(source, &parent(), children)).collect();
        assert!(results.iter().any(Result::is_ok), "{source}: {results:?}");
    }
}

#[test]
fn of_an_object_only_what_is_named_is_kept() {
    let proof = ProofExpression::compile(IMAGES).unwrap();
    let kept: Value =
        serde_json::from_str(&reduced(&proof.child, &deployment("web", "shop:1")).unwrap()).unwrap();
    let containers = json!([{ "image": "shop:1" }, {}]);
    assert_eq!(
        kept,
        json!({ "kind": "Deployment", "spec": { "template": { "spec": { "containers": containers } } } })
    );
    let parent: Value = serde_json::from_str(&reduced(&proof.parent, &parent()).unwrap()).unwrap();
    assert_eq!(parent, json!({ "spec": { "image": "shop:2" } }));
}

#[test]
fn what_is_too_large_or_too_deep_is_refused() {
    let proof = ProofExpression::compile("children.all(c, c.spec.list.all(x, x.name == 'a'))").unwrap();
    let large = json!({ "spec": { "list": vec![json!({ "name": "a" }); 2_000] } });
    assert_eq!(reduced(&proof.child, &large), Err(ProjectionError));
    let nested = format!(r#"{{"spec":{{"list":{}1{}}}}}"#, "[".repeat(5_000), "]".repeat(5_000));
    let nested = RawValue::from_string(nested).unwrap();
    assert_eq!(proof.child.project_object(&nested, 1 << 20), Err(ProjectionError));
}

#[test]
fn an_evaluation_is_bounded_and_says_what_it_took() {
    let square =
        ProofExpression::compile("children.all(c, children.all(d, c.metadata.name == d.metadata.name))")
            .unwrap();
    let child = r#"{"metadata":{"name":"a"}}"#;
    let few = square.evaluate_proof("{}", std::iter::repeat_n(child, 10));
    assert_eq!(few.holds, Ok(true));
    assert!((200..2_000).contains(&few.steps), "{}", few.steps);
    let many = square.evaluate_proof("{}", std::iter::repeat_n(child, 1_000));
    assert_eq!(many.holds.unwrap_err().limit, Some(CostLimit::Steps));
    let endless = square.evaluate_proof("{}", std::iter::repeat(child));
    assert_eq!(endless.holds.unwrap_err().limit, Some(CostLimit::Steps));
}

#[test]
fn an_expression_over_anything_else_is_refused_with_its_position() {
    for (source, message) in [
        (
            "self.spec.x == 1",
            "1:1: undeclared reference to 'self': only 'parent' and 'children' are known here",
        ),
        ("children.size()", "the expression yields 'int', not 'bool'"),
        ("children.spec.x == 1", "1:1: type 'list' does not support field selection"),
        ("parent.spec.x ==", "1:17"),
    ] {
        let error = ProofExpression::compile(source).unwrap_err().to_string();
        assert!(error.contains(message), "{source}: {error}");
    }
}
