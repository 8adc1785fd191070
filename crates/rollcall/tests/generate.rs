//! Generated configuration for other tools: defaults for CRDs, health scripts for Argo CD.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

struct GenerateRun {
    code: i32,
    out: String,
    err: String,
}

fn rollcall(args: &[&str], input: &str) -> GenerateRun {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rollcall"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    running.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let Output { status, stdout, stderr } = running.wait_with_output().unwrap();
    let [out, err] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    GenerateRun { code: status.code().unwrap(), out, err }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns a CRD of one version with this schema of its status.
fn crd(status: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "databases.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "kind": "Database", "plural": "databases" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "status": status } } },
            }],
        },
    })
}

/// Returns a status schema as the API conventions want it, changed at these paths.
fn status(changes: &[(&str, Value)]) -> Value {
    let text = json!({ "type": "string" });
    let mut status = json!({ "type": "object", "properties": {
        "observedGeneration": { "type": "integer" },
        "conditions": { "type": "array", "items": { "type": "object", "required": ["type", "status"], "properties": {
            "type": text, "status": text, "reason": text, "message": text,
            "lastTransitionTime": text, "observedGeneration": { "type": "integer" },
        } } },
    } });
    for (path, value) in changes {
        let (parent, key) = path.rsplit_once('/').unwrap();
        let parent = status.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        if value.is_null() {
            parent.remove(key);
        } else {
            parent.insert((*key).to_owned(), value.clone());
        }
    }
    status
}

fn defaulted(crd: &Value) -> (GenerateRun, Value) {
    let said = rollcall(&["crd-defaults", "-f", "-", "--format", "crd"], &crd.to_string());
    let patched = serde_saphyr::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.out));
    (said, patched)
}

/// Returns an object without a status as the server would return it.
fn first_read(crd: &Value) -> Value {
    let status = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
    let mut read = status["default"].clone();
    for (name, field) in status["properties"].as_object().unwrap() {
        if read[name].is_null() && !field["default"].is_null() {
            read[name] = field["default"].clone();
        }
    }
    read
}

#[test]
fn with_the_defaults_the_first_read_is_pending() {
    let open = json!({ "x-kubernetes-preserve-unknown-fields": true });
    let typed = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let shapes = [
        status(&[]),
        status(&[("/properties/observedGeneration", Value::Null)]),
        status(&[("/properties/phase", json!({ "type": "string" }))]),
        status(&[
            ("/properties/conditions/items/properties/observedGeneration", Value::Null),
            ("/properties/conditions/items/properties/lastTransitionTime", Value::Null),
            ("/properties/conditions/items/properties/reason", Value::Null),
            ("/properties/conditions/items/properties/message", Value::Null),
        ]),
        // As in Flux's CRDs.
        status(&[("/default", json!({ "observedGeneration": -1 }))]),
        status(&[("/default", json!({ "phase": "New" }))]),
        status(&[("/properties/conditions/default", json!([{ "type": "Other", "status": "False" }]))]),
        status(&[("/default", json!({ "conditions": [{ "type": "Other", "status": "False" }] }))]),
        open,
        typed,
    ];
    for shape in shapes {
        let (said, patched) = defaulted(&crd(&shape));
        assert_eq!(said.code, 0, "{shape}: {}", said.err);
        let read = first_read(&patched);
        assert!(read["observedGeneration"].as_i64().is_some_and(|n| n < 1), "{shape}: {read}");
        let items = patched
            .pointer("/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditions/items");
        let items = items.unwrap();
        let open = items["x-kubernetes-preserve-unknown-fields"] == true;
        assert!(open || items["properties"]["observedGeneration"]["type"] == "integer", "{shape}: {items}");
        let conditions = read["conditions"].as_array().unwrap();
        let ready = conditions.iter().find(|c| c["type"] == "Ready").unwrap();
        assert_eq!(
            (&ready["status"], &ready["reason"]),
            (&json!("Unknown"), &json!("ChildrenPending")),
            "{shape}"
        );
        assert_eq!(ready["observedGeneration"], 0);
        let others = conditions.len() - 1;
        assert_eq!(others, usize::from(shape.to_string().contains("Other")), "{shape}: {read}");
        let (again, twice) = defaulted(&patched);
        assert_eq!((again.code, &twice), (0, &patched), "{shape}");
        assert!(again.err.contains("nothing to do"), "{}", again.err);
    }
}

