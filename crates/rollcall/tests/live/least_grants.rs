//! Where the service grants itself listed roles, it asks for what `rollcall rbac --grant-roles` grants, and for all of it.

use std::collections::BTreeSet;

use kube::CustomResourceExt;
use sandbox::{FaultAction, InjectedFault};
use serde_json::{Value, json};

use super::asked_rights::{AskedRight, RightsTable, granted_rights};
use super::cluster::{LiveCluster, done, policy};
use super::service::{RunningService, until};

const RBAC: &str = "rbac.authorization.k8s.io";
const BINDING: &str = "rollcall:rollcall-system:rollcall:shop-reader";

/// Lets the server answer a review by this status.
fn review(cluster: &LiveCluster, plural: &str, group: &str, status: &Value) {
    let answer = json!({ "status": status }).to_string().into_bytes();
    let fault = InjectedFault::new(FaultAction::AnswerRaw(answer)).on_kind(group, plural);
    cluster.server.faults().add(fault);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_grants_itself_roles_asks_for_what_is_granted_for_that() {
    let cluster = LiveCluster::start("least-grants").await;
    for own in [api::ReadinessPolicy::crd(), api::ReadinessGroup::crd()] {
        cluster.create(&serde_json::to_value(own).unwrap());
    }
    let home = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "rollcall-system" } });
    cluster.create(&home);
    cluster.create(&json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": { "name": "shop-reader" },
        "rules": [{ "apiGroups": ["example.com"], "resources": ["shops"], "verbs": ["get", "list", "watch"] }],
    }));
    // The server knows no rights: it is told that all of them lack, and whose they are.
    review(&cluster, "selfsubjectaccessreviews", "authorization.k8s.io", &json!({ "allowed": false }));
    let account = json!({ "username": "system:serviceaccount:rollcall-system:rollcall" });
    review(&cluster, "selfsubjectreviews", "authentication.k8s.io", &json!({ "userInfo": account }));
    let is_bound = || {
        let store = cluster.server.lock_store();
        store.get(&format!("{RBAC}/v1"), "ClusterRoleBinding", "", BINDING).is_some()
    };

    cluster.create(&policy("Shop", "example.com", "Database"));
    let args = ["--grant-roles", "shop-reader", "--records-namespace", "rollcall-system"];
    let service = RunningService::start(&cluster, &args, &[]);
    until("the role is bound", is_bound);
    let now = cluster.server.now();
    let (version, kind) = ("rollcall.dev/v1alpha1", "ReadinessPolicy");
    cluster.server.lock_store().delete_object(now, version, kind, "", "shop").unwrap();
    until("the role is bound no more", || !is_bound());
    drop(service);

    let mut command = cluster.bare();
    command.args(["rbac", "--grant-roles", "shop-reader"]);
    let (code, out, err) = done(command).await;
    assert_eq!(code, Some(0), "{err}");
    let manifests: Vec<Value> = serde_saphyr::from_multiple(&out).unwrap();
    let asked = cluster.server.logged_requests().iter().filter_map(AskedRight::of).collect::<BTreeSet<_>>();
    let asked = asked.into_iter().filter(|asked| asked.group == RBAC).collect();
    let granted =
        granted_rights(&manifests).into_iter().filter(|right| right.what().ends_with(RBAC)).collect();
    let table = RightsTable { asked: &asked, granted: &granted };
    println!("{table}");
    assert_eq!(table.refused(), [] as [&AskedRight; 0], "no rule grants these");
    let unasked: Vec<_> = table.unasked().iter().map(|right| right.what()).collect();
    // No request has that verb: the server looks for it when a binding of the role is created.
    assert_eq!(unasked, [format!("bind clusterroles.{RBAC}")], "granted, and never asked for");
}
