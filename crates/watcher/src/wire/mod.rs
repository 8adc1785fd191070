//! Decoding of JSON directly into the few fields that rules read. A value that is not understood is absent; no JSON
//! object fails to decode, with one exception that no API server sends: metadata, spec or status as a string with half
//! a surrogate pair.
//!
//! serde_json finds the end of each field of the object, of its metadata, spec and status, without recursion and
//! without interpreting the content; a cursor of our own reads the few that are needed. Most of the text is therefore
//! scanned once.

mod claims;
mod conditions;
mod containers;
mod cursor;
mod kept_values;
mod members;
mod meta;
mod parts;
mod spec;
mod spec_version;
mod status;
mod text_pairs;
mod wire_meta;

use std::fmt;

use readiness::{ConditionFacts, ConditionLocation, Facts, OwnerKind};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

pub use claims::{VolumeClaims, may_be_claim_name};
use cursor::JsonCursor;
use members::{FieldKey, MembersVisitor, VisitedShape, value_cursor};
use spec::SpecLists;
use spec_version::SpecDigest;
pub use spec_version::SpecVersion;
pub use wire_meta::{
    HELM_RELEASE_ANNOTATION, INVENTORY_ANNOTATION, MAX_NAME_BYTES, MAX_UID_BYTES, OwnerRef,
    TRACKING_ANNOTATION, WireMeta,
};

/// One object: its identity, and the facts that rules may read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChildObject {
    /// Identifying metadata.
    pub meta: WireMeta,
    /// Facts for rules.
    pub facts: Facts,
    /// The volume claims of the object if it is a StatefulSet.
    pub claims: Option<Box<VolumeClaims>>,
}

/// Places in the text to which reading comes back.
#[derive(Default)]
struct KeptCursors<'a> {
    managed_fields: Option<JsonCursor<'a>>,
    /// The API server sends `spec` in front of `status`.
    spec_lists: SpecLists<'a>,
    spec_digest: SpecDigest,
}

impl ChildObject {
    /// Decodes the text of one object. A value that is not an object decodes to nothing.
    pub fn from_raw(object: &RawValue) -> ChildObject {
        serde_json::from_str(object.get()).unwrap_or_default()
    }

    /// Reads one member. The managed fields are left for later: what is read of them depends on the rest.
    fn read_member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        map: &mut A,
        kept: &mut KeptCursors<'de>,
    ) -> Result<(), A::Error> {
        match key {
            "metadata" => {
                let (meta, facts) = (&mut self.meta, &mut self.facts);
                let each = |key: &str, value: &mut JsonCursor<'de>| match key {
                    "managedFields" => kept.managed_fields = Some(value.clone()),
                    _ => meta::read_meta_field(key, value, meta, facts),
                };
                map.next_value_seed(MembersVisitor { unread: &meta::UNREAD_META_FIELDS, each })?;
            }
            "spec" => {
                let (spec, claims) = (&mut self.facts.spec, &mut self.claims);
                let each = |key: &str, value: &mut JsonCursor<'de>| {
                    kept.spec_digest.add_field(key, value.text());
                    if !claims::read_claim_field(key, value, claims) {
                        spec::read_spec_field(key, value, spec, &mut kept.spec_lists);
                    }
                };
                map.next_value_seed(MembersVisitor { unread: &spec::UNREAD_SPEC_FIELDS, each })?;
            }
            "status" => self.read_status(map, &kept.spec_lists)?,
            "apiVersion" => self.meta.api_version = value_cursor(map)?.read_boxed(),
            "kind" => self.meta.kind = value_cursor(map)?.read_boxed(),
            "endpoints" => self.facts.endpoints = count_endpoints(&mut value_cursor(map)?),
            _ => {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn read_status<'de, A: MapAccess<'de>>(
        &mut self,
        map: &mut A,
        spec: &SpecLists<'de>,
    ) -> Result<(), A::Error> {
        let status = &mut self.facts.status;
        let mut pairs = status::ComparedFields::default();
        let each = |key: &str, value: &mut JsonCursor<'de>| {
            status::read_status_field(key, value, status, (&mut pairs, spec));
        };
        let shape = map.next_value_seed(MembersVisitor { unread: &[], each })?;
        match shape {
            VisitedShape::Object => status.present = true,
            VisitedShape::Text(text) => status::set_text_status(status, &text),
            VisitedShape::Other => {}
        }
        pairs.compare_into(status);
        Ok(())
    }

    /// Copies the metadata that rules read to the facts.
    fn copy_meta_to_facts(&mut self) {
        let (meta, facts) = (&self.meta, &mut self.facts);
        facts.created = meta.created;
        facts.deleted = meta.deleted;
        if meta.deleted.is_some() {
            facts.finalizers.clone_from(&meta.finalizers);
            facts.setters.clone_from(&meta.setters);
        }
        for condition in &mut facts.status.conditions {
            condition.names_kind = names_kind(condition, &meta.kind);
        }
        let controller = meta.owners.iter().find(|o| o.controller);
        facts.owner = match controller.map(|o| (&*o.api_version, &*o.kind)) {
            Some(("apps/v1", "Deployment")) => OwnerKind::Deployment,
            Some(("batch/v1", "Job")) => OwnerKind::Job,
            Some(("apps/v1", "ReplicaSet") | ("v1", "ReplicationController")) => OwnerKind::ReplicaSet,
            _ => OwnerKind::Other,
        };
    }
}