#[test]
fn a_policy_keeps_to_what_is_asked_of_others() {
    let own = rollcall(&["crd"], "").out;
    let policy: Value = serde_saphyr::from_multiple(&own).unwrap().remove(0);
    let read = first_read(&policy);
    let ready = &read["conditions"][0];
    assert_eq!((&ready["type"], &ready["status"]), (&json!("Ready"), &json!("Unknown")), "{read}");
    assert_eq!(read["observedGeneration"], 0, "{read}");
}

#[test]
fn a_crd_without_any_schema_of_its_status_gets_one_where_unknown_fields_stay() {
    let mut crd = crd(&Value::Null);
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = open;
    let (said, patched) = defaulted(&crd);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(first_read(&patched)["conditions"][0]["reason"], "ChildrenPending");
}

#[test]
fn what_stands_in_the_way_is_named_and_nothing_is_changed() {
    let condition = "/properties/conditions/items/properties";
    let cases = [
        (status(&[("/properties/conditions", Value::Null)]), "drops `status.conditions`"),
        (Value::Null, "its schema has no status"),
        (status(&[(&format!("{condition}/status"), Value::Null)]), "drop `status`"),
        (status(&[("/properties/conditions/items/properties", Value::Null)]), "drop `reason`"),
        (status(&[("/required", json!(["phase"]))]), "requires `phase`"),
        (status(&[("/properties/observedGeneration", json!({ "type": "string" }))]), "is not a number"),
        (status(&[("/properties/conditions", json!({ "type": "object" }))]), "is not a list"),
        (
            status(&[(
                &format!("{condition}/status"),
                json!({ "type": "string", "enum": ["True", "False"] }),
            )]),
            "do not allow \"Unknown\" as `status`",
        ),
        (
            status(&[("/properties/conditions/items/required", json!(["type", "severity"]))]),
            "require `severity`",
        ),
        (
            status(&[("/properties/conditions/default", json!([{ "type": "Ready", "status": "True" }]))]),
            "another controller's Ready condition",
        ),
        (status(&[("/type", json!("string"))]), "status is not an object"),
    ];
    for (shape, why) in cases {
        let given = crd(&shape);
        let (said, patched) = defaulted(&given);
        assert_eq!(said.code, 1, "{shape}");
        assert!(
            said.err.contains("databases.example.com v1: no default: ") && said.err.contains(why),
            "{}",
            said.err
        );
        assert_eq!(patched, given);
    }
    let mut flat = crd(&status(&[]));
    flat["spec"]["versions"][0].as_object_mut().unwrap().remove("subresources");
    let (said, patched) = defaulted(&flat);
    assert!(said.code == 1 && said.err.contains("no status subresource"), "{}", said.err);
    assert_eq!(patched, flat);
}

#[test]
fn of_several_versions_and_crds_each_gets_what_it_can() {
    let mut two = crd(&status(&[]));
    let mut pruning = two["spec"]["versions"][0].clone();
    pruning["name"] = json!("v0");
    let of = &mut pruning["schema"]["openAPIV3Schema"]["properties"]["status"];
    *of = status(&[("/properties/conditions", Value::Null)]);
    two["spec"]["versions"].as_array_mut().unwrap().insert(0, pruning);
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": [two, json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" } })] });
    let said = rollcall(&["crd-defaults", "-f", "-"], &list.to_string());
    assert_eq!(said.code, 1);
    assert!(said.err.contains("databases.example.com v0: no default"), "{}", said.err);
    let component: Value = serde_saphyr::from_str(&said.out).unwrap();
    assert_eq!(component["kind"], "Component");
    assert_eq!(component["patches"][0]["target"]["name"], "databases.example.com");
    let ops: Value = serde_saphyr::from_str(component["patches"][0]["patch"].as_str().unwrap()).unwrap();
    assert_eq!(ops[0], json!({ "op": "test", "path": "/spec/versions/1/name", "value": "v1" }));
    assert!(
        ops.as_array()
            .unwrap()
            .iter()
            .all(|op| op["path"].as_str().unwrap().starts_with("/spec/versions/1/"))
    );
    let patch = rollcall(&["crd-defaults", "-f", "-", "--format", "patch"], &list.to_string());
    assert_eq!(serde_json::from_str::<Value>(&patch.out).unwrap(), ops);
}

