//! `rollcall eval --policy`, as the built binary: aggregation of a directory of manifests.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const POLICY: &str = "apiVersion: rollcall.dev/v1alpha1
kind: ReadinessPolicy
metadata: {name: databases}
spec:
  parent: {group: example.com, kind: Database}
  children:
  - kind: {group: apps, kind: StatefulSet}
  - kind: {group: batch, kind: Job}
    expect: {min: 0}
    role: optional
  - kind: {kind: Pod}
    expect: {min: 0}
    find: {labels: {db: '{parent.metadata.name}'}}
    ready: {cel: {current: 'status.phase == \"Running\"'}}
";
const PARENT: &str =
    "apiVersion: example.com/v1\nkind: Database\nmetadata: {name: db, namespace: shop, generation: 1}\n";
const OWNER: &str = "ownerReferences: [{apiVersion: example.com/v1, kind: Database, name: db}]";

fn set(ready: u32) -> String {
    format!(
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: db, namespace: shop, generation: 1, {OWNER}}}\nspec: \
         {{replicas: 3}}\nstatus: {{observedGeneration: 1, replicas: 3, readyReplicas: {ready}, updatedReplicas: 3, \
         availableReplicas: {ready}}}\n"
    )
}

fn pod(phase: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p, namespace: shop, labels: {{db: db}}}}\nstatus: {{phase: {phase}}}\n"
    )
}

/// Returns a directory with these manifests and a policy beside it.
fn world(name: &str, policy: &str, manifests: &[&str]) -> (PathBuf, PathBuf) {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(dir.join("manifests")).unwrap();
    for (at, manifest) in manifests.iter().enumerate() {
        std::fs::write(dir.join(format!("manifests/{at}.yaml")), manifest).unwrap();
    }
    std::fs::write(dir.join("policy.yaml"), policy).unwrap();
    (dir.join("manifests"), dir.join("policy.yaml"))
}

fn eval(name: &str, policy: &str, manifests: &[&str], output: &str) -> (String, String, i32) {
    let (manifests, policy) = world(name, policy, manifests);
    let output = Command::new(env!("CARGO_BIN_EXE_rollcall"))
        .args(["eval", "-o", output, "-f"])
        .arg(manifests)
        .arg("--policy")
        .arg(policy)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

#[test]
fn a_directory_is_rolled_up_and_the_parents_decide() {
    let failed = format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: init, namespace: shop, {OWNER}}}\nstatus: {{conditions: [{{type: \
         Failed, status: 'True', reason: BackoffLimitExceeded}}]}}\n"
    );
    let cases = [
        ("ready", vec![PARENT.to_owned(), set(3)], "Ready", "AllChildrenReady", 0),
        ("busy", vec![PARENT.to_owned(), set(2)], "Progressing", "ChildrenProgressing", 1),
        ("optional", vec![PARENT.to_owned(), set(3), failed], "Ready", "AllChildrenReady", 0),
        ("missing", vec![PARENT.to_owned()], "Progressing", "ChildrenMissing", 1),
        ("labels", vec![PARENT.to_owned(), set(3), pod("Running")], "Ready", "AllChildrenReady", 0),
        ("rule", vec![PARENT.to_owned(), set(3), pod("Pending")], "Progressing", "ChildrenProgressing", 1),
    ];
    for (name, manifests, verdict, reason, code) in cases {
        let manifests: Vec<_> = manifests.iter().map(String::as_str).collect();
        let (out, err, exit) = eval(&format!("roll-{name}"), POLICY, &manifests, "json");
        let trees: Vec<Value> =
            serde_json::from_str(&out).unwrap_or_else(|error| panic!("{name}: {error} {err}"));
        assert_eq!(trees.len(), 1, "{name}: {out}");
        assert_eq!(
            (&trees[0]["verdict"], &trees[0]["reason"]),
            (&verdict.into(), &reason.into()),
            "{name}: {out}"
        );
        assert_eq!(
            (exit, trees[0]["children"].as_array().unwrap().len()),
            (code, manifests.len() - 1),
            "{name}"
        );
    }
}

#[test]
fn a_new_generation_that_the_operator_has_not_seen_is_not_ready() {
    let stale = PARENT.replace("generation: 1", "generation: 2") + "status: {observedGeneration: 1}\n";
    let (out, _, code) = eval("roll-stale", POLICY, &[&stale, &set(3)], "json");
    assert!(out.contains("ChildrenPending"), "{out}");
    assert_eq!(code, 1);
}

