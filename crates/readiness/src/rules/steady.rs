//! Rules on workloads that were rolled out whole for their current template and are still available, by the API's own
//! words: what the number of replicas or a disruption within the budget does to them is no rollout.

use super::count::clamp_count;
use super::replica_numbers::ReplicaNumbers;
use crate::disruption_budget::DisruptionBudget;
use crate::facts::{Facts, ReplicaAmount};
use crate::kind::RuleKind;
use crate::stale_generation::rule_on_stale_generation;
use crate::{Level, Reason, Steadiness, Verdict};

/// How many replicas a workload has that was ready before its last change, if that took none away: it may only have been
/// scaled.
pub fn whole_replicas(kind: RuleKind, f: &Facts) -> Option<u32> {
    let n = ReplicaNumbers::from_facts(f);
    let counts = matches!(kind, RuleKind::Deployment | RuleKind::StatefulSet | RuleKind::DaemonSet);
    let is_whole = [n.updated, n.ready, n.available].iter().all(|count| *count == n.replicas);
    (counts && is_whole && n.replicas > 0).then(|| clamp_count(n.replicas))
}

/// What is known of a workload beside its own fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownBeside<'b> {
    /// Number of replicas that it had when it was rolled out whole last: what is wanted beyond these takes nothing away.
    pub whole: Option<u32>,
    /// What it is wanted to be differs from what it was then in the number of replicas alone, and its status is about one of those
    /// versions: all of its pods are of its template, though its controller has not observed this number yet.
    pub is_only_scaled: bool,
    /// The PodDisruptionBudgets that cover its pods. The narrowest counts, because the API server refuses to evict a pod beyond any
    /// of them; it may take away no fewer than the workload's own budget does.
    pub budgets: &'b [DisruptionBudget],
}

/// How far a workload of this verdict can be counted on of which this is known.
pub fn steadiness_beside(kind: RuleKind, f: &Facts, verdict: &Verdict, known: KnownBeside<'_>) -> Steadiness {
    let is_number = matches!(verdict.reason, Reason::Count(..) | Reason::StaleGeneration);
    if verdict.level != Level::Progressing || !is_number || !is_available(kind, f, known) {
        verdict.steadiness
    } else if !known.is_only_scaled && rule_on_stale_generation(f).is_some() {
        Steadiness::Unobserved
    } else {
        Steadiness::Available
    }
}

/// Returns `true` if the workload was rolled out and available when its status was written.
pub(crate) fn is_available_workload(kind: RuleKind, f: &Facts) -> bool {
    is_available(kind, f, KnownBeside::default())
}

fn is_available(kind: RuleKind, f: &Facts, known: KnownBeside<'_>) -> bool {
    match kind {
        RuleKind::Deployment => is_available_deployment(f, known),
        RuleKind::StatefulSet => is_available_stateful_set(f, known),
        RuleKind::DaemonSet => is_available_daemon_set(f, known),
        _ => false,
    }
}

/// A Deployment keeps the reason `NewReplicaSetAvailable` of its condition `Progressing` from the end of a rollout to the
/// beginning of the next one, and its condition `Available` counts by its own `maxUnavailable` of what is wanted now. That may
/// be all of the replicas; one is wanted at least. Where that condition is lost, no PodDisruptionBudget stands in for it.
pub(super) fn is_available_deployment(f: &Facts, known: KnownBeside<'_>) -> bool {
    let n = ReplicaNumbers::from_facts(f);
    let progressing = f.status.find_true_condition("Progressing");
    let has_lost_nothing = known.whole.is_some_and(|whole| n.available >= i64::from(whole));
    f.spec.paused != Some(true)
        && progressing.is_some_and(|c| &*c.reason == "NewReplicaSetAvailable")
        && (has_lost_nothing || f.status.find_true_condition("Available").is_some())
        && n.updated == n.replicas
        && (n.available > 0 || n.wanted == 0)
}

/// The current revision of a StatefulSet becomes the updated one at the end of a rollout. It is that in the middle of one, too,
/// which goes back to where it came from. A pod that is about to end is not counted as updated any more.
pub(super) fn is_available_stateful_set(f: &Facts, known: KnownBeside<'_>) -> bool {
    let n = ReplicaNumbers::from_facts(f);
    // API servers before 1.22 do not count available replicas.
    let available = f.status.available.unwrap_or(n.ready);
    let budget = match f.spec.max_unavailable {
        None => 1,
        Some(ReplicaAmount::Count(count)) => count,
        Some(ReplicaAmount::Percent(percent)) => (n.wanted.saturating_mul(percent) / 100).max(1),
    };
    !f.spec.on_delete
        && f.status.revisions_match == Some(true)
        && is_within_budget((n.wanted, known), available.min(n.updated), budget)
}

/// Every pod of a rolled-out DaemonSet is of the current template; a new node has none yet.
pub(super) fn is_available_daemon_set(f: &Facts, known: KnownBeside<'_>) -> bool {
    let Some(wanted) = f.status.desired else { return false };
    let n = ReplicaNumbers::from_facts(f);
    // The controller of DaemonSets rounds up, unlike that of StatefulSets.
    let budget = f.spec.max_unavailable.map_or(1, |most| most.rounded_up(wanted));
    !f.spec.on_delete && n.updated >= n.replicas && is_within_budget((wanted, known), n.available, budget)
}

/// Some replica is available, and no more are missing than the workload's own budget, or that of its pods, allows: of what is
/// wanted, or of what there was.
fn is_within_budget((wanted, known): (i64, KnownBeside<'_>), available: i64, own: i64) -> bool {
    let counted = known.whole.map_or(wanted, |whole| i64::from(whole).min(wanted));
    // Which of several is the narrowest depends on how many pods it is asked about.
    let narrowest = known.budgets.iter().map(|budget| budget.allowance(counted)).min();
    let allowed = narrowest.unwrap_or(0).max(own);
    wanted == 0 || available >= counted.saturating_sub(allowed.max(0)).max(1)
}
