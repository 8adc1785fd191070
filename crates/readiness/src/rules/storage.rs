//! PersistentVolumeClaim and PersistentVolume: is there a volume?

use std::time::Duration;

use crate::assess::{Limits, Ruling};
use crate::branch::Branch;
use crate::facts::Facts;
use crate::text::Text;
use crate::{Level, Reason};

/// A claim that a provisioner will serve at once is marked as such well within this time.
const MARKED: Duration = Duration::from_secs(5);

pub(super) fn claim<'a>(f: &'a Facts, limits: &Limits) -> Ruling<'a> {
    let phase = f.status.word("phase");
    let branch = Branch::Text("status.phase", phase.unwrap_or_default());
    match phase {
        Some("Bound") => Ruling::ready(Reason::Ready, branch),
        Some("Lost") => Ruling::failed(Reason::VolumeLost, branch),
        // Nobody has begun to make a volume, and none was asked for by name: as long as no pod uses the claim, this is
        // what it is meant to be, and waiting for it would be waiting for ever.
        Some("Pending") if f.spec.storage_class && !f.spec.volume && !f.provisioning => {
            let at = f.created.map(|created| created + MARKED);
            let waiting = Reason::WaitingForFirstConsumer;
            Ruling::progressing(Reason::VolumePending, branch).turns(at, Level::Suspended, waiting)
        }
        Some("Pending") | None => {
            Ruling::progressing(Reason::VolumePending, branch).until(f.created, limits.pending, Level::Stuck)
        }
        Some(other) => Ruling::unknown(Reason::SaysUnknown(Text::new(&format!("phase {other}"))), branch),
    }
}

pub(super) fn volume<'a>(f: &'a Facts, limits: &Limits) -> Ruling<'a> {
    let phase = f.status.word("phase");
    let branch = Branch::Text("status.phase", phase.unwrap_or_default());
    match phase {
        Some("Bound" | "Available") => Ruling::ready(Reason::Ready, branch),
        Some("Released") => Ruling::suspended(Reason::VolumeReleased, branch),
        Some("Failed") => {
            let said = f.status.reason.as_deref().filter(|r| !r.is_empty()).unwrap_or("volume failed");
            Ruling::failed(Reason::SaysFailed(Text::new(said)), branch)
        }
        Some("Pending") | None => {
            Ruling::progressing(Reason::VolumePending, branch).until(f.created, limits.pending, Level::Stuck)
        }
        Some(other) => Ruling::unknown(Reason::SaysUnknown(Text::new(&format!("phase {other}"))), branch),
    }
}
