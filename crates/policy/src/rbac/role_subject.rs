//! Whom rights are granted to.

/// API group of roles and bindings.
pub(super) const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// Service account that the rights are granted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleSubject {
    /// Name of the service account.
    pub name: String,
    /// Namespace of the service account: Rollcall's own.
    pub namespace: String,
}
