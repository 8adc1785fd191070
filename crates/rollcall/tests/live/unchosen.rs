//! Objects of a kind that policies know, and that no policy chooses.

use sandbox::{FaultAction, InjectedFault, RequestVerb};
use serde_json::{Value, json};

use super::cluster::{LiveCluster, crd, custom, pod, policy};

/// A policy for Databases with this in `spec.parent`, and one for Shops that counts them.
fn write_policies(cluster: &LiveCluster, chosen: &Value) {
    let mut databases = policy("Database", "", "Pod");
    for (field, value) in chosen.as_object().unwrap() {
        databases["spec"]["parent"][field] = value.clone();
    }
    let policies = [databases, policy("Shop", "example.com", "Database")].map(|policy| policy.to_string());
    cluster.text_file("policies.yaml", &policies.join("\n---\n"));
}

fn ready(kind: &str, name: &str) -> Value {
    let mut object = custom(kind, name);
    object["status"]["conditions"] =
        json!([{ "type": "Ready", "status": "True", "reason": "Up", "observedGeneration": 1 }]);
    object
}

fn gold() -> Value {
    json!({ "selector": { "matchLabels": { "tier": "gold" } } })
}

fn commands(what: &str) -> [Vec<&str>; 3] {
    [vec!["tree", what], vec!["explain", what], vec!["wait", what, "--timeout", "12s"]]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_no_policy_chooses_is_judged_as_if_there_were_none() {
    let cluster = LiveCluster::start("unchosen").await;
    cluster.create(&ready("Database", "mars"));
    for chosen in [gold(), json!({ "namespaceSelector": { "matchLabels": { "tier": "gold" } } })] {
        write_policies(&cluster, &chosen);
        for args in commands("database/mars") {
            let (code, out, err) = cluster.run(&args).await;
            assert_eq!(code, Some(0), "{args:?}: {out}{err}");
            assert!(out.contains("mars") && !err.contains("there is no"), "{args:?}: {out}{err}");
            let says = "no policy chooses Database mars: it is judged as without policies";
            assert_eq!(err.matches(says).count(), 1, "{args:?}: {err}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workloads_of_an_object_that_no_policy_chooses_count_as_they_would_without_policies() {
    let cluster = LiveCluster::start("unchosen-workloads").await;
    write_policies(&cluster, &gold());
    let mars = cluster.create(&ready("Database", "mars"));
    cluster.below(
        &mars,
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
            "spec": { "replicas": 2 }, "status": { "observedGeneration": 1 } }),
    );
    for (args, expected) in commands("database/mars").into_iter().zip([1, 1, 124]) {
        let (code, out, err) = cluster.run(&args).await;
        assert_eq!(code, Some(expected), "{args:?}: {out}{err}");
        assert!(out.contains("Deployment"), "{args:?}: {out}{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_object_says_of_itself_counts_beside_what_it_owns_where_there_is_no_policy() {
    let cluster = LiveCluster::start("unchosen-own-word").await;
    let finished = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "submitter" },
        "spec": { "completions": 1 }, "status": { "succeeded": 1, "conditions": [
            { "type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" } ] } });
    // As KubeRay leaves a RayJob whose submitter ended well, and whose job did not.
    for (status, code, word) in [
        (json!({ "jobDeploymentStatus": "Failed", "reason": "DeadlineExceeded" }), 1, "Failed"),
        (json!({ "jobDeploymentStatus": "Initializing" }), 1, "Progressing"),
        (json!({ "jobDeploymentStatus": "Complete" }), 0, "Ready"),
        (json!({ "dashboard": "http://10.0.0.1" }), 0, "AllChildrenReady"),
    ] {
        let mut run = custom("Shop", &format!("run-{}", word.to_lowercase()));
        run["status"] = status;
        let run = cluster.create(&run);
        let mut job = finished.clone();
        job["metadata"]["name"] = json!(format!("job-{}", word.to_lowercase()));
        cluster.below(&run, job);
        let mut command = cluster.bare();
        let name = format!("shop/{}", run["metadata"]["name"].as_str().unwrap());
        command.args(["tree", &name]);
        let (exit, out, err) = super::cluster::done(command).await;
        assert_eq!(exit, Some(code), "{out}{err}");
        let line = out.lines().nth(1).unwrap_or_default();
        assert!(line.contains(word), "{word}: {out}{err}");
        assert!(out.contains("Job default/job-"), "its children are shown all the same: {out}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_policy_said_that_does_not_choose_an_object_any_more_is_no_quiet() {
    let cluster = LiveCluster::start("unchosen-told").await;
    let mut slow = policy("Database", "", "Pod");
    slow["spec"]["settle"] = json!("1h");
    let mut narrow = policy("Database", "", "Pod");
    narrow["metadata"]["name"] = json!("narrow");
    narrow["spec"]["parent"]["selector"] = gold()["selector"].clone();
    narrow["spec"]["condition"] = json!({ "type": "PodsReady" });
    let file =
        cluster.text_file("two.yaml", &[slow, narrow].map(|policy| policy.to_string()).join("\n---\n"));
    let mut mars = custom("Database", "mars");
    mars["status"] = json!({ "phase": "Up", "conditions": [{ "type": "PodsReady", "status": "True",
        "reason": "AllChildrenReady", "message": "1 of 1 ready", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z" }] });
    let mars = cluster.create(&mars);
    cluster.below(&mars, pod("mars-0", None));
    let mut command = cluster.bare();
    command.args(["wait", "database/mars", "--timeout", "0s", "-f", &file]);
    let (code, out, err) = super::cluster::done(command).await;
    assert_eq!(code, Some(124), "{out}{err}");
    assert!(out.contains("waiting for the operator"), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_chosen_asks_for_no_more_kinds_than_its_policy() {
    let cluster = LiveCluster::start("unchosen-not").await;
    write_policies(&cluster, &gold());
    cluster.create(&ready("Database", "mars"));
    let mut venus = ready("Database", "venus");
    venus["metadata"]["labels"] = json!({ "tier": "gold" });
    let venus = cluster.create(&venus);
    cluster.below(&venus, pod("venus-0", None));
    let (code, out, err) = cluster.run(&["wait", "database/venus", "--timeout", "90s"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(!err.contains("no policy chooses"), "{err}");
    let asked = cluster.server.logged_requests();
    assert!(!asked.iter().any(|request| request.path.contains("/deployments")), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_without_a_parent_is_judged() {
    let cluster = LiveCluster::start("unchosen-child").await;
    cluster.create(&crd("Planet"));
    let policies = [policy("Shop", "example.com", "Planet"), policy("Database", "apps", "Deployment")];
    let policies = policies.map(|policy| policy.to_string());
    cluster.text_file("policies.yaml", &policies.join("\n---\n"));
    cluster.create(&ready("Planet", "mars"));
    cluster.create(
        &json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "generation": 1 },
            "spec": { "replicas": 1 }, "status": { "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1,
                "readyReplicas": 1, "availableReplicas": 1 } }),
    );
    for what in ["planet/mars", "deployment/web"] {
        for args in commands(what) {
            let (code, out, err) = cluster.run(&args).await;
            assert_eq!(code, Some(0), "{args:?}: {out}{err}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_no_policy_chooses_may_come_while_it_is_waited_for() {
    let cluster = LiveCluster::start("unchosen-later").await;
    write_policies(&cluster, &gold());
    let waiting = super::cluster::done(cluster.rollcall(&["wait", "database/mars", "--timeout", "20s"]));
    let waiting = tokio::spawn(waiting);
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    cluster.create(&ready("Database", "mars"));
    let (code, out, err) = waiting.await.unwrap();
    assert_eq!((code, &*out), (Some(0), "Database mars: ready\n"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_namespaces_may_not_be_read_nobody_knows_which_policy_chooses_an_object() {
    let cluster = LiveCluster::start("unchosen-unknown").await;
    write_policies(&cluster, &json!({ "namespaceSelector": { "matchLabels": { "tier": "gold" } } }));
    cluster.create(&ready("Database", "mars"));
    let forbidden = InjectedFault::new(FaultAction::Forbid).on_verb(RequestVerb::List);
    cluster.server.faults().add(forbidden.on_kind("", "namespaces"));
    for args in commands("database/mars") {
        let (code, out, err) = cluster.run(&args).await;
        assert_eq!(code, Some(2), "{args:?}: {out}{err}");
        let all = format!("{out}{err}");
        assert!(!all.contains("there is no Database") && !all.contains("does not exist"), "{args:?}: {all}");
        assert!(all.contains("labels of its namespace could not be read"), "{args:?}: {all}");
    }
}
