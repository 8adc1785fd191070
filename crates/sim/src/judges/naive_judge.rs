//! The naive judge: evaluates one parent under one policy over all objects, counted from scratch.
//!
//! It shares no code with the engine: no tallies, no edges, no deltas.

use std::collections::BTreeMap;
use std::rc::Rc;

use aggregator::Quorum;
use readiness::rollup::ParentReason;
use readiness::{Level, saturating_millis};

use crate::scenario::{
    ChildRuleDef, GroupDef, PARENT_LABEL, PolicyDef, Scenario, expected_child_name, small_number,
};
use crate::world::{BudgetReading, FailureReach, ModelObject, ModelState, ModelSteadiness};

/// Weight of a child: its level, and whether it is stalled.
pub(crate) type NaiveWeight = (Level, bool);

/// Evaluation of one parent: of its children, unless its own status says that it has failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NaiveSum {
    /// Reason why the parent is not ready; `None` if all children are.
    pub(crate) reason: Option<ParentReason>,
    /// Some child has failed for good, or is stuck.
    pub(crate) stalled: bool,
    /// Names of the children with the worst level.
    pub(crate) worst: Vec<String>,
    /// The reason is a failure that the parent's own status reports, and nothing else is wrong: that may pass in a moment.
    pub(crate) may_pass: bool,
}

/// Returns `true` if `model` counts for `parent` in this group.
pub(crate) fn is_child(
    scenario: &Scenario,
    policy: &PolicyDef,
    group: &GroupDef,
    parent: &ModelObject,
    model: &ModelObject,
) -> bool {
    if model.kind != group.kind {
        return false;
    }
    let api = &scenario.kinds[policy.parent].api;
    if group.by_label {
        // Operators copy labels from parents: an object with an owner of the parent's kind counts for that owner alone.
        let mut owners = model.owners.iter().filter(|(g, k, _)| *k == api.kind && *g == api.group).peekable();
        let free = owners.peek().is_none() || owners.any(|(_, _, uid)| *uid == parent.uid);
        return free
            && model.namespace == parent.namespace
            && model.labels.get(PARENT_LABEL) == Some(&parent.name);
    }
    let lives = match &*parent.namespace {
        "" => model.namespace.is_empty() || policy.child_namespaces.contains(&&*model.namespace),
        own => own == model.namespace,
    };
    let owned = |(group, kind, uid): &(String, String, String)| {
        *uid == parent.uid && *kind == api.kind && *group == api.group
    };
    lives && model.owners.iter().any(owned)
}

/// Returns the weight of a child that is not itself a parent.
pub(crate) fn own_weight(model: &ModelObject, policy: &PolicyDef, group: &GroupDef, now: i64) -> NaiveWeight {
    if let Some(deleted) = model.deleted {
        let late = deleted + saturating_millis(policy.limits.terminating) <= now;
        return (if late { Level::Stuck } else { Level::Terminating }, false);
    }
    if let Some(level) = group.rule.level_of(model.generation) {
        return (if model.is_stale { Level::Progressing } else { level }, false);
    }
    match model.state {
        ModelState::Is(level, terminal) => (level, terminal),
        ModelState::NotStarted => {
            let asked_at = model.created.max(model.changed);
            let late = asked_at + saturating_millis(policy.limits.pending) <= now;
            (if late { Level::Stuck } else { Level::Progressing }, false)
        }
    }
}

/// The naive judge.
pub(crate) struct NaiveJudge<'a> {
    pub(crate) scenario: &'a Scenario,
    /// All objects known to exist.
    pub(crate) models: &'a [Rc<ModelObject>],
    pub(crate) now: i64,
    /// Levels of children that are not judged by what they are, by uid: their rule has not judged them yet.
    pub(crate) unjudged: BTreeMap<String, Level>,
    /// Children that are counted as ready although they are not; `None` for none.
    pub(crate) counted: Option<CountedSteady>,
}

/// Children that are not ready, and can be counted on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedSteady {
    /// This far at least.
    pub(crate) least: ModelSteadiness,
    /// They were there when all were ready last.
    pub(crate) whole_at: i64,
    /// Where it is not known by which budgets they are read, by these.
    pub(crate) reading: BudgetReading,
}

impl CountedSteady {
    fn counts(self, model: &ModelObject, group: &GroupDef, own: NaiveWeight) -> bool {
        let by_kind = model.steadiness(self.reading);
        // Of a spec that its controller has not observed, no rule of a policy is asked.
        let steadiness = match group.rule {
            ChildRuleDef::Native => by_kind,
            _ if model.is_observed_workload() => ModelSteadiness::Unsteady,
            _ => by_kind.min(ModelSteadiness::Unobserved),
        };
        own.0 == Level::Progressing
            && model.deleted.is_none()
            && steadiness >= self.least
            && model.created <= self.whole_at
    }
}