/// Returns `true` if the name of a condition is the object's kind and what is said of it: `ConnectorReady` of a Connector. Of a boolean
/// field one word of the kind is enough: `bucketReady` of a BucketClaim.
fn names_kind(condition: &ConditionFacts, kind: &str) -> bool {
    if kind.is_empty() {
        return false;
    }
    if condition.location != ConditionLocation::Field(None) {
        let said = condition.name.strip_prefix(kind);
        return said.is_some_and(|said| matches!(said, "Ready" | "Paused" | "Suspended"));
    }
    let word = condition.name.split(|letter: char| letter.is_ascii_uppercase()).next().unwrap_or("");
    let ends = |part: Option<&str>| part.is_some_and(|part| part.eq_ignore_ascii_case(word));
    word.len() > 2
        && word.len() < condition.name.len()
        && (ends(kind.get(..word.len()))
            || ends(kind.len().checked_sub(word.len()).and_then(|at| kind.get(at..))))
}

impl<'de> Deserialize<'de> for ChildObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ChildVisitor)
    }
}

struct ChildVisitor;

impl<'de> Visitor<'de> for ChildVisitor {
    type Value = ChildObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ChildObject, A::Error> {
        let (mut child, mut kept) = (ChildObject::default(), KeptCursors::default());
        while let Some(FieldKey(key)) = map.next_key()? {
            child.read_member(&key, &mut map, &mut kept)?;
        }
        let is_scaled = kept
            .managed_fields
            .is_some_and(|fields| meta::read_managed_fields(fields, &mut child.meta, &mut child.facts));
        let digest = child.facts.spec.replicas.map(|_| kept.spec_digest);
        child.meta.spec_version = SpecVersion::new(child.meta.generation, digest, is_scaled);
        child.copy_meta_to_facts();
        child.meta.add_owners_from_annotations();
        Ok(child)
    }

    members::absent!(ChildObject::default(), _text => ChildObject::default());
}

/// Counts the ready and all endpoints of an EndpointSlice. An endpoint without a condition counts as ready.
fn count_endpoints(list: &mut JsonCursor<'_>) -> Option<(u32, u32)> {
    let (mut ready, mut all) = (0, 0);
    let is_list = list.each_element(|endpoint| {
        let mut serves = true;
        endpoint.each_member(|key, value| {
            if key == "conditions" {
                value.each_member(|key, value| {
                    if key == "ready" {
                        serves = value.read_flag() != Some(false);
                    }
                });
            }
        });
        all += 1;
        ready += u32::from(serves);
    });
    is_list.then_some((ready, all))
}