#[test]
fn an_owner_with_another_uid_is_another_owner() {
    let parent = PARENT.replace("name: db,", "name: db, uid: new,");
    let child = set(3).replace("name: db}]", "name: db, uid: old}]");
    let (out, _, code) = eval("roll-uid", POLICY, &[&parent, &child], "json");
    assert!(out.contains("ChildrenMissing"), "{out}");
    assert_eq!(code, 1);
}

#[test]
fn a_person_sees_a_tree() {
    let (out, _, _) = eval("roll-tree", POLICY, &[PARENT, &set(2)], "table");
    let lines: Vec<_> = out.lines().collect();
    assert!(lines[0].starts_with("OBJECT") && lines[1].starts_with("Database shop/db"), "{out}");
    assert!(
        lines[2].starts_with("└─ StatefulSet shop/db") && lines[2].contains("2 of 3 replicas ready"),
        "{out}"
    );
}

#[test]
fn it_cannot_tell_without_parents_policies_or_readable_manifests() {
    assert_eq!(eval("roll-none", POLICY, &[&set(3)], "table").2, 2);
    assert_eq!(eval("roll-unread", POLICY, &[PARENT, &set(3), "a: ["], "table").2, 2);
    let (_, err, code) = eval("roll-invalid", &POLICY.replace("name}'", "name'"), &[PARENT], "table");
    assert_eq!(code, 2);
    assert!(err.contains("policy databases"), "{err}");
    assert_eq!(eval("roll-no-policy", "kind: ConfigMap\napiVersion: v1\n", &[PARENT], "table").2, 2);
}

/// Returns a StatefulSet of the parent (without an owner if `owner` is empty) with a claim template `web` and ordinals
/// from 1.
fn claiming(name: &str, owner: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: {name}, namespace: shop, generation: 1, {owner}}}\nspec: \
         {{replicas: 2, ordinals: {{start: 1}}, volumeClaimTemplates: [{{metadata: {{name: web}}}}]}}\nstatus: \
         {{observedGeneration: 1, replicas: 2, readyReplicas: 2, updatedReplicas: 2, availableReplicas: 2}}\n"
    )
}

fn claim(name: &str, namespace: &str, phase: &str) -> String {
    format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}, namespace: {namespace}}}\nstatus: {{phase: {phase}}}\n"
    )
}

#[test]
fn volume_claims_of_a_stateful_set_count_by_their_names_and_no_others() {
    let policy = "apiVersion: rollcall.dev/v1alpha1\nkind: ReadinessPolicy\nmetadata: {name: databases}\nspec:\n  \
                  parent: {group: example.com, kind: Database}\n  children:\n  - kind: {group: apps, kind: StatefulSet}\n  \
                  - kind: {kind: PersistentVolumeClaim}\n";
    let mut manifests =
        vec![PARENT.to_owned(), claiming("db", OWNER), claiming("web-db", ""), claiming("my-db", "")];
    manifests.extend(["web-db-1", "web-db-2"].map(|name| claim(name, "shop", "Bound")));
    // Below and above its ordinals, of similar names, in another namespace, and not a claim of any StatefulSet.
    let others = ["web-db-0", "web-db-3", "web-web-db-1", "web-my-db-1", "data-db-1", "db-1", "web-db"];
    manifests.extend(others.map(|name| claim(name, "shop", "Pending")));
    manifests.push(claim("web-db-1", "elsewhere", "Pending"));
    let run = |name: &str, manifests: &[String]| {
        let (out, err, code) =
            eval(name, policy, &manifests.iter().map(String::as_str).collect::<Vec<_>>(), "json");
        let trees: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
        let children = trees[0]["children"].as_array().unwrap().clone();
        let names: Vec<_> = children.iter().map(|c| c["name"].as_str().unwrap().to_owned()).collect();
        (names, code)
    };
    let (mut names, code) = run("claims", &manifests);
    names.sort();
    assert_eq!((names, code), (vec!["db".to_owned(), "web-db-1".to_owned(), "web-db-2".to_owned()], 0));
    manifests[4] = claim("web-db-1", "shop", "Pending");
    let (names, code) = run("claims-pending", &manifests);
    assert_eq!((names[0].as_str(), code), ("web-db-1", 1), "the worst comes first");
    manifests[1] = claiming("db", "");
    let (names, code) = run("claims-unowned", &manifests);
    assert_eq!((names, code), (vec![], 1));
}
