//! The verdict of one rule and what led to it.

use std::time::Duration;

use crate::branch::Branch;
use crate::{Assessment, Level, Reason, Steadiness, Time, Verdict};

/// A verdict with the branch of the rule that led to it.
#[derive(Debug)]
pub(crate) struct ReadinessRuling<'a> {
    pub(crate) assessment: Assessment,
    pub(crate) branch: Branch<'a>,
}

impl<'a> ReadinessRuling<'a> {
    pub(crate) fn new(level: Level, reason: Reason, branch: Branch<'a>) -> Self {
        ReadinessRuling { assessment: Verdict::new(level, reason).into(), branch }
    }

    pub(crate) fn ready(reason: Reason, branch: Branch<'a>) -> Self {
        ReadinessRuling::new(Level::Ready, reason, branch)
    }

    pub(crate) fn progressing(reason: Reason, branch: Branch<'a>) -> Self {
        ReadinessRuling::new(Level::Progressing, reason, branch)
    }

    pub(crate) fn failed(reason: Reason, branch: Branch<'a>) -> Self {
        ReadinessRuling::new(Level::Failed, reason, branch)
    }

    pub(crate) fn suspended(reason: Reason, branch: Branch<'a>) -> Self {
        ReadinessRuling::new(Level::Suspended, reason, branch)
    }

    pub(crate) fn unknown(reason: Reason, branch: Branch<'a>) -> Self {
        ReadinessRuling::new(Level::Unknown, reason, branch)
    }

    /// Says how far the object can still be counted on.
    pub(crate) fn with_steadiness(mut self, steadiness: Steadiness) -> Self {
        self.assessment.verdict.steadiness = steadiness;
        self
    }

    /// Changes the level to `level` at `since + limit`, for the same reason, unless the object changes before then.
    pub(crate) fn escalate_after(self, since: Option<Time>, limit: Duration, level: Level) -> Self {
        let reason = self.assessment.verdict.reason.clone();
        self.change_at(since.map(|since| since + limit), level, reason)
    }

    /// Changes the level and the reason at the moment `at`.
    pub(crate) fn change_at(mut self, at: Option<Time>, level: Level, reason: Reason) -> Self {
        self.assessment.then = at.map(|at| Box::new((at, Verdict::new(level, reason))));
        self
    }
}
