//! More policies over one kind of children than a byte can number: each judges by its own rule.

use serde_json::{Value, json};

use super::cluster::{LiveCluster, condition, custom, policy};
use super::service::{RunningService, until};

const POLICIES: usize = 258;

/// Numbers of the policies that have a shop. What is below each is judged by all rules: more than find room to wait at a time.
fn with_shop() -> impl Iterator<Item = usize> {
    (0..117).chain(255..POLICIES)
}

/// Whether the rule of a policy holds. Cut to a byte, the numbers of the last two are those of the first two, whose rules say
/// the opposite.
fn holds(number: usize) -> bool {
    (number + number / 256).is_multiple_of(2)
}

fn name_of(number: usize) -> String {
    format!("shop-{number:03}")
}

/// A policy for the shop with this number alone. No two have the same rule.
fn numbered_policy(number: usize) -> Value {
    let mut policy = policy("Shop", "example.com", "Database");
    policy["metadata"]["name"] = json!(name_of(number));
    policy["spec"]["parent"]["selector"] = json!({ "matchLabels": { "number": number.to_string() } });
    let current = format!("{} && metadata.name != 'x{number}'", holds(number));
    policy["spec"]["children"][0]["ready"] = json!({ "cel": { "current": current } });
    policy
}

#[tokio::test(flavor = "multi_thread")]
async fn of_258_policies_over_one_kind_each_parent_is_told_what_the_rule_of_its_own_says() {
    let cluster = LiveCluster::start("many-policies").await;
    for number in with_shop() {
        let mut shop = custom("Shop", &name_of(number));
        shop["metadata"]["labels"] = json!({ "number": number.to_string() });
        let shop = cluster.create(&shop);
        cluster.below(&shop, custom("Database", &format!("db-{number:03}")));
    }
    let policies = (0..POLICIES).map(|number| numbered_policy(number).to_string()).collect::<Vec<_>>();
    let file = cluster.text_file("many.yaml", &policies.join("\n---\n"));
    let _service = RunningService::start(&cluster, &["--policies", &file], &[]);
    let ready = |number: usize| condition(&cluster.parent("Shop", &name_of(number)), "Ready");
    let is_told = |number: usize| ["True", "False"].iter().any(|status| ready(number)["status"] == *status);
    until("all are told", || with_shop().all(is_told));
    for number in with_shop() {
        let (told, expected) = (ready(number), if holds(number) { "True" } else { "False" });
        assert_eq!(told["status"], expected, "{}: {told}", name_of(number));
    }
}
