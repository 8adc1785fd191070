//! Since when an object has not been ready, as far as it says so itself.
//!
//! An object has no one field for that. Each rule has the field that comes nearest, and where there is none that would be
//! right, nothing is said: who was looking knows better.

use std::fmt;

use crate::assess::{Limits, why};
use crate::branch::Branch;
use crate::facts::{Condition, Facts, Truth};
use crate::kind::Kind;
use crate::text::Text;
use crate::{Time, Verdict};

/// A moment, and where it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Since {
    /// When.
    pub at: Time,
    /// Who says so.
    pub from: Moment,
}

/// Where a moment was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// It is being deleted.
    Deletion,
    /// It has never been ready.
    Creation,
    /// It runs to an end, and has begun.
    Start,
    /// It has run to its end.
    End,
    /// A condition of this type turned.
    Condition(Text),
    /// The same, and by it the object failed for good.
    Failure(Text),
    /// Somebody looked on when it stopped being ready.
    Seen,
    /// It was not ready already when it was first seen: it may have been so for longer.
    FirstSeen,
}

impl Moment {
    /// The API's own word for what the object has come to, whatever it was before.
    pub fn is_final(&self) -> bool {
        matches!(self, Moment::Deletion | Moment::Failure(_))
    }
}

/// The field, or `seen`, `firstSeen`.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Moment::Deletion => f.write_str("metadata.deletionTimestamp"),
            Moment::Creation => f.write_str("metadata.creationTimestamp"),
            Moment::Start => f.write_str("status.startTime"),
            Moment::End => f.write_str("status.completionTime"),
            Moment::Condition(name) | Moment::Failure(name) => {
                write!(f, "conditions[{}].lastTransitionTime", &**name)
            }
            Moment::Seen => f.write_str("seen"),
            Moment::FirstSeen => f.write_str("firstSeen"),
        }
    }
}

/// Since when an object that is judged so has not been ready; `None` where it does not say.
pub fn since(kind: Kind, facts: &Facts, verdict: &Verdict) -> Option<Since> {
    // How one ended that is remembered counts, and not that it is swept away afterwards.
    if let Some(at) = facts.deleted.filter(|_| !verdict.terminal()) {
        return Some(Since { at, from: Moment::Deletion });
    }
    let undeleted;
    let alive = if facts.deleted.is_some() {
        undeleted = Facts { deleted: None, ..facts.clone() };
        &undeleted
    } else {
        facts
    };
    let (own, branch) = why(kind, alive, &Limits::default());
    let decided = match branch {
        Branch::Condition(condition) => Some(condition),
        _ => None,
    };
    if own.verdict.terminal()
        && let Some(failed) = decided.and_then(|condition| turned(condition, Moment::Failure))
    {
        return Some(failed);
    }
    let not = |name: &str| facts.status.condition(name).filter(|c| c.status != Truth::True);
    let turned = |condition: Option<&Condition>| condition.and_then(|c| turned(c, Moment::Condition));
    let created = || facts.created.map(|at| Since { at, from: Moment::Creation });
    let started = || facts.status.started.map(|at| Since { at, from: Moment::Start });
    match kind {
        // The kubelet says so from the moment at which it has taken the pod up; before, it was never ready.
        Kind::Pod => turned(not("Ready")).or_else(created),
        // Before its end it is not done, and never was.
        Kind::Job | Kind::Run => turned(decided).or_else(started).or_else(created),
        // Once bound, a claim does not go back to wait for a volume.
        Kind::PersistentVolumeClaim => (facts.status.word("phase") != Some("Lost")).then(created)?,
        // That replicas are missing may be older than that too few are left.
        Kind::Deployment => turned(not("Available")).or_else(|| turned(decided)),
        Kind::Other => turned(not("Ready")).or_else(|| turned(decided)),
        // The numbers of the others tell no time, and an address that is not there may have been there.
        _ => turned(decided),
    }
}

