//! Rules for Deployment, StatefulSet, DaemonSet and ReplicaSet: the running replicas match the spec.

use super::count::clamp_count;
use super::replica_numbers::ReplicaNumbers;
use super::steady::{
    KnownBeside, is_available_daemon_set, is_available_deployment, is_available_stateful_set,
};
use crate::branch::Branch;
use crate::counted_unit::CountedUnit;
use crate::facts::{ConditionFacts, Facts, OwnerKind, TruthValue};
use crate::readiness_ruling::ReadinessRuling;
use crate::stale_generation::rule_on_unobserved_generation;
use crate::stuck_limits::StuckLimits;
use crate::text::BoundedText;
use crate::{Level, Reason, Steadiness};

/// Rules progressing if there are fewer replicas than wanted.
fn rule_on_shortage(
    counted: CountedUnit,
    field: &'static str,
    have: i64,
    of: &'static str,
    want: i64,
) -> Option<ReadinessRuling<'static>> {
    let reason = Reason::Count(counted, clamp_count(have), clamp_count(want));
    (have < want).then(|| ReadinessRuling::progressing(reason, Branch::Counts(field, have, of, want)))
}

fn rule_on_too_few(
    n: &ReplicaNumbers,
    counted: CountedUnit,
    field: &'static str,
    have: i64,
) -> Option<ReadinessRuling<'static>> {
    rule_on_shortage(counted, field, have, "spec.replicas", n.wanted)
}

/// Rules progressing if more replicas are left over than wanted.
fn rule_on_surplus(replicas: i64, of: &'static str, want: i64) -> Option<ReadinessRuling<'static>> {
    let reason = Reason::Count(
        CountedUnit::Surplus,
        clamp_count(replicas.saturating_sub(want)),
        clamp_count(replicas),
    );
    (replicas > want)
        .then(|| ReadinessRuling::progressing(reason, Branch::Counts("status.replicas", replicas, of, want)))
}

/// Says of a shortage or a surplus of replicas whether what is there can be counted on.
fn keep_steady(ruling: ReadinessRuling<'_>, is_available: bool) -> ReadinessRuling<'_> {
    ruling.with_steadiness(if is_available { Steadiness::Available } else { Steadiness::Unsteady })
}

fn rule_on_completion(wanted: i64) -> ReadinessRuling<'static> {
    match wanted {
        0 => ReadinessRuling::ready(
            Reason::ScaledToZero,
            Branch::Fact("no replicas are wanted and none are left"),
        ),
        _ => ReadinessRuling::ready(Reason::Ready, Branch::Fact("all replicas are updated and available")),
    }
}

/// Rules ready: all pods are ready, and the `OnDelete` strategy leaves it to people to replace those of an old
/// revision.
fn ready_on_delete() -> ReadinessRuling<'static> {
    ReadinessRuling::ready(Reason::OnDelete, Branch::Fact("spec.updateStrategy.type is OnDelete"))
}

/// Rules on pods that cannot be created, for example because a quota is exhausted: failed, and stuck if it lasts.
fn rule_on_replica_failure<'a>(f: &'a Facts, limits: &StuckLimits) -> Option<ReadinessRuling<'a>> {
    let failure = f.status.find_true_condition("ReplicaFailure")?;
    let reason = Reason::ReplicaFailure(condition_text(failure));
    let failed = ReadinessRuling::failed(reason, Branch::Condition(failure));
    Some(failed.escalate_after(failure.since, limits.pending, Level::Stuck))
}

/// Returns the reason of a condition, and its message if that adds anything.
fn condition_text(condition: &ConditionFacts) -> BoundedText {
    match (&*condition.reason, &*condition.message) {
        ("", "") => BoundedText::new(&condition.name),
        (reason, "") => BoundedText::new(reason),
        ("", message) => BoundedText::from_foreign(message),
        (reason, message) => BoundedText::from_foreign(&format!("{reason}: {message}")),
    }
}

pub(super) fn judge_deployment<'a>(f: &'a Facts, limits: &StuckLimits) -> ReadinessRuling<'a> {
    if f.status.observed.is_none() {
        return rule_on_unobserved_generation(f);
    }
    let progressing = f.status.find_condition("Progressing");
    if let Some(c) = progressing.filter(|c| c.reason.as_ref() == "ProgressDeadlineExceeded") {
        return ReadinessRuling::failed(Reason::ProgressDeadlineExceeded, Branch::Condition(c));
    }
    if let Some(failure) = rule_on_replica_failure(f, limits) {
        return failure;
    }
    let n = ReplicaNumbers::from_facts(f);
    let paused = f.spec.paused == Some(true);
    let rollout = || {
        rule_on_too_few(&n, CountedUnit::Updated, "status.updatedReplicas", n.updated)
            .or_else(|| rule_on_surplus(n.replicas, "status.updatedReplicas", n.updated))
    };
    let numbers = || {
        rule_on_surplus(n.replicas, "spec.replicas", n.wanted)
            .or_else(|| rule_on_too_few(&n, CountedUnit::Ready, "status.readyReplicas", n.ready))
            .or_else(|| rule_on_too_few(&n, CountedUnit::Available, "status.availableReplicas", n.available))
    };
    // A pause is neutral, so it must not hide a shortage of old replicas.
    if let Some(ruling) = if paused { None } else { rollout() }.or_else(numbers) {
        return keep_steady(ruling, is_available_deployment(f, KnownBeside::default()));
    }
    if let Some(c) = f.status.find_condition("Available").filter(|c| c.status != TruthValue::True) {
        return ReadinessRuling::progressing(
            Reason::Count(CountedUnit::Available, clamp_count(n.available), clamp_count(n.wanted)),
            Branch::Condition(c),
        );
    }
    if paused {
        return ReadinessRuling::suspended(Reason::Paused, Branch::Fact("spec.paused is true"));
    }
    rule_on_completion(n.wanted)
}

