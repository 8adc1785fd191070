//! Time since which an object has not been ready, as far as its own fields record it.
//!
//! No single field records it. Each rule uses the field that comes nearest; if none would be correct, the function
//! returns nothing, because the process that watched the object knows better.

use std::fmt;

use crate::assess::assess_with_branch;
use crate::branch::Branch;
use crate::facts::{ConditionFacts, Facts, TruthValue};
use crate::kind::RuleKind;
use crate::stuck_limits::StuckLimits;
use crate::text::BoundedText;
use crate::{Time, Verdict};

/// A moment and the field that it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadySince {
    /// The moment.
    pub at: Time,
    /// Source of the moment.
    pub from: SinceSource,
}

/// Source of a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinceSource {
    /// The deletion timestamp of the object.
    Deletion,
    /// The creation timestamp: the object has never been ready.
    Creation,
    /// The start time of an object that runs to completion.
    Start,
    /// The completion time of an object that runs to completion.
    End,
    /// The last transition of a condition of this type.
    Condition(BoundedText),
    /// The last transition of a condition by which the object failed permanently.
    Failure(BoundedText),
    /// Rollcall observed the object when it stopped being ready.
    Seen,
    /// The object was not ready when Rollcall first observed it; it may have been so for longer.
    FirstSeen,
}

impl SinceSource {
    /// Returns `true` if the source is a final state in the API, regardless of the state before.
    pub fn is_final(&self) -> bool {
        matches!(self, SinceSource::Deletion | SinceSource::Failure(_))
    }
}

/// Prints the field, or `seen` or `firstSeen`.
impl fmt::Display for SinceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SinceSource::Deletion => f.write_str("metadata.deletionTimestamp"),
            SinceSource::Creation => f.write_str("metadata.creationTimestamp"),
            SinceSource::Start => f.write_str("status.startTime"),
            SinceSource::End => f.write_str("status.completionTime"),
            SinceSource::Condition(name) | SinceSource::Failure(name) => {
                write!(f, "conditions[{}].lastTransitionTime", &**name)
            }
            SinceSource::Seen => f.write_str("seen"),
            SinceSource::FirstSeen => f.write_str("firstSeen"),
        }
    }
}

/// Returns since when an object with this verdict has not been ready; `None` if its fields do not record it.
pub fn unready_since(kind: RuleKind, facts: &Facts, verdict: &Verdict) -> Option<UnreadySince> {
    // The remembered outcome counts, not the later deletion of the object.
    if let Some(at) = facts.deleted.filter(|_| !verdict.is_terminal()) {
        return Some(UnreadySince { at, from: SinceSource::Deletion });
    }
    let undeleted;
    let alive = if facts.deleted.is_some() {
        undeleted = Facts { deleted: None, ..facts.clone() };
        &undeleted
    } else {
        facts
    };
    let (own, branch) = assess_with_branch(kind, alive, &StuckLimits::default());
    let decided = match branch {
        Branch::Condition(condition) => Some(condition),
        _ => None,
    };
    if own.verdict.is_terminal()
        && let Some(failed) = decided.and_then(|condition| condition_since(condition, SinceSource::Failure))
    {
        return Some(failed);
    }
    let not = |name: &str| facts.status.find_condition(name).filter(|c| c.status != TruthValue::True);
    let turned = |condition: Option<&ConditionFacts>| {
        condition.and_then(|c| condition_since(c, SinceSource::Condition))
    };
    let created = || facts.created.map(|at| UnreadySince { at, from: SinceSource::Creation });
    let started = || facts.status.started.map(|at| UnreadySince { at, from: SinceSource::Start });
    match kind {
        // The kubelet sets the condition when it admits the pod; before that, the pod was never ready.
        RuleKind::Pod => turned(not("Ready")).or_else(created),
        // Before it completes, the object was never done.
        RuleKind::Job | RuleKind::Run => turned(decided).or_else(started).or_else(created),
        // A bound claim does not return to waiting for a volume.
        RuleKind::PersistentVolumeClaim => {
            (facts.status.state_text("phase") != Some("Lost")).then(created)?
        }
        // A shortage of replicas may predate the loss of availability.
        RuleKind::Deployment => turned(not("Available")).or_else(|| turned(decided)),
        RuleKind::Other => turned(not("Ready")).or_else(|| turned(decided)),
        // The counts of the other kinds carry no time, and a missing address may have been present before.
        _ => turned(decided),
    }
}

