//! Bindings by which Rollcall grants itself listed ClusterRoles: their names, what they are made of, and whose one is that
//! was found.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::role_subject::{RBAC_GROUP, RoleSubject};

/// Most roles that may be listed: all sets of them are compared.
pub const MAX_GRANT_ROLES: usize = 16;
/// Label of the bindings that Rollcall makes.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "rollcall");
/// Annotation that names the policies for which a binding was made.
const GRANTED_FOR_ANNOTATION: &str = "rollcall.dev/granted-for";
/// Most policies that it names.
const MAX_NAMED_POLICIES: usize = 32;
/// Longest name of a listed role.
const MAX_ROLE_NAME: usize = 190;

/// Name of the binding of a listed role to a service account. There is one for each role, so that the right to delete can be
/// restricted to names.
pub fn grant_binding_name(subject: &RoleSubject, role: &str) -> String {
    format!("rollcall:{}:{}:{role}", subject.namespace, subject.name)
}

/// Binding of a listed role to the service account, made for these policies.
pub fn grant_binding<'p>(
    subject: &RoleSubject,
    role: &str,
    policies: impl Iterator<Item = &'p str>,
) -> Value {
    let policies: Vec<&str> = policies.take(MAX_NAMED_POLICIES).collect();
    let metadata = json!({
        "name": grant_binding_name(subject, role),
        "labels": { "app.kubernetes.io/name": "rollcall", (MANAGED_BY.0): MANAGED_BY.1 },
        "annotations": { (GRANTED_FOR_ANNOTATION): policies.join(",") },
    });
    json!({
        "apiVersion": format!("{RBAC_GROUP}/v1"), "kind": "ClusterRoleBinding", "metadata": metadata,
        "roleRef": role_ref(role), "subjects": [account_ref(subject)],
    })
}

fn role_ref(role: &str) -> Value {
    json!({ "apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role })
}

fn account_ref(subject: &RoleSubject) -> Value {
    json!({ "kind": "ServiceAccount", "name": subject.name, "namespace": subject.namespace })
}

/// Whose a binding is that has the name of one of Rollcall's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingOwnership {
    /// Rollcall made it, and it does what it was made for.
    Own {
        /// Its uid: no other one is deleted in its stead.
        uid: String,
        /// Policies for which it was made.
        granted_for: BTreeSet<String>,
    },
    /// Another manager made or changed it. It is left alone.
    Foreign,
}

/// Says whose this ClusterRoleBinding is.
pub fn judge_binding(found: &Value, subject: &RoleSubject, role: &str) -> BindingOwnership {
    let labelled = found["metadata"]["labels"][MANAGED_BY.0] == MANAGED_BY.1;
    let own =
        labelled && found["roleRef"] == role_ref(role) && found["subjects"] == json!([account_ref(subject)]);
    match found["metadata"]["uid"].as_str() {
        Some(uid) if own => {
            let policies =
                found["metadata"]["annotations"][GRANTED_FOR_ANNOTATION].as_str().unwrap_or_default();
            let granted_for =
                policies.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
            BindingOwnership::Own { uid: uid.to_owned(), granted_for }
        }
        _ => BindingOwnership::Foreign,
    }
}

/// Checks the name of a role that is listed: letters, digits, `-`, `.`, `:` and `_`, as the names of all that ship with
/// Kubernetes.
pub fn check_grant_role(name: &str) -> Result<String, String> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:_".contains(&byte);
    let ends = name.bytes().next().zip(name.bytes().last());
    let is_name = name.len() <= MAX_ROLE_NAME
        && name.bytes().all(legal)
        && ends.is_some_and(|(first, last)| first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric());
    if is_name { Ok(name.to_owned()) } else { Err("must be the name of a ClusterRole".to_owned()) }
}

/// The listed roles, each once, in their order; an error where there are too many.
pub fn unique_grant_roles(listed: &[String]) -> Result<Vec<String>, String> {
    let mut roles: Vec<String> = Vec::new();
    for role in listed {
        if !roles.contains(role) {
            roles.push(role.clone());
        }
    }
    if roles.len() > MAX_GRANT_ROLES {
        return Err(format!("--grant-roles lists {} roles; at most {MAX_GRANT_ROLES} may be", roles.len()));
    }
    Ok(roles)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(namespace: &str, name: &str) -> RoleSubject {
        RoleSubject { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    #[test]
    fn a_binding_is_rollcalls_own_only_where_it_is_as_it_was_made() {
        let (own, role) = (account("home", "rollcall"), "view");
        let mut made = grant_binding(&own, role, ["db", "web"].into_iter());
        assert_eq!(made["metadata"]["name"], "rollcall:home:rollcall:view");
        assert_eq!(made["metadata"]["annotations"]["rollcall.dev/granted-for"], "db,web");
        made["metadata"]["uid"] = json!("1");
        let granted_for = ["db", "web"].map(str::to_owned).into();
        assert_eq!(
            judge_binding(&made, &own, role),
            BindingOwnership::Own { uid: "1".to_owned(), granted_for }
        );
        for (place, value) in [
            ("/metadata/labels/app.kubernetes.io~1managed-by", json!("Helm")),
            ("/metadata/uid", json!(null)),
            ("/roleRef/name", json!("edit")),
            ("/roleRef/kind", json!("Role")),
            ("/subjects", json!([])),
            ("/subjects/0/name", json!("other")),
            ("/subjects/0/kind", json!("User")),
        ] {
            let mut changed = made.clone();
            *changed.pointer_mut(place).expect(place) = value;
            assert_eq!(judge_binding(&changed, &own, role), BindingOwnership::Foreign, "{place}");
        }
        assert_eq!(judge_binding(&made, &account("home", "two"), role), BindingOwnership::Foreign);
    }

    #[test]
    fn no_two_accounts_and_roles_share_a_binding() {
        let name =
            |namespace, account_name, role| grant_binding_name(&account(namespace, account_name), role);
        assert_ne!(name("a", "b", "c:d"), name("a", "b", "c"));
        assert_ne!(name("a", "b-c", "d"), name("a-b", "c", "d"));
        assert_ne!(name("a", "b", "system:c"), name("a", "b.system", "c"));
    }

    #[test]
    fn what_is_no_name_of_a_role_cannot_be_listed() {
        for name in ["view", "system:aggregate-to-view", "rollcall-policy-team.db", "Site_reader2"] {
            assert_eq!(check_grant_role(name), Ok(name.to_owned()));
        }
        for name in ["", "*", "a b", "a/b", "..", "a\n- b", "%2e", "-a", "a:", "ä", &"a".repeat(200)] {
            assert!(check_grant_role(name).is_err(), "{name:?}");
        }
        let list = |count: usize| (0..count).map(|at| format!("r{at}")).collect::<Vec<_>>();
        assert_eq!(unique_grant_roles(&[list(2), list(3)].concat()), Ok(list(3)));
        assert!(unique_grant_roles(&list(MAX_GRANT_ROLES)).is_ok());
        assert!(unique_grant_roles(&list(MAX_GRANT_ROLES + 1)).is_err());
    }
}
