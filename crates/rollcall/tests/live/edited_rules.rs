//! An edit of a rule writes to the parents whose answer it moves, and to no others, however many there are.

use std::collections::BTreeMap;

use kube::CustomResourceExt;
use sandbox::RequestVerb;
use serde_json::{Value, json};

use super::cluster::{LiveCluster, condition, custom, owned, pod, policy};
use super::service::{RunningService, until};

const PARENTS: usize = 3_000;
const OWN: &str = "rollcall.dev/v1alpha1";

/// Judges Pods by this expression.
fn edit(cluster: &LiveCluster, current: &str) {
    let mut edited = policy("Database", "", "Pod");
    edited["spec"]["children"][0]["ready"] = json!({ "cel": { "current": current } });
    let (now, patch) = (cluster.server.now(), json!({ "spec": edited["spec"] }));
    cluster.server.lock_store().patch_object(now, OWN, "ReadinessPolicy", "", "database", &patch).unwrap();
}

/// Number of writes to the status of Databases, and all others by what they were to.
fn writes(cluster: &LiveCluster) -> (u64, BTreeMap<String, u64>) {
    let (mut of_parents, mut others) = (0, BTreeMap::new());
    for (tally, count) in cluster.server.request_counts() {
        match (tally.verb, &*tally.plural) {
            (RequestVerb::Get | RequestVerb::List | RequestVerb::Watch, _) => {}
            (_, "databases") => of_parents += count,
            _ => *others.entry(format!("{:?} {}", tally.verb, tally.plural)).or_default() += count,
        }
    }
    (of_parents, others)
}

fn versions(cluster: &LiveCluster) -> BTreeMap<String, Value> {
    let all = cluster.server.lock_store().list_objects("example.com/v1", "Database", "");
    let version = |database: &Value| database["metadata"]["resourceVersion"].clone();
    let named = |database: &Value| database["metadata"]["name"].as_str().unwrap().to_owned();
    all.iter().map(|database| (named(database), version(database))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_thousands_of_parents_those_alone_are_written_whose_answer_an_edit_moves() {
    let cluster = LiveCluster::start("edited-rules").await;
    cluster.create(&serde_json::to_value(api::ReadinessPolicy::crd()).unwrap());
    cluster.create(&policy("Database", "", "Pod"));
    edit(&cluster, "self.status.phase == 'Running'");
    for number in 0..PARENTS {
        let parent = cluster.create(&custom("Database", &format!("db-{number}")));
        cluster.create(&owned(&parent, pod(&format!("db-{number}-0"), None)));
    }
    let service = RunningService::start(&cluster, &[], &[]);
    until("all parents are told True", || cluster.count_told("True") == PARENTS);
    let evaluations = || service.metric("rollcall_rule_evaluations_total", "");
    let before = versions(&cluster);
    cluster.server.forget_requests();
    for number in 0..3 {
        let begun = evaluations();
        edit(&cluster, &format!("self.metadata.name != 'no-{number}' && self.status.phase == 'Running'"));
        until("every child is judged by it", || evaluations() - begun >= PARENTS as u64);
    }
    // What moves one answer is written after all that the edits before it could have written.
    edit(&cluster, "self.metadata.name != 'db-7-0' && self.status.phase == 'Running'");
    until("the one is told", || condition(&cluster.parent("Database", "db-7"), "Ready")["status"] == "False");
    let (of_parents, others) = writes(&cluster);
    assert_eq!(of_parents, 1, "{others:?}");
    let after = versions(&cluster);
    let moved: Vec<_> = before.iter().filter(|(name, version)| after[*name] != **version).collect();
    assert_eq!(moved.iter().map(|(name, _)| &***name).collect::<Vec<_>>(), ["db-7"]);
    assert!(others.get("Create events").is_none_or(|events| *events <= 1), "{others:?}");
}
