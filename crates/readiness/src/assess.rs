//! The judge: in which order one object is asked.

use std::time::Duration;

use crate::branch::Branch;
use crate::facts::Facts;
use crate::holder::Held;
use crate::kind::Kind;
use crate::{Assessment, Level, Reason, Time, Verdict, custom, rules};

/// How long something may take before it counts as stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// From creation to being taken up: scheduled, bound, addressed.
    pub pending: Duration,
    /// From the request to delete to being gone.
    pub terminating: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let ten_minutes = Duration::from_secs(600);
        Limits { pending: ten_minutes, terminating: ten_minutes }
    }
}

/// Judges one object.
pub fn assess(kind: Kind, facts: &Facts, limits: &Limits) -> Assessment {
    rule(kind, facts, limits).assessment
}

/// What no rule is asked about, whoever wrote it: that an object is being deleted, and that its status is about another
/// generation.
pub fn before_rules(kind: Kind, facts: &Facts, limits: &Limits) -> Option<Assessment> {
    let deleted = facts.deleted.map(|deleted| deletion(kind, facts, deleted, limits));
    deleted.or_else(|| stale(facts)).map(|ruling| ruling.assessment)
}

/// Judges one object, and names the branch that decided.
pub fn why<'a>(kind: Kind, facts: &'a Facts, limits: &Limits) -> (Assessment, Branch<'a>) {
    let ruling = rule(kind, facts, limits);
    (ruling.assessment, ruling.branch)
}

/// How something that runs to an end has ended, even if it is being deleted or gone by now; `None` where it has not.
///
/// A Job may be seen for the last time when it already carries its deletion.
pub fn outcome(kind: Kind, facts: &Facts) -> Option<Verdict> {
    let verdict = match kind {
        Kind::Job => rules::job(facts, &Limits::default()).assessment.verdict,
        Kind::Pod => rules::pod(facts, &Limits::default()).assessment.verdict,
        Kind::Run => custom::judge(kind, facts).assessment.verdict,
        _ => return None,
    };
    let good = verdict.level == Level::Ready && (verdict.reason == Reason::Complete || kind == Kind::Run);
    (good || verdict.terminal()).then_some(verdict)
}

/// A verdict with the branch that led to it.
#[derive(Debug)]
pub(crate) struct Ruling<'a> {
    pub(crate) assessment: Assessment,
    pub(crate) branch: Branch<'a>,
}

impl<'a> Ruling<'a> {
    pub(crate) fn new(level: Level, reason: Reason, branch: Branch<'a>) -> Self {
        Ruling { assessment: Verdict { level, reason }.into(), branch }
    }

    pub(crate) fn ready(reason: Reason, branch: Branch<'a>) -> Self {
        Ruling::new(Level::Ready, reason, branch)
    }

    pub(crate) fn progressing(reason: Reason, branch: Branch<'a>) -> Self {
        Ruling::new(Level::Progressing, reason, branch)
    }

    pub(crate) fn failed(reason: Reason, branch: Branch<'a>) -> Self {
        Ruling::new(Level::Failed, reason, branch)
    }

    pub(crate) fn suspended(reason: Reason, branch: Branch<'a>) -> Self {
        Ruling::new(Level::Suspended, reason, branch)
    }

    pub(crate) fn unknown(reason: Reason, branch: Branch<'a>) -> Self {
        Ruling::new(Level::Unknown, reason, branch)
    }

    /// At `since + limit`, if the object says nothing new by then, the same reason makes it `level`.
    pub(crate) fn until(self, since: Option<Time>, limit: Duration, level: Level) -> Self {
        let reason = self.assessment.verdict.reason.clone();
        self.turns(since.map(|since| since + limit), level, reason)
    }

    /// From `at` on it is something else.
    pub(crate) fn turns(mut self, at: Option<Time>, level: Level, reason: Reason) -> Self {
        self.assessment.then = at.map(|at| Box::new((at, Verdict { level, reason })));
        self
    }
}

/// Being deleted → another generation → its own word that it is stalled or at work → the table by kind.
fn rule<'a>(kind: Kind, facts: &'a Facts, limits: &Limits) -> Ruling<'a> {
    if let Some(deleted) = facts.deleted {
        return deletion(kind, facts, deleted, limits);
    }
    match kind {
        Kind::Plain => Ruling::ready(Reason::Exists, Branch::Fact("it exists")),
        Kind::Run | Kind::Other => custom::judge(kind, facts),
        _ => stale(facts)
            .or_else(|| custom::abnormal(facts))
            .unwrap_or_else(|| rules::table(kind, facts, limits)),
    }
}

fn deletion<'a>(kind: Kind, facts: &'a Facts, deleted: Time, limits: &Limits) -> Ruling<'a> {
    let reason = match facts.finalizers.as_slice() {
        [] if kind == Kind::Namespace => rules::namespace_content(facts).unwrap_or(Reason::Terminating),
        [] => Reason::Terminating,
        held => Reason::Finalizers(Box::new(Held::new(deleted, held, &facts.setters))),
    };
    Ruling::new(Level::Terminating, reason, Branch::Fact("metadata.deletionTimestamp is set")).until(
        Some(deleted),
        limits.terminating,
        Level::Stuck,
    )
}

/// What `status` says is about another generation, an older one or one from before a restore.
pub(crate) fn stale(facts: &Facts) -> Option<Ruling<'_>> {
    let (observed, generation) = (facts.status.observed?, facts.generation?);
    (observed != generation).then(|| unobserved(facts))
}

/// The ruling for an object whose controller has not said that it saw this generation.
pub(crate) fn unobserved(facts: &Facts) -> Ruling<'_> {
    let branch =
        Branch::Generation { at: None, observed: facts.status.observed, generation: facts.generation };
    Ruling::progressing(Reason::StaleGeneration, branch)
}
