//! The names of a kind in the API, and the path that serves it.

use std::fmt;

/// One kind as the API server serves it, resolved by [`resolve_kind`](crate::resolve_kind).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiKind {
    /// API group; empty for the core group.
    pub group: String,
    /// Version within the group, such as `v1`.
    pub version: String,
    /// Kind, such as `StatefulSet`.
    pub kind: String,
    /// Plural name in URLs, such as `statefulsets`.
    pub plural: String,
    /// The objects are namespaced.
    pub namespaced: bool,
    /// The kind has a status subresource.
    pub has_status: bool,
}

impl ApiKind {
    /// `apiVersion` as objects of this kind carry it: `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the path that lists the objects. A namespace is ignored for a cluster-scoped kind.
    pub fn list_path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api/" } else { "/apis/" };
        let version = self.api_version();
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{root}{version}/namespaces/{namespace}/{}", self.plural),
            None => format!("{root}{version}/{}", self.plural),
        }
    }
}

impl fmt::Display for ApiKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            write!(f, "{}", self.kind)
        } else {
            write!(f, "{}.{}", self.kind, self.group)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(group: &str, plural: &str, namespaced: bool) -> ApiKind {
        ApiKind {
            group: group.into(),
            version: "v1".into(),
            kind: "Thing".into(),
            plural: plural.into(),
            namespaced,
            has_status: true,
        }
    }

    #[test]
    fn paths_follow_group_and_scope() {
        assert_eq!(kind("", "pods", true).list_path(Some("shop")), "/api/v1/namespaces/shop/pods");
        assert_eq!(kind("apps", "deployments", true).list_path(None), "/apis/apps/v1/deployments");
        assert_eq!(kind("", "nodes", false).list_path(Some("shop")), "/api/v1/nodes");
    }
}
