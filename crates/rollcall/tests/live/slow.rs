//! `explain --slow`: rollouts whose delays are known.

use readiness::Time;
use sandbox::InjectedFault;
use serde_json::{Value, json};

use super::cluster::{LiveCluster, custom, done, own_definition, owned, pod, policy};

/// So many seconds after the year began.
fn at(second: i64) -> Time {
    Time(1_767_225_600_000 + second * 1_000)
}

fn text(second: i64) -> Value {
    json!(at(second).to_string())
}

fn create_at(cluster: &LiveCluster, second: i64, object: &Value) -> Value {
    (*cluster.server.lock_store().create_with_status(at(second).0, object.clone()).unwrap()).clone()
}

/// A database whose migration runs for 160 s, and whose pod waits for a node, an image of five minutes, and a probe.
async fn slow_database(name: &str) -> LiveCluster {
    let cluster = LiveCluster::start(name).await;
    cluster.text_file("policies.yaml", &policy("Database", "apps", "StatefulSet").to_string());
    let mut database = custom("Database", "orders");
    database["status"]["conditions"] = json!([{ "type": "Ready", "status": "True", "reason": "AllChildrenReady",
        "observedGeneration": 1, "lastTransitionTime": text(552) }]);
    let database = create_at(&cluster, 0, &database);
    let end = |kind: &str| json!({ "type": kind, "status": "True", "lastTransitionTime": text(162) });
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "migrate" },
        "spec": { "template": { "spec": { "containers": [{ "name": "m", "image": "i" }], "restartPolicy": "Never" } } },
        "status": { "startTime": text(2), "completionTime": text(162), "succeeded": 1,
            "conditions": [end("SuccessCriteriaMet"), end("Complete")] },
    });
    create_at(&cluster, 2, &owned(&database, job));
    let mut pod = pod("orders-0", None);
    for (condition, second) in [(0, 170), (1, 540), (2, 540)] {
        pod["status"]["conditions"][condition]["lastTransitionTime"] = text(second);
    }
    pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"] = text(480);
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "orders" },
        "spec": { "replicas": 1, "selector": { "matchLabels": { "app": "web" } }, "serviceName": "orders",
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "main", "image": "r/db:2" }] } } },
        "status": { "observedGeneration": 1, "replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1,
            "currentRevision": "a", "updateRevision": "a" },
    });
    let set = create_at(&cluster, 165, &owned(&database, set));
    let pod = create_at(&cluster, 166, &owned(&set, pod));
    for (reason, second, message) in [
        ("Pulling", 172, "Pulling image \"r/db:2\""),
        ("Pulled", 475, "Successfully pulled image \"r/db:2\""),
    ] {
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": { "name": format!("orders-0.{second}") },
            "reason": reason, "message": message, "firstTimestamp": text(second), "lastTimestamp": text(second), "type": "Normal",
            "involvedObject": { "apiVersion": "v1", "kind": "Pod", "name": "orders-0", "namespace": "default",
                "uid": pod["metadata"]["uid"], "fieldPath": "spec.containers{main}" },
        });
        create_at(&cluster, second, &event);
    }
    cluster
}

