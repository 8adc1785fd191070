//! Rules for PersistentVolumeClaim and PersistentVolume.

use std::time::Duration;

use crate::branch::Branch;
use crate::facts::Facts;
use crate::readiness_ruling::ReadinessRuling;
use crate::stuck_limits::StuckLimits;
use crate::text::BoundedText;
use crate::{Level, Reason};

/// Longest time until a claim that is provisioned immediately carries its provisioning annotation.
const PROVISIONING_MARK_DELAY: Duration = Duration::from_secs(5);

pub(super) fn judge_volume_claim<'a>(f: &'a Facts, limits: &StuckLimits) -> ReadinessRuling<'a> {
    let phase = f.status.state_text("phase");
    let branch = Branch::Text("status.phase", phase.unwrap_or_default());
    match phase {
        Some("Bound") => ReadinessRuling::ready(Reason::Ready, branch),
        Some("Lost") => ReadinessRuling::failed(Reason::VolumeLost, branch),
        // Provisioning has not begun, and no volume is requested by name. This is the intended state until a pod uses
        // the claim; waiting for it would never end.
        Some("Pending") if f.spec.storage_class && !f.spec.volume && !f.provisioning => {
            let at = f.created.map(|created| created + PROVISIONING_MARK_DELAY);
            let waiting = Reason::WaitingForFirstConsumer;
            ReadinessRuling::progressing(Reason::VolumePending, branch).change_at(
                at,
                Level::Suspended,
                waiting,
            )
        }
        // Its first consumer may have come long after it was created.
        Some("Pending") | None => ReadinessRuling::progressing(Reason::VolumePending, branch).escalate_after(
            f.created.max(f.changed),
            limits.pending,
            Level::Stuck,
        ),
        Some(other) => {
            ReadinessRuling::unknown(Reason::SaysUnknown(BoundedText::new(&format!("phase {other}"))), branch)
        }
    }
}

pub(super) fn judge_volume<'a>(f: &'a Facts, limits: &StuckLimits) -> ReadinessRuling<'a> {
    let phase = f.status.state_text("phase");
    let branch = Branch::Text("status.phase", phase.unwrap_or_default());
    match phase {
        Some("Bound" | "Available") => ReadinessRuling::ready(Reason::Ready, branch),
        Some("Released") => ReadinessRuling::suspended(Reason::VolumeReleased, branch),
        Some("Failed") => {
            let said = f.status.reason.as_deref().filter(|r| !r.is_empty()).unwrap_or("volume failed");
            ReadinessRuling::failed(Reason::SaysFailed(BoundedText::new(said)), branch)
        }
        Some("Pending") | None => ReadinessRuling::progressing(Reason::VolumePending, branch).escalate_after(
            f.created,
            limits.pending,
            Level::Stuck,
        ),
        Some(other) => {
            ReadinessRuling::unknown(Reason::SaysUnknown(BoundedText::new(&format!("phase {other}"))), branch)
        }
    }
}
