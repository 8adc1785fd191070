//! What a policy wrote goes with it by and by, and what is left of it stays where the policy comes back meanwhile.

use std::collections::BTreeMap;

use kube::CustomResourceExt;
use sandbox::RequestVerb;

use super::cluster::{LiveCluster, custom, owned, pod, policy};
use super::service::{RunningService, until};

/// So many that their release takes five seconds, and at no pace less than it takes to learn of a policy.
const PARENTS: usize = 60;
/// Entries that are removed at once, before the rest is at a fixed rate.
const AT_ONCE: usize = 10;
const OWN: &str = "rollcall.dev/v1alpha1";

/// Number of writes to each Database.
fn writes(cluster: &LiveCluster) -> BTreeMap<String, usize> {
    let mut writes = BTreeMap::new();
    for request in cluster.server.logged_requests() {
        let name = request.path.strip_suffix("/status").and_then(|path| path.split("/databases/").nth(1));
        if let (RequestVerb::Patch, Some(name)) = (request.verb, name) {
            *writes.entry(name.to_owned()).or_default() += 1;
        }
    }
    writes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_comes_back_while_its_entries_are_removed_keeps_those_that_are_left() {
    let cluster = LiveCluster::start("released-policy").await;
    cluster.create(&serde_json::to_value(api::ReadinessPolicy::crd()).unwrap());
    cluster.create(&policy("Database", "", "Pod"));
    for number in 0..PARENTS {
        let parent = cluster.create(&custom("Database", &format!("db-{number}")));
        cluster.create(&owned(&parent, pod(&format!("db-{number}-0"), None)));
    }
    let _service = RunningService::start(&cluster, &[], &[]);
    until("all parents are told True", || cluster.count_told("True") == PARENTS);
    cluster.server.forget_requests();
    let now = cluster.server.now();
    cluster.server.lock_store().delete_object(now, OWN, "ReadinessPolicy", "", "database").unwrap();
    until("the entries go", || cluster.count_told("True") < PARENTS - AT_ONCE);
    cluster.create(&policy("Database", "", "Pod"));
    until("all parents are told True again", || cluster.count_told("True") == PARENTS);

    let writes = writes(&cluster);
    let removed = writes.len();
    println!("{removed} of {PARENTS} entries were removed before the policy came back");
    assert!(removed > AT_ONCE && removed < PARENTS, "{removed} of {PARENTS}");
    // What was removed is told anew: that it is not known yet, and what is so. What was left was not touched.
    assert!(writes.values().all(|writes| (2..=3).contains(writes)), "{writes:?}");
}
