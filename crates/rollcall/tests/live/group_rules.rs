//! ReadinessGroups whose members have readiness rules of their own.

use std::sync::Arc;

use sandbox::{FaultAction, InjectedFault};
use serde_json::{Value, json};

use super::cluster::{LiveCluster, condition, custom, done};
use super::service::{RunningService, until};

const OWN: &str = "rollcall.dev/v1alpha1";

async fn cluster(name: &str) -> LiveCluster {
    let cluster = LiveCluster::start(name).await;
    cluster.install();
    cluster
}

/// A group of the Databases with this label, judged by this rule.
fn group(namespace: &str, name: &str, ready: &Value) -> Value {
    let databases = json!([{ "group": "example.com", "kind": "Database" }]);
    json!({
        "apiVersion": OWN, "kind": "ReadinessGroup", "metadata": { "name": name, "namespace": namespace },
        "spec": { "members": [{ "kinds": databases, "labels": { "app": "web" }, "ready": ready }], "settle": "0s" },
    })
}

fn cel(current: &str) -> Value {
    json!({ "cel": { "current": current } })
}

fn database(namespace: &str, name: &str, phase: &str) -> Value {
    let mut database = custom("Database", name);
    database["metadata"]["namespace"] = json!(namespace);
    database["metadata"]["labels"] = json!({ "app": "web" });
    database["status"]["phase"] = json!(phase);
    database
}

fn stored(cluster: &LiveCluster, (namespace, name): (&str, &str)) -> Option<Arc<Value>> {
    cluster.server.lock_store().get(OWN, "ReadinessGroup", namespace, name)
}

fn says(cluster: &LiveCluster, (namespace, name): (&str, &str), status: &str, word: &str) -> bool {
    let told = stored(cluster, (namespace, name)).map(|group| condition(&group, "Ready")).unwrap_or_default();
    told["status"] == status && told["message"].as_str().is_some_and(|message| message.contains(word))
}

fn set_phase(cluster: &LiveCluster, name: &str, phase: &str) {
    let (now, patch) = (cluster.server.now(), json!({ "status": { "phase": phase } }));
    let mut store = cluster.server.lock_store();
    store.patch_status(now, "example.com/v1", "Database", "default", name, &patch).unwrap();
}

fn edit_rule(cluster: &LiveCluster, name: &str, ready: &Value) {
    let (now, edited) = (cluster.server.now(), group("default", name, ready));
    let patch = json!({ "spec": edited["spec"] });
    cluster.server.lock_store().patch_object(now, OWN, "ReadinessGroup", "default", name, &patch).unwrap();
}

