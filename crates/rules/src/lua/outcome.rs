//! Outcome of one call.

use rollcall_cel::CostLimit;

use super::failure::ScriptFailure;
use crate::peer_verdict::PeerVerdict;

/// Outcome of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptOutcome {
    /// The script's verdict, or `Unknown` with the error. No status if it returned nothing.
    pub verdict: PeerVerdict,
    /// Line of the `return` that ended it.
    pub line: Option<u32>,
    /// The limit that stopped it.
    pub limit: Option<CostLimit>,
    /// `true` if the script could not be run, failed, was stopped, or returned no valid verdict: the verdict is then
    /// ours, not the script's.
    pub failed: bool,
    /// `true` if the script asked for the time: the same object may get another verdict later.
    pub reads_clock: bool,
    pub(super) steps: u32,
}

impl ScriptOutcome {
    pub(super) fn from_failure(failed: ScriptFailure) -> ScriptOutcome {
        let (limit, message) = match failed {
            ScriptFailure::Error(message) => (None, message),
            ScriptFailure::Limit(limit) => (Some(limit), format!("the script was stopped: {limit}")),
        };
        let verdict = PeerVerdict { status: Some("Unknown"), message };
        ScriptOutcome { verdict, line: None, limit, failed: true, reads_clock: false, steps: 0 }
    }
}
