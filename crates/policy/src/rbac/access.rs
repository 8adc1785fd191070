//! Rights as questions that an API server can answer.

use std::fmt;

use super::rights::{PolicyRights, RbacRule, qualify_resource};

/// One right: a verb on a resource, somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessNeed {
    /// The verb.
    pub verb: &'static str,
    /// API group; empty for the core group.
    pub group: String,
    /// Resource; a subresource follows a slash.
    pub resource: String,
    /// Only in this namespace; `None` for the whole cluster.
    pub namespace: Option<String>,
    /// Only on the object with this name.
    pub name: Option<String>,
    /// What it is for.
    pub purpose: &'static str,
    /// Without it nothing of the policy can be evaluated or written.
    pub essential: bool,
}

impl fmt::Display for AccessNeed {
    /// As `patch databases/status.example.com`, with the namespace where there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, qualify_resource(&self.group, &self.resource))?;
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

/// Every single right of a policy. Kinds are needed in these namespaces or, if none are given, in the whole cluster.
pub fn access_needs(
    rights: &PolicyRights,
    namespaces: &[String],
    records_namespace: &str,
) -> Vec<AccessNeed> {
    let mut needs = Vec::new();
    if namespaces.is_empty() {
        add_needs(&mut needs, &rights.kinds, None);
    }
    for namespace in namespaces {
        add_needs(&mut needs, &rights.kinds, Some(namespace));
    }
    add_needs(&mut needs, &rights.records, Some(records_namespace));
    for (library, rule) in &rights.libraries {
        add_needs(&mut needs, std::slice::from_ref(rule), Some(&library.namespace));
    }
    needs
}

/// Every single right of these rules within one namespace.
pub fn namespace_needs(rules: &[RbacRule], namespace: &str) -> Vec<AccessNeed> {
    let mut needs = Vec::new();
    add_needs(&mut needs, rules, Some(namespace));
    needs
}

fn add_needs(needs: &mut Vec<AccessNeed>, rules: &[RbacRule], namespace: Option<&str>) {
    for rule in rules {
        for resource in &rule.resources {
            for verb in rule.verbs {
                let mut need = AccessNeed {
                    verb,
                    group: rule.group.clone(),
                    resource: resource.clone(),
                    namespace: namespace.map(str::to_owned),
                    name: None,
                    purpose: rule.purpose,
                    essential: rule.essential,
                };
                if rule.names.is_empty() {
                    needs.push(need);
                    continue;
                }
                for name in &rule.names {
                    need.name = Some(name.clone());
                    needs.push(need.clone());
                }
            }
        }
    }
}