#[test]
fn what_is_no_crd_is_refused() {
    for text in ["", "kind: Secret\napiVersion: v1\nmetadata: { name: s }\n", "{", "a: [", "--- 1\n"] {
        let said = rollcall(&["crd-defaults", "-f", "-"], text);
        assert!(
            said.code == 2 && said.out.is_empty() && !said.err.is_empty(),
            "{text:?}: {} {}",
            said.out,
            said.err
        );
    }
}

fn policy(parent: &str, rest: &str) -> String {
    format!(
        "apiVersion: rollcall.dev/v1alpha1\nkind: ReadinessPolicy\nmetadata: {{ name: p }}\nspec:\n  parent: {parent}\n{rest}"
    )
}

const DATABASE: &str = "{ group: example.com, kind: Database }";

#[test]
fn scripts_are_printed_as_argo_cd_takes_them() {
    let two = policy(DATABASE, "") + "---\n" + &policy("{ group: other.io, kind: Shop }", "");
    let config = rollcall(&["health-lua", "-f", "-"], &two);
    let config: Value = serde_saphyr::from_str(&config.out).unwrap();
    let keys: Vec<_> = config["data"].as_object().unwrap().keys().collect();
    let health = "resource.customizations.health";
    assert_eq!(keys, [&format!("{health}.example.com_Database"), &format!("{health}.other.io_Shop")]);
    assert_eq!(
        (&config["metadata"]["name"], &config["metadata"]["namespace"]),
        (&json!("argocd-cm"), &json!("argocd"))
    );

    let operator = rollcall(&["health-lua", "-f", "-", "--format", "operator", "-n", "gitops"], &two);
    let operator: Value = serde_saphyr::from_str(&operator.out).unwrap();
    let checks = &operator["spec"]["resourceHealthChecks"];
    assert_eq!((&operator["kind"], &operator["metadata"]["namespace"]), (&json!("ArgoCD"), &json!("gitops")));
    assert_eq!((&checks[1]["group"], &checks[1]["kind"]), (&json!("other.io"), &json!("Shop")));
    assert_eq!(checks[0]["check"], config["data"][keys[0].as_str()]);

    let one = rollcall(&["health-lua", "-f", "-", "--format", "script"], &policy(DATABASE, ""));
    assert_eq!(checks[0]["check"], one.out);
    let several = rollcall(&["health-lua", "-f", "-", "--format", "script"], &two);
    assert!(several.code == 2 && several.err.contains("--format"), "{}", several.err);
    let generic = rollcall(&["health-lua"], "");
    assert!(generic.code == 0 && generic.out.contains("type = \"Ready\""), "{}", generic.out);
    assert_eq!(rollcall(&["health-lua", "--format", "configmap"], "").code, 2);
}

#[test]
fn nothing_is_generated_for_parents_on_which_nothing_is_written() {
    for text in [policy(DATABASE, "  mode: shadow\n"), policy("{ group: apps, kind: Deployment }", "")] {
        let said = rollcall(&["health-lua", "-f", "-"], &text);
        assert!(said.code == 1 && said.out.is_empty() && said.err.contains("policy p"), "{}", said.err);
    }
    let said = rollcall(&["health-lua", "-f", "-"], &policy("{ group: example.com, kind: ../../x }", ""));
    assert!(said.code == 2 && said.err.contains("must be the name of a kind"), "{}", said.err);
}

#[test]
fn the_script_in_deploy_is_that_of_the_example() {
    let file = root().join("deploy/argocd/example.com/Database/health.lua");
    let example = root().join("deploy/examples/database.yaml");
    let said = rollcall(&["health-lua", "--format", "script", "-f", example.to_str().unwrap()], "");
    assert_eq!(std::fs::read_to_string(file).unwrap(), said.out);
}

#[test]
fn as_a_plugin_it_is_called_by_its_name() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugin");
    std::fs::create_dir_all(&folder).unwrap();
    let plugin = folder.join("kubectl-rollcall");
    std::fs::remove_file(&plugin).ok();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_rollcall"), &plugin).unwrap();
    let said = Command::new(&plugin).args(["tree", "--help"]).output().unwrap();
    let help = String::from_utf8(said.stdout).unwrap();
    assert!(help.contains("Usage: kubectl rollcall tree "), "{help}");
}
