//! Deployment, StatefulSet, DaemonSet, ReplicaSet: is what runs what was asked for?

use super::count;
use crate::assess::{Limits, Ruling, unobserved};
use crate::branch::Branch;
use crate::facts::{Condition, Facts, Owner, Truth};
use crate::reason::Counted;
use crate::text::Text;
use crate::{Level, Reason};

/// The numbers that all of them have. Absent is zero: the API leaves zeros out.
struct Numbers {
    wanted: i64,
    replicas: i64,
    updated: i64,
    ready: i64,
    available: i64,
}

impl Numbers {
    fn of(f: &Facts) -> Numbers {
        let s = &f.status;
        Numbers {
            // A default that the API server fills in; absent only in manifests.
            wanted: f.spec.replicas.unwrap_or(1),
            replicas: s.replicas.unwrap_or(0),
            updated: s.updated.unwrap_or(0),
            ready: s.ready.unwrap_or(0),
            available: s.available.unwrap_or(0),
        }
    }

    fn too_few(&self, counted: Counted, field: &'static str, have: i64) -> Option<Ruling<'static>> {
        short(counted, field, have, "spec.replicas", self.wanted)
    }
}

/// Still on its way if there are fewer than wanted.
fn short(
    counted: Counted,
    field: &'static str,
    have: i64,
    of: &'static str,
    want: i64,
) -> Option<Ruling<'static>> {
    let reason = Reason::Count(counted, count(have), count(want));
    (have < want).then(|| Ruling::progressing(reason, Branch::Counts(field, have, of, want)))
}

/// Still on its way if more are left over than wanted.
fn surplus(replicas: i64, of: &'static str, want: i64) -> Option<Ruling<'static>> {
    let reason = Reason::Count(Counted::Surplus, count(replicas - want), count(replicas));
    (replicas > want)
        .then(|| Ruling::progressing(reason, Branch::Counts("status.replicas", replicas, of, want)))
}

fn complete(wanted: i64) -> Ruling<'static> {
    match wanted {
        0 => Ruling::ready(Reason::ScaledToZero, Branch::Fact("nothing is wanted and nothing is left")),
        _ => Ruling::ready(Reason::Ready, Branch::Fact("all replicas are updated and available")),
    }
}

/// All are ready; which of them are of the newest revision is for a person to decide.
fn on_delete() -> Ruling<'static> {
    Ruling::ready(Reason::OnDelete, Branch::Fact("spec.updateStrategy.type is OnDelete"))
}

/// Its pods cannot be created, as with a quota that is used up. That may pass, but not for ever.
fn replica_failure<'a>(f: &'a Facts, limits: &Limits) -> Option<Ruling<'a>> {
    let failure = f.status.holds("ReplicaFailure")?;
    let reason = Reason::ReplicaFailure(said(failure));
    let failed = Ruling::failed(reason, Branch::Condition(failure));
    Some(failed.until(failure.since, limits.pending, Level::Stuck))
}

/// The reason of a condition, and its message where that says more.
fn said(condition: &Condition) -> Text {
    match (&*condition.reason, &*condition.message) {
        ("", "") => Text::new(&condition.name),
        (reason, "") => Text::new(reason),
        ("", message) => Text::foreign(message),
        (reason, message) => Text::foreign(&format!("{reason}: {message}")),
    }
}

pub(super) fn deployment<'a>(f: &'a Facts, limits: &Limits) -> Ruling<'a> {
    if f.status.observed.is_none() {
        return unobserved(f);
    }
    let progressing = f.status.condition("Progressing");
    if let Some(c) = progressing.filter(|c| c.reason.as_ref() == "ProgressDeadlineExceeded") {
        return Ruling::failed(Reason::ProgressDeadlineExceeded, Branch::Condition(c));
    }
    if let Some(failure) = replica_failure(f, limits) {
        return failure;
    }
    let n = Numbers::of(f);
    let paused = f.spec.paused == Some(true);
    let rollout = || {
        n.too_few(Counted::Updated, "status.updatedReplicas", n.updated)
            .or_else(|| surplus(n.replicas, "status.updatedReplicas", n.updated))
    };
    let numbers = || {
        surplus(n.replicas, "spec.replicas", n.wanted)
            .or_else(|| n.too_few(Counted::Ready, "status.readyReplicas", n.ready))
            .or_else(|| n.too_few(Counted::Available, "status.availableReplicas", n.available))
    };
    // A pause is neutral, so it may not hide that too few of the old replicas are left.
    if let Some(ruling) = if paused { None } else { rollout() }.or_else(numbers) {
        return ruling;
    }
    if let Some(c) = f.status.condition("Available").filter(|c| c.status != Truth::True) {
        return Ruling::progressing(
            Reason::Count(Counted::Available, count(n.available), count(n.wanted)),
            Branch::Condition(c),
        );
    }
    if paused {
        return Ruling::suspended(Reason::Paused, Branch::Fact("spec.paused is true"));
    }
    complete(n.wanted)
}