fn turned(condition: &Condition, from: impl Fn(Text) -> Moment) -> Option<Since> {
    Some(Since { at: condition.since?, from: from(Text::new(&condition.name)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Status;
    use crate::{Level, assess};

    const CREATED: Time = Time(1_000);
    const STARTED: Time = Time(2_000);
    const TURNED: Time = Time(3_000);
    const DELETED: Time = Time(4_000);

    fn condition(name: &'static str, status: Truth, reason: &str) -> Condition {
        Condition {
            name: name.into(),
            status,
            reason: reason.into(),
            since: Some(TURNED),
            ..Condition::default()
        }
    }

    fn facts(conditions: Vec<Condition>) -> Facts {
        let status = Status { present: true, conditions, ..Status::default() };
        Facts { created: Some(CREATED), status, ..Facts::default() }
    }

    fn phase(facts: Facts, phase: &str) -> Facts {
        let word = crate::Word { path: "phase".into(), word: phase.into() };
        Facts { status: Status { words: vec![word], ..facts.status }, ..facts }
    }

    fn told(kind: Kind, facts: &Facts) -> String {
        let verdict = assess(kind, facts, &Limits::default()).verdict;
        assert_ne!(verdict.level, Level::Ready, "{kind:?} {facts:?}");
        since(kind, facts, &verdict).map_or("-".to_owned(), |s| format!("{} {}", s.at.0, s.from))
    }

    #[test]
    fn each_rule_has_the_moment_that_is_true_of_it_or_none() {
        let unready = || condition("Ready", Truth::False, "");
        let deployment = |conditions| {
            let facts = facts(conditions);
            Facts { status: Status { observed: Some(1), ..facts.status }, ..facts }
        };
        let running =
            |facts: Facts| Facts { status: Status { started: Some(STARTED), ..facts.status }, ..facts };
        let failed = || condition("Failed", Truth::True, "BackoffLimitExceeded");
        for (what, kind, facts, expected) in [
            ("pending", Kind::Pod, phase(facts(vec![]), "Pending"), "1000 metadata.creationTimestamp"),
            (
                "running",
                Kind::Pod,
                phase(facts(vec![unready()]), "Running"),
                "3000 conditions[Ready].lastTransitionTime",
            ),
            ("queued", Kind::Job, facts(vec![]), "1000 metadata.creationTimestamp"),
            ("at work", Kind::Job, running(facts(vec![])), "2000 status.startTime"),
            (
                "failed",
                Kind::Job,
                running(facts(vec![failed()])),
                "3000 conditions[Failed].lastTransitionTime",
            ),
            (
                "unbound",
                Kind::PersistentVolumeClaim,
                phase(facts(vec![]), "Pending"),
                "1000 metadata.creationTimestamp",
            ),
            ("lost", Kind::PersistentVolumeClaim, phase(facts(vec![]), "Lost"), "-"),
            (
                "too few",
                Kind::Deployment,
                deployment(vec![condition("Available", Truth::False, "")]),
                "3000 conditions[Available].lastTransitionTime",
            ),
            ("rolling out", Kind::Deployment, deployment(vec![condition("Available", Truth::True, "")]), "-"),
            ("counts", Kind::StatefulSet, deployment(vec![]), "-"),
            ("node", Kind::Node, facts(vec![unready()]), "3000 conditions[Ready].lastTransitionTime"),
            ("custom", Kind::Other, facts(vec![unready()]), "3000 conditions[Ready].lastTransitionTime"),
            ("silent", Kind::Other, facts(vec![]), "-"),
        ] {
            assert_eq!(told(kind, &facts), expected, "{what}");
        }
    }

    #[test]
    fn a_deletion_and_an_end_are_the_last_word() {
        let leaving = |facts| Facts { deleted: Some(DELETED), ..facts };
        let pod = leaving(phase(facts(vec![condition("Ready", Truth::False, "")]), "Running"));
        assert_eq!(told(Kind::Pod, &pod), "4000 metadata.deletionTimestamp");
        // It failed, and was deleted after that: what is remembered is that it failed.
        let job = leaving(facts(vec![condition("Failed", Truth::True, "")]));
        let verdict = crate::outcome(Kind::Job, &job).unwrap();
        let failed = since(Kind::Job, &job, &verdict).unwrap();
        assert!(failed.from.is_final() && failed.at == TURNED, "{failed:?}");
        assert!(!Moment::Condition(Text::new("Ready")).is_final());
    }
}
