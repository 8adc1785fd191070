//! Replica counts of a workload.

use crate::facts::Facts;

/// Replica counts common to all workloads. Absent means zero: the API omits zeros.
pub(super) struct ReplicaNumbers {
    pub(super) wanted: i64,
    pub(super) replicas: i64,
    pub(super) updated: i64,
    pub(super) ready: i64,
    pub(super) available: i64,
}

impl ReplicaNumbers {
    pub(super) fn from_facts(f: &Facts) -> ReplicaNumbers {
        let s = &f.status;
        ReplicaNumbers {
            // Default of the API server; absent only in manifests.
            wanted: f.spec.replicas.unwrap_or(1),
            replicas: s.replicas.unwrap_or(0),
            updated: s.updated.unwrap_or(0),
            ready: s.ready.unwrap_or(0),
            available: s.available.unwrap_or(0),
        }
    }
}