#[tokio::test]
async fn each_part_of_a_rollout_is_told_and_they_sum_up_to_the_whole() {
    let cluster = slow_database("slow").await;
    let (code, out, err) = cluster.run(&["explain", "database/orders", "--slow", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    let told: Value = serde_json::from_str(&out).unwrap();
    let rollout = &told[0];
    assert_eq!(
        (&rollout["isOver"], &rollout["seconds"], &rollout["generation"]),
        (&json!(true), &json!(552.0), &json!(1))
    );
    let parts = rollout["parts"].as_array().unwrap();
    let words: Vec<_> = parts
        .iter()
        .map(|part| {
            (
                part["object"].as_str().unwrap(),
                part["cause"].as_str().unwrap(),
                part["seconds"].as_f64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        words,
        [
            ("Database orders", "operator", 2.0),
            ("Job migrate", "job", 160.0),
            ("Database orders", "operator", 3.0),
            ("StatefulSet orders", "controller", 1.0),
            ("Pod orders-0", "scheduling", 4.0),
            ("Pod orders-0", "kubelet", 2.0),
            ("Pod orders-0", "imagePull", 303.0),
            ("Pod orders-0", "kubelet", 5.0),
            ("Pod orders-0", "starting", 60.0),
            ("Database orders", "settling", 12.0),
        ]
    );
    let (code, out, err) = cluster.run(&["explain", "database/orders", "--slow"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    let lines: Vec<String> =
        out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in [
        "Database default/orders: ready 9m 12s after generation 1 was written (2026-01-01T00:00:00Z)",
        "2s 0 % Database orders: its operator, until it had Job migrate",
        "2m 40s 29 % Job migrate: ran",
        "5m 3s 55 % Pod orders-0: image pull r/db:2",
        "12s 2 % Database orders: its policy: settle, hold, debounce",
    ] {
        assert!(lines.iter().any(|told| told == line), "no {line:?} in\n{out}");
    }
}

#[tokio::test]
async fn what_could_not_be_read_is_said_and_the_rest_told() {
    let cluster = slow_database("slow-unread").await;
    cluster.server.faults().add(InjectedFault::new(sandbox::FaultAction::Forbid).on_kind("", "events"));
    let mut command = cluster.rollcall(&["explain", "database/orders", "--slow"]);
    command.env("NO_COLOR", "1");
    let (code, out, err) = done(command).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(
        out.contains("not read: ") && out.contains("Pod orders-0: volumes, network, containers"),
        "{out}{err}"
    );
}

/// Moves the time at which the database was told ready last.
fn tell_ready_at(cluster: &LiveCluster, second: i64) {
    let told = json!([{ "type": "Ready", "status": "True", "reason": "AllChildrenReady",
        "observedGeneration": 1, "lastTransitionTime": text(second) }]);
    let patch = json!({ "status": { "conditions": told } });
    let mut store = cluster.server.lock_store();
    store.patch_status(at(second).0, "example.com/v1", "Database", "default", "orders", &patch).unwrap();
}

#[tokio::test]
async fn an_answer_that_turned_since_is_no_part_of_the_rollout() {
    const MONTH: i64 = 31 * 86_400;
    let cluster = slow_database("slow-turned").await;
    tell_ready_at(&cluster, MONTH);
    let (code, out, err) = cluster.run(&["explain", "database/orders", "--slow"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(!out.contains("settle, hold, debounce\n") && !out.contains("31days"), "{out}");
    assert!(out.contains("rolled out 9m after generation 1 was written"), "{out}");
    assert!(
        out.contains("it was told ready at 2026-02-01T00:00:00Z") && out.contains("turned since"),
        "{out}"
    );
    // Where an Event tells when it was told first, that is the end.
    create_at(
        &cluster,
        552,
        &json!({
            "apiVersion": "v1", "kind": "Event", "metadata": { "name": "orders.1", "namespace": "default" },
            "involvedObject": { "apiVersion": "example.com/v1", "kind": "Database", "namespace": "default",
                "name": "orders", "uid": uid_of_database(&cluster) },
            "reason": "AllChildrenReady", "message": "1 of 1 ready", "type": "Normal", "action": "Judge",
            "reportingComponent": "rollcall.dev/controller", "reportingInstance": "it", "eventTime": text(552),
        }),
    );
    let (_, out, err) = cluster.run(&["explain", "database/orders", "--slow", "-o", "json"]).await;
    let told: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    assert_eq!(told[0]["seconds"], json!(552.0), "{out}");
    assert_eq!(told[0]["toldLater"], json!("2026-02-01T00:00:00Z"), "{out}");
    let (_, out, _) = cluster.run(&["explain", "database/orders", "--slow"]).await;
    assert!(out.contains("it was told ready first at 2026-01-01T00:09:12Z, turned since"), "{out}");
}

fn uid_of_database(cluster: &LiveCluster) -> Value {
    let store = cluster.server.lock_store();
    let database = store.get("example.com/v1", "Database", "default", "orders").unwrap();
    database["metadata"]["uid"].clone()
}

#[tokio::test]
async fn the_rollout_of_a_group_begins_with_its_newest_member_and_no_operator_is_blamed() {
    let cluster = LiveCluster::start("slow-group").await;
    cluster.create(&own_definition("ReadinessGroup"));
    let group = json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessGroup", "metadata": { "name": "shop" },
        "spec": { "settle": "0s", "members": [{ "kinds": [{ "group": "apps", "kind": "Deployment" }], "labels": { "app": "web" } }] },
        "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": "AllChildrenReady",
            "observedGeneration": 1, "lastTransitionTime": text(90_065) }] },
    });
    create_at(&cluster, 0, &group);
    for (name, created, rolled_out) in [("old", 10, 60), ("new", 90_000, 90_060)] {
        let condition = json!({ "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable",
            "lastUpdateTime": text(rolled_out), "lastTransitionTime": text(rolled_out) });
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name, "labels": { "app": "web" } },
            "spec": { "replicas": 1 },
            "status": { "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1,
                "availableReplicas": 1, "conditions": [condition] },
        });
        create_at(&cluster, created, &deployment);
    }
    let file = cluster.file("group.json", &group);
    let mut command = cluster.bare();
    command.args(["explain", "readinessgroup/shop", "--slow", "-f", &file]);
    let (code, out, err) = done(command).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(
        out.contains("shop: ready 1m 5s after its newest member was written (2026-01-02T01:00:00Z)"),
        "{out}"
    );
    assert!(!out.contains("operator"), "{out}");
}
