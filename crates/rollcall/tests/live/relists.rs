//! What rules are read from is edited while the list of policies breaks off half-way: nothing is planned from half a list.

use kube::CustomResourceExt;
use sandbox::{FaultAction, InjectedFault, RequestVerb};
use serde_json::{Value, json};

use super::cluster::{LiveCluster, condition, custom, pod, policy};
use super::service::{RunningService, until};

const SCRIPT: &str = "return { status = 'Healthy' }";
const KEY: &str = "resource.customizations.health.example.com_Database";

/// A shop with a database of one pod.
fn create_shop(cluster: &LiveCluster, name: &str) {
    let shop = cluster.create(&custom("Shop", name));
    let database = cluster.below(&shop, custom("Database", name));
    cluster.below(&database, pod(name, None));
}

fn both(cluster: &LiveCluster, name: &str) -> [Value; 2] {
    ["Shop", "Database"].map(|kind| cluster.parent(kind, name))
}

fn await_ready(cluster: &LiveCluster, name: &str) {
    let is_ready = |parent: &Value| condition(parent, "Ready")["status"] == "True";
    until(&format!("{name} is ready"), || both(cluster, name).iter().all(is_ready));
}

/// A cluster with two policies, one of which judges by a ConfigMap of rules.
async fn start_cluster() -> LiveCluster {
    let cluster = LiveCluster::start("relists").await;
    cluster.create(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "argocd" } }));
    cluster.create(&json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "argocd-cm", "namespace": "argocd" }, "data": { KEY: SCRIPT } }));
    cluster.create(&serde_json::to_value(api::ReadinessPolicy::crd()).unwrap());
    let mut shops = policy("Shop", "example.com", "Database");
    shops["spec"]["children"][0]["ready"] = json!({ "rules": "argocd-cm" });
    cluster.create(&shops);
    cluster.create(&policy("Database", "", "Pod"));
    create_shop(&cluster, "first");
    cluster
}

/// The first part of a list of policies, which lacks the one of shops.
fn half_list(cluster: &LiveCluster) -> Vec<u8> {
    let store = cluster.server.lock_store();
    let first = store.get("rollcall.dev/v1alpha1", "ReadinessPolicy", "", "database").unwrap();
    let metadata = json!({ "resourceVersion": store.revision().to_string(), "continue": "more" });
    let list = json!({ "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicyList",
        "metadata": metadata, "items": [*first] });
    list.to_string().into_bytes()
}

fn of_policies(action: FaultAction, verb: RequestVerb) -> InjectedFault {
    InjectedFault::new(action).on_verb(verb).on_kind("rollcall.dev", "readinesspolicies")
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_are_edited_while_half_of_the_policies_are_listed_change_no_word_of_anyone() {
    let cluster = start_cluster().await;
    let service = RunningService::start(&cluster, &[], &[]);
    await_ready(&cluster, "first");
    let before = both(&cluster, "first");
    let faults = cluster.server.faults();
    let expired = faults.add(of_policies(FaultAction::ErrorEvent(410), RequestVerb::Watch).once());
    let half = faults.add(of_policies(FaultAction::AnswerRaw(half_list(&cluster)), RequestVerb::List).once());
    let rest = faults.add(of_policies(FaultAction::Answer(503, None), RequestVerb::List));
    cluster.server.end_watches();
    until("the list has broken off", || rest.fired_count() > 0);
    assert_eq!((expired.fired_count(), half.fired_count()), (1, 1));
    let (now, patch) = (cluster.server.now(), json!({ "data": { KEY: format!("-- edited\n{SCRIPT}") } }));
    let edited =
        cluster.server.lock_store().patch_object(now, "v1", "ConfigMap", "argocd", "argocd-cm", &patch);
    edited.unwrap();
    until("the edit is read", || service.logged("loaded health scripts").len() == 2);
    create_shop(&cluster, "second");
    await_ready(&cluster, "second");
    assert_eq!(both(&cluster, "first"), before, "while half of the policies are listed");
    rest.lift();
    let lists = |cluster: &LiveCluster| {
        let of = |of: &&sandbox::LoggedRequest| of.verb == RequestVerb::List && of.status == 200;
        let all = cluster.server.logged_requests();
        all.iter().filter(of).filter(|request| request.path.ends_with("/readinesspolicies")).count()
    };
    let listed = lists(&cluster);
    until("the policies are listed", || lists(&cluster) > listed);
    create_shop(&cluster, "third");
    await_ready(&cluster, "third");
    assert_eq!(both(&cluster, "first"), before, "after all of them were");
}
