//! What Rollcall leaves in a cluster: what it accepted of policies, conditions, records, and the list of what policies wrote.
//! `left_by/` keeps what each version left. This version leaves the same, and goes on from all of them as if they were its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use kube::CustomResourceExt;
use sandbox::store::StoreRequest;
use serde_json::{Value, json};

use super::cluster::{LiveCluster, condition, custom, owned, pod, policy};
use super::service::{RunningService, until};

const OWN: &str = "rollcall.dev/v1alpha1";
/// Where records and the list of what policies wrote are kept.
const NAMESPACE: &str = "rollcall";
const POLICIES: [&str; 3] = ["shop", "database", "pods"];
/// The uid of what is gone.
const GONE: &str = "00000000-0000-4000-8000-000000000001";

/// What was left, by kind and name. What differs from run to run is not in it: times, uids and resourceVersions.
type LeftState = BTreeMap<String, Value>;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/live/left_by")
}

fn read_left(file: &Path) -> LeftState {
    serde_json::from_str(&fs::read_to_string(file).unwrap_or_default()).unwrap_or_default()
}

/// A shop with a database of one pod.
struct ShopCluster {
    cluster: LiveCluster,
    shop: Value,
    /// Uids, and what stands in their place.
    names: Vec<(String, String)>,
}

impl ShopCluster {
    async fn start(name: &str) -> ShopCluster {
        let cluster = LiveCluster::start(name).await;
        cluster
            .create(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } }));
        let crds = [api::ReadinessPolicy::crd(), api::ReadinessGroup::crd(), api::ReadinessRecord::crd()];
        for crd in &crds {
            cluster.create(&serde_json::to_value(crd).unwrap());
        }
        let shop = cluster.create(&custom("Shop", "books"));
        let database = cluster.below(&shop, custom("Database", "orders"));
        cluster.below(&database, pod("orders-0", None));
        let mut names = Vec::new();
        for (object, name) in [(&shop, "the shop"), (&database, "the database")] {
            names.push((uid(object), format!("<uid of {name}>")));
        }
        ShopCluster { cluster, shop, names }
    }

    fn create_named(&mut self, object: &Value, name: &str) {
        let created = self.cluster.create(object);
        self.names.push((uid(&created), format!("<uid of {name}>")));
    }

    fn create_policy(&mut self, name: &str) {
        self.create_named(&policy_of(name), &format!("policy {name}"));
    }

    fn get(&self, version: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        Some((*self.cluster.server.lock_store().get(version, kind, namespace, name)?).clone())
    }

    /// Sends a write as Rollcall does.
    fn write(&self, method: &str, path: &str, body: &Value) {
        let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request =
            StoreRequest::with_body(method, &format!("{path}?fieldManager=rollcall"), content, body);
        let answer = self.cluster.server.lock_store().handle_request(self.cluster.server.now(), &request);
        assert!(answer.is_success(), "{path}: {}", String::from_utf8_lossy(&answer.body));
    }

    fn parent(&self, kind: &str, name: &str) -> Value {
        self.cluster.parent(kind, name)
    }

    fn condition(&self, kind: &str, name: &str, of: &str) -> Value {
        condition(&self.parent(kind, name), of)
    }

    fn until_says(&self, (kind, name): (&str, &str), condition: &str, status: &str) {
        until(&format!("{kind} {name} says {condition} {status}"), || {
            self.condition(kind, name, condition)["status"] == status
        });
    }

    fn set_pod_ready(&self, is_ready: bool) {
        let status =
            pod("orders-0", (!is_ready).then_some(("CrashLoopBackOff", "it fails")))["status"].take();
        let (now, patch) = (self.cluster.server.now(), json!({ "status": status }));
        self.cluster
            .server
            .lock_store()
            .patch_status(now, "v1", "Pod", "default", "orders-0", &patch)
            .unwrap();
    }

    /// The objects of Rollcall's own namespace.
    fn own_objects(&self) -> Vec<Value> {
        let store = self.cluster.server.lock_store();
        let kinds = [("ReadinessRecord", OWN), ("ConfigMap", "v1")];
        let all = kinds.iter().flat_map(|(kind, version)| store.list_objects(version, kind, NAMESPACE));
        all.map(|object| (*object).clone()).collect()
    }

    /// Everything that Rollcall has written.
    fn left(&self) -> LeftState {
        let mut left = LeftState::new();
        for name in POLICIES {
            let policy = self.get(OWN, "ReadinessPolicy", "", name).unwrap();
            left.insert(format!("ReadinessPolicy/{name}"), policy["status"].clone());
        }
        for (kind, name) in [("Shop", "books"), ("Database", "orders")] {
            let status = &self.parent(kind, name)["status"];
            left.insert(format!("{kind}/{name}"), json!({ "conditions": status["conditions"] }));
        }
        let group = self.get(OWN, "ReadinessGroup", "default", "all").unwrap();
        left.insert("ReadinessGroup/all".to_owned(), group["status"].clone());
        for mut object in self.own_objects() {
            let kind = object["kind"].as_str().unwrap().to_owned();
            object["metadata"] = json!({ "name": object["metadata"]["name"], "namespace": NAMESPACE });
            left.insert(kind, object);
        }
        let text = serde_json::to_string(&left).unwrap();
        let text = self.names.iter().fold(text, |text, (uid, name)| text.replace(uid, name));
        let mut left: LeftState = serde_json::from_str(&forget_times(&text)).unwrap();
        left.values_mut().for_each(forget_versions);
        left
    }

    /// Brings about what a version left, but for the policy `pods`, which was deleted when it did not run any more.
    fn restore(&mut self, left: &LeftState) {
        for name in ["shop", "database"] {
            self.create_policy(name);
        }
        self.cluster.create(&group());
        let text = serde_json::to_string(left).unwrap();
        let text = self.names.iter().fold(text, |text, (uid, name)| text.replace(name, uid));
        let text = ["migration", "policy pods"]
            .iter()
            .fold(text, |text, gone| text.replace(&format!("<uid of {gone}>"), GONE));
        assert!(!text.contains("<uid of"), "{text}");
        let left: LeftState = serde_json::from_str(&text).unwrap();
        for (named, state) in &left {
            let path = match named.split_once('/') {
                None if named == "ConfigMap" => {
                    self.write("POST", &format!("/api/v1/namespaces/{NAMESPACE}/configmaps"), state);
                    continue;
                }
                None => {
                    self.write(
                        "POST",
                        &format!("/apis/{OWN}/namespaces/{NAMESPACE}/readinessrecords"),
                        state,
                    );
                    continue;
                }
                Some(("ReadinessPolicy", "pods")) => continue,
                Some(("ReadinessPolicy", name)) => format!("/apis/{OWN}/readinesspolicies/{name}"),
                Some(("ReadinessGroup", name)) => {
                    format!("/apis/{OWN}/namespaces/default/readinessgroups/{name}")
                }
                Some((kind, name)) => {
                    format!("/apis/example.com/v1/namespaces/default/{}s/{name}", kind.to_lowercase())
                }
            };
            self.write("PATCH", &format!("{path}/status"), &json!({ "status": state }));
        }
    }

    fn run(&self) -> RunningService {
        RunningService::start(&self.cluster, &["--records-namespace", NAMESPACE], &[])
    }
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap().to_owned()
}

