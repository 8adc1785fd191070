//! From JSON straight into the few fields that rules read. A wire type cannot fail: what it does not understand is absent.

use readiness::Time;

/// What identifies an object, and what links it to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// `apiVersion`; empty inside lists of built-in kinds.
    pub api_version: Box<str>,
    /// `kind`; empty inside lists of built-in kinds.
    pub kind: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.namespace`; empty for cluster-scoped objects.
    pub namespace: Box<str>,
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.resourceVersion` as a number (comparable within a kind since Kubernetes 1.35); 0 where it is none.
    pub resource_version: u64,
    /// `metadata.generation`; 0 where absent.
    pub generation: i64,
    /// `metadata.creationTimestamp`.
    pub created: Option<Time>,
    /// `metadata.deletionTimestamp`.
    pub deleted: Option<Time>,
    /// `metadata.ownerReferences`.
    pub owners: Vec<OwnerRef>,
    /// `metadata.labels`, in the order of the JSON text.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// `metadata.finalizers`.
    pub finalizers: Vec<Box<str>>,
}

/// One of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerRef {
    /// `apiVersion` of the owner.
    pub api_version: Box<str>,
    /// `kind` of the owner.
    pub kind: Box<str>,
    /// `name` of the owner.
    pub name: Box<str>,
    /// `uid` of the owner.
    pub uid: Box<str>,
}

/// Interim.
#[derive(Clone, Debug, Default)]
pub struct Child {
    /// meta
    pub meta: Meta,
    /// facts
    pub facts: readiness::Facts,
}
impl<'de> serde::Deserialize<'de> for Child {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #![allow(clippy::many_single_char_names)]
        let v = serde_json::Value::deserialize(d)?;
        let s = |v: &serde_json::Value| -> Box<str> { v.as_str().unwrap_or("").into() };
        let t = |v: &serde_json::Value| v.as_str().and_then(crate::status::time::parse);
        let m = &v["metadata"];
        let meta = Meta {
            api_version: s(&v["apiVersion"]),
            kind: s(&v["kind"]),
            name: s(&m["name"]),
            namespace: s(&m["namespace"]),
            uid: s(&m["uid"]),
            resource_version: m["resourceVersion"].as_str().and_then(|x| x.parse().ok()).unwrap_or(0),
            generation: m["generation"].as_i64().unwrap_or(0),
            created: t(&m["creationTimestamp"]),
            deleted: t(&m["deletionTimestamp"]),
            owners: m["ownerReferences"]
                .as_array()
                .map(|a| {
                    a.iter()
                        .map(|o| OwnerRef {
                            api_version: s(&o["apiVersion"]),
                            kind: s(&o["kind"]),
                            name: s(&o["name"]),
                            uid: s(&o["uid"]),
                        })
                        .collect()
                })
                .unwrap_or_default(),
            labels: m["labels"]
                .as_object()
                .map(|a| a.iter().map(|(k, v)| (k.as_str().into(), s(v))).collect())
                .unwrap_or_default(),
            finalizers: vec![],
        };
        let st = &v["status"];
        let n = |v: &serde_json::Value| v.as_u64().unwrap_or(0) as u32;
        let ready = st["conditions"]
            .as_array()
            .and_then(|a| a.iter().find(|c| c["type"] == "Ready"))
            .map(|c| c["status"] == "True");
        let facts = readiness::Facts {
            generation: meta.generation,
            observed: st["observedGeneration"].as_i64(),
            deleted: meta.deleted,
            desired: v["spec"]["replicas"].as_u64().map(|n| n as u32),
            available: n(&st["availableReplicas"]),
            updated: n(&st["updatedReplicas"]),
            ready,
        };
        Ok(Child { meta, facts })
    }
}
