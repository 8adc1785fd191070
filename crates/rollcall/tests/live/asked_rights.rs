//! What the API server was asked for, and the rules that grant it, as RBAC compares them.

use std::collections::BTreeSet;
use std::fmt;

use sandbox::{LoggedRequest, SandboxServer};
use serde_json::Value;

/// The service account, and its namespace.
const ACCOUNT: (&str, &str) = ("rollcall", "rollcall-system");
/// Label of the roles that are aggregated into the ClusterRole of this name.
const AGGREGATED: (&str, &str) = ("rollcall.dev/aggregate-to", "rollcall");

/// What Kubernetes grants every client that it knows, by `system:basic-user`.
const OF_EVERYBODY: [&str; 2] = [
    "create selfsubjectaccessreviews.authorization.k8s.io",
    "create selfsubjectreviews.authentication.k8s.io",
];
/// Paths that `system:discovery` grants every client.
const DISCOVERY: [&str; 4] = ["/api", "/apis", "/openapi", "/version"];

/// Rights that only a service asks for that runs longer than a test needs, and why they are needed.
const ASKED_IN_TIME: [(&str, &str); 1] =
    [("patch events.events.k8s.io", "an Event goes on as a series, with one count a minute")];

/// Everything that a server was asked for.
pub(crate) fn all_asked(server: &SandboxServer) -> BTreeSet<AskedRight> {
    let mut asked = BTreeSet::new();
    for request in server.logged_requests() {
        match AskedRight::of(&request) {
            Some(right) => _ = asked.insert(right),
            None => assert!(
                DISCOVERY.iter().any(|path| request.path.starts_with(path)),
                "{} is not for everybody",
                request.path
            ),
        }
    }
    asked
}

/// What one request needs the right to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AskedRight {
    pub(crate) verb: &'static str,
    pub(crate) group: String,
    /// A subresource follows a slash.
    pub(crate) resource: String,
    /// Empty for the whole cluster.
    pub(crate) namespace: String,
    /// Empty where the request names no object.
    pub(crate) name: String,
}

impl AskedRight {
    /// Derives it as kube-apiserver does (`k8s.io/apiserver/pkg/endpoints/request`); `None` for a path that is of no resource.
    pub(crate) fn of(request: &LoggedRequest) -> Option<AskedRight> {
        let parts: Vec<&str> = request.path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, mut parts) = match &parts[..] {
            ["api", _, below @ ..] => ("", below),
            ["apis", group, _, below @ ..] => (*group, below),
            _ => return None,
        };
        let mut namespace = "";
        if let ["namespaces", of, below @ ..] = parts {
            namespace = of;
            if !matches!(below, [] | ["status" | "finalize", ..]) {
                parts = below;
            }
        }
        let (resource, below) = parts.split_first()?;
        let path_name = below.first().copied().unwrap_or_default();
        let subresource = below.get(1).map(|sub| format!("/{sub}")).unwrap_or_default();
        let asks_for = |key: &str| request.query.iter().find(|(of, _)| of == key).map(|(_, value)| &**value);
        let is_watch = asks_for("watch").is_some_and(|value| !["", "0", "false"].contains(&value));
        let verb = match (&*request.method, path_name.is_empty()) {
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", false) => "delete",
            ("DELETE", true) => "deletecollection",
            (_, false) => "get",
            _ if is_watch => "watch",
            _ => "list",
        };
        let selected = asks_for("fieldSelector").and_then(|fields| fields.strip_prefix("metadata.name="));
        let is_of_many = matches!(verb, "list" | "watch" | "deletecollection");
        let name = if is_of_many { selected.unwrap_or_default() } else { path_name };
        Some(AskedRight {
            verb,
            group: group.to_owned(),
            resource: format!("{resource}{subresource}"),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// As `patch databases/status.example.com`.
    pub(crate) fn what(&self) -> String {
        qualified(self.verb, &self.resource, &self.group)
    }
}

fn qualified(verb: &str, resource: &str, group: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    format!("{verb} {resource}{dot}{group}")
}

/// One verb on one resource that a role grants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GrantedRight {
    group: String,
    resource: String,
    verb: String,
    /// Empty for the whole cluster.
    namespace: String,
    /// Names of the objects that it is restricted to; empty for all.
    names: Vec<String>,
    /// The role that grants it.
    role: String,
}

impl fmt::Display for GrantedRight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what())?;
        if !self.names.is_empty() {
            write!(f, " {}", self.names.join(", "))?;
        }
        if !self.namespace.is_empty() {
            write!(f, " in {}", self.namespace)?;
        }
        write!(f, " ({})", self.role)
    }
}

