//! The controllers' workqueue.

use super::kind::StorageId;

/// An item of the controllers' workqueue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ControllerWork {
    /// Delete this object if all its owners are gone.
    Owned(StorageId, String),
    /// Delete this object once its blocking dependents are gone.
    Foreground(StorageId, String),
    /// Remove this owner from its dependents' ownerReferences.
    Orphan(StorageId, String),
    /// Finish deleting this namespace once it is empty.
    Namespace(String),
    /// Finish deleting this CRD once all its objects are gone.
    Definition(String),
}
