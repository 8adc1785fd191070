//! Policies from YAML: read, checked, compiled, and the roles that are printed for them.

use std::time::Duration;

use api::ReadinessPolicySpec;
use policy::rbac::{CrdNames, RoleOptions, RoleSubject, manifests_yaml, policy_manifests, policy_rights};
use policy::{
    CompiledPolicy, FoundPolicy, PolicyManifest, PolicySettings, check_written_spec, compile, is_object_name,
    parse_manifests,
};
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) const POLICY_MANIFEST_WORDS: &[&str] = &[
    "apiVersion: rollcall.dev/v1alpha1\n",
    "kind: ReadinessPolicy\n",
    "metadata: { name: a }\n",
    "kind: ReadinessGroup\n",
    "spec:\n  members:\n  - kinds: [{ kind: Pod }]\n    labels: { a: b }\n",
    "  - objects: [{ apiVersion: batch/v1, kind: Job, name: a }]\n    afterDeletion: remember\n",
    "  - { kinds: [{ group: apps, kind: Deployment }], helmRelease: a }\n",
    "  - { kinds: [{ kind: Pod }], kustomization: { name: a, namespace: b } }\n",
    "spec:\n  parent: { group: example.com, kind: Database }\n",
    "  children:\n  - kind: { kind: Pod }\n",
    "    find: { labels: { a: \"{parent.metadata.name}\" } }\n",
    "    expect: { min: 1 }\n",
    "    ready: { lua: \"return {}\" }\n",
    "group: \"*\"\n",
    "*",
    "&a ",
    "*a",
    "<<: *a\n",
    "!!binary ",
    "- ",
    ": ",
    "---\n",
    "|\n  ",
    ">-\n  ",
    "{",
    "}",
    "[",
    "]",
    "\"\\x1b[31m\"",
    "0x1F",
    "1e3",
    "~",
    "settle: 5s\n",
    "mode: shadow\n",
];

/// What is read is JSON, and reads the same again. What compiles is admitted by the CRD's own rules too, and its roles
/// name what it named, and nothing with a wildcard.
pub(crate) fn run(data: &[u8]) {
    if let Ok(documents) = rollcall_yaml::read_all(data) {
        for document in &documents {
            check_document(&document.json);
        }
    }
    let Ok(text) = str::from_utf8(data) else { return };
    for manifest in parse_manifests(text).into_iter().flatten() {
        let PolicyManifest::Policy(found) = manifest else { continue };
        if found.groups.is_some() {
            check_group(&found);
            continue;
        }
        assert!(is_object_name(&found.name), "{:?}", found.name);
        let spec = found.spec.unwrap();
        let written = serde_json::to_value(&spec).unwrap();
        let again: ReadinessPolicySpec = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(spec, again, "written and read again");
        check_compiled(&found.name, &spec, &written);
    }
}

/// JSON is YAML: a document that was read is read as itself.
fn check_document(json: &str) {
    serde_json::from_str::<Box<RawValue>>(json).unwrap();
    // A key of YAML has at most 1,024 characters, and some characters beyond ASCII end a line in it.
    if json.len() > 1_000 || !json.is_ascii() {
        return;
    }
    let again = rollcall_yaml::read_all(json.as_bytes()).unwrap();
    let texts: Vec<_> = again.iter().map(|document| document.json.as_str()).collect();
    assert_eq!(texts, [json]);
}

/// What stands for a group compiles wherever the group itself is one that the server admits.
fn check_group(found: &FoundPolicy) {
    let compiled = found.compile_spec(&PolicySettings::with_stuck_after(Duration::from_secs(600)));
    let compiled = compiled.unwrap_or_else(|why| panic!("{}: {why}", found.name));
    assert!(compiled.shape.is_some());
    check_roles(&found.name, &compiled);
}

fn check_compiled(name: &str, spec: &ReadinessPolicySpec, written: &Value) {
    let compiled = match compile(spec, Duration::from_secs(600)) {
        Ok(compiled) => compiled,
        Err(problems) => {
            assert!(!problems.is_empty(), "a refusal says why");
            return;
        }
    };
    assert_eq!(check_written_spec(written), [], "what compiles is admitted");
    check_roles(name, &compiled);
}

pub(crate) fn check_roles(name: &str, compiled: &CompiledPolicy) {
    let subject = RoleSubject { name: "rollcall".into(), namespace: "rollcall-system".into() };
    let own = String::from("rollcall");
    let options = RoleOptions {
        records_namespace: subject.namespace.clone(),
        subject,
        namespaces: Vec::new(),
        aggregate_to: own.clone(),
        lease: own,
    };
    let roles = policy_manifests(name, &policy_rights(compiled, &CrdNames::default()), &options);
    for rule in roles.iter().filter_map(|role| role["rules"].as_array()).flatten() {
        assert!(!rule.to_string().contains('*'), "{rule}");
    }
    let yaml = manifests_yaml(&roles).unwrap();
    assert!(!yaml.contains(|c: char| c.is_control() && c != '\n'), "{yaml:?}");
    let printed = rollcall_yaml::read_all(yaml.as_bytes()).unwrap();
    let printed: Vec<Value> =
        printed.iter().map(|document| serde_json::from_str(&document.json).unwrap()).collect();
    assert_eq!(printed, roles, "what is printed is what was meant");
}
