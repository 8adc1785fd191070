//! `plan` says what then happens.

use std::collections::{BTreeMap, BTreeSet};

use kube::CustomResourceExt;
use sandbox::{FaultAction, InjectedFault, RequestVerb};
use serde_json::{Value, json};

use super::cluster::{LiveCluster, custom, done, owned, pod, policy};
use super::service::{RunningService, until};

/// Parents, each with one child or none.
const SHOPS: usize = 1_000;

fn install_policies(cluster: &LiveCluster) {
    cluster.create(&serde_json::to_value(api::ReadinessPolicy::crd()).unwrap());
}

/// Status and reason of a condition, by the name of its Shop.
type Told = BTreeMap<String, (String, String)>;

fn told(cluster: &LiveCluster, condition: &str) -> Told {
    let store = cluster.server.lock_store();
    let shops = (0..SHOPS).map(|n| format!("shop-{n}"));
    let says = shops.filter_map(|name| {
        let shop = store.get("example.com/v1", "Shop", "default", &name)?;
        let entry =
            shop["status"]["conditions"].as_array()?.iter().find(|entry| entry["type"] == condition)?;
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        Some((name, (text("status"), text("reason"))))
    });
    says.collect()
}

/// Shops with a ready Database, one that is not ready, none, or with a Pod beside it; every fifth has no label.
async fn crowd(name: &str) -> LiveCluster {
    let cluster = LiveCluster::start(name).await;
    for n in 0..SHOPS {
        let mut shop = custom("Shop", &format!("shop-{n}"));
        if n % 5 != 0 {
            shop["metadata"]["labels"] = json!({ "tier": "gold" });
        }
        let shop = cluster.create(&shop);
        let ready = if n % 3 == 0 { "False" } else { "True" };
        let mut database = custom("Database", &format!("db-{n}"));
        database["status"]["conditions"] = json!([{ "type": "Ready", "status": ready, "reason": "AsItIs" }]);
        if n % 7 != 0 {
            cluster.create(&owned(&shop, database));
        }
        if n % 2 == 0 {
            cluster.below(&shop, pod(&format!("pod-{n}"), None));
        }
    }
    cluster
}

fn shop_policy(spec: &Value) -> Value {
    let mut policy = policy("Shop", "example.com", "Database");
    for (field, value) in spec.as_object().unwrap() {
        policy["spec"][field] = value.clone();
    }
    policy
}

async fn plan(cluster: &LiveCluster, args: &[&str]) -> (Option<i32>, Value, String) {
    let mut command = cluster.bare();
    command.args(["plan", "-o", "json"]).args(args);
    let (code, out, err) = done(command).await;
    (code, serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}")), err)
}

