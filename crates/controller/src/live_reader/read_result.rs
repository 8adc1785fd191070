//! What live reads bring besides the state of objects, which the reflector takes in.

use std::sync::Arc;

use rollcall_core::{LiveRead, UnreadyWorkload, WatchLag};

use crate::kind_tasks::ResolvedKind;

/// Result of one live read.
#[derive(Default)]
pub(crate) struct LiveReadResult {
    /// Objects that the watch had not delivered.
    pub(crate) drifts: Vec<Drift>,
    /// Workloads whose pods explain why they are not ready.
    pub(super) workloads: Vec<UnreadyWorkload>,
    /// Reads that follow a list: of objects that were held and that it lacks, or that it has in another version.
    pub(super) unlisted: Vec<LiveRead>,
}

/// Change that a live read observed before the watch did.
#[derive(Clone, Debug)]
pub(crate) struct Drift {
    pub(super) followed: Arc<ResolvedKind>,
    pub(super) lag: WatchLag,
}

impl Drift {
    /// What a live read of an object of this kind has shown.
    pub(crate) fn new(followed: &Arc<ResolvedKind>, lag: WatchLag) -> Drift {
        Drift { followed: followed.clone(), lag }
    }
}
