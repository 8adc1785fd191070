//! ClusterRoles that the administrator lists, as the cluster has them: what each grants, and how much.

use serde_json::Value;

use super::access::AccessNeed;

const RBAC_WILDCARD: &str = "*";

/// How much a role grants; less is narrower. Rights with wildcards weigh more than any number of others, and rights on all
/// objects more than any number of those on named ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RoleBreadth {
    wildcards: u64,
    rights: u64,
    named: u64,
}

impl RoleBreadth {
    pub(super) fn plus(self, other: RoleBreadth) -> RoleBreadth {
        RoleBreadth {
            wildcards: self.wildcards.saturating_add(other.wildcards),
            rights: self.rights.saturating_add(other.rights),
            named: self.named.saturating_add(other.named),
        }
    }
}

/// A ClusterRole that may be bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRole {
    /// Its name.
    pub name: String,
    rules: Vec<ListedRule>,
}

/// One of its rules, with the meaning that the API server gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ListedRule {
    groups: Vec<String>,
    resources: Vec<String>,
    verbs: Vec<String>,
    names: Vec<String>,
    urls: Vec<String>,
}

impl ListedRole {
    /// Reads a ClusterRole.
    pub fn from_manifest(name: &str, role: &Value) -> ListedRole {
        let rules = role["rules"].as_array().into_iter().flatten();
        let rule = |rule: &Value| ListedRule {
            groups: texts(&rule["apiGroups"]),
            resources: texts(&rule["resources"]),
            verbs: texts(&rule["verbs"]),
            names: texts(&rule["resourceNames"]),
            urls: texts(&rule["nonResourceURLs"]),
        };
        ListedRole { name: name.to_owned(), rules: rules.map(rule).collect() }
    }

    /// True if a binding in the whole cluster grants this right. A right in one namespace is none of those: what a
    /// namespace needs is no reason to grant it everywhere.
    pub(super) fn grants(&self, need: &AccessNeed) -> bool {
        need.namespace.is_none() && self.rules.iter().any(|rule| rule.grants(need))
    }

    /// True if it has any right in this API group.
    pub(super) fn names_group(&self, group: &str) -> bool {
        self.rules.iter().any(|rule| contains(&rule.groups, group))
    }

    /// How much it grants.
    pub(super) fn breadth(&self) -> RoleBreadth {
        self.rules.iter().fold(RoleBreadth::default(), |breadth, rule| breadth.plus(rule.breadth()))
    }
}

impl ListedRule {
    fn grants(&self, need: &AccessNeed) -> bool {
        let resource = || {
            let subresource =
                need.resource.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
            contains(&self.resources, &need.resource)
                || subresource.is_some_and(|any| self.resources.contains(&any))
        };
        let named =
            || self.names.is_empty() || need.name.as_ref().is_some_and(|name| self.names.contains(name));
        contains(&self.verbs, need.verb) && contains(&self.groups, &need.group) && resource() && named()
    }

    fn breadth(&self) -> RoleBreadth {
        let mut breadth = RoleBreadth::default();
        for verb in &self.verbs {
            breadth.rights = breadth.rights.saturating_add(count(self.urls.len()));
            for (group, resource) in self
                .groups
                .iter()
                .flat_map(|group| self.resources.iter().map(move |resource| (group, resource)))
            {
                let open =
                    [verb == RBAC_WILDCARD, group == RBAC_WILDCARD, resource.starts_with(RBAC_WILDCARD)];
                match open.iter().filter(|open| **open).count() {
                    0 if self.names.is_empty() => breadth.rights = breadth.rights.saturating_add(1),
                    0 => breadth.named = breadth.named.saturating_add(count(self.names.len())),
                    // Two wildcards are more than any number of rights with one.
                    1 => breadth.wildcards = breadth.wildcards.saturating_add(1),
                    2 => breadth.wildcards = breadth.wildcards.saturating_add(1 << 20),
                    _ => breadth.wildcards = breadth.wildcards.saturating_add(1 << 40),
                }
            }
        }
        breadth
    }
}

fn contains(allowed: &[String], asked: &str) -> bool {
    allowed.iter().any(|allowed| allowed == RBAC_WILDCARD || allowed == asked)
}

fn count(items: usize) -> u64 {
    u64::try_from(items).unwrap_or(u64::MAX)
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|text| Some(text.as_str()?.to_owned())).collect()
}