/// The statuses and reasons that a plan announces, where they differ from what is said now.
fn announced(plan: &Value, before: &Told) -> Told {
    let mut after = before.clone();
    for change in plan["parents"].as_array().unwrap() {
        let name = change["name"].as_str().unwrap().to_owned();
        let then = &change["then"];
        if then.is_null() || then["shadow"] == true {
            after.remove(&name);
        } else {
            let text = |field: &str| then[field].as_str().unwrap().to_owned();
            after.insert(name, (text("status"), text("reason")));
        }
    }
    after
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_planned_for_a_thousand_parents_is_what_then_happens() {
    let cluster = crowd("plan-crowd").await;
    install_policies(&cluster);
    let ready =
        json!({ "cel": { "current": "self.status.?conditions.orValue([]).exists(c, c.status == 'True')" } });
    let first = shop_policy(&json!({}));
    cluster.create(&first);
    let _service = RunningService::start(&cluster, &[], &[]);
    let at_rest = |said: &Told| {
        said.len() == SHOPS
            && said.values().all(|(_, reason)| reason != "ChildrenPending" && reason != "ChildrenSettling")
    };
    until("all are told", || at_rest(&told(&cluster, "Ready")));
    let two = json!([{ "kind": { "group": "example.com", "kind": "Database" }, "ready": ready },
        { "kind": { "kind": "Pod" } }]);
    let gold =
        json!({ "group": "example.com", "kind": "Shop", "selector": { "matchLabels": { "tier": "gold" } } });
    for (step, spec) in [json!({ "children": two }), json!({ "parent": gold }), json!({})].iter().enumerate()
    {
        let before = told(&cluster, "Ready");
        let next = shop_policy(spec);
        let file = cluster.file(&format!("step-{step}.json"), &next);
        let (code, plan, err) = plan(&cluster, &["-f", &file]).await;
        assert_eq!((code, err.as_str()), (Some(1), ""), "{spec}");
        let expected = announced(&plan, &before);
        assert_ne!(expected, before, "{spec}");
        {
            let now = cluster.server.now();
            let mut store = cluster.server.lock_store();
            // A merge leaves what it does not name.
            let mut patch = json!({ "spec": { "mode": null, "parent": { "selector": null } } });
            for (field, value) in next["spec"].as_object().unwrap() {
                if field == "parent" && value["selector"].is_object() {
                    patch["spec"]["parent"] = value.clone();
                } else if field != "parent" {
                    patch["spec"][field] = value.clone();
                }
            }
            store.patch_object(now, "rollcall.dev/v1alpha1", "ReadinessPolicy", "", "shop", &patch).unwrap();
        }
        until(&format!("step {step} is as planned"), || told(&cluster, "Ready") == expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_says_what_would_be_refused_what_goes_and_who_would_be_left_alone() {
    let cluster = LiveCluster::start("plan-words").await;
    install_policies(&cluster);
    cluster.create(&policy("Shop", "example.com", "Database"));
    let shop = cluster.create(&custom("Shop", "books"));
    cluster.below(&shop, pod("web", None));
    let run = async |args: &[&str]| {
        let mut command = cluster.bare();
        command.arg("plan").args(args);
        done(command).await
    };
    let broken = shop_policy(
        &json!({ "children": [{ "kind": { "kind": "Pod" }, "ready": { "cel": { "current": "self." } } }] }),
    );
    let (code, out, _) = run(&["-f", &cluster.file("broken.json", &broken)]).await;
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("policy shop: changed; it would be refused: spec.children[0].ready"), "{out}");
    assert!(out.contains("generation 1 stays in force") && out.contains("0 conditions turn"), "{out}");

    let mut rival = policy("Shop", "", "Pod");
    rival["metadata"]["name"] = json!("a-rival");
    let (code, out, _) = run(&["-f", &cluster.file("rival.json", &rival)]).await;
    assert_eq!(code, Some(1), "{out}");
    assert!(
        out.contains("policy a-rival: new; it would be refused") && out.contains("nothing of it is in force"),
        "{out}"
    );

    let pods = shop_policy(&json!({ "children": [{ "kind": { "kind": "Pod" } }] }));
    let (code, out, _) = run(&["-f", &cluster.file("pods.json", &pods)]).await;
    assert_eq!(code, Some(1), "{out}");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[..2], ["policy shop: changed", "Shop default/books  Ready"], "{out}");
    assert!(lines[2].starts_with("  now   False ChildrenMissing: Database missing"), "{out}");
    assert!(lines[3].starts_with("  then  True AllChildrenReady: 1 of 1 ready"), "{out}");

    let shadow = shop_policy(&json!({ "children": [{ "kind": { "kind": "Pod" } }], "mode": "shadow" }));
    let (code, out, _) = run(&["-f", &cluster.file("shadow.json", &shadow)]).await;
    assert!(
        code == Some(1) && out.contains("  then  True AllChildrenReady: 1 of 1 ready (shadow: not written)"),
        "{out}"
    );
    assert!(out.contains("0 are new, 1 go"), "{out}");

    let (code, out, _) = run(&["--delete", "shop"]).await;
    assert!(
        code == Some(1) && out.contains("policy shop: deleted") && out.contains("  then  nothing"),
        "{out}"
    );
    let (code, out, err) =
        run(&["-f", &cluster.file("same.json", &policy("Shop", "example.com", "Database"))]).await;
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("0 conditions turn") && out.contains("1 stay"), "{out}");
    let (code, _, err) = run(&["--delete", "nobody"]).await;
    assert!(code == Some(2) && err.contains("there is no policy nobody in the cluster"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_says_which_condition_is_written_where_another_client_has_the_policys_own() {
    let cluster = LiveCluster::start("plan-kept").await;
    install_policies(&cluster);
    cluster.create(&policy("Shop", "", "Pod"));
    let mut shop = custom("Shop", "books");
    shop["status"]["conditions"] = json!([{ "type": "Ready", "status": "True", "reason": "Up" }]);
    cluster.create(&shop);
    for (condition, shown, written) in [
        (json!({ "takeover": true }), "Ready", true),
        (json!({ "fallback": "ChildrenReady" }), "ChildrenReady", true),
        (json!({}), "Ready", false),
    ] {
        let mut next = policy("Shop", "", "Service");
        next["spec"]["condition"] = condition;
        let file = cluster.file("next.json", &next);
        let (_, plan, err) = plan(&cluster, &["-f", &file]).await;
        let changes = plan["parents"].as_array().unwrap();
        let then: Vec<_> = changes.iter().filter(|change| !change["then"].is_null()).collect();
        assert_eq!(then.len(), 1, "{plan}{err}");
        assert_eq!(
            (&then[0]["condition"], &then[0]["then"]["reason"]),
            (&json!(shown), &json!("ChildrenMissing"))
        );
        assert_eq!(then[0]["then"]["keptBy"].is_null(), written, "{plan}");
        assert_eq!(then[0]["turn"], if written { "new" } else { "shadow" }, "{plan}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_is_refused_as_before_is_no_news_and_one_that_gives_way_or_need_not_any_more_is() {
    let cluster = LiveCluster::start("plan-beside").await;
    install_policies(&cluster);
    let named = |name: &str, of: &str| {
        let mut policy = policy("Shop", "", of);
        policy["metadata"]["name"] = json!(name);
        policy
    };
    cluster.create(&named("first", "Pod"));
    // It wants the same condition of the same parents.
    cluster.create(&named("second", "Service"));
    let (code, report, err) =
        plan(&cluster, &["-f", &cluster.file("same.json", &named("first", "Pod"))]).await;
    assert_eq!((code, err.as_str(), &report["policies"]), (Some(0), "", &json!([])), "{report}");
    // There is no parent that would turn.
    let (code, report, _) = plan(&cluster, &["--delete", "first"]).await;
    assert_eq!(code, Some(0));
    assert_eq!(
        report["policies"],
        json!([{ "name": "first", "change": "deleted" }, { "name": "second", "change": "affected", "inForce": 1 }])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_leaves_the_plan_undetermined() {
    let cluster = LiveCluster::start("plan-blind").await;
    install_policies(&cluster);
    cluster.create(&policy("Shop", "example.com", "Database"));
    cluster.create(&custom("Shop", "books"));
    let refused = InjectedFault::new(FaultAction::Forbid).on_kind("", "pods").on_verb(RequestVerb::List);
    cluster.server.faults().add(refused);
    let pods = shop_policy(&json!({ "children": [{ "kind": { "kind": "Pod" } }] }));
    let (code, plan, err) = plan(&cluster, &["-f", &cluster.file("pods.json", &pods)]).await;
    assert!(code == Some(2) && err.contains("not read: Pod"), "{err}");
    let then: BTreeSet<&str> =
        plan["parents"].as_array().unwrap().iter().filter_map(|p| p["then"]["reason"].as_str()).collect();
    assert_eq!(then, BTreeSet::from(["KindNotVisible"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_without_policies_is_told_what_the_first_would_say() {
    let cluster = LiveCluster::start("plan-first").await;
    cluster.below(
        &cluster.create(&custom("Shop", "books")),
        pod("web", Some(("ErrImagePull", "no such image"))),
    );
    let pods = shop_policy(&json!({ "children": [{ "kind": { "kind": "Pod" } }] }));
    let (code, plan, err) = plan(&cluster, &["-f", &cluster.file("first.json", &pods)]).await;
    assert_eq!((code, err.as_str()), (Some(1), ""));
    let [first] = &plan["parents"].as_array().unwrap()[..] else { panic!("{plan}") };
    assert_eq!(
        (&first["turn"], &first["now"], &first["then"]["status"]),
        (&json!("new"), &json!(null), &json!("False"))
    );
    assert!(first["then"]["message"].as_str().unwrap().contains("web"), "{plan}");
    assert_eq!(plan["policies"], json!([{ "name": "shop", "change": "new", "inForce": 1 }]));
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_of_a_config_map_are_read_and_rights_that_nobody_may_ask_for_are_named() {
    let cluster = LiveCluster::start("plan-rules").await;
    install_policies(&cluster);
    let shop = cluster.create(&custom("Shop", "books"));
    cluster.below(&shop, custom("Database", "db"));
    let rule = json!({ "rules": "default/rules" });
    let by_script = shop_policy(
        &json!({ "children": [{ "kind": { "group": "example.com", "kind": "Database" }, "ready": rule }] }),
    );
    let file = cluster.file("by-script.json", &by_script);
    let (code, _, err) = plan(&cluster, &["-f", &file]).await;
    assert!(code == Some(2) && err.contains("not read: ConfigMap default/rules: not found"), "{err}");

    let script = "return { status = 'Degraded', message = 'the script says so' }";
    let data = json!({ "resource.customizations.health.example.com_Database": script });
    let metadata = json!({ "name": "rules", "namespace": "default" });
    cluster.create(&json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data }));
    let (code, plan_now, err) = plan(&cluster, &["-f", &file]).await;
    assert_eq!((code, err.as_str()), (Some(1), ""));
    assert_eq!(plan_now["parents"][0]["then"]["reason"], "ChildrenFailed", "{plan_now}");

    let reviews =
        InjectedFault::new(FaultAction::Forbid).on_kind("authorization.k8s.io", "subjectaccessreviews");
    cluster.server.faults().add(reviews);
    let (code, _, err) = plan(&cluster, &["-f", &file]).await;
    let told = "not read: rights of ServiceAccount rollcall-system/rollcall";
    assert!(code == Some(2) && err.contains(told), "{err}");
}
