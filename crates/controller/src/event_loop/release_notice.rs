//! What the log says of a release of many parents.

use rollcall_core::ReleaseProgress;
use tracing::{info, warn};

/// Logs that many parents are released, or that all of them are.
pub(super) fn log_release_progress(progress: ReleaseProgress) {
    let ReleaseProgress { waiting, per_second } = progress;
    if waiting == 0 {
        return info!("removed the conditions from all parents that no policy chooses any more");
    }
    warn!(
        parents = waiting,
        per_second,
        "removing conditions from parents that no policy chooses any more: a policy that chooses them again keeps those that are left"
    );
}
