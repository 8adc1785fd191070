//! Parents that have all their children in common, level after level: few objects, and exponentially many paths.

use serde_json::{Value, json};

use super::cluster::{LiveCluster, custom, done, policy};
use super::service::{RunningService, until};

/// Levels, and objects in each but the first: four to the twelfth paths.
const LEVELS: usize = 13;
const WIDTH: usize = 4;
/// More lines than this nobody draws twice.
const MOST_LINES: usize = 6_000;

/// A Shop over four Shops over the same four Shops, and so on; the last are not ready.
async fn layered(name: &str) -> (LiveCluster, String, Value) {
    let cluster = LiveCluster::start(name).await;
    let mut counting = policy("Shop", "example.com", "Shop");
    counting["spec"]["children"][0]["expect"] = json!({ "min": 0 });
    let file = cluster.file("shops.json", &counting);
    let top = cluster.create(&custom("Shop", "top"));
    let mut owners = vec![top.clone()];
    for level in 1..LEVELS {
        let references: Vec<_> = owners
            .iter()
            .map(|owner| {
                let meta = &owner["metadata"];
                json!({ "apiVersion": owner["apiVersion"], "kind": "Shop", "name": meta["name"], "uid": meta["uid"] })
            })
            .collect();
        let shop = |at: usize| {
            let mut shop = custom("Shop", &format!("shop-{level}-{at}"));
            shop["metadata"]["ownerReferences"] = json!(references);
            cluster.create(&shop)
        };
        owners = (0..WIDTH).map(shop).collect();
    }
    (cluster, file, top)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_of_exponentially_many_paths_is_drawn_in_bounds() {
    let (cluster, file, _) = layered("diamonds").await;
    for args in [
        &["tree", "-f", &file][..],
        &["tree", "shop/top", "-f", &file],
        &["explain", "shop/top", "-f", &file],
    ] {
        let mut command = cluster.bare();
        command.args(args);
        let (code, out, err) = done(command).await;
        assert_ne!(code, Some(2), "{args:?}: {err}");
        assert!(out.lines().count() <= MOST_LINES, "{args:?}: {} lines", out.lines().count());
        assert!(out.contains("shop-12-0"), "{args:?}: each object is there");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_finds_an_object_in_a_tree_of_exponentially_many_paths() {
    let (cluster, file, top) = layered("diamonds-page").await;
    let service = RunningService::start(&cluster, &["--policies", &file], &[]);
    let body =
        |answer: String| answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
    let parents = 1 + WIDTH * (LEVELS - 1);
    until("the page has all parents", || {
        let found: Value = serde_json::from_str(&body(service.get("/api/v1/parents"))).unwrap_or_default();
        found["matching"].as_u64() == u64::try_from(parents).ok()
    });
    let path = format!("/api/v1/parents/{}", top["metadata"]["uid"].as_str().unwrap());
    let tree: Value = serde_json::from_str(&body(service.get(&path))).unwrap();
    let nodes = tree["nodes"].as_array().unwrap().len();
    assert!((parents..=25_001).contains(&nodes), "{nodes}");
    let asked = "label=Shop.example.com&namespace=default&name=shop-12-3";
    let found = service.get(&format!("{path}/branch?{asked}"));
    assert!(found.starts_with("HTTP/1.1 200"), "{found}");
    let below = service.get(&format!("{path}/below"));
    assert!(below.starts_with("HTTP/1.1 200"), "{below}");
}