pub(super) fn stateful_set(f: &Facts) -> Ruling<'_> {
    if f.status.observed.is_none() {
        return unobserved(f);
    }
    let n = Numbers::of(f);
    let numbers = n
        .too_few(Counted::Created, "status.replicas", n.replicas)
        .or_else(|| n.too_few(Counted::Ready, "status.readyReplicas", n.ready))
        // Servers before 1.22 do not count what is available.
        .or_else(|| {
            f.status.available.and_then(|n_| n.too_few(Counted::Available, "status.availableReplicas", n_))
        })
        .or_else(|| surplus(n.replicas, "spec.replicas", n.wanted));
    if let Some(ruling) = numbers {
        return ruling;
    }
    let current = f.status.revisions_match == Some(true);
    if f.spec.on_delete {
        return if current { complete(n.wanted) } else { on_delete() };
    }
    let partition = f.spec.partition.unwrap_or(0).clamp(0, n.wanted);
    if !current && n.updated < n.wanted - partition {
        let branch = Branch::Counts("status.updatedReplicas", n.updated, "spec.replicas", n.wanted);
        return Ruling::progressing(
            Reason::Count(Counted::Updated, count(n.updated), count(n.wanted)),
            branch,
        );
    }
    if !current && partition > 0 {
        let branch = Branch::Fact("all replicas at or above the partition are updated");
        return Ruling::ready(Reason::PartitionReached, branch);
    }
    complete(n.wanted)
}

pub(super) fn daemon_set(f: &Facts) -> Ruling<'_> {
    let (Some(_), Some(wanted)) = (f.status.observed, f.status.desired) else { return unobserved(f) };
    let n = Numbers { wanted, ..Numbers::of(f) };
    let of = "status.desiredNumberScheduled";
    let updated = || {
        let on_delete = f.spec.on_delete;
        (!on_delete)
            .then(|| short(Counted::Updated, "status.updatedNumberScheduled", n.updated, of, wanted))?
    };
    let numbers = short(Counted::Created, "status.currentNumberScheduled", n.replicas, of, wanted)
        .or_else(updated)
        .or_else(|| short(Counted::Ready, "status.numberReady", n.ready, of, wanted))
        .or_else(|| short(Counted::Available, "status.numberAvailable", n.available, of, wanted));
    if let Some(ruling) = numbers {
        return ruling;
    }
    if f.spec.on_delete && n.updated < wanted {
        return on_delete();
    }
    complete(wanted)
}

pub(super) fn replica_set<'a>(f: &'a Facts, limits: &Limits) -> Ruling<'a> {
    if f.status.observed.is_none() {
        return unobserved(f);
    }
    if let Some(failure) = replica_failure(f, limits) {
        return failure;
    }
    let n = Numbers::of(f);
    if let Some(ruling) = surplus(n.replicas, "spec.replicas", n.wanted) {
        return ruling;
    }
    if n.wanted == 0 && f.owner == Owner::Deployment {
        return Ruling::ready(Reason::Superseded, Branch::Fact("its Deployment has scaled it to zero"));
    }
    let labeled = f.status.labeled.unwrap_or(n.replicas);
    n.too_few(Counted::Created, "status.replicas", n.replicas)
        .or_else(|| n.too_few(Counted::Labeled, "status.fullyLabeledReplicas", labeled))
        .or_else(|| n.too_few(Counted::Ready, "status.readyReplicas", n.ready))
        .or_else(|| n.too_few(Counted::Available, "status.availableReplicas", n.available))
        .unwrap_or_else(|| complete(n.wanted))
}
