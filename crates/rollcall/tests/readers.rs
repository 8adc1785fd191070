//! What `rollcall readers` prints for other tools. That Flux reads it as it should is shown with its own code, in
//! tests/tests/real_server/flux_reader.rs, and kro with its controller, in kro.rs beside it; kubectl and Helm wait there too. The others
//! cannot be had here: what is printed for them is held to the format that their documentation describes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use rollcall_cel::{ObjectJson, ReadyWhen};
use serde_json::{Value, json};

fn policy(name: &str, rest: &str) -> String {
    format!(
        "apiVersion: rollcall.dev/v1alpha1\nkind: ReadinessPolicy\nmetadata: {{ name: {name} }}\nspec:\n  parent: {{ group: \
         example.com, version: v1, kind: Database }}\n{rest}\n---\n"
    )
}

/// Exit code, output and errors.
fn readers(tool: &[&str], policies: &str) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rollcall"));
    command.args(["readers", "-f", "-"]).args(tool);
    let mut running =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    running.stdin.take().unwrap().write_all(policies.as_bytes()).unwrap();
    let done = running.wait_with_output().unwrap();
    let [out, err] = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (done.status.code().unwrap(), out, err)
}

fn printed_for(tool: &str, policies: &str) -> Value {
    let (code, out, err) = readers(&["--for", tool], policies);
    assert_eq!(code, 0, "{err}");
    serde_saphyr::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

fn database(conditions: &Value) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Database",
        "metadata": { "name": "orders", "generation": 2 }, "status": { "conditions": conditions } })
}

fn entry(kind: &str, status: &str, reason: &str, generation: i64) -> Value {
    json!({ "type": kind, "status": status, "reason": reason, "observedGeneration": generation })
}

#[test]
fn kro_waits_for_all_answers_about_the_generation() {
    let two = policy("databases", "") + &policy("storage", "  condition: { type: StorageReady }");
    let printed = printed_for("kro", &two);
    let expression = printed["readyWhen"][0].as_str().unwrap();
    assert!(expression.starts_with("${") && expression.ends_with('}'), "{expression}");
    let ready_when = ReadyWhen::compile(&[expression], Some("database")).unwrap();
    let well = |kind: &str| entry(kind, "True", "AllChildrenReady", 2);
    for (conditions, is_ready) in [
        (json!([well("Ready"), well("StorageReady")]), true),
        (json!([well("Ready")]), false),
        (json!([well("Ready"), entry("StorageReady", "True", "AllChildrenReady", 1)]), false),
        (json!([well("Ready"), entry("StorageReady", "False", "ChildrenMissing", 2)]), false),
        (json!([entry("Ready", "True", "OperatorSays", 2), well("StorageReady")]), false),
        (json!([]), false),
    ] {
        let object = database(&conditions);
        let unmet = ready_when.find_unmet(ObjectJson::Tree(&object));
        assert_eq!(matches!(unmet, Ok(None)), is_ready, "{conditions}: {unmet:?}");
    }
}

#[test]
fn each_tool_gets_the_form_that_it_documents() {
    let other = policy("storage", "  condition: { type: StorageReady }");
    let helm = printed_for("helm", &other);
    for (annotation, reason, count) in [
        ("helm.sh/readiness-success", "AllChildrenReady", 1),
        ("helm.sh/readiness-failure", "DeadlineExceeded", 6),
    ] {
        let list: Vec<String> =
            serde_json::from_str(helm["metadata"]["annotations"][annotation].as_str().unwrap()).unwrap();
        let expected = format!("{{.conditions[?(@.type==\"StorageReady\")].reason}} == \"{reason}\"");
        assert!(list.len() == count && list.contains(&expected), "{list:?}");
    }
    let pulumi = printed_for("pulumi", &policy("databases", ""));
    assert_eq!(pulumi["metadata"]["annotations"]["pulumi.com/waitFor"], "condition=Ready");
    let both = printed_for("pulumi", &(policy("databases", "") + &other));
    let both = both["metadata"]["annotations"]["pulumi.com/waitFor"].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(both).unwrap(),
        json!(["condition=Ready", "condition=StorageReady"])
    );
    let metrics = printed_for("kube-state-metrics", &other);
    let resource = &metrics["spec"]["resources"][0];
    assert_eq!(
        resource["groupVersionKind"],
        json!({ "group": "example.com", "version": "v1", "kind": "Database" })
    );
    assert_eq!(resource["metrics"][0]["each"]["stateSet"]["path"], json!(["status", "conditions"]));
    let analysis = printed_for("argo-rollouts", &other);
    let query = analysis["spec"]["metrics"][0]["provider"]["prometheus"]["query"].as_str().unwrap();
    assert_eq!(query, "sum(rollcall_parents{policy=\"storage\", verdict!=\"Ready\"})");
    let (_, kubectl, _) = readers(&["--for", "kubectl"], &other);
    assert!(
        kubectl.contains("kubectl wait database.example.com/NAME -n NAMESPACE --for=condition=StorageReady")
    );
    let (code, all, _) = readers(&[], &other);
    let heads = [
        "# Flux:",
        "# kro:",
        "# kubectl:",
        "# Helm",
        "# Pulumi:",
        "# kube-state-metrics:",
        "# Argo Rollouts:",
    ];
    assert!(code == 0 && heads.iter().all(|head| all.contains(head)), "{all}");
}

