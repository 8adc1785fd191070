//! Rights that Rollcall and its policies require, and no more. Each policy has roles of its own, so that the rights of
//! several add up and those of one can be taken away with it.

mod access;
mod crd_names;
mod grant_binding;
mod grants;
mod listed_role;
mod manifests;
mod rights;
mod role_flags;
mod role_name;
mod role_subject;

pub use access::{AccessNeed, access_needs, namespace_needs};
pub use crd_names::{CrdNames, default_plural};
pub use grant_binding::{
    BindingOwnership, MAX_GRANT_ROLES, check_grant_role, grant_binding, grant_binding_name, judge_binding,
    unique_grant_roles,
};
pub use grants::{BoundRoles, DemandedRight, GrantDecision, GrantDemand, decide_grants};
pub use listed_role::ListedRole;
pub use manifests::{
    POLICY_ANNOTATION, RoleOptions, grant_manifests, manifests_yaml, own_manifests, policy_manifests,
};
pub use rights::{
    PolicyRights, RbacRule, grant_rights, inventory_name, inventory_rights, own_rights, policy_rights,
    release_rights,
};
pub use role_flags::{DEFAULT_NAME, DEFAULT_NAMESPACE, role_flags};
pub use role_name::policy_role_name;
pub use role_subject::RoleSubject;

#[cfg(test)]
mod tests;
