//! Facts about kinds that only a cluster or their CRDs tell.

use std::collections::BTreeMap;

use serde_json::Value;

/// Facts about kinds that only their CRDs tell: the plural used in roles, and the resource on which status is written.
#[derive(Clone, Debug, Default)]
pub struct CrdNames(BTreeMap<(String, String), CrdName>);

#[derive(Clone, Debug)]
struct CrdName {
    plural: String,
    /// Some served version has no status subresource: its status is patched on the main resource.
    lacks_status_subresource: bool,
}

impl CrdNames {
    /// Reads these `CustomResourceDefinition`s. Those that are incomplete, or that no API server would accept, are
    /// ignored.
    pub fn from_crds<'a>(crds: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut names = CrdNames::default();
        for crd in crds {
            let spec = &crd["spec"];
            let versions = spec["versions"].as_array().into_iter().flatten();
            let lacks_status =
                versions.filter(|v| v["served"] != false).any(|v| v["subresources"]["status"].is_null());
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let said = (text(&spec["group"]), text(&spec["names"]["kind"]), text(&spec["names"]["plural"]));
            if let (Some(group), Some(kind), Some(plural)) = said {
                names.add_kind(&group, &kind, &plural, !lacks_status);
            }
        }
        names
    }

    /// Adds what the server says of a kind. A plural that is no name of a resource is ignored.
    pub fn add_kind(&mut self, group: &str, kind: &str, plural: &str, has_status: bool) {
        if is_resource_name(plural) {
            let name = CrdName { plural: plural.to_owned(), lacks_status_subresource: !has_status };
            self.0.insert((group.to_owned(), kind.to_owned()), name);
        }
    }

    pub(super) fn plural_of(&self, group: &str, kind: &str) -> String {
        let known = self.0.get(&(group.to_owned(), kind.to_owned()));
        known.map_or_else(|| default_plural(kind), |name| name.plural.clone())
    }

    pub(super) fn lacks_status_subresource(&self, group: &str, kind: &str) -> bool {
        let known = self.0.get(&(group.to_owned(), kind.to_owned()));
        known.is_some_and(|name| name.lacks_status_subresource)
    }
}

/// True for a DNS label: what the API server allows as a plural.
fn is_resource_name(text: &str) -> bool {
    let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(legal)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Default plural of a kind, formed as the API machinery does. A CRD may define another one, which is unknown offline
/// unless the CRD is given.
pub fn default_plural(kind: &str) -> String {
    let lower = kind.to_lowercase();
    if lower.ends_with('s') || lower.ends_with('x') || lower.ends_with("ch") || lower.ends_with("sh") {
        return format!("{lower}es");
    }
    match lower.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{lower}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn crd(plural: &str, version: &Value) -> Value {
        let names = json!({ "kind": "Database", "plural": plural });
        json!({ "spec": { "group": "example.com", "names": names, "versions": [version] } })
    }

    #[test]
    fn a_kind_is_called_as_its_crd_calls_it_and_may_have_no_status_subresource() {
        let with = json!({ "name": "v1", "subresources": { "status": {} } });
        for (version, flat) in [(with, false), (json!({ "name": "v1" }), true)] {
            let crds = CrdNames::from_crds([&crd("dbs", &version)]);
            assert_eq!(crds.plural_of("example.com", "Database"), "dbs");
            assert_eq!(crds.lacks_status_subresource("example.com", "Database"), flat);
        }
        assert_eq!(CrdNames::default().plural_of("example.com", "Database"), "databases");
    }

    #[test]
    fn a_plural_that_names_no_resource_is_not_believed() {
        for plural in ["*", "dbs/status", "a]\n  verbs: [\"*\"", "", "-dbs"] {
            let crds = CrdNames::from_crds([&crd(plural, &json!({ "name": "v1" }))]);
            assert_eq!(crds.plural_of("example.com", "Database"), "databases", "{plural:?}");
        }
    }

    #[test]
    fn plurals_are_those_of_the_built_in_kinds() {
        for (kind, expected) in [
            ("Deployment", "deployments"),
            ("Ingress", "ingresses"),
            ("NetworkPolicy", "networkpolicies"),
            ("Gateway", "gateways"),
            ("Job", "jobs"),
        ] {
            assert_eq!(default_plural(kind), expected);
        }
    }
}