#[test]
fn helm_gets_no_annotation_where_more_than_one_condition_has_to_be_true() {
    let named = |name: &str, condition: &str| policy(name, &format!("  condition: {{ type: {condition} }}"));
    // To Helm an object is ready as soon as one success condition is met, and with annotations kstatus is not asked.
    for two in [
        named("storage", "StorageReady") + &named("net", "NetReady"),
        policy("databases", "") + &named("storage", "StorageReady"),
    ] {
        let (code, out, err) = readers(&["--for", "helm"], &two);
        assert_eq!(code, 1, "{out}{err}");
        assert!(!out.contains("annotations") && !out.contains("`--wait` reads"), "{out}");
        assert!(out.lines().all(|line| line.starts_with('#')), "{out}");
        assert!(
            err.contains("Database.example.com: left out for Helm") && err.contains("StorageReady"),
            "{err}"
        );
        let (code, all, err) = readers(&[], &two);
        assert!(
            code == 0 && !all.contains("helm.sh/readiness") && err.contains("left out for Helm"),
            "{all}{err}"
        );
    }
    let two_alike = named("storage", "StorageReady") + &named("more", "StorageReady");
    assert_eq!(readers(&["--for", "helm"], &two_alike).0, 0, "that is one condition");
}

#[test]
fn helm_takes_the_fallback_where_that_carries_the_answer() {
    let falls_back = policy("storage", "  condition: { type: StorageReady, fallback: RollcallStorage }");
    let helm = printed_for("helm", &falls_back);
    let list = |annotation: &str| -> Vec<String> {
        serde_json::from_str(helm["metadata"]["annotations"][annotation].as_str().unwrap()).unwrap()
    };
    let ready = |of: &str| format!("{{.conditions[?(@.type==\"{of}\")].reason}} == \"AllChildrenReady\"");
    assert_eq!(list("helm.sh/readiness-success"), [ready("StorageReady"), ready("RollcallStorage")]);
    assert_eq!(list("helm.sh/readiness-failure").len(), 12);
    assert_eq!(readers(&["--for", "helm"], &falls_back).2, "", "it can tell");
    assert!(readers(&["--for", "kubectl"], &falls_back).2.contains("kubectl cannot tell"));
}

#[test]
fn what_cannot_be_said_in_a_form_is_said_beside_it() {
    let unversioned = policy("databases", "").replace(" version: v1,", "");
    let (code, out, err) = readers(&["--for", "flux"], &unversioned);
    assert!(code == 0 && out.contains("apiVersion: example.com/VERSION"), "{out}");
    assert!(err.contains("Database.example.com: no policy names a version"), "{err}");
    assert_eq!(readers(&["--for", "kro"], &unversioned).2, "");
    let some = policy("databases", "")
        .replace("kind: Database }", "kind: Database, selector: { matchLabels: { tier: gold } } }");
    let (_, _, err) = readers(&["--for", "flux"], &some);
    assert!(err.contains("a policy selects some parents only"), "{err}");
    let shadow = policy("databases", "  mode: shadow");
    let (code, out, err) = readers(&[], &shadow);
    assert!(code == 1 && out.is_empty(), "{out}");
    assert!(err.contains("policy databases: nothing to read, because it is in `mode: shadow`"), "{err}");
    let falls_back = policy("databases", "  condition: { fallback: RollcallReady }");
    let (_, _, err) = readers(&["--for", "kubectl"], &falls_back);
    assert!(err.contains("RollcallReady"), "{err}");
    assert_eq!(readers(&["--for", "flux"], &falls_back).2, "");
}

#[test]
fn a_group_is_read_by_its_own_name_and_in_the_version_that_rollcall_serves() {
    let group = "apiVersion: rollcall.dev/v1alpha1\nkind: ReadinessGroup\nmetadata: { name: checkout, namespace: shop }\nspec:\n  \
                 members: [{ kinds: [{ kind: Pod }], labels: { app: checkout } }]\n";
    let analysis = printed_for("argo-rollouts", group);
    assert_eq!(analysis["metadata"]["name"], "rollcall-checkout");
    let query = analysis["spec"]["metrics"][0]["provider"]["prometheus"]["query"].as_str().unwrap();
    // Of groups that select alike, and share their series, it is this one that counts.
    let own = "namespace=\"{{args.namespace}}\", name=\"checkout\"}";
    assert!(query.starts_with("(sum(rollcall_parent_not_ready_info{policy=\"ReadinessGroup/"), "{query}");
    assert!(query.contains(own), "{query}");
    let args = json!([{ "name": "prometheus" }, { "name": "namespace", "value": "shop" }]);
    assert_eq!(analysis["spec"]["args"], args);
    let flux = printed_for("flux", group);
    assert_eq!(flux["healthCheckExprs"][0]["apiVersion"], "rollcall.dev/v1alpha1");
    let metrics = printed_for("kube-state-metrics", group);
    assert_eq!(
        metrics["spec"]["resources"][0]["groupVersionKind"],
        json!({ "group": "rollcall.dev", "version": "v1alpha1", "kind": "ReadinessGroup" })
    );
    let (code, out, err) = readers(&[], group);
    assert!(code == 0 && !out.contains("VERSION"), "{out}");
    assert!(!err.contains("names a version"), "{err}");
}

#[test]
fn two_groups_that_select_alike_have_a_template_each() {
    let group = |name: &str| {
        format!(
            "---\napiVersion: rollcall.dev/v1alpha1\nkind: ReadinessGroup\nmetadata: {{ name: {name} }}\nspec:\n  members: [{{ kinds: \
             [{{ kind: Pod }}], labels: {{ app: {name} }} }}]\n"
        )
    };
    let (code, out, err) = readers(&["--for", "argo-rollouts"], &(group("one") + &group("two")));
    assert_eq!(code, 0, "{err}");
    for name in ["name: rollcall-one\n", "name: rollcall-two\n"] {
        assert!(out.contains(name), "{out}");
    }
}
