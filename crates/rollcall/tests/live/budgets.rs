//! Expressions that are evaluated where parents are taken in or on the loop, and spend all that they may: they cost nobody else
//! anything.

use serde_json::{Value, json};

use super::beside::{change, create_ledger, goes_on_beside};
use super::cluster::{LiveCluster, condition, crd, custom, policy};
use super::service::{RunningService, until};

const PARENTS: usize = 10;
/// Text of each shop. Read once for each of the names below, it is somewhat less than the 32 MiB that templates may read.
const TEXT: usize = 110 << 10;
const NAMES: usize = 256;

/// More steps than a count or a proof may spend, and few bytes.
const ENDLESS: &str = "lists.range(140).all(x, lists.range(140).all(y, x + y >= 0))";

/// Each shop costs all that templates may read, and all steps of a count.
fn costly_shops() -> Value {
    let mut shops = policy("Shop", "example.com", "Part");
    let names: Vec<_> = (0..NAMES).map(|at| format!("part-{at}-{{parent.metadata.name}}")).collect();
    shops["spec"]["children"][0]["expect"] = json!({ "names": names });
    shops["spec"]["children"].as_array_mut().unwrap().push(json!({
        "kind": { "group": "example.com", "kind": "Database" }, "expect": { "cel": format!("{ENDLESS} ? 1 : 0") },
    }));
    shops
}

/// Each database costs all steps of a proof, whenever it or its part changes.
fn costly_databases() -> Value {
    let mut databases = policy("Database", "example.com", "Part");
    databases["spec"]["proof"] = json!(format!("children.all(c, {ENDLESS})"));
    databases
}

fn is_told(cluster: &LiveCluster, kind: &str, words: &str) -> bool {
    (0..PARENTS).all(|at| {
        let told = condition(&cluster.parent(kind, &format!("{}-{at}", kind.to_lowercase())), "Ready");
        told["status"] == "Unknown" && told["message"].as_str().is_some_and(|text| text.contains(words))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_templates_and_proofs_that_spend_all_they_may_delay_neither_probes_nor_other_kinds() {
    let cluster = LiveCluster::start("budgets").await;
    cluster.create(&crd("Part"));
    for at in 0..PARENTS {
        let mut shop = custom("Shop", &format!("shop-{at}"));
        shop["spec"] = json!({ "long": "x".repeat(TEXT) });
        cluster.create(&shop);
        let database = cluster.create(&custom("Database", &format!("database-{at}")));
        let mut part = custom("Part", &format!("part-{at}"));
        part["status"]["conditions"] = json!([{ "type": "Ready", "status": "True", "reason": "Up" }]);
        cluster.below(&database, part);
    }
    let policies = [costly_shops(), costly_databases(), create_ledger(&cluster)].map(|one| one.to_string());
    let file = cluster.text_file("costly.yaml", &policies.join("\n---\n"));
    let service = RunningService::start(&cluster, &["--policies", &file], &[("TOKIO_WORKER_THREADS", "1")]);
    until("counts are stopped", || is_told(&cluster, "Shop", "expect.cel: "));
    until("proofs are stopped", || is_told(&cluster, "Database", "was stopped at its limit"));
    goes_on_beside(&cluster, &service, |round| {
        for at in 0..PARENTS {
            for kind in ["Shop", "Database", "Part"] {
                let name = format!("{}-{at}", kind.to_lowercase());
                change(&cluster, ("example.com/v1", kind), &name, &json!({ "round": round }));
            }
        }
    });
    assert!(is_told(&cluster, "Shop", "expect.cel: ") && is_told(&cluster, "Database", "was stopped"));
}
