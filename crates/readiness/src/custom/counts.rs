//! Signals of numbers: how many of its parts an object has, and how many it wants.

use super::lexicon::WordSense;
use super::signal::{SignalBasis, SignalForce, SignalSource, StatusSignal};
use crate::facts::Facts;

/// Returns the signal of ready and wanted counts, if the status has both.
pub(super) fn counts_signal(facts: &Facts) -> Option<StatusSignal<'_>> {
    let status = &facts.status;
    let signal = |field, have: i64, of, want: i64| {
        let (sense, force) = weigh_counts(have, want);
        let source = SignalSource::Counts(field, have, of, want);
        StatusSignal { sense, force, basis: SignalBasis::Stated, source }
    };
    let (field, have) = match (status.ready, status.available) {
        (Some(ready), _) => ("status.readyReplicas", ready),
        (None, Some(available)) => ("status.availableReplicas", available),
        (None, None) => return named_counts_signal(facts),
    };
    let (of, want) = match (facts.spec.replicas, status.desired, status.replicas) {
        (Some(wanted), ..) => ("spec.replicas", wanted),
        (None, Some(desired), _) => ("status.desiredNumberScheduled", desired),
        (None, None, replicas) => ("status.replicas", replicas?),
    };
    let behind = status.updated.filter(|updated| *updated < want);
    // Those of the old template are still there.
    let left_over = status.replicas.filter(|all| *all > want && status.updated.is_some_and(|new| new < *all));
    if let (Some(all), None) = (left_over, behind) {
        let source = SignalSource::Counts(of, want, "status.replicas", all);
        let (sense, force) = (WordSense::Busy, SignalForce::Core);
        return Some(StatusSignal { sense, force, basis: SignalBasis::Stated, source });
    }
    Some(
        behind.map_or(signal(field, have, of, want), |updated| {
            signal("status.updatedReplicas", updated, of, want)
        }),
    )
}

/// A number that lags is a fact and outweighs an opinion about the whole; one that does not is about the parts only.
fn weigh_counts(have: i64, want: i64) -> (WordSense, SignalForce) {
    if have < want { (WordSense::Busy, SignalForce::Core) } else { (WordSense::Good, SignalForce::Part) }
}

/// `readyNodes` against `nodes`, `desiredNodes`, `totalNodes`, … in status or spec.
fn named_counts_signal(facts: &Facts) -> Option<StatusSignal<'_>> {
    let status = &facts.status.counts;
    status.iter().find_map(|have| {
        let noun =
            ["ready", "available", "healthy", "running"].iter().find_map(|p| have.name.strip_prefix(p))?;
        let wanted = |name: &str| {
            let rest = ["desired", "total", "expected", "matched"]
                .iter()
                .find_map(|p| name.strip_prefix(p))
                .unwrap_or(name);
            name != &*have.name && rest.eq_ignore_ascii_case(noun)
        };
        let want = facts.spec.counts.iter().chain(status).find(|count| wanted(&count.name))?;
        let (sense, force) = weigh_counts(have.value, want.value);
        let source = SignalSource::Counts(&have.name, have.value, &want.name, want.value);
        Some(StatusSignal { sense, force, basis: SignalBasis::Stated, source })
    })
}
