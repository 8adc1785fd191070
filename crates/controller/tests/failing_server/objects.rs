//! What the server holds: parents of two kinds with a ready pod each, and a policy for each kind.

use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;
use serde_json::{Value, json};

const API: &str = "example.com/v1";
const POLICY_API: &str = "rollcall.dev/v1alpha1";
/// Kinds of parents: plural, and name.
const KINDS: [(&str, &str); 2] = [("databases", "Database"), ("caches", "Cache")];

/// The objects, with the parents as they were last written.
pub(crate) struct ServedObjects {
    parents: Mutex<StoredParents>,
    pods: Bytes,
    /// Number of further kinds of children, none of which has an object.
    part_kinds: usize,
}

struct StoredParents {
    objects: Vec<Value>,
    version: u64,
}

impl ServedObjects {
    pub(crate) fn new(parents: usize, part_kinds: usize) -> ServedObjects {
        let pods = (0..parents).map(pod);
        let objects = (0..parents).map(parent).collect();
        ServedObjects {
            parents: Mutex::new(StoredParents { objects, version: 100 }),
            pods: list_of("v1", "PodList", 100, pods),
            part_kinds,
        }
    }

    fn lock_parents(&self) -> MutexGuard<'_, StoredParents> {
        self.parents.lock().unwrap()
    }

    /// Number of parents whose condition says True.
    pub(crate) fn count_ready(&self) -> usize {
        let is_ready = |parent: &&Value| parent["status"]["conditions"][0]["status"] == "True";
        self.lock_parents().objects.iter().filter(is_ready).count()
    }

    /// The parent at this path, by its number.
    pub(crate) fn parent_number(path: &str) -> Option<usize> {
        let rest = path.strip_prefix("/apis/example.com/v1/namespaces/shop/")?;
        let (_, name) = rest.trim_end_matches("/status").split_once('/')?;
        name.rsplit_once('-')?.1.parse().ok()
    }

    /// A parent as it stands.
    pub(crate) fn parent(&self, number: usize) -> Value {
        self.lock_parents().objects[number].clone()
    }

    /// Patches a parent; `None` where a precondition fails.
    pub(crate) fn patch_parent(&self, number: usize, patch: &[u8]) -> Option<Value> {
        let patch: json_patch::Patch = serde_json::from_slice(patch).ok()?;
        let mut parents = self.lock_parents();
        let mut patched = parents.objects[number].clone();
        json_patch::patch(&mut patched, &patch).ok()?;
        parents.version += 1;
        patched["metadata"]["resourceVersion"] = json!(parents.version.to_string());
        parents.objects[number] = patched.clone();
        Some(patched)
    }

    /// Changes a field of what a parent says.
    pub(crate) fn rewrite_conditions(&self, number: usize, field: &str) -> Value {
        let mut parents = self.lock_parents();
        let conditions = parents.objects[number]["status"]["conditions"].as_array_mut();
        for condition in conditions.into_iter().flatten() {
            condition[field] = json!("Rewritten");
        }
        parents.objects[number].clone()
    }

    /// What stands at a path that is read.
    pub(crate) fn read(&self, path: &str) -> Option<Bytes> {
        if let Some(number) = ServedObjects::parent_number(path) {
            return Some(self.parent(number).to_string().into());
        }
        if let Some(name) = path.strip_prefix("/apis/rollcall.dev/v1alpha1/readinesspolicies/") {
            let kind = usize::from(name.trim_end_matches("/status") == KINDS[1].0);
            return Some(self.policy(kind).to_string().into());
        }
        for (index, (plural, kind)) in KINDS.into_iter().enumerate() {
            if path == format!("/apis/example.com/v1/{plural}") {
                let parents = self.lock_parents();
                let of_kind = parents.objects.iter().skip(index).step_by(KINDS.len()).cloned();
                return Some(list_of(API, &format!("{kind}List"), parents.version, of_kind));
            }
        }
        Some(match path {
            "/apis/example.com" => group("example.com", "v1"),
            "/apis/rollcall.dev" => group("rollcall.dev", "v1alpha1"),
            "/apis/example.com/v1" => {
                let parents = KINDS.map(|(plural, kind)| (plural.to_owned(), kind.to_owned()));
                resources(parents.into_iter().chain((0..self.part_kinds).map(part_kind)))
            }
            "/api/v1" => resources([("pods".to_owned(), "Pod".to_owned())]),
            "/api/v1/pods" => self.pods.clone(),
            "/apis/rollcall.dev/v1alpha1/readinesspolicies" => list_of(
                POLICY_API,
                "ReadinessPolicyList",
                100,
                (0..KINDS.len()).map(|kind| self.policy(kind)),
            ),
            _ => {
                let plural = path.strip_prefix("/apis/example.com/v1/")?;
                let (_, kind) = (0..self.part_kinds).map(part_kind).find(|(part, _)| part == plural)?;
                list_of(API, &format!("{kind}List"), 100, std::iter::empty())
            }
        })
    }

    fn policy(&self, kind: usize) -> Value {
        let (name, kind) = KINDS[kind];
        let parts = (0..self.part_kinds).map(|part| {
            json!({ "kind": { "group": "example.com", "kind": part_kind(part).1 }, "expect": { "min": 0 } })
        });
        let pods = json!({ "kind": { "group": "", "kind": "Pod" } });
        let children: Vec<Value> = std::iter::once(pods).chain(parts).collect();
        json!({ "apiVersion": POLICY_API, "kind": "ReadinessPolicy",
            "metadata": { "name": name, "uid": name, "resourceVersion": "1", "generation": 1 },
            "spec": { "parent": { "group": "example.com", "kind": kind }, "children": children } })
    }
}

