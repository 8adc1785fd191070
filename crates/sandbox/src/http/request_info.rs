//! The verb, kind and name that a request addresses, parsed from its method and path alone, so that faults also match
//! requests for objects that do not exist.

use crate::store::StoreRequest;

/// The verb of a request, as RBAC names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestVerb {
    /// GET of one object.
    Get,
    /// GET of a collection.
    List,
    /// Watch of a collection.
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
    /// Discovery, health or version.
    Other,
}

impl RequestVerb {
    /// Returns `true` if a request of this verb can change an object.
    pub fn is_write(self) -> bool {
        !matches!(self, RequestVerb::Get | RequestVerb::List | RequestVerb::Watch | RequestVerb::Other)
    }

    /// Returns the verb as RBAC spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            RequestVerb::Get | RequestVerb::Other => "get",
            RequestVerb::List => "list",
            RequestVerb::Watch => "watch",
            RequestVerb::Create => "create",
            RequestVerb::Update => "update",
            RequestVerb::Patch => "patch",
            RequestVerb::Delete => "delete",
            RequestVerb::DeleteCollection => "deletecollection",
        }
    }
}

/// The parsed address of a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RequestInfo {
    pub(super) verb: RequestVerb,
    pub(super) group: String,
    pub(super) plural: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) subresource: String,
}

impl RequestInfo {
    pub(super) fn from_request(request: &StoreRequest) -> RequestInfo {
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
            _ if plural.is_empty() => RequestVerb::Other,
            ("GET", _) if request.is_watch() => RequestVerb::Watch,
            ("GET", "") => RequestVerb::List,
            ("POST", _) => RequestVerb::Create,
            ("PUT", _) => RequestVerb::Update,
            ("PATCH", _) => RequestVerb::Patch,
            ("DELETE", "") => RequestVerb::DeleteCollection,
            ("DELETE", _) => RequestVerb::Delete,
            _ => RequestVerb::Get,
        };
        let own = |text: &str| text.to_owned();
        RequestInfo {
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
            ("GET", "/api/v1/pods", RequestVerb::List),
            ("GET", "/api/v1/pods?watch=1", RequestVerb::Watch),
            ("GET", "/api/v1/namespaces/a/pods/b", RequestVerb::Get),
            ("PATCH", "/apis/apps/v1/namespaces/a/deployments/b/status", RequestVerb::Patch),
            ("DELETE", "/api/v1/namespaces/a/pods", RequestVerb::DeleteCollection),
            ("GET", "/api/v1/namespaces/a", RequestVerb::Get),
            ("GET", "/apis/apps/v1", RequestVerb::Other),
        ];
        for (method, target, verb) in cases {
            assert_eq!(
                RequestInfo::from_request(&StoreRequest::new(method, target)).verb,
                verb,
                "{method} {target}"
            );
        }
        let address = RequestInfo::from_request(&StoreRequest::new(
            "PATCH",
            "/apis/apps/v1/namespaces/a/deployments/b/status",
        ));
        assert_eq!(
            (address.group.as_str(), address.plural.as_str(), address.subresource.as_str()),
            ("apps", "deployments", "status")
        );
    }
}
