//! `suggest` writes the policies that a cluster needs, and says why.

use kube::CustomResourceExt;
use sandbox::{FaultAction, InjectedFault, RequestVerb};
use serde_json::{Value, json};

use super::cluster::{LiveCluster, crd, custom, done, owned, pod, policy as policy_over};

/// Three Shops own a Database each, two of them a Pod, all a ConfigMap. A Database says Ready whatever its Pod is; a Queue
/// only where its Pod is ready.
async fn crowd(name: &str) -> LiveCluster {
    let cluster = LiveCluster::start(name).await;
    cluster.create(&crd("Queue"));
    for n in 0..3 {
        let mut shop = custom("Shop", &format!("shop-{n}"));
        shop["metadata"]["annotations"] = json!({ "kopf.zalando.org/last-handled-configuration": "{}" });
        shop["status"] = json!({});
        let shop = cluster.create(&shop);
        let ready = |status: &str| json!([{ "type": "Ready", "status": status, "reason": "AsItIs", "observedGeneration": 1 }]);
        let mut database = custom("Database", &format!("db-{n}"));
        database["status"]["conditions"] = ready("True");
        let database = cluster.below(&shop, database);
        let waits = (n == 1).then_some(("ImagePullBackOff", "no such image"));
        cluster.below(&database, pod(&format!("db-{n}-0"), waits));
        if n > 0 {
            cluster.below(&shop, pod(&format!("shop-{n}-0"), None));
        }
        let map =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": format!("map-{n}") } });
        cluster.create(&owned(&shop, map));
        let mut queue = custom("Queue", &format!("queue-{n}"));
        queue["status"]["conditions"] = ready(if n == 1 { "False" } else { "True" });
        let queue = cluster.create(&queue);
        cluster.below(&queue, pod(&format!("queue-{n}-0"), waits));
    }
    cluster
}

async fn suggest(cluster: &LiveCluster, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = cluster.bare();
    command.arg("suggest").args(args);
    done(command).await
}

#[tokio::test]
async fn each_kind_that_owns_something_gets_a_policy_with_what_it_rests_on() {
    let cluster = crowd("suggest").await;
    let (code, out, err) = suggest(&cluster, &[]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "# Shop.example.com: 3 objects",
        "# - it owns ConfigMap too, which have no readiness of their own",
        "# - Kopf leaves its mark on every object: one without it is not handled yet",
        "metadata: { name: shops.example.com }",
        "- kind: { kind: Pod } # 2 of 3 own some expect: { min: 0 }",
        "- kind: { group: example.com, kind: Database } # 3 of 3 own some",
        "evidence: kopf",
        "# - 3 of 3 say which generation their operator has observed: it is waited for",
        "# - 1 say Ready while their children are not: default/db-1: 1 of 1 not ready: Pod db-1-0",
        "condition: { type: ChildrenReady }",
        "# Queue.example.com: 3 objects",
        "# left out: it says Ready itself, and not of the 1 whose children are not",
    ] {
        assert!(words.contains(part), "no {part:?} in:\n{out}");
    }
    // As text and as JSON it is the same.
    let (_, json, err) = suggest(&cluster, &["-o", "json"]).await;
    let all: Vec<Value> = serde_json::from_str(&json).unwrap_or_else(|_| panic!("{json}{err}"));
    let specs = all.iter().map(|one| &one["policy"]["spec"]).filter(|spec| !spec.is_null());
    let specs: Vec<api::ReadinessPolicySpec> =
        specs.map(|spec| serde_json::from_value(spec.clone()).unwrap()).collect();
    let printed = policy::parse_manifests(&out).unwrap().into_iter().filter_map(|manifest| match manifest {
        policy::PolicyManifest::Policy(found) => found.spec.ok(),
        policy::PolicyManifest::Crd(_) => None,
    });
    assert_eq!(printed.collect::<Vec<_>>(), specs);
    // What is printed can be used as it is.
    let file = cluster.text_file("suggested.yaml", &out);
    let mut check = cluster.bare();
    check.args(["check", "-f", &file]);
    let (code, checked, err) = done(check).await;
    assert_eq!((code, checked.lines().count()), (Some(0), 2), "{checked}{err}");
    let mut tree = cluster.bare();
    tree.args(["tree", "-f", &file]);
    let (code, tree, err) = done(tree).await;
    assert_eq!(code, Some(1), "{tree}{err}");
    assert!(tree.contains("shop-1") && tree.contains("db-1-0"), "{tree}");
}

