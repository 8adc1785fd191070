//! The structure of objects: structural schemas of custom resources, and of built-in kinds as much as field ownership
//! and strategic merging need.

use serde_json::Value;

use super::kind::SandboxKind;

/// List type: the identity of a list's items.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SchemaListType<'a> {
    /// Items have no identity: the list is one value.
    Atomic,
    /// Items are identified by their value.
    Set,
    /// Items are identified by these fields.
    Map(Vec<&'a str>),
}

/// The schema of one location inside an object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SchemaShape<'a> {
    /// Given by a structural schema.
    Custom(&'a Value),
    /// A field of a built-in kind, by its name.
    Builtin(&'a str),
    /// An item of such a field.
    BuiltinItem(&'a str),
    /// Unknown: maps are granular, lists atomic.
    Unknown,
}

/// Lists of built-in kinds that are keyed (`listType: map`), by field name, with their keys.
const BUILTIN_KEYED_LISTS: [(&str, &[&str]); 15] = [
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

/// Maps of built-in kinds that are atomic, by field name.
const BUILTIN_ATOMIC_MAPS: [&str; 9] = [
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

/// Structs and lists of built-in kinds that are always present, so that their mere presence has no owner.
const BUILTIN_STRUCTS: [&str; 10] = [
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

impl<'a> SchemaShape<'a> {
    /// Returns the schema of a whole object.
    pub(crate) fn of_kind(kind: &'a SandboxKind) -> SchemaShape<'a> {
        match &kind.schema {
            Some(schema) => SchemaShape::Custom(&schema.0),
            None if kind.traits.custom => SchemaShape::Unknown,
            None => SchemaShape::Builtin(""),
        }
    }

    /// Returns the schema of a field.
    pub(crate) fn field_shape(self, name: &'a str) -> SchemaShape<'a> {
        match self {
            // `metadata` is typed in every kind.
            SchemaShape::Custom(_) | SchemaShape::Unknown if name == "metadata" => SchemaShape::Builtin(name),
            SchemaShape::Custom(schema) => match schema["properties"].get(name) {
                Some(property) => SchemaShape::Custom(property),
                None if schema["additionalProperties"].is_object() => {
                    SchemaShape::Custom(&schema["additionalProperties"])
                }
                None => SchemaShape::Unknown,
            },
            SchemaShape::Builtin(_) | SchemaShape::BuiltinItem(_) => SchemaShape::Builtin(name),
            SchemaShape::Unknown => SchemaShape::Unknown,
        }
    }

    /// Returns the schema of a list item.
    pub(crate) fn item_shape(self) -> SchemaShape<'a> {
        match self {
            SchemaShape::Custom(schema) if schema["items"].is_object() => {
                SchemaShape::Custom(&schema["items"])
            }
            SchemaShape::Builtin(name) => SchemaShape::BuiltinItem(name),
            _ => SchemaShape::Unknown,
        }
    }

    pub(crate) fn list_type(self) -> SchemaListType<'a> {
        match self {
            SchemaShape::Custom(schema) => match schema["x-kubernetes-list-type"].as_str() {
                Some("map") => {
                    SchemaListType::Map(super::meta::list_strings(&schema["x-kubernetes-list-map-keys"]))
                }
                Some("set") => SchemaListType::Set,
                _ => SchemaListType::Atomic,
            },
            SchemaShape::Builtin("finalizers") => SchemaListType::Set,
            SchemaShape::Builtin(name) => BUILTIN_KEYED_LISTS
                .iter()
                .find(|(field, _)| *field == name)
                .map_or(SchemaListType::Atomic, |(_, keys)| SchemaListType::Map(keys.to_vec())),
            SchemaShape::BuiltinItem(_) | SchemaShape::Unknown => SchemaListType::Atomic,
        }
    }

    pub(crate) fn is_atomic_map(self) -> bool {
        match self {
            SchemaShape::Custom(schema) => schema["x-kubernetes-map-type"] == "atomic",
            SchemaShape::Builtin(name) => BUILTIN_ATOMIC_MAPS.contains(&name),
            SchemaShape::BuiltinItem(list) => list == "ownerReferences",
            SchemaShape::Unknown => false,
        }
    }

    pub(crate) fn is_struct(self) -> bool {
        matches!(self, SchemaShape::Builtin(name) if BUILTIN_STRUCTS.contains(&name) || name.is_empty())
    }
}
