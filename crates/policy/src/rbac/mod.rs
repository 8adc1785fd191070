//! Rights that Rollcall and its policies require, and no more. Each policy has roles of its own, so that the rights of
//! several add up and those of one can be taken away with it.

mod access;
mod crd_names;
mod manifests;
mod rights;
mod role_name;

pub use access::{AccessNeed, access_needs};
pub use crd_names::{CrdNames, default_plural};
pub use manifests::{RoleOptions, RoleSubject, own_manifests, policy_manifests, roles_yaml};
pub use rights::{PolicyRights, RbacRule, own_rights, policy_rights};
pub use role_name::policy_role_name;

#[cfg(test)]
mod tests;
