//! The limit of what makes no progress: an object whose controller counts replicas or completions is stuck once nothing of
//! its spec and status has changed for the limit.
//!
//! The measure is the API server's own: it records when each manager last changed its fields, so that a restart of Rollcall
//! restarts no limit, and a rollout that moves, however slowly, is never stuck.

use crate::facts::Facts;
use crate::kind::RuleKind;
use crate::readiness_ruling::ReadinessRuling;
use crate::stuck_limits::StuckLimits;
use crate::{Level, Reason};

/// Reason of a Deployment's condition `Progressing` once a rollout has ended: its own deadline measures rollouts alone.
const ROLLED_OUT: &str = "NewReplicaSetAvailable";

/// Turns a ruling that the object is progressing into stuck once it has made no progress for `limits.progress`. A limit that
/// the ruling has already stands.
pub(crate) fn limit_progress<'a>(
    ruling: ReadinessRuling<'a>,
    kind: RuleKind,
    facts: &Facts,
    limits: &StuckLimits,
) -> ReadinessRuling<'a> {
    let verdict = &ruling.assessment.verdict;
    if verdict.level != Level::Progressing || ruling.assessment.then.is_some() {
        return ruling;
    }
    if !is_limited(kind, facts, &verdict.reason) {
        return ruling;
    }
    let reason = Reason::NoProgress(Box::new(verdict.reason.clone()));
    ruling.change_at(facts.changed.map(|changed| changed + limits.progress), Level::Stuck, reason)
}

fn is_limited(kind: RuleKind, facts: &Facts, reason: &Reason) -> bool {
    match kind {
        RuleKind::StatefulSet | RuleKind::DaemonSet | RuleKind::ReplicaSet => true,
        RuleKind::Deployment => {
            let own = facts.status.find_condition("Progressing");
            own.is_none_or(|c| &*c.reason == ROLLED_OUT)
        }
        // A pod at work is a Job's progress, for as long as its own deadline allows.
        RuleKind::Job => {
            let ready = facts.status.counts.iter().find(|count| &*count.name == "ready");
            ready.is_some_and(|ready| ready.value == 0)
        }
        RuleKind::Other => matches!(reason, Reason::Count(..)) || lacks_replicas(facts),
        _ => false,
    }
}

/// Returns `true` if a custom resource says how many replicas it wants, and that fewer are ready.
fn lacks_replicas(facts: &Facts) -> bool {
    facts.spec.replicas.zip(facts.status.ready).is_some_and(|(wanted, ready)| ready < wanted)
}
