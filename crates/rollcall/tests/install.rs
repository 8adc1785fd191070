//! `rollcall install`, run without a cluster: whose namespace it is, and how all of it goes again.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use serde_json::Value;

fn rollcall(args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rollcall"));
    let done = command.args(args).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

/// Names of the namespaces in the stream.
fn namespaces(args: &[&str]) -> Vec<String> {
    let (code, out, err) = rollcall(&[&["install", "--offline"], args].concat());
    assert_eq!(code, Some(0), "{err}");
    let objects: Vec<Value> = serde_saphyr::from_multiple(&out).unwrap();
    let named = objects.iter().filter(|object| object["kind"] == "Namespace");
    named.map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_namespace_that_is_not_rollcalls_own_is_made_only_when_asked_for() {
    assert_eq!(namespaces(&[]), ["rollcall-system"]);
    assert_eq!(namespaces(&["-n", "monitoring"]), [""; 0]);
    assert_eq!(namespaces(&["-n", "watchers", "--create-namespace"]), ["watchers"]);
}

/// Kind, namespace and name of what grants rights, with what it binds.
fn roles(args: &[&str]) -> BTreeMap<[String; 3], Value> {
    let (code, out, err) = rollcall(&[&["install", "--offline"], args].concat());
    assert_eq!(code, Some(0), "{err}");
    let objects: Vec<Value> = serde_saphyr::from_multiple(&out).unwrap();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_rights = objects.into_iter().filter(|object| word(&object["kind"]).contains("Role"));
    let named = of_rights.map(|object| {
        let meta = &object["metadata"];
        (
            [word(&object["kind"]), word(&meta["namespace"]), word(&meta["name"])],
            object["roleRef"]["name"].clone(),
        )
    });
    named.collect()
}

#[test]
fn a_second_installation_takes_no_right_from_the_first() {
    let folder = std::env::temp_dir().join(format!("rollcall-install-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("policies.yaml");
    let policy = "{ apiVersion: rollcall.dev/v1alpha1, kind: ReadinessPolicy, metadata: { name: db }, spec: { parent: \
        { group: example.com, kind: Database }, children: [{ kind: { kind: Pod }, ready: { rules: shop/scripts } }] } }";
    std::fs::write(&file, policy).unwrap();
    let common = ["-f", file.to_str().unwrap(), "--metrics-reader=monitoring/prometheus"];
    let all = |args: &[&str]| roles(&[&common[..], args].concat());
    let (first, second) = (all(&[]), all(&["-n", "watchers"]));
    std::fs::remove_dir_all(&folder).unwrap();
    let shared = first.keys().filter(|name| second.contains_key(*name));
    let shared: Vec<_> = shared.map(|name| name.join("/").replace("//", "/")).collect();
    // What these grant is the same for both.
    assert_eq!(shared, ["ClusterRole/rollcall-policy-db", "Role/shop/rollcall-policy-db"]);
    assert!(first.contains_key(&["ClusterRoleBinding", "", "rollcall-base"].map(str::to_owned)));
    for ([kind, namespace, name], role) in &second {
        let Some(kind) = kind.strip_suffix("Binding") else { continue };
        let bound = [kind.to_owned(), namespace.clone(), role.as_str().unwrap().to_owned()];
        assert!(second.contains_key(&bound), "{name} binds {bound:?}, which is not there");
    }
    assert!(second.contains_key(&["ClusterRoleBinding", "", "rollcall-base.watchers"].map(str::to_owned)));
}

#[test]
fn the_help_names_what_takes_it_away_while_the_service_runs() {
    let (code, help, _) = rollcall(&["install", "--help"]);
    assert_eq!(code, Some(0));
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "rollcall release --lease rollcall-system/rollcall --records rollcall-system",
        "rollcall install -f policies.yaml | kubectl delete --ignore-not-found -f -",
        "the namespace with everything in it",
    ] {
        assert!(words.contains(part), "no {part:?} in:\n{help}");
    }
}

/// Where the runbooks of all printed alerts are, without the alerts' names.
fn runbooks(args: &[&str]) -> Vec<String> {
    let (code, out, err) = rollcall(&[&["install", "--offline"], args].concat());
    assert_eq!(code, Some(0), "{err}");
    let named = out.split("runbook_url: ").skip(1).filter_map(|rest| rest.lines().next()?.split_once('#'));
    let mut addresses: Vec<_> = named.map(|(address, _)| address.to_owned()).collect();
    assert!(addresses.len() > 10, "{addresses:?}");
    addresses.dedup();
    addresses
}

#[test]
fn the_runbooks_are_a_file_of_the_repository_or_where_the_user_has_put_it() {
    let default = runbooks(&[]);
    assert_eq!(default, ["dashboards/README.md"]);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dashboards/README.md");
    assert!(std::fs::read_to_string(file).unwrap().contains("\n# Runbooks\n"));
    let own = "https://git.example.com/rollcall/dashboards/README.md";
    assert_eq!(runbooks(&["--runbooks", own]), [own]);
    let (_, values, _) = rollcall(&["install", "--offline", "-o", "helm-values", "--runbooks", own]);
    assert!(values.contains(&format!("runbooks: {own}")), "{values}");
    for unusable in ["", "https://x/y#z", "a b", "a\nb: c", "- a", "{a}", "'"] {
        let (code, _, err) = rollcall(&["install", "--offline", &format!("--runbooks={unusable}")]);
        assert!(code == Some(2) && err.contains("must be an address without #"), "{unusable}: {err}");
    }
}