async fn run(cluster: &LiveCluster, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = cluster.bare();
    command.args(args);
    done(command).await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_groups_judge_the_same_object_each_by_its_own_rule() {
    let cluster = cluster("group-rules-two").await;
    cluster.create(&database("default", "db", "Up"));
    cluster.create(&group("default", "up", &cel("status.phase == 'Up'")));
    let script =
        "return { status = obj.status.phase == 'Down' and 'Healthy' or 'Degraded', message = 'not down' }";
    cluster.create(&group("default", "down", &json!({ "lua": script })));
    let _service = RunningService::start(&cluster, &[], &[]);
    until("it is up", || says(&cluster, ("default", "up"), "True", "1 of 1 ready"));
    until("it is not down", || says(&cluster, ("default", "down"), "False", "not down"));
    set_phase(&cluster, "db", "Down");
    until("it is down", || says(&cluster, ("default", "down"), "True", "1 of 1 ready"));
    until("it is not up", || says(&cluster, ("default", "up"), "False", "Database db"));
    // Who asks for himself is told the same.
    for (name, code) in [("down", 0), ("up", 1)] {
        let (told, out, err) = run(&cluster, &["explain", &format!("readinessgroup/{name}")]).await;
        assert_eq!(told, Some(code), "{name}: {out}{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_cannot_be_is_told_with_its_line_and_column_until_it_is_mended() {
    let cluster = cluster("group-rules-broken").await;
    cluster.create(&database("default", "db", "Up"));
    cluster.create(&group("default", "shop", &cel("status.phase == 'Up'")));
    let _service = RunningService::start(&cluster, &[], &[]);
    until("it is ready", || says(&cluster, ("default", "shop"), "True", "1 of 1 ready"));
    let broken = cel("status.phase ==\n  frobnicate(1)");
    edit_rule(&cluster, "shop", &broken);
    let place = "spec.members[0].ready.cel.current: line 2, column 3: ";
    until("it says where", || says(&cluster, ("default", "shop"), "Unknown", place));
    let refused = stored(&cluster, ("default", "shop")).unwrap();
    let told = condition(&refused, "Ready");
    assert!(
        told["message"].as_str().unwrap().ends_with("; mend it, or apply again a spec that was judged"),
        "{told}"
    );
    // What was said of the generation before answers for none after it: who waits for this one reads of this one, and who asks
    // first which generation is answered for, as kstatus does, that it is in progress.
    let generations = [&refused["metadata"]["generation"], &told["observedGeneration"]];
    assert_eq!(generations, [2, 2]);
    assert_eq!(refused["status"]["observedGeneration"], 1);
    let file = cluster.file("group.json", &group("default", "shop", &broken));
    let (code, out, err) = run(&cluster, &["check", "-f", &file]).await;
    assert!(code == Some(1) && format!("{out}{err}").contains(place), "{out}{err}");
    let (code, out, err) = run(&cluster, &["explain", "readinessgroup/shop"]).await;
    assert!(code == Some(1) && out.contains(place), "{out}{err}");
    edit_rule(&cluster, "shop", &cel("status.phase == 'Up'"));
    until("the earlier spec is judged again", || says(&cluster, ("default", "shop"), "True", "1 of 1 ready"));
    let judged = stored(&cluster, ("default", "shop")).unwrap();
    assert_eq!(condition(&judged, "Ready")["observedGeneration"], judged["metadata"]["generation"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_is_evaluated_on_nothing_in_a_namespace_without_such_a_group() {
    let cluster = cluster("group-rules-within").await;
    cluster.create(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "bank" } }));
    for n in 0..150 {
        cluster.create(&database("bank", &format!("vault-{n}"), "Secret"));
    }
    cluster.create(&database("default", "db", "Up"));
    // On what the bank has it would overrun its limits, and be suspended for everybody: that would tell what the bank has.
    let spies = "if obj.status.phase == 'Secret' then while true do end end \
                 return { status = obj.status.phase == 'Up' and 'Healthy' or 'Degraded', message = 'not up' }";
    cluster.create(&group("default", "shop", &json!({ "lua": spies })));
    let service = RunningService::start(&cluster, &[], &[]);
    until("it is ready", || says(&cluster, ("default", "shop"), "True", "1 of 1 ready"));
    let evaluated = || service.metric("rollcall_rule_evaluations_total", "");
    until("it is counted", || evaluated() > 0);
    assert!(evaluated() < 10, "{}", evaluated());
    // Where the bank has such a group itself, it is its own rule.
    cluster.create(&group("bank", "vaults", &json!({ "lua": spies })));
    until("it overruns there", || says(&cluster, ("bank", "vaults"), "Unknown", ""));
    until("they are evaluated", || evaluated() >= 100);
    // It is not evaluated there for a while, which is nothing to the namespace whose objects it does not overrun on.
    set_phase(&cluster, "db", "Moved");
    until("it is judged as before", || says(&cluster, ("default", "shop"), "False", "not up"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_administrator_protects_is_judged_by_no_group() {
    let cluster = cluster("group-rules-protected").await;
    cluster.create(&database("default", "db", "Up"));
    cluster.create(&group("default", "shop", &cel("status.phase == 'Up'")));
    let _service = RunningService::start(&cluster, &["--protected-kinds", "Database.example.com"], &[]);
    let said = "spec.members[0].ready: rules never read a Database beyond its metadata";
    until("it is refused", || says(&cluster, ("default", "shop"), "Unknown", said));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_switches_the_rules_of_groups_off_and_no_other_group() {
    let cluster = cluster("group-rules-off").await;
    cluster.create(&database("default", "db", "Ready"));
    cluster.create(&group("default", "shop", &cel("status.phase == 'Ready'")));
    let mut plain = group("default", "plain", &Value::Null);
    plain["spec"]["members"][0].as_object_mut().unwrap().remove("ready");
    cluster.create(&plain);
    let _service = RunningService::start(&cluster, &["--group-rules=false"], &[]);
    let said = "spec.members[0].ready: rules of groups are switched off (--group-rules=false)";
    until("it is refused", || says(&cluster, ("default", "shop"), "Unknown", said));
    until("the other is judged", || says(&cluster, ("default", "plain"), "True", "1 of 1 ready"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_with_a_rule_is_judged_by_who_may_read_one_namespace() {
    let cluster = cluster("group-rules-narrow").await;
    cluster.create(&database("default", "db", "Up"));
    cluster.create(&group("default", "shop", &cel("status.phase == 'Up'")));
    let forbidden = InjectedFault::new(FaultAction::Forbid).across_namespaces();
    cluster.server.faults().add(forbidden.on_kind("rollcall.dev", "readinessgroups"));
    let (code, out, err) = run(&cluster, &["wait", "readinessgroup/shop", "--timeout", "90s"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    let edited = cluster.file("group.json", &group("default", "shop", &cel("status.phase == 'Down'")));
    let (_, out, err) = run(&cluster, &["plan", "-f", &edited]).await;
    assert!(out.contains("Database db progressing (not ready by its rule)"), "{out}{err}");
}

fn member_of(group: &mut Value) -> &mut Value {
    &mut group["spec"]["members"][0]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_members_is_computed_from_the_group_itself() {
    let cluster = cluster("group-rules-number").await;
    cluster.create(&database("default", "a", "Ready"));
    let mut shop = group("default", "shop", &Value::Null);
    member_of(&mut shop).as_object_mut().unwrap().remove("ready");
    member_of(&mut shop)["expect"] = json!({ "cel": "int(parent.metadata.annotations['example.com/size'])" });
    shop["metadata"]["annotations"] = json!({ "example.com/size": "2" });
    cluster.create(&shop);
    let _service = RunningService::start(&cluster, &[], &[]);
    until("one is missing", || says(&cluster, ("default", "shop"), "False", ""));
    cluster.create(&database("default", "b", "Ready"));
    until("both are there", || says(&cluster, ("default", "shop"), "True", "2 of 2 ready"));
    let (now, patch) =
        (cluster.server.now(), json!({ "metadata": { "annotations": { "example.com/size": "many" } } }));
    cluster.server.lock_store().patch_object(now, OWN, "ReadinessGroup", "default", "shop", &patch).unwrap();
    until("it is no number", || says(&cluster, ("default", "shop"), "Unknown", "expect.cel: "));
    // Anyone may bring thousands of these: what a policy may compute is too much for a group.
    member_of(&mut shop)["expect"] =
        json!({ "cel": "lists.range(45).all(x, lists.range(45).all(y, x + y >= 0)) ? 1 : 0" });
    shop["metadata"]["name"] = json!("costly");
    cluster.create(&shop);
    until("it costs too much", || says(&cluster, ("default", "costly"), "Unknown", "expect.cel: "));
}
