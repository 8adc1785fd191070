//! What is known of the shape of objects: structural schemas of custom resources, and of the built-in kinds as much as
//! field ownership and strategic merging need.

use serde_json::Value;

use super::kind::Kind;

/// A structural schema, read where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Schema(pub(crate) Value);

/// How the items of a list are told apart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Items<'a> {
    /// They are not: the list is one value.
    Atomic,
    /// By themselves.
    Set,
    /// By these fields.
    Map(Vec<&'a str>),
}

/// The shape of one place inside an object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape<'a> {
    /// As a structural schema says it.
    Custom(&'a Value),
    /// Of a built-in kind, by the name of the field.
    Builtin(&'a str),
    /// An item of such a list.
    BuiltinItem(&'a str),
    /// Nothing is known: maps are granular, lists atomic.
    Unknown,
}

/// Lists of built-in kinds that are maps, by field name.
const MAPS: [(&str, &[&str]); 15] = [
    ("conditions", &["type"]),
    ("ownerReferences", &["uid"]),
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("ephemeralContainers", &["name"]),
    ("env", &["name"]),
    ("volumes", &["name"]),
    ("volumeMounts", &["mountPath"]),
    ("volumeDevices", &["devicePath"]),
    ("imagePullSecrets", &["name"]),
    ("hostAliases", &["ip"]),
    ("podIPs", &["ip"]),
    ("addresses", &["type"]),
    ("topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
    ("ports", &["port", "containerPort", "protocol"]),
];

/// Maps of built-in kinds that are one value, by field name.
const ATOMIC: [&str; 9] = [
    "selector",
    "nodeSelector",
    "labelSelector",
    "involvedObject",
    "regarding",
    "scaleTargetRef",
    "fieldRef",
    "secretKeyRef",
    "configMapKeyRef",
];

/// Structs and lists of built-in kinds that are always there, so that nobody owns their mere presence.
const STRUCTS: [&str; 10] = [
    "containers",
    "metadata",
    "spec",
    "status",
    "template",
    "strategy",
    "updateStrategy",
    "jobTemplate",
    "names",
    "resources",
];

impl<'a> Shape<'a> {
    /// The shape of a whole object.
    pub(crate) fn of(kind: &'a Kind) -> Shape<'a> {
        match &kind.schema {
            Some(schema) => Shape::Custom(&schema.0),
            None if kind.traits.custom => Shape::Unknown,
            None => Shape::Builtin(""),
        }
    }

    /// The shape of a member.
    pub(crate) fn field(self, name: &'a str) -> Shape<'a> {
        match self {
            // `metadata` is typed in every kind.
            Shape::Custom(_) | Shape::Unknown if name == "metadata" => Shape::Builtin(name),
            Shape::Custom(schema) => match schema["properties"].get(name) {
                Some(property) => Shape::Custom(property),
                None if schema["additionalProperties"].is_object() => {
                    Shape::Custom(&schema["additionalProperties"])
                }
                None => Shape::Unknown,
            },
            Shape::Builtin(_) | Shape::BuiltinItem(_) => Shape::Builtin(name),
            Shape::Unknown => Shape::Unknown,
        }
    }

    /// The shape of an item.
    pub(crate) fn item(self) -> Shape<'a> {
        match self {
            Shape::Custom(schema) if schema["items"].is_object() => Shape::Custom(&schema["items"]),
            Shape::Builtin(name) => Shape::BuiltinItem(name),
            _ => Shape::Unknown,
        }
    }

    pub(crate) fn items(self) -> Items<'a> {
        match self {
            Shape::Custom(schema) => match schema["x-kubernetes-list-type"].as_str() {
                Some("map") => Items::Map(super::meta::strings(&schema["x-kubernetes-list-map-keys"])),
                Some("set") => Items::Set,
                _ => Items::Atomic,
            },
            Shape::Builtin("finalizers") => Items::Set,
            Shape::Builtin(name) => MAPS
                .iter()
                .find(|(field, _)| *field == name)
                .map_or(Items::Atomic, |(_, keys)| Items::Map(keys.to_vec())),
            Shape::BuiltinItem(_) | Shape::Unknown => Items::Atomic,
        }
    }

    pub(crate) fn is_atomic_map(self) -> bool {
        match self {
            Shape::Custom(schema) => schema["x-kubernetes-map-type"] == "atomic",
            Shape::Builtin(name) => ATOMIC.contains(&name),
            Shape::BuiltinItem(list) => list == "ownerReferences",
            Shape::Unknown => false,
        }
    }

    pub(crate) fn is_struct(self) -> bool {
        matches!(self, Shape::Builtin(name) if STRUCTS.contains(&name) || name.is_empty())
    }
}
