//! What an object owns that no policy counts.

use sandbox::{FaultAction, InjectedFault, RequestVerb};
use serde_json::{Value, json};

use super::cluster::{LiveCluster, crd, custom, done, owned, pod};

/// A cluster in which Certificates own CertificateRequests, and these Orders, as cert-manager has them.
async fn certificates(name: &str) -> LiveCluster {
    let cluster = LiveCluster::start(name).await;
    for kind in ["Certificate", "CertificateRequest", "Order"] {
        cluster.create(&crd(kind));
    }
    cluster
}

/// An object that says of itself that it is ready, or why not.
fn saying(kind: &str, name: &str, reason: &str) -> Value {
    let status = if reason == "Ready" { "True" } else { "False" };
    let mut object = custom(kind, name);
    object["status"]["conditions"] = json!([{ "type": "Ready", "status": status, "reason": reason }]);
    object
}

fn errored_order() -> Value {
    let mut order = custom("Order", "shop-1-42");
    order["status"] = json!({ "state": "errored", "reason": "the account is not registered" });
    order
}

/// Runs a command without any policy.
async fn without_policy(cluster: &LiveCluster, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = cluster.bare();
    command.args(args);
    done(command).await
}

fn requests(cluster: &LiveCluster) -> usize {
    cluster.server.logged_requests().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_below_an_object_is_shown_and_marked_where_no_policy_counts_it() {
    let cluster = certificates("uncounted").await;
    let certificate = cluster.create(&saying("Certificate", "shop", "DoesNotExist"));
    let request = cluster.below(&certificate, saying("CertificateRequest", "shop-1", "Pending"));
    cluster.below(&request, errored_order());
    let (code, out, err) = without_policy(&cluster, &["tree", "certificate/shop"]).await;
    assert_eq!((code, err.as_str()), (Some(1), ""), "{out}");
    let lines: Vec<&str> =
        out.lines().skip(1).map(|line| line.split("   ").next().unwrap_or_default().trim()).collect();
    let shown = ["Certificate default/shop", "└─ CertificateRequest default/shop-1 (not counted)"];
    assert_eq!(lines[..2], shown, "{out}");
    assert!(out.lines().nth(3).unwrap().contains("└─ Order default/shop-1-42 (not counted)"), "{out}");
    assert!(out.lines().nth(3).unwrap().contains("Failed"), "{out}");

    let (_, out, _) = without_policy(&cluster, &["tree", "certificate/shop", "-o", "json"]).await;
    let trees: Value = serde_json::from_str(&out).unwrap();
    let order = &trees[0]["children"][0]["children"][0];
    assert_eq!(
        (&order["kind"], &order["role"], &order["verdict"]),
        (&json!("Order"), &json!("uncounted"), &json!("Failed"))
    );

    let (code, out, _) = without_policy(&cluster, &["explain", "certificate/shop"]).await;
    assert_eq!(code, Some(1));
    assert!(
        out.contains("1. Order default/shop-1-42  Failed") && out.contains("no policy counts it"),
        "{out}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_config_map_that_is_owned_its_name_is_shown_and_that_it_exists() {
    let cluster = LiveCluster::start("owned-map").await;
    let shop = cluster.create(&saying("Shop", "books", "Ready"));
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "rules" } });
    cluster.create(&owned(&shop, map));
    let (code, out, err) = without_policy(&cluster, &["tree", "shop/books"]).await;
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let line = out.lines().nth(2).unwrap_or_default();
    assert!(line.starts_with("└─ ConfigMap default/rules (not counted)"), "{out}");
    assert!(line.contains("Ready") && line.contains("exists"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_members_of_an_apply_set_are_shown_below_its_parent() {
    let cluster = LiveCluster::start("apply-set").await;
    let set = "applyset-a09Y_Ur0WgCegkBSuVuJKiZp7A0hCINaKwsocw-RfhQ-v1";
    // As kro leaves an instance: it owns nothing by reference.
    let mut shop = saying("Shop", "books", "Ready");
    shop["metadata"]["labels"] = json!({ "applyset.kubernetes.io/id": set });
    let shop = cluster.create(&shop);
    let uid = shop["metadata"]["uid"].as_str().unwrap();
    for (name, label) in [("member", set), ("stranger", uid), ("other", "applyset-b-v1")] {
        let mut web = custom("Database", name);
        web["metadata"]["labels"] = json!({ "applyset.kubernetes.io/part-of": label });
        web["status"] = json!({ "phase": "Failed" });
        cluster.create(&web);
    }
    let (code, out, err) = without_policy(&cluster, &["tree", "shop/books"]).await;
    assert_eq!(code, Some(0), "nothing counts there: {out}{err}");
    assert!(out.contains("└─ Database default/member (not counted)"), "{out}{err}");
    assert!(!out.contains("stranger") && !out.contains("other"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_policy_counts_decides_nothing_and_is_named_beside_what_does() {
    let cluster = certificates("uncounted-policy").await;
    let policy = super::cluster::policy("Certificate", "example.com", "CertificateRequest");
    let file = cluster.file("certificates.json", &policy);
    let certificate = cluster.create(&custom("Certificate", "shop"));
    let request = cluster.below(&certificate, saying("CertificateRequest", "shop-1", "Pending"));
    cluster.below(&request, errored_order());
    let (code, out, _) = without_policy(&cluster, &["explain", "certificate/shop", "-f", &file]).await;
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("Order default/shop-1-42  Failed"), "{out}");
    // Ready, with something below that no policy counts.
    let certificate = cluster.create(&custom("Certificate", "other"));
    let request = cluster.below(&certificate, saying("CertificateRequest", "other-1", "Ready"));
    let mut order = errored_order();
    order["metadata"]["name"] = json!("other-1-1");
    cluster.below(&request, order);
    let (code, out, _) = without_policy(&cluster, &["tree", "certificate/other", "-f", &file]).await;
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("Order default/other-1-1 (not counted)   Failed"), "{out}");
    let (code, out, _) = without_policy(&cluster, &["explain", "certificate/other", "-f", &file]).await;
    assert_eq!(code, Some(0), "{out}");
    let said = "Nothing that counts is unready. Not ready, and not counted:";
    assert!(out.contains(said) && out.contains("1. Order default/other-1-1  Failed"), "{out}");
    let args = ["explain", "certificate/other", "-f", &file, "-o", "json"];
    let (_, out, _) = without_policy(&cluster, &args).await;
    let explained: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(explained[0]["causes"][0]["counts"], json!(false), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_policy_says_of_an_object_is_shown_where_this_one_does_not_count_it() {
    let cluster = certificates("uncounted-parent").await;
    let policies = [("Certificate", "Order"), ("CertificateRequest", "Order")]
        .map(|(parent, child)| super::cluster::policy(parent, "example.com", child).to_string());
    let file = cluster.text_file("two.yaml", &policies.join("\n---\n"));
    let certificate = cluster.create(&custom("Certificate", "shop"));
    cluster.below(&certificate, saying("Order", "own", "Ready"));
    // It says of itself that it is ready, and its policy says that it is not.
    let request = cluster.below(&certificate, saying("CertificateRequest", "shop-1", "Ready"));
    cluster.below(&request, errored_order());
    let (code, out, err) = without_policy(&cluster, &["tree", "certificate/shop", "-f", &file]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    let line = out.lines().find(|line| line.contains("CertificateRequest default/shop-1")).unwrap();
    assert!(line.contains("(not counted)") && line.contains("ChildrenFailed"), "{out}");
    let ages = |line: &str| line.split("   ").map(str::trim).filter(|cell| !cell.is_empty()).count();
    assert_eq!(ages(line), ages(out.lines().nth(1).unwrap()), "it has an age like any other: {out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_is_listed_once_whatever_is_found_and_pages_are_followed() {
    let cluster = certificates("uncounted-many").await;
    let certificate = cluster.create(&saying("Certificate", "shop", "Ready"));
    cluster.server.forget_requests();
    let (_, out, _) = without_policy(&cluster, &["tree", "certificate/shop"]).await;
    assert_eq!(out.lines().count(), 2, "{out}");
    let alone = requests(&cluster);
    for at in 0..1_200 {
        cluster.below(&certificate, saying("CertificateRequest", &format!("shop-{at:04}"), "Ready"));
    }
    cluster.server.forget_requests();
    let (_, out, _) = without_policy(&cluster, &["tree", "certificate/shop", "--limit", "2000"]).await;
    assert_eq!(out.lines().count(), 2 + 1_200);
    // Two more pages of metadata, and three of the objects.
    assert!(
        requests(&cluster) <= alone + 5,
        "{} requests, {alone} where nothing is owned",
        requests(&cluster)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_sixty_kinds_each_takes_one_request_though_there_are_five_thousand_objects() {
    let cluster = certificates("uncounted-kinds").await;
    for kind in 0..60 {
        cluster.create(&crd(&format!("Part{kind:02}")));
    }
    let certificate = cluster.create(&saying("Certificate", "shop", "Ready"));
    cluster.server.forget_requests();
    let (_, out, _) = without_policy(&cluster, &["tree", "certificate/shop"]).await;
    assert_eq!(out.lines().count(), 2, "{out}");
    let alone = requests(&cluster);
    for (kind, at) in (0..60).flat_map(|kind| (0..83).map(move |at| (kind, at))) {
        let part = saying(&format!("Part{kind:02}"), &format!("part-{at}"), "Ready");
        if at == 0 {
            cluster.below(&certificate, part)
        } else {
            cluster.create(&part)
        };
    }
    cluster.server.forget_requests();
    let (code, out, _) = without_policy(&cluster, &["tree", "certificate/shop"]).await;
    assert_eq!((code, out.lines().count()), (Some(0), 2 + 60), "{out}");
    // One more for each kind of which something was found, to judge it.
    assert!(
        requests(&cluster) <= alone + 60,
        "{} requests, {alone} where nothing is owned",
        requests(&cluster)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rings_and_owners_in_other_namespaces_are_no_trouble() {
    let cluster = certificates("uncounted-ring").await;
    let certificate = cluster.create(&saying("Certificate", "shop", "Ready"));
    let request = cluster.below(&certificate, saying("CertificateRequest", "shop-1", "Ready"));
    cluster.below(&request, owned(&request, saying("Order", "shop-1-1", "Ready")));
    let elsewhere = json!({ "apiVersion": "example.com/v1", "kind": "CertificateRequest",
        "metadata": { "name": "forged", "namespace": "kube-system" } });
    let now = cluster.server.now();
    cluster.server.lock_store().create_object(now, owned(&certificate, elsewhere)).unwrap();
    // The Certificate names what it owns as its owner.
    let patch = json!({ "metadata": { "ownerReferences": [{ "apiVersion": "example.com/v1", "kind": "CertificateRequest",
        "name": "shop-1", "uid": request["metadata"]["uid"] }] } });
    let now = cluster.server.now();
    cluster
        .server
        .lock_store()
        .patch_object(now, "example.com/v1", "Certificate", "default", "shop", &patch)
        .unwrap();
    for scope in [&["tree", "certificate/shop"][..], &["tree", "certificate/shop", "-A"]] {
        let (code, out, _) = without_policy(&cluster, scope).await;
        assert_eq!(code, Some(0), "{out}");
        assert_eq!(out.lines().count(), 4, "{out}");
        assert!(!out.contains("forged"), "{out}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_that_cannot_be_listed_are_named_in_one_line_and_the_rest_is_shown() {
    let cluster = certificates("uncounted-rights").await;
    let certificate = cluster.create(&saying("Certificate", "shop", "Ready"));
    cluster.below(&certificate, saying("CertificateRequest", "shop-1", "Ready"));
    for resource in ["secrets", "configmaps"] {
        cluster.server.faults().add(InjectedFault::new(FaultAction::Forbid).on_kind("", resource));
    }
    let (code, out, err) = without_policy(&cluster, &["tree", "certificate/shop"]).await;
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("CertificateRequest default/shop-1 (not counted)"), "{out}");
    let said: Vec<&str> = err.lines().filter(|line| line.contains("not read")).collect();
    assert_eq!(said.len(), 1, "{err}");
    for part in ["ConfigMap", "Secret", "you may not list them"] {
        assert!(said[0].contains(part), "{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_listed_and_not_read_is_shown_and_the_right_to_ask_for_is_named() {
    let cluster = certificates("uncounted-get").await;
    let certificate = cluster.create(&saying("Certificate", "shop", "Ready"));
    let request = cluster.below(&certificate, saying("CertificateRequest", "shop-1", "Ready"));
    cluster.below(&request, errored_order());
    let refused = InjectedFault::new(FaultAction::Forbid).on_kind("example.com", "orders");
    cluster.server.faults().add(refused.on_verb(RequestVerb::Get));
    let (code, out, err) = without_policy(&cluster, &["tree", "certificate/shop", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    let trees: Value = serde_json::from_str(&out).unwrap();
    let order = &trees[0]["children"][0]["children"][0];
    assert_eq!((&order["kind"], &order["verdict"]), (&json!("Order"), &json!("Unknown")), "{out}");
    assert!(order["detail"].to_string().contains("you may not get them"), "{out}");
    let said: Vec<&str> = err.lines().filter(|line| line.contains("not read")).collect();
    assert_eq!(said.len(), 1, "{err}");
    assert!(said[0].contains("Order.example.com") && said[0].contains("you may not get them"), "{err}");
    let (_, out, _) = without_policy(&cluster, &["explain", "certificate/shop", "-o", "json"]).await;
    let explained: Value = serde_json::from_str(&out).unwrap();
    assert!(explained[0]["notRead"].to_string().contains("you may not get them"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_sixty_kinds_those_that_hang_are_named_and_the_rest_is_shown() {
    let cluster = certificates("uncounted-hang").await;
    for kind in 0..60 {
        cluster.create(&crd(&format!("Part{kind:02}")));
    }
    let certificate = cluster.create(&saying("Certificate", "shop", "Ready"));
    let request = cluster.below(&certificate, saying("CertificateRequest", "shop-1", "Ready"));
    cluster.below(&request, errored_order());
    for (verb, plural) in [(RequestVerb::List, "part07s"), (RequestVerb::Get, "orders")] {
        let hangs = InjectedFault::new(FaultAction::Stall).on_kind("example.com", plural);
        cluster.server.faults().add(hangs.on_verb(verb));
    }
    let (code, out, err) = without_policy(&cluster, &["tree", "certificate/shop"]).await;
    assert_eq!((code, out.lines().count()), (Some(0), 4), "{out}{err}");
    assert!(out.contains("CertificateRequest default/shop-1 (not counted)   Ready"), "{out}");
    for kind in ["Part07", "Order"] {
        let named = |line: &&str| line.contains(kind) && line.contains("no answer within 10 s");
        assert_eq!(err.lines().filter(named).count(), 1, "{kind}: {err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_its_group_serves_in_an_older_version_alone_is_found_and_may_be_named() {
    let cluster = certificates("uncounted-versions").await;
    let mut definition = crd("Challenge");
    definition["spec"]["versions"][0]["name"] = json!("v1alpha1");
    cluster.create(&definition);
    let certificate = cluster.create(&saying("Certificate", "shop", "Ready"));
    let mut challenge = saying("Challenge", "shop-1", "Ready");
    challenge["apiVersion"] = json!("example.com/v1alpha1");
    cluster.below(&certificate, challenge);
    let (code, out, err) = without_policy(&cluster, &["tree", "certificate/shop"]).await;
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("└─ Challenge default/shop-1 (not counted)"), "{out}");
    let (code, out, err) = without_policy(&cluster, &["tree", "challenge/shop-1"]).await;
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_names_what_no_policy_counts_and_is_not_ready() {
    let cluster = certificates("uncounted-wait").await;
    let certificate = cluster.create(&saying("Certificate", "shop", "Issuing"));
    let request = cluster.below(&certificate, saying("CertificateRequest", "shop-1", "Pending"));
    cluster.below(&request, errored_order());
    let args = ["wait", "certificate/shop", "--timeout", "8s"];
    let (code, out, err) = without_policy(&cluster, &args).await;
    assert_eq!(code, Some(124), "{out}{err}");
    let said = "; not counted: Order shop-1-42 failed: ";
    assert!(out.contains(said) || err.contains(said), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_names_the_pod_that_holds_a_workload_back() {
    let cluster = certificates("uncounted-wait-pod").await;
    let certificate = cluster.create(&saying("Certificate", "shop", "Issuing"));
    rolled_out(&cluster, &certificate);
    let args = ["wait", "certificate/shop", "--timeout", "8s"];
    let (code, out, err) = without_policy(&cluster, &args).await;
    assert_eq!(code, Some(124), "{out}{err}");
    let said = "; not counted: Pod web-new-1 failed: ";
    assert!(out.contains(said) && out.contains("CrashLoopBackOff"), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn below_workloads_the_current_pods_are_shown_without_the_sets_of_earlier_rollouts() {
    let cluster = certificates("uncounted-workloads").await;
    let certificate = cluster.create(&saying("Certificate", "shop", "Ready"));
    rolled_out(&cluster, &certificate);
    let parent = ["tree", "certificate/shop"];
    for (args, depth) in [(parent, 1), (["tree", "deployment/web"], 0)] {
        let (_, out, err) = without_policy(&cluster, &args).await;
        let indent = "   ".repeat(depth);
        for (below, object) in ["ReplicaSet default/web-new", "Pod default/web-new-1"].iter().enumerate() {
            let line = format!("{indent}{}└─ {object} (not counted)", "   ".repeat(below));
            assert!(out.lines().any(|shown| shown.starts_with(&line)), "{line}: {out}{err}");
        }
        assert!(out.contains("CrashLoopBackOff") && !out.contains("web-old"), "{out}");
    }
    // What explains itself by its pods is not searched below.
    let (_, out, _) = without_policy(&cluster, &["explain", "certificate/shop"]).await;
    assert!(!out.contains("ReplicaSet default/web-new"), "{out}");
}

/// A Deployment with the ReplicaSet of an earlier rollout, and the current one, whose Pod crash-loops.
fn rolled_out(cluster: &LiveCluster, owner: &Value) {
    let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": { "replicas": 1 }, "status": { "observedGeneration": 1 } });
    let deployment = cluster.below(owner, deployment);
    for (name, replicas) in [("web-old", 0), ("web-new", 1)] {
        let set = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": name },
            "spec": { "replicas": replicas }, "status": { "observedGeneration": 1, "replicas": replicas } });
        let set = cluster.below(&deployment, set);
        if replicas > 0 {
            cluster.below(&set, pod("web-new-1", Some(("CrashLoopBackOff", "back-off"))));
        }
    }
}
