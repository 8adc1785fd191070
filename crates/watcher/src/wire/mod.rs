//! From JSON straight into the few fields that rules read. What is not understood is absent; no object of a JSON text fails,
//! with one exception that no API server sends: metadata, spec or status as a string with half a surrogate pair in it.
//!
//! serde_json finds where each field of the object, of its metadata, spec and status ends, without recursion and without a
//! look at what is inside; a cursor of our own walks into those that are read. So most of the text is passed over once.

mod claims;
mod conditions;
mod containers;
mod cursor;
mod members;
mod meta;
mod moment;
mod spec;
mod status;

use std::fmt;

use readiness::{Facts, Owner, Time};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

pub use claims::{Claims, may_be_claimed};
use cursor::Cursor;
use members::{Key, Members, Shape, cursor};

/// What identifies an object, and what links it to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// `apiVersion`; empty inside lists of built-in kinds.
    pub api_version: Box<str>,
    /// `kind`; empty inside lists of built-in kinds.
    pub kind: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.generateName`.
    pub generate_name: Box<str>,
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
    /// Those of `metadata.annotations` that rules and policies read.
    pub annotations: Vec<(Box<str>, Box<str>)>,
    /// `metadata.finalizers`.
    pub finalizers: Vec<Box<str>>,
    /// Of those, who has set which, where `metadata.managedFields` tell: finalizer and manager.
    pub setters: Vec<(Box<str>, Box<str>)>,
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
    /// It is the one that controls the object.
    pub controller: bool,
}

/// One object: who it is, and what rules may know of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Child {
    /// Who it is.
    pub meta: Meta,
    /// What is known of it.
    pub facts: Facts,
    /// The volumes that it claims, where it is a StatefulSet.
    pub claims: Option<Box<Claims>>,
}

impl Child {
    /// Reads the text of one object. What is not an object has nothing.
    pub fn read(object: &RawValue) -> Child {
        serde_json::from_str(object.get()).unwrap_or_default()
    }

    fn member<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "metadata" => {
                let each = |key: &str, value: &mut Cursor<'_>| meta::field(key, value, self);
                map.next_value_seed(Members { unread: &meta::UNREAD, each })?;
            }
            "spec" => {
                let (spec, claims) = (&mut self.facts.spec, &mut self.claims);
                let each = |key: &str, value: &mut Cursor<'_>| {
                    if !claims::field(key, value, claims) {
                        spec::field(key, value, spec);
                    }
                };
                map.next_value_seed(Members { unread: &spec::UNREAD, each })?;
            }
            "status" => self.status(map)?,
            "apiVersion" => self.meta.api_version = cursor(map)?.boxed(),
            "kind" => self.meta.kind = cursor(map)?.boxed(),
            "endpoints" => self.facts.endpoints = endpoints(&mut cursor(map)?),
            _ => {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn status<'de, A: MapAccess<'de>>(&mut self, map: &mut A) -> Result<(), A::Error> {
        let status = &mut self.facts.status;
        let mut pairs = status::Pairs::default();
        let each = |key: &str, value: &mut Cursor<'de>| status::field(key, value, status, &mut pairs);
        let shape = map.next_value_seed(Members { unread: &[], each })?;
        match shape {
            Shape::Object => status.present = true,
            Shape::Text(text) => status::text(status, &text),
            Shape::Other => {}
        }
        pairs.compare(status);
        Ok(())
    }

    /// What identifies an object and matters to its rules too.
    fn share(&mut self) {
        let (meta, facts) = (&self.meta, &mut self.facts);
        facts.created = meta.created;
        facts.deleted = meta.deleted;
        if meta.deleted.is_some() {
            facts.finalizers.clone_from(&meta.finalizers);
            facts.setters.clone_from(&meta.setters);
        }
        let controller = meta.owners.iter().find(|o| o.controller);
        facts.owner = match controller.map(|o| (&*o.api_version, &*o.kind)) {
            Some(("apps/v1", "Deployment")) => Owner::Deployment,
            Some(("batch/v1", "Job")) => Owner::Job,
            _ => Owner::Other,
        };
    }
}

impl<'de> Deserialize<'de> for Child {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Object)
    }
}

struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = Child;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Child, A::Error> {
        let mut child = Child::default();
        while let Some(Key(key)) = map.next_key()? {
            child.member(&key, &mut map)?;
        }
        child.share();
        Ok(child)
    }

    members::absent!(Child::default(), _text => Child::default());
}

/// Ready and all of an EndpointSlice's endpoints. One that does not say is ready.
fn endpoints(list: &mut Cursor<'_>) -> Option<(u32, u32)> {
    let (mut ready, mut all) = (0, 0);
    let is_list = list.elements(|endpoint| {
        let mut serves = true;
        endpoint.members(|key, value| {
            if key == "conditions" {
                value.members(|key, value| {
                    if key == "ready" {
                        serves = value.flag() != Some(false);
                    }
                });
            }
        });
        all += 1;
        ready += u32::from(serves);
    });
    is_list.then_some((ready, all))
}