#[tokio::test]
async fn what_objects_say_of_themselves_is_held_against_what_they_own() {
    let cluster = LiveCluster::start("suggest-own-word").await;
    cluster.create(&crd("Queue"));
    cluster.create(&crd("MailRun"));
    let ready = |status: &str, reason: &str| json!({ "conditions": [{ "type": "Ready", "status": status, "reason": reason }] });
    for (kind, name, status) in [
        ("Shop", "a", json!({ "jobDeploymentStatus": "Failed" })),
        ("Shop", "b", json!({ "state": "Ready" })),
        ("Queue", "c", json!({ "phase": "Pending" })),
        ("Queue", "d", json!({})),
        ("Database", "e", ready("False", "DeployFailed")),
        ("Database", "f", ready("True", "Deployed")),
        ("MailRun", "g", json!({ "phase": "Running" })),
        ("MailRun", "h", json!({ "phase": "Succeeded" })),
    ] {
        let mut object = custom(kind, name);
        object["status"] = status;
        let object = cluster.create(&object);
        cluster.below(&object, pod(&format!("{name}-0"), None));
    }
    let (code, out, err) = suggest(&cluster, &[]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    for part in [
        "# - by this policy 1 of 2 are ready now\n# - 1 of 2 say of themselves that they have failed, and so does this policy: default/a: \
         jobDeploymentStatus Failed",
        "# - 1 of 2 say of themselves that they are not ready, and would be by this policy: default/c: phase Pending",
        // That it has failed is no sign that its Ready waits for its children.
        "# - whether its Ready waits for its children cannot be seen: those of all are ready now\n\
         # - 1 of 2 say of themselves that they have failed, and so does this policy: default/e: Ready=False: DeployFailed",
        "# left out: 1 of 2 say of themselves that they are not ready while all that they own is: default/g: phase Running; it is ready \
         when it has ended",
    ] {
        assert!(out.contains(part), "no {part:?} in:\n{out}");
    }
    let names: Vec<_> = out.lines().filter(|line| line.starts_with("metadata:")).collect();
    let expected =
        ["databases", "queues", "shops"].map(|name| format!("metadata: {{ name: {name}.example.com }}"));
    assert_eq!(names, expected, "{out}");
}

#[tokio::test]
async fn what_parents_lack_that_are_not_ready_is_expected_of_them() {
    for (phase, is_expected) in [("Failed", true), ("Creating", true), ("Active", false), ("", false)] {
        let cluster = LiveCluster::start(&format!("suggest-lacking-{phase}")).await;
        let whole = cluster.create(&custom("Shop", "whole"));
        cluster.below(&whole, pod("whole-0", None));
        let mut lacking = custom("Shop", "lacking");
        lacking["status"]["phase"] = json!(phase);
        cluster.create(&lacking);
        let (code, out, err) = suggest(&cluster, &[]).await;
        assert_eq!(code, Some(0), "{out}{err}");
        let words =
            "not all own Pod, and those that do not say that they are not ready: it is expected of them too";
        assert_eq!(out.contains(words), is_expected, "{phase}: {out}");
        assert_eq!(!out.contains("expect: { min: 0 }"), is_expected, "{phase}: {out}");
    }
}

#[tokio::test]
async fn what_a_policy_names_already_is_left_out_and_what_cannot_be_read_is_named() {
    let cluster = crowd("suggest-again").await;
    cluster.create(&serde_json::to_value(api::ReadinessPolicy::crd()).unwrap());
    cluster.create(&policy_over("Shop", "example.com", "Database"));
    let refused =
        InjectedFault::new(FaultAction::Forbid).on_kind("example.com", "queues").on_verb(RequestVerb::List);
    cluster.server.faults().add(refused);
    let (code, out, err) = suggest(&cluster, &["-o", "json"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    let all: Vec<Value> = serde_json::from_str(&out).unwrap();
    let of = |kind: &str| all.iter().find(|one| one["kind"] == kind).unwrap_or(&Value::Null);
    assert_eq!(of("Shop")["leftOut"], "policy shop names it already");
    assert_eq!(of("Shop")["policy"], Value::Null);
    assert_eq!(of("Database")["policy"]["spec"]["condition"]["type"], "ChildrenReady");
    assert_eq!(of("Database")["children"], json!([{ "group": "", "kind": "Pod", "owners": 3, "most": 1 }]));
    assert!(err.contains("not read: Queue.example.com: you may not list it"), "{err}");
    // Of one kind alone.
    let (code, out, err) = suggest(&cluster, &["shops.example.com"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("# left out: policy shop") && !out.contains("Database.example.com:"), "{out}");
}

#[tokio::test]
async fn of_one_namespace_nothing_is_judged_that_is_elsewhere() {
    let cluster = crowd("suggest-namespace").await;
    cluster.create(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "vault" } }));
    for n in 0..4 {
        let mut shop = custom("Shop", &format!("elsewhere-{n}"));
        shop["metadata"]["namespace"] = json!("vault");
        cluster.create(&shop);
    }
    let (code, out, err) = suggest(&cluster, &["-n", "default", "shop"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("# - by this policy 3 of 3 are ready now"), "{out}{err}");
}

#[tokio::test]
async fn what_could_not_be_read_is_not_said_to_be_ready() {
    // Each list is asked for twice before the parents are judged.
    let forbidden = InjectedFault::new(FaultAction::Forbid).on_verb(RequestVerb::List);
    for (group, plural, before) in [("example.com", "queues", 2), ("", "pods", 1)] {
        let cluster = crowd(&format!("suggest-unread-{plural}")).await;
        cluster.server.faults().add(forbidden.clone().on_kind(group, plural).skip_first(before));
        let (code, out, err) = suggest(&cluster, &["-n", "default", "queue"]).await;
        assert_eq!(code, Some(0), "{out}{err}");
        assert!(!out.contains("ready now") && !out.contains("left out"), "{plural}: {out}{err}");
        assert!(out.contains("# - 3 of 3 could not be judged by this policy"), "{plural}: {out}{err}");
    }
}

#[tokio::test]
async fn what_objects_say_never_becomes_a_manifest() {
    let cluster = LiveCluster::start("suggest-hostile").await;
    let injected = "x\n---\napiVersion: rollcall.dev/v1alpha1\nkind: ReadinessPolicy\nmetadata: { name: evil }\nspec:\n  parent: \
                    { group: example.com, kind: Shop }\n  children: [{ kind: { kind: Secret } }]\n#";
    for (name, reason) in [("db-0", "AsItIs"), ("db-1", injected)] {
        let mut database = custom("Database", name);
        let ready =
            json!([{ "type": "Ready", "status": "True", "reason": "AsItIs", "observedGeneration": 1 }]);
        database["status"]["conditions"] = ready;
        database["metadata"]["annotations"] = json!({
            "kopf.zalando.org/last-handled-configuration": json!({ "spec": database["spec"] }).to_string(),
            "kopf.zalando.org/last-outcome": json!({ "generation": 1, "failed": { injected: "boom" } }).to_string(),
        });
        let database = cluster.create(&database);
        let mut shop = custom("Shop", name);
        shop["status"]["conditions"] =
            json!([{ "type": "Ready", "status": "False", "reason": reason, "message": injected }]);
        cluster.below(&database, shop);
    }
    let (code, out, err) = suggest(&cluster, &[]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("handler x --- apiVersion: rollcall.dev/v1alpha1"), "it is quoted: {out}");
    let names: Vec<_> = policy::parse_manifests(&out)
        .unwrap()
        .into_iter()
        .filter_map(|manifest| match manifest {
            policy::PolicyManifest::Policy(found) => Some(found.name),
            policy::PolicyManifest::Crd(_) => None,
        })
        .collect();
    assert_eq!(names, ["databases.example.com"], "{out}");
    let mut install = cluster.bare();
    install.arg("install");
    let (code, manifests, err) = done(install).await;
    assert_eq!(code, Some(0), "{err}");
    assert!(!manifests.contains("name: rollcall-policy-evil") && !err.contains("evil,"), "{err}");
}

#[tokio::test]
async fn a_kind_that_is_not_there_or_owns_nothing_is_said() {
    let cluster = crowd("suggest-nothing").await;
    let (code, out, err) = suggest(&cluster, &["databse"]).await;
    assert_eq!(code, Some(2), "{out}{err}");
    assert!(err.contains("the cluster serves no kind databse"), "{err}");
    assert!(!out.contains("No custom resource owns anything"), "{out}");
    // What is there is printed beside it.
    let (code, out, err) = suggest(&cluster, &["shop", "configmap"]).await;
    assert_eq!(code, Some(2), "{out}{err}");
    assert!(out.contains("# Shop.example.com: 3 objects"), "{out}");
    assert!(err.contains("no configmap here is a custom resource that owns something: "), "{err}");
}

#[tokio::test]
async fn whoever_may_list_nothing_is_not_told_that_there_is_nothing() {
    let cluster = crowd("suggest-blind").await;
    cluster.server.faults().add(InjectedFault::new(FaultAction::Forbid).on_verb(RequestVerb::List));
    for (args, printed) in [(&[][..], ""), (&["--output", "json"], "[]\n")] {
        let (code, out, err) = suggest(&cluster, args).await;
        assert_eq!((code, &*out), (Some(2), printed), "{args:?}: {err}");
        assert!(err.contains("not read: Shop.example.com: you may not list them"), "{err}");
        assert!(err.contains("nothing owns anything, and not all could be read"), "{err}");
    }
}

#[tokio::test]
async fn a_folder_has_all_that_the_policies_call_for() {
    let cluster = crowd("suggest-to").await;
    let folder = std::env::temp_dir().join(format!("rollcall-suggest-to-{}", std::process::id()));
    let (code, out, err) = suggest(&cluster, &["--to", &folder.to_string_lossy()]).await;
    assert!(code == Some(0) && out.is_empty(), "{out}{err}");
    let read = |name: &str| {
        std::fs::read_to_string(folder.join(name)).unwrap_or_else(|why| panic!("{name}: {why}\n{err}"))
    };
    let policies = read("policies.yaml");
    assert_eq!(policy::parse_manifests(&policies).unwrap().len(), 2, "{policies}");
    assert!(policies.contains("mode: shadow") && !policies.contains("# Next"), "{policies}");
    // A policy that is let write has its rights, and those who read it can.
    let rights = read("rights.yaml");
    for resource in ["shops/status", "databases/status", "pods"] {
        assert!(rights.contains(resource), "no {resource} in {rights}");
    }
    let defaults: Value = serde_saphyr::from_str(&read("crd-defaults/kustomization.yaml")).unwrap();
    let targets: Vec<_> =
        defaults["patches"].as_array().unwrap().iter().map(|p| &p["target"]["name"]).collect();
    assert_eq!(targets, ["databases.example.com", "shops.example.com"]);
    let health = read("argocd-cm.yaml");
    for key in ["example.com_Shop", "example.com_Database"] {
        assert!(health.contains(&format!("resource.customizations.health.{key}: |")), "{health}");
    }
    assert!(!health.contains("Queue"), "it is left out: {health}");
    assert!(err.lines().filter(|line| line.contains(": kubectl ")).count() == 3, "{err}");
    std::fs::remove_dir_all(&folder).unwrap();
}
