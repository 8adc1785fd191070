//! `rbac --all` prints for the policies of the cluster what `rbac -f` prints for each of them.

use serde_json::{Value, json};

use super::cluster::{LiveCluster, done, own_definition, policy};

async fn rbac(cluster: &LiveCluster, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = cluster.bare();
    command.arg("rbac").args(args);
    done(command).await
}

/// What was printed, by kind and name.
fn printed(text: &str) -> Vec<(String, Value)> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let mut named: Vec<_> = objects
        .into_iter()
        .map(|object| (format!("{} {}", object["kind"], object["metadata"]), object))
        .collect();
    named.sort_by(|a, b| a.0.cmp(&b.0));
    named
}

/// One that writes, one in shadow mode, one that may write nothing because the first has its condition, and one with records.
fn valid_policies() -> [Value; 4] {
    let mut shadow = policy("Database", "", "Pod");
    shadow["spec"]["mode"] = json!("shadow");
    let mut second = policy("Shop", "apps", "Deployment");
    second["metadata"]["name"] = json!("shop-too");
    let mut remembers = policy("Shop", "batch", "Job");
    remembers["metadata"]["name"] = json!("jobs");
    remembers["spec"]["condition"] = json!({ "type": "Seeded" });
    remembers["spec"]["children"][0]["afterDeletion"] = json!("remember");
    [policy("Shop", "example.com", "Database"), shadow, second, remembers]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rights_of_all_policies_are_those_of_each_and_one_that_is_not_valid_is_named() {
    let cluster = LiveCluster::start("rbac-all").await;
    for kind in ["ReadinessPolicy", "ReadinessGroup"] {
        cluster.create(&own_definition(kind));
    }
    let mut each = Vec::new();
    for policy in valid_policies() {
        cluster.create(&policy);
        let (code, out, err) = rbac(&cluster, &["-f", &cluster.file("one.json", &policy)]).await;
        assert_eq!((code, err.as_str()), (Some(0), ""));
        let of_one = printed(&out);
        assert!(!of_one.is_empty(), "{policy}");
        each.extend(of_one);
    }
    each.sort_by(|a, b| a.0.cmp(&b.0));
    let (code, out, err) = rbac(&cluster, &["--all"]).await;
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(printed(&out), each);
    let mut invalid = policy("Database", "", "Pod");
    invalid["metadata"]["name"] = json!("invalid");
    invalid["spec"]["children"][0]["ready"] = json!({ "cel": { "current": "self.status.(" } });
    cluster.create(&invalid);
    let (code, out, err) = rbac(&cluster, &["--all"]).await;
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("policy invalid: ") && err.lines().count() == 1, "{err}");
    assert_eq!(printed(&out), each, "of the others nothing lacks");
}