/// Plural and name of a kind of children that has no object.
fn part_kind(number: usize) -> (String, String) {
    (format!("part{number}s"), format!("Part{number}"))
}

fn list_of(version: &str, kind: &str, at: u64, items: impl Iterator<Item = Value>) -> Bytes {
    let items: Vec<Value> = items.collect();
    json!({ "apiVersion": version, "kind": kind, "metadata": { "resourceVersion": at.to_string() }, "items": items })
        .to_string()
        .into()
}

/// Name, kind and uid of a parent.
fn parent_name(number: usize) -> (String, &'static str) {
    let kind = KINDS[number % KINDS.len()].1;
    (format!("{}-{number}", kind.to_lowercase()), kind)
}

fn parent(number: usize) -> Value {
    let (name, kind) = parent_name(number);
    json!({ "apiVersion": API, "kind": kind, "status": { "conditions": [] }, "metadata": {
        "name": name, "namespace": "shop", "uid": name, "resourceVersion": "1",
        "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z" } })
}

fn pod(number: usize) -> Value {
    let (name, kind) = parent_name(number);
    let owner = json!({ "apiVersion": API, "kind": kind, "controller": true, "name": name, "uid": name });
    json!({ "apiVersion": "v1", "kind": "Pod", "spec": {}, "metadata": {
        "name": format!("pod-{number}"), "namespace": "shop", "uid": format!("pod-{number}"), "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": [owner] },
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] } })
}

fn group(name: &str, version: &str) -> Bytes {
    let served = json!({ "groupVersion": format!("{name}/{version}"), "version": version });
    json!({ "kind": "APIGroup", "name": name, "versions": [served], "preferredVersion": served })
        .to_string()
        .into()
}

fn resources(kinds: impl IntoIterator<Item = (String, String)>) -> Bytes {
    let resource =
        |name: &str, kind: &str| json!({ "name": name, "kind": kind, "namespaced": true, "verbs": [] });
    let both = |(plural, kind): (String, String)| {
        [resource(&plural, &kind), resource(&format!("{plural}/status"), &kind)]
    };
    let all: Vec<Value> = kinds.into_iter().flat_map(both).collect();
    json!({ "kind": "APIResourceList", "resources": all }).to_string().into()
}
