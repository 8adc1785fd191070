//! What a request is about, read from its method and path alone, so that faults can match what does not exist.

use crate::store::Request;

/// What a request does, in the words of RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// One object.
    Get,
    /// A collection.
    List,
    /// A stream of changes.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// DELETE of one object.
    Delete,
    /// DELETE of a collection.
    DeleteCollection,
    /// Discovery, health, version.
    Other,
}

impl Verb {
    /// Whether it can change anything.
    pub fn writes(self) -> bool {
        !matches!(self, Verb::Get | Verb::List | Verb::Watch | Verb::Other)
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Verb::Get | Verb::Other => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
        }
    }
}

/// What a request addresses.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Address {
    pub(super) verb: Verb,
    pub(super) group: String,
    pub(super) plural: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) subresource: String,
}

impl Address {
    pub(super) fn of(request: &Request) -> Address {
        let parts: Vec<&str> = request.path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, rest) = match &parts[..] {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => ("", &[][..]),
        };
        let (namespace, rest) = match rest {
            ["namespaces", _, "status" | "finalize"] => ("", rest),
            ["namespaces", namespace, below @ ..] if !below.is_empty() => (*namespace, below),
            _ => ("", rest),
        };
        let part = |at: usize| rest.get(at).copied().unwrap_or_default();
        let (plural, name) = (part(0), part(1));
        let verb = match (request.method.as_str(), name) {
            _ if plural.is_empty() => Verb::Other,
            ("GET", _) if request.is_watch() => Verb::Watch,
            ("GET", "") => Verb::List,
            ("POST", _) => Verb::Create,
            ("PUT", _) => Verb::Update,
            ("PATCH", _) => Verb::Patch,
            ("DELETE", "") => Verb::DeleteCollection,
            ("DELETE", _) => Verb::Delete,
            _ => Verb::Get,
        };
        let own = |text: &str| text.to_owned();
        Address {
            verb,
            group: own(group),
            plural: own(plural),
            namespace: own(namespace),
            name: own(name),
            subresource: own(part(2)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_those_of_rbac() {
        let cases = [
            ("GET", "/api/v1/pods", Verb::List),
            ("GET", "/api/v1/pods?watch=1", Verb::Watch),
            ("GET", "/api/v1/namespaces/a/pods/b", Verb::Get),
            ("PATCH", "/apis/apps/v1/namespaces/a/deployments/b/status", Verb::Patch),
            ("DELETE", "/api/v1/namespaces/a/pods", Verb::DeleteCollection),
            ("GET", "/api/v1/namespaces/a", Verb::Get),
            ("GET", "/apis/apps/v1", Verb::Other),
        ];
        for (method, target, verb) in cases {
            assert_eq!(Address::of(&Request::new(method, target)).verb, verb, "{method} {target}");
        }
        let address = Address::of(&Request::new("PATCH", "/apis/apps/v1/namespaces/a/deployments/b/status"));
        assert_eq!(
            (address.group.as_str(), address.plural.as_str(), address.subresource.as_str()),
            ("apps", "deployments", "status")
        );
    }
}