fn policy_of(name: &str) -> Value {
    let mut policy = match name {
        "shop" => policy("Shop", "example.com", "Database"),
        _ => policy("Database", "", "Pod"),
    };
    policy["metadata"]["name"] = json!(name);
    if name == "shop" {
        let migrations = json!({ "kind": { "group": "batch", "kind": "Job" }, "afterDeletion": "remember" });
        policy["spec"]["children"].as_array_mut().unwrap().push(migrations);
        policy["spec"]["limits"] = json!({ "pending": "5m" });
    }
    if name == "pods" {
        policy["spec"]["condition"] = json!({ "type": "PodsReady" });
    }
    policy
}

fn group() -> Value {
    json!({
        "apiVersion": OWN, "kind": "ReadinessGroup", "metadata": { "name": "all" },
        "spec": { "members": [{ "kinds": [{ "kind": "Pod" }], "labels": { "app": "web" } }], "settle": "0s" },
    })
}

fn migration() -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "migrate" },
        "spec": { "template": { "spec": { "restartPolicy": "Never", "containers": [{ "name": "m", "image": "m" }] } } },
        "status": { "succeeded": 1, "conditions": [
            { "type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T00:00:09Z" },
        ] },
    })
}

/// Puts one moment in the place of every other.
fn forget_times(text: &str) -> String {
    const FORM: &[u8] = b"dddd-dd-ddTdd:dd:ddZ";
    let fits = |at: &[u8]| {
        let same = |(c, form): (&u8, &u8)| if *form == b'd' { c.is_ascii_digit() } else { c == form };
        at.len() == FORM.len() && at.iter().zip(FORM).all(same)
    };
    let mut bytes = text.as_bytes().to_vec();
    for at in 0..bytes.len().saturating_sub(FORM.len() - 1) {
        if fits(&bytes[at..at + FORM.len()]) {
            bytes[at..at + FORM.len()].copy_from_slice(b"2026-01-01T00:00:00Z");
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn forget_versions(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(version) = fields.get_mut("resourceVersion") {
                *version = json!("1");
            }
            fields.values_mut().for_each(forget_versions);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_versions),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_this_version_leaves_is_what_its_fixture_says() {
    let mut world = ShopCluster::start("left-behind").await;
    for name in POLICIES {
        world.create_policy(name);
    }
    world.cluster.create(&group());
    let job = owned(&world.shop, migration());
    world.create_named(&job, "migration");
    let service = world.run();
    for (parent, condition) in [
        (("Shop", "books"), "Ready"),
        (("Database", "orders"), "Ready"),
        (("Database", "orders"), "PodsReady"),
    ] {
        world.until_says(parent, condition, "True");
    }
    until("the migration is remembered", || {
        world.own_objects().iter().any(|object| object.to_string().contains("migrate"))
    });
    let now = world.cluster.server.now();
    world.cluster.server.lock_store().delete_object(now, "batch/v1", "Job", "default", "migrate").unwrap();
    until("every policy is accepted, and listed with what it wrote", || {
        let listed = world.own_objects().into_iter().find(|object| object["kind"] == "ConfigMap");
        listed.is_some_and(|map| map["data"].as_object().is_some_and(|data| data.len() == POLICIES.len()))
            && POLICIES.iter().all(|name| {
                world.get(OWN, "ReadinessPolicy", "", name).unwrap()["status"]["acceptedGeneration"] == 1
            })
    });
    // Counts in the status of policies are written a while after what they count.
    let expected = read_left(&fixtures().join(concat!(env!("CARGO_PKG_VERSION"), ".json")));
    let mut left = world.left();
    for _ in 0..1_000 {
        if left == expected {
            break;
        }
        thread::sleep(Duration::from_millis(10));
        left = world.left();
    }
    let now = world.cluster.file("left.json", &json!(left));
    assert_eq!(json!(left), json!(expected), "{now} is what it leaves");
    drop(service);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_any_version_left_is_gone_on_from_without_a_write() {
    for fixture in fs::read_dir(fixtures()).unwrap() {
        let left = read_left(&fixture.unwrap().path());
        assert!(!left.is_empty(), "nothing was left");
        let mut world = ShopCluster::start("left-by").await;
        world.restore(&left);
        // The policy of shops was changed for the worse while nobody ran, so that what was accepted is all that there is.
        let mut refused = policy_of("shop")["spec"].take();
        refused["children"][0]["ready"] = json!({ "cel": { "current": "self.status.(" } });
        let (now, patch) = (world.cluster.server.now(), json!({ "spec": refused }));
        let store = || world.cluster.server.lock_store();
        store().patch_object(now, OWN, "ReadinessPolicy", "", "shop", &patch).unwrap();
        let (shop, ready) = (world.parent("Shop", "books"), world.condition("Database", "orders", "Ready"));
        assert_eq!(
            (&ready["status"], &left["Shop/books"]),
            (&json!("True"), &json!({ "conditions": shop["status"]["conditions"] }))
        );

        let service = world.run();
        until("what the deleted policy wrote is gone", || {
            world.condition("Database", "orders", "PodsReady").is_null()
        });
        until("both parents and the group are counted", || service.metric("rollcall_parents", "") >= 3);
        until("the change is refused", || {
            world.get(OWN, "ReadinessPolicy", "", "shop").unwrap()["status"].to_string().contains("Invalid")
        });
        assert_eq!(world.condition("Database", "orders", "Ready"), ready);
        assert_eq!(world.parent("Shop", "books"), shop, "nothing was written");
        // What was accepted is in force, and the migration that is gone counts.
        world.set_pod_ready(false);
        world.until_says(("Shop", "books"), "Ready", "False");
        world.set_pod_ready(true);
        world.until_says(("Shop", "books"), "Ready", "True");
        let words = |shop: &Value| shop["status"]["conditions"][0]["message"].clone();
        assert_eq!(words(&world.parent("Shop", "books")), words(&shop));
    }
}
