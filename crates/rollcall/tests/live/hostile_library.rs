//! A hostile key of Argo CD's ConfigMap: it is left out with a word, the others stay in force, and so it is after a restart.

use serde_json::{Value, json};

use super::cluster::{LiveCluster, condition, custom, policy};
use super::service::{RunningService, until};

/// 90 kB of braces in braces. They were an abort of the process, and again after each restart.
const BRACES: usize = 45_000;

/// A block in the older form, whose keys may be any text: this one, and one for Databases with this script.
fn block(hostile: &str, script: &str) -> Value {
    let entry =
        |key: &str, script: &str| format!("? {}\n: {{ health.lua: {} }}\n", json!(key), json!(script));
    let both = entry(hostile, "return { status = 'Healthy' }") + &entry("example.com/Database", script);
    json!({ "resource.customizations": both })
}

fn status_of_shop(cluster: &LiveCluster) -> Value {
    condition(&cluster.parent("Shop", "books"), "Ready")["status"].clone()
}

/// It judges by the others, and says what it has left out.
fn goes_on(cluster: &LiveCluster, service: &RunningService, status: &str) {
    until("the shop is told", || status_of_shop(cluster) == status);
    let said = service.logged("cannot compile health script");
    assert!(said.len() == 1 && said[0].contains("the pattern is longer than 512 bytes"), "{said:?}");
    assert!(said[0].contains("argocd/argocd-cm") && said[0].len() < 1_000, "{} bytes", said[0].len());
    assert!(service.get("/livez").starts_with("HTTP/1.1 200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pattern_of_90_kb_of_braces_is_left_out_with_a_word_also_after_a_restart() {
    let cluster = LiveCluster::start("hostile-library").await;
    cluster.create(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "argocd" } }));
    let well = block("example.com/*", "return { status = 'Healthy' }");
    cluster.create(&json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "argocd-cm", "namespace": "argocd" }, "data": well }));
    let shop = cluster.create(&custom("Shop", "books"));
    cluster.below(&shop, custom("Database", "db"));
    let mut shops = policy("Shop", "example.com", "Database");
    shops["spec"]["children"][0]["ready"] = json!({ "rules": "argocd-cm" });
    let file = cluster.file("library.json", &shops);
    let start = || RunningService::start(&cluster, &["--policies", &file], &[]);
    let service = start();
    until("the shop is ready", || status_of_shop(&cluster) == "True");
    let pattern = "{".repeat(BRACES) + &"}".repeat(BRACES);
    let edit = |script: &str| {
        let (now, patch) = (cluster.server.now(), json!({ "data": block(&pattern, script) }));
        let mut store = cluster.server.lock_store();
        store.patch_object(now, "v1", "ConfigMap", "argocd", "argocd-cm", &patch).unwrap();
    };
    edit("return { status = 'Degraded' }");
    goes_on(&cluster, &service, "False");
    drop(service);
    edit("return { status = 'Healthy' }");
    goes_on(&cluster, &start(), "True");
}
