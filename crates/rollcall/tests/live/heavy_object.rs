//! An object with 62,000 fields of its own, judged by a rule of a policy: it costs nobody else anything, and has its answer in
//! the end.

use serde_json::{Value, json};

use super::beside::{change, create_ledger, goes_on_beside, says};
use super::cluster::{LiveCluster, condition, crd, custom, owned, policy};
use super::service::{RunningService, until};

const FIELDS: usize = 62_000;

/// A definition whose objects may have any fields of their own.
fn open_definition(kind: &str) -> Value {
    let mut definition = crd(kind);
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
    definition
}

/// Judges the object by this rule while it changes and other parents are told; returns its parent in the end.
async fn judged_by(name: &str, source: &str, is_end: impl Fn(&(String, String)) -> bool) -> Value {
    let cluster = LiveCluster::start(name).await;
    cluster.create(&open_definition("Ware"));
    let shop = cluster.create(&custom("Shop", "books"));
    let mut heavy = custom("Ware", "heavy");
    for at in 0..FIELDS {
        heavy[format!("{at:x}")] = json!(0);
    }
    cluster.create(&owned(&shop, heavy));
    let mut shops = policy("Shop", "example.com", "Ware");
    shops["spec"]["children"][0]["ready"] = json!({ "lua": source });
    let policies = [shops, create_ledger(&cluster)].map(|policy| policy.to_string());
    let file = cluster.text_file("heavy.yaml", &policies.join("\n---\n"));
    let service = RunningService::start(&cluster, &["--policies", &file], &[("TOKIO_WORKER_THREADS", "1")]);
    goes_on_beside(&cluster, &service, |round| {
        let status = json!({ "observedGeneration": 1, "round": round });
        change(&cluster, ("example.com/v1", "Ware"), "heavy", &status);
    });
    until("the heavy one has its answer", || is_end(&says(&cluster, "Shop", "books")));
    assert!(service.metric("rollcall_rule_evaluations_total", "") > 0, "the rule was asked");
    condition(&cluster.parent("Shop", "books"), "Ready")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_with_62_000_fields_is_judged_and_others_are_not_kept_waiting() {
    // One that is not read to its end is not ready.
    let source = format!(
        "if obj['{:x}'] == 0 and obj['{FIELDS:x}'] == nil and obj.status.observedGeneration == 1 then \
         return {{ status = 'Healthy' }} end return {{ status = 'Degraded' }}",
        FIELDS - 1
    );
    let told = judged_by("heavy-object", &source, |(status, _)| status == "True").await;
    assert_eq!(told["reason"], "AllChildrenReady", "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_walks_all_fields_of_such_an_object_is_stopped_and_others_are_not_kept_waiting() {
    let source = "local n = 0 for k in pairs(obj) do for l in pairs(obj) do n = n + 1 end end \
                  return { status = 'Healthy' }";
    let told = judged_by("heavy-pairs", source, |(status, _)| status == "Unknown").await;
    let words = told["message"].as_str().unwrap();
    assert!(told["reason"] == "ChildrenUnknown" && words.contains("Ware heavy unknown"), "{told}");
    // Stopped, or after it was stopped several times not evaluated for a while.
    assert!(words.contains("the script was stopped") || words.contains("exceeded its limits"), "{told}");
}