impl GrantedRight {
    pub(crate) fn what(&self) -> String {
        qualified(&self.verb, &self.resource, &self.group)
    }

    pub(crate) fn allows(&self, asked: &AskedRight) -> bool {
        (&*self.verb, &self.group, &self.resource) == (asked.verb, &asked.group, &asked.resource)
            && (self.namespace.is_empty() || self.namespace == asked.namespace)
            && (self.names.is_empty() || self.names.contains(&asked.name))
    }
}

fn texts(list: &Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Kind, namespace and name of an object.
fn named(object: &Value) -> (String, String, String) {
    let meta = &object["metadata"];
    (text(&object["kind"]), text(&meta["namespace"]), text(&meta["name"]))
}

fn binds_account(binding: &Value) -> bool {
    let is_account = |of: &Value| {
        of["kind"] == "ServiceAccount" && of["name"] == ACCOUNT.0 && of["namespace"] == ACCOUNT.1
    };
    binding["subjects"].as_array().into_iter().flatten().any(is_account)
}

/// All rights of Rollcall's service account by these manifests: roles that nothing binds to it grant it nothing.
pub(crate) fn granted_rights(manifests: &[Value]) -> BTreeSet<GrantedRight> {
    let is_bound = |kind: &str, namespace: &str, name: &str| {
        manifests.iter().any(|binding| {
            let to_role = binding["roleRef"]["kind"] == kind && binding["roleRef"]["name"] == name;
            to_role && named(binding).1 == namespace && binds_account(binding)
        })
    };
    let is_aggregated = |role: &Value| {
        role["metadata"]["labels"][AGGREGATED.0] == AGGREGATED.1 && is_bound("ClusterRole", "", AGGREGATED.1)
    };
    let mut granted = BTreeSet::new();
    for role in manifests {
        let (kind, namespace, name) = named(role);
        if !["Role", "ClusterRole"].contains(&&*kind) {
            continue;
        }
        if !is_bound(&kind, &namespace, &name) && !is_aggregated(role) {
            continue;
        }
        for rule in role["rules"].as_array().into_iter().flatten() {
            let names = texts(&rule["resourceNames"]);
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    let right = |verb| GrantedRight {
                        group: group.clone(),
                        resource: resource.clone(),
                        verb,
                        namespace: namespace.clone(),
                        names: names.clone(),
                        role: format!("{kind} {name}"),
                    };
                    granted.extend(texts(&rule["verbs"]).into_iter().map(right));
                }
            }
        }
    }
    granted
}

/// What was asked for and what is granted, side by side.
pub(crate) struct RightsTable<'r> {
    pub(crate) asked: &'r BTreeSet<AskedRight>,
    pub(crate) granted: &'r BTreeSet<GrantedRight>,
}

impl RightsTable<'_> {
    /// What was asked for and no rule grants, but for what every client may ask for.
    pub(crate) fn refused(&self) -> Vec<&AskedRight> {
        let is_granted = |asked: &&AskedRight| self.granted.iter().any(|right| right.allows(asked));
        let asked = self.asked.iter().filter(|asked| !OF_EVERYBODY.contains(&&*asked.what()));
        asked.filter(|asked| !is_granted(asked)).collect()
    }

    /// What is granted and nobody asked for, but for what a slow machine alone asks for.
    pub(crate) fn unasked(&self) -> Vec<&GrantedRight> {
        let is_asked = |right: &&GrantedRight| self.asked.iter().any(|asked| right.allows(asked));
        let is_certain = |right: &&GrantedRight| ASKED_IN_TIME.iter().all(|(what, _)| right.what() != *what);
        self.granted.iter().filter(|right| !is_asked(right) && is_certain(right)).collect()
    }
}

impl fmt::Display for RightsTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = BTreeSet::new();
        for asked in self.asked {
            let rights = self.granted.iter().filter(|right| right.allows(asked));
            let roles: Vec<_> = rights.map(|right| &*right.role).collect();
            let place = if asked.namespace.is_empty() { "everywhere" } else { &*asked.namespace };
            lines.insert(format!("{} in {place} | {}", asked.what(), roles.join(", ")));
        }
        lines.extend(self.unasked().iter().map(|right| format!("nothing | {right}")));
        lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
