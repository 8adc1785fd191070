//! What `suggest` takes from the times of conditions, from definitions and from Events.

use sandbox::{FaultAction, InjectedFault, RequestVerb};
use serde_json::{Value, json};

use super::cluster::{LiveCluster, crd, custom, done, pod};

async fn suggest(cluster: &LiveCluster, kind: &str) -> (String, String) {
    let mut command = cluster.bare();
    command.args(["suggest", kind]);
    let (code, out, err) = done(command).await;
    assert_eq!(code, Some(0), "{out}{err}");
    (out, err)
}

/// A Shop that has said Ready since this second, with a Pod that has been ready since second 2.
fn shop_ready_since(cluster: &LiveCluster, name: &str, second: u32) {
    let mut shop = custom("Shop", name);
    let since = format!("2026-01-01T00:00:{second:02}Z");
    shop["status"]["conditions"] =
        json!([{ "type": "Ready", "status": "True", "reason": "Said", "lastTransitionTime": since }]);
    let shop = cluster.create(&shop);
    cluster.below(&shop, pod(&format!("{name}-0"), None));
}

#[tokio::test]
async fn a_ready_that_is_older_than_that_of_a_child_did_not_wait_for_it() {
    let cluster = LiveCluster::start("suggest-order").await;
    shop_ready_since(&cluster, "a", 2);
    shop_ready_since(&cluster, "b", 30);
    let (out, _) = suggest(&cluster, "shop").await;
    let may =
        "# - its Ready may wait for its children: that of 2 is no older than that of the last of them\n";
    assert!(out.contains(may), "{out}");
    shop_ready_since(&cluster, "c", 1);
    let (out, _) = suggest(&cluster, "shop").await;
    let said = "# - its Ready did not wait for a child, or stayed while one was replaced: that of 1 is older than that of the last of \
                them: default/c, 1 s before Pod c-0\n";
    assert!(out.contains(said) && !out.contains("cannot be seen") && !out.contains("may wait"), "{out}");
}

/// The definition of a kind whose new objects say themselves that they are awaited.
fn defaulted(kind: &str) -> Value {
    let mut definition = crd(kind);
    let own = policy::crd::crds_yaml().unwrap();
    let group: Value = serde_saphyr::from_str(own.split("---\n").nth(1).unwrap()).unwrap();
    let status = group.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/status").unwrap();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = status.clone();
    definition
}

#[tokio::test]
async fn a_definition_tells_what_its_objects_do_not() {
    let cluster = LiveCluster::start("suggest-definition").await;
    let status = |of: Value| {
        let mut definition = crd("Queue");
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = of;
        definition
    };
    let number = json!({ "type": "integer", "format": "int64" });
    let fields = json!({ "observedGeneration": number, "phase": { "type": "string" } });
    cluster.create(&status(json!({ "type": "object", "properties": fields })));
    let mut queue = custom("Queue", "q");
    queue["status"] = json!({});
    let queue = cluster.create(&queue);
    cluster.below(&queue, pod("q-0", None));
    let (out, _) = suggest(&cluster, "queue").await;
    for said in [
        "# - its definition has status.observedGeneration, which none carries of its operator's",
        "# - its definition drops status.conditions, so that nothing can be written there before it declares them\n",
    ] {
        assert!(out.contains(said), "no {said:?} in {out}");
    }
    let shop = cluster.create(&custom("Shop", "s"));
    cluster.below(&shop, pod("s-0", None));
    let (out, _) = suggest(&cluster, "shop").await;
    let lacks =
        "# - its definition lacks the default by which a new object does not look ready at its first read";
    assert!(out.contains(lacks) && !out.contains("observedGeneration"), "{out}");
    // What comes next names the definition that lacks it, and none that has it.
    let next = "these CRDs need a default, which\n# rollcall crd-defaults -f CRD prints: shops.example.com\n";
    assert!(out.contains(next), "{out}");
    cluster.create(&defaulted("Ship"));
    let ship = cluster.create(&custom("Ship", "s"));
    cluster.below(&ship, pod("s-1", None));
    let (out, _) = suggest(&cluster, "ship").await;
    let has = "# - its definition has the default";
    assert!(
        out.contains(has) && out.contains("# All of this in one folder") && !out.contains("CRDs need"),
        "{out}"
    );
    // What somebody may not read is named, and the rest is printed.
    let forbidden = InjectedFault::new(FaultAction::Forbid)
        .on_kind("apiextensions.k8s.io", "customresourcedefinitions")
        .on_verb(RequestVerb::Get);
    cluster.server.faults().add(forbidden);
    let (out, err) = suggest(&cluster, "shop").await;
    assert!(
        out.contains("metadata: { name: shops.example.com }") && !out.contains("its definition"),
        "{out}"
    );
    assert!(err.contains("not read: CustomResourceDefinition shops.example.com: "), "{err}");
}

fn event(name: &str, about: &Value, (kind, reason, reporter): (&str, &str, &str)) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": name }, "type": kind, "reason": reason,
        "message": "as it is", "reportingComponent": reporter,
        "involvedObject": { "apiVersion": about["apiVersion"], "kind": about["kind"], "name": about["metadata"]["name"],
            "namespace": "default", "uid": about["metadata"]["uid"] },
    })
}

#[tokio::test]
async fn events_tell_what_an_operator_lets_be_seen() {
    let cluster = LiveCluster::start("suggest-events").await;
    let mut shop = custom("Shop", "s");
    shop["metadata"]["annotations"] = json!({ "kopf.zalando.org/last-handled-configuration": "{}" });
    let shop = cluster.create(&shop);
    cluster.below(&shop, pod("s-0", None));
    let hidden = "# - nothing shows whether the handlers of its Kopf operator succeed: a `proof`, or the module of \
                  deploy/examples/kopf, would\n";
    let (out, _) = suggest(&cluster, "shop").await;
    assert!(out.contains(hidden) && !out.contains("Events warn"), "{out}");
    for (at, of) in [
        ("Normal", "Logging", "kopf"),
        ("Warning", "BackOff", "kubelet"),
        ("Warning", "SyncError", "shop-operator"),
        ("Warning", "SyncError", "shop-operator"),
        ("Warning", "ChildrenFailed", "rollcall.dev/controller"),
    ]
    .into_iter()
    .enumerate()
    {
        cluster.create(&event(&format!("e-{at}"), &shop, of));
    }
    let (out, _) = suggest(&cluster, "shop").await;
    let posts = "# - its Kopf operator posts how its handlers end: with evidence kopf a failure is told\n";
    let warn = "# - Events warn of some: SyncError (2), BackOff (1); a policy tells";
    assert!(out.contains(posts) && out.contains(warn) && !out.contains(hidden), "{out}");
    cluster.server.faults().add(InjectedFault::new(FaultAction::Forbid).on_kind("", "events"));
    let (out, err) = suggest(&cluster, "shop").await;
    assert!(out.contains("evidence: kopf") && !out.contains("posts"), "{out}");
    assert!(!out.contains("nothing shows"), "what is not read is not said to be hidden: {out}");
    assert!(err.contains("not read: Event: "), "{err}");
}