fn condition_since(
    condition: &ConditionFacts,
    from: impl Fn(BoundedText) -> SinceSource,
) -> Option<UnreadySince> {
    Some(UnreadySince { at: condition.since?, from: from(BoundedText::new(&condition.name)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::StatusFacts;
    use crate::{Level, assess};

    const CREATED: Time = Time(1_000);
    const STARTED: Time = Time(2_000);
    const TURNED: Time = Time(3_000);
    const DELETED: Time = Time(4_000);

    fn condition(name: &'static str, status: TruthValue, reason: &str) -> ConditionFacts {
        ConditionFacts {
            name: name.into(),
            status,
            reason: reason.into(),
            since: Some(TURNED),
            ..ConditionFacts::default()
        }
    }

    fn facts(conditions: Vec<ConditionFacts>) -> Facts {
        let status = StatusFacts { present: true, conditions, ..StatusFacts::default() };
        Facts { created: Some(CREATED), status, ..Facts::default() }
    }

    fn phase(facts: Facts, phase: &str) -> Facts {
        let word = crate::StateField { path: "phase".into(), value: phase.into() };
        Facts { status: StatusFacts { state_fields: vec![word], ..facts.status }, ..facts }
    }

    fn told(kind: RuleKind, facts: &Facts) -> String {
        let verdict = assess(kind, facts, &StuckLimits::default()).verdict;
        assert_ne!(verdict.level, Level::Ready, "{kind:?} {facts:?}");
        unready_since(kind, facts, &verdict).map_or("-".to_owned(), |s| format!("{} {}", s.at.0, s.from))
    }

    #[test]
    fn each_rule_has_the_moment_that_is_true_of_it_or_none() {
        let unready = || condition("Ready", TruthValue::False, "");
        let deployment = |conditions| {
            let facts = facts(conditions);
            Facts { status: StatusFacts { observed: Some(1), ..facts.status }, ..facts }
        };
        let running =
            |facts: Facts| Facts { status: StatusFacts { started: Some(STARTED), ..facts.status }, ..facts };
        let failed = || condition("Failed", TruthValue::True, "BackoffLimitExceeded");
        for (what, kind, facts, expected) in [
            ("pending", RuleKind::Pod, phase(facts(vec![]), "Pending"), "1000 metadata.creationTimestamp"),
            (
                "running",
                RuleKind::Pod,
                phase(facts(vec![unready()]), "Running"),
                "3000 conditions[Ready].lastTransitionTime",
            ),
            ("queued", RuleKind::Job, facts(vec![]), "1000 metadata.creationTimestamp"),
            ("at work", RuleKind::Job, running(facts(vec![])), "2000 status.startTime"),
            (
                "failed",
                RuleKind::Job,
                running(facts(vec![failed()])),
                "3000 conditions[Failed].lastTransitionTime",
            ),
            (
                "unbound",
                RuleKind::PersistentVolumeClaim,
                phase(facts(vec![]), "Pending"),
                "1000 metadata.creationTimestamp",
            ),
            ("lost", RuleKind::PersistentVolumeClaim, phase(facts(vec![]), "Lost"), "-"),
            (
                "too few",
                RuleKind::Deployment,
                deployment(vec![condition("Available", TruthValue::False, "")]),
                "3000 conditions[Available].lastTransitionTime",
            ),
            (
                "rolling out",
                RuleKind::Deployment,
                deployment(vec![condition("Available", TruthValue::True, "")]),
                "-",
            ),
            ("counts", RuleKind::StatefulSet, deployment(vec![]), "-"),
            ("node", RuleKind::Node, facts(vec![unready()]), "3000 conditions[Ready].lastTransitionTime"),
            ("custom", RuleKind::Other, facts(vec![unready()]), "3000 conditions[Ready].lastTransitionTime"),
            ("silent", RuleKind::Other, facts(vec![]), "-"),
        ] {
            assert_eq!(told(kind, &facts), expected, "{what}");
        }
    }

    #[test]
    fn a_deletion_and_an_end_are_the_last_word() {
        let leaving = |facts| Facts { deleted: Some(DELETED), ..facts };
        let pod = leaving(phase(facts(vec![condition("Ready", TruthValue::False, "")]), "Running"));
        assert_eq!(told(RuleKind::Pod, &pod), "4000 metadata.deletionTimestamp");
        // The Job failed and was deleted later: the failure is remembered.
        let job = leaving(facts(vec![condition("Failed", TruthValue::True, "")]));
        let verdict = crate::final_outcome(RuleKind::Job, &job).unwrap();
        let failed = unready_since(RuleKind::Job, &job, &verdict).unwrap();
        assert!(failed.from.is_final() && failed.at == TURNED, "{failed:?}");
        assert!(!SinceSource::Condition(BoundedText::new("Ready")).is_final());
    }
}