pub(super) fn judge_stateful_set(f: &Facts) -> ReadinessRuling<'_> {
    if f.status.observed.is_none() {
        return rule_on_unobserved_generation(f);
    }
    let n = ReplicaNumbers::from_facts(f);
    let numbers = rule_on_too_few(&n, CountedUnit::Created, "status.replicas", n.replicas)
        .or_else(|| rule_on_too_few(&n, CountedUnit::Ready, "status.readyReplicas", n.ready))
        // API servers before 1.22 do not count available replicas.
        .or_else(|| {
            f.status
                .available
                .and_then(|n_| rule_on_too_few(&n, CountedUnit::Available, "status.availableReplicas", n_))
        })
        .or_else(|| rule_on_surplus(n.replicas, "spec.replicas", n.wanted));
    if let Some(ruling) = numbers {
        return keep_steady(ruling, is_available_stateful_set(f, KnownBeside::default()));
    }
    // The revisions match in the middle of a rollout, too, that goes back to where it came from.
    let current = f.status.revisions_match == Some(true);
    if f.spec.on_delete {
        let is_whole = current && n.updated >= n.wanted;
        return if is_whole { rule_on_completion(n.wanted) } else { ready_on_delete() };
    }
    let partition = f.spec.partition.unwrap_or(0).clamp(0, n.wanted.max(0));
    if n.updated < n.wanted - partition {
        let branch = Branch::Counts("status.updatedReplicas", n.updated, "spec.replicas", n.wanted);
        let reason = Reason::Count(CountedUnit::Updated, clamp_count(n.updated), clamp_count(n.wanted));
        return keep_steady(
            ReadinessRuling::progressing(reason, branch),
            is_available_stateful_set(f, KnownBeside::default()),
        );
    }
    if !current && partition > 0 {
        let branch = Branch::Fact("all replicas at or above the partition are updated");
        return ReadinessRuling::ready(Reason::PartitionReached, branch);
    }
    rule_on_completion(n.wanted)
}

pub(super) fn judge_daemon_set(f: &Facts) -> ReadinessRuling<'_> {
    let (Some(_), Some(wanted)) = (f.status.observed, f.status.desired) else {
        return rule_on_unobserved_generation(f);
    };
    let n = ReplicaNumbers::from_facts(f);
    let of = "status.desiredNumberScheduled";
    let updated = || {
        let on_delete = f.spec.on_delete;
        (!on_delete).then(|| {
            rule_on_shortage(CountedUnit::Updated, "status.updatedNumberScheduled", n.updated, of, wanted)
        })?
    };
    let numbers =
        rule_on_shortage(CountedUnit::Created, "status.currentNumberScheduled", n.replicas, of, wanted)
            .or_else(updated)
            .or_else(|| rule_on_shortage(CountedUnit::Ready, "status.numberReady", n.ready, of, wanted))
            .or_else(|| {
                rule_on_shortage(CountedUnit::Available, "status.numberAvailable", n.available, of, wanted)
            });
    if let Some(ruling) = numbers {
        return keep_steady(ruling, is_available_daemon_set(f, KnownBeside::default()));
    }
    if f.spec.on_delete && n.updated < wanted {
        return ready_on_delete();
    }
    rule_on_completion(wanted)
}

pub(super) fn judge_replica_set<'a>(f: &'a Facts, limits: &StuckLimits) -> ReadinessRuling<'a> {
    if f.status.observed.is_none() {
        return rule_on_unobserved_generation(f);
    }
    if let Some(failure) = rule_on_replica_failure(f, limits) {
        return failure;
    }
    let n = ReplicaNumbers::from_facts(f);
    if let Some(ruling) = rule_on_surplus(n.replicas, "spec.replicas", n.wanted) {
        return ruling;
    }
    if n.wanted == 0 && f.owner == OwnerKind::Deployment {
        return ReadinessRuling::ready(
            Reason::Superseded,
            Branch::Fact("its Deployment has scaled it to zero"),
        );
    }
    let labeled = f.status.labeled.unwrap_or(n.replicas);
    rule_on_too_few(&n, CountedUnit::Created, "status.replicas", n.replicas)
        .or_else(|| rule_on_too_few(&n, CountedUnit::Labeled, "status.fullyLabeledReplicas", labeled))
        .or_else(|| rule_on_too_few(&n, CountedUnit::Ready, "status.readyReplicas", n.ready))
        .or_else(|| rule_on_too_few(&n, CountedUnit::Available, "status.availableReplicas", n.available))
        .unwrap_or_else(|| rule_on_completion(n.wanted))
}