impl NaiveJudge<'_> {
    /// Evaluates `parent` under `policy`. `rolled` returns the weight of a child that is itself a parent.
    pub(crate) fn sum_children(
        &self,
        policy: &PolicyDef,
        parent: &ModelObject,
        rolled: &dyn Fn(&ModelObject) -> Option<NaiveWeight>,
    ) -> NaiveSum {
        if let Some(failure) = parent.failure {
            let whole = ModelObject { failure: None, ..parent.clone() };
            let may_pass = self.sum_children(policy, &whole, rolled).reason.is_none();
            let (reason, stalled) =
                (Some(ParentReason::OperatorFailed), failure.reach == FailureReach::Final);
            return NaiveSum { reason, stalled, worst: Vec::new(), may_pass };
        }
        let (mut counted, mut names) = (Vec::<NaiveWeight>::new(), Vec::new());
        let (mut missing, mut surplus, mut total, mut some_ready) = (false, false, 0, false);
        for group in policy.groups.iter().filter(|g| g.critical) {
            let children: Vec<&Rc<ModelObject>> =
                self.models.iter().filter(|t| is_child(self.scenario, policy, group, parent, t)).collect();
            let weights: Vec<NaiveWeight> =
                children.iter().map(|t| self.weigh_child(t, policy, group, rolled)).collect();
            let count: u32 = small_number(children.len());
            total += count;
            missing |= count < group.min || matches!(group.quorum, Quorum::Count(n) if count < n);
            missing |= count == 0 && matches!(group.quorum, Quorum::Percent(_));
            some_ready |= weights.iter().any(|w| w.0 == Level::Ready);
            missing |= group.named.is_some_and(|n| {
                let expected = expected_child_name(&parent.name, n);
                children.iter().all(|c| c.name != expected)
            });
            surplus |= group.max.is_some_and(|max| count > max);
            if !has_naive_quorum(group, &weights) {
                let named = children.iter().zip(&weights).map(|(c, w)| (w.0, c.name.clone()));
                names.extend(named);
                counted.extend(weights);
            }
        }
        missing |= total == 0;
        let any = |level: Level| counted.iter().any(|w| w.0 == level);
        let reason = if any(Level::Failed) {
            Some(ParentReason::ChildrenFailed)
        } else if any(Level::Stuck) {
            Some(ParentReason::ChildrenStuck)
        } else if missing {
            Some(ParentReason::ChildrenMissing)
        } else if surplus {
            Some(ParentReason::TooManyChildren)
        } else if any(Level::Unknown) {
            Some(ParentReason::ChildrenUnknown)
        } else if any(Level::Progressing) {
            Some(ParentReason::ChildrenProgressing)
        } else if any(Level::Terminating) {
            Some(ParentReason::ChildrenTerminating)
        } else if any(Level::Suspended) && !some_ready {
            Some(ParentReason::ChildrenSuspended)
        } else {
            None
        };
        let stalled = match reason {
            Some(ParentReason::ChildrenFailed) => counted.iter().any(|w| w.1),
            reason => reason == Some(ParentReason::ChildrenStuck),
        };
        let least = names.iter().map(|(level, _)| *level).min();
        let worst = names.into_iter().filter(|(l, _)| Some(*l) == least && *l != Level::Ready);
        NaiveSum { reason, stalled, worst: worst.map(|(_, name)| name).collect(), may_pass: false }
    }

    /// A child's own deletion outweighs the state of its children.
    pub(super) fn weigh_child(
        &self,
        model: &ModelObject,
        policy: &PolicyDef,
        group: &GroupDef,
        rolled: &dyn Fn(&ModelObject) -> Option<NaiveWeight>,
    ) -> NaiveWeight {
        let own = own_weight(model, policy, group, self.now);
        let stands = self.unjudged.get(&model.uid).filter(|_| group.rule != ChildRuleDef::Native);
        let own = stands.filter(|_| model.deleted.is_none()).map_or(own, |level| (*level, false));
        let own = if self.counted.is_some_and(|counted| counted.counts(model, group, own)) {
            (Level::Ready, false)
        } else {
            own
        };
        if matches!(own.0, Level::Stuck | Level::Terminating) { own } else { rolled(model).unwrap_or(own) }
    }
}

/// Returns `true` if the group has its quorum; its unready children then do not count.
fn has_naive_quorum(group: &GroupDef, weights: &[NaiveWeight]) -> bool {
    let of = |level: Level| weights.iter().filter(|w| w.0 == level).count();
    let awake = weights.len() - of(Level::Suspended);
    let needed = match group.quorum {
        Quorum::All => return false,
        Quorum::Count(n) => n as usize,
        Quorum::Percent(p) => (awake * p as usize).div_ceil(100),
    };
    needed > 0 && of(Level::Ready) >= needed
}
