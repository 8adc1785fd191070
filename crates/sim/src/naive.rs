//! The naive judge: one parent, one policy, all objects there are, counted from scratch.
//!
//! It shares no code with the engine: no tallies, no edges, no deltas.

use std::rc::Rc;

use aggregator::Quorum;
use readiness::Level;
use readiness::rollup::ParentReason;

use crate::scenario::{GroupDef, LABEL, PolicyDef, Scenario, named};
use crate::thing::{State, Thing};

/// How a child weighs.
pub(crate) type Weight = (Level, bool);

/// What the children of one parent come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    /// What holds them back; `None` where all is well.
    pub(crate) reason: Option<ParentReason>,
    /// Failed for good, or stuck.
    pub(crate) stalled: bool,
    /// Names of those that are worst.
    pub(crate) worst: Vec<String>,
}

/// Does `thing` count for `parent` in this group?
pub(crate) fn is_child(
    scenario: &Scenario,
    policy: &PolicyDef,
    group: &GroupDef,
    parent: &Thing,
    thing: &Thing,
) -> bool {
    if thing.kind != group.kind {
        return false;
    }
    let api = &scenario.kinds[policy.parent].api;
    if group.by_label {
        // Operators copy labels from parents: what one of them owns counts for that one alone.
        let mut owners = thing.owners.iter().filter(|(g, k, _)| *k == api.kind && *g == api.group).peekable();
        let free = owners.peek().is_none() || owners.any(|(_, _, uid)| *uid == parent.uid);
        return free && thing.namespace == parent.namespace && thing.labels.get(LABEL) == Some(&parent.name);
    }
    let lives = parent.namespace.is_empty() || parent.namespace == thing.namespace;
    let owned = |(group, kind, uid): &(String, String, String)| {
        *uid == parent.uid && *kind == api.kind && *group == api.group
    };
    lives && thing.owners.iter().any(owned)
}

/// How a child stands that is nobody's parent.
pub(crate) fn own(thing: &Thing, policy: &PolicyDef, now: i64) -> Weight {
    let millis = |span: std::time::Duration| span.as_millis() as i64;
    if let Some(deleted) = thing.deleted {
        let late = deleted + millis(policy.limits.terminating) <= now;
        return (if late { Level::Stuck } else { Level::Terminating }, false);
    }
    match thing.state {
        State::Is(level, terminal) => (level, terminal),
        State::NotStarted => {
            let late = thing.created + millis(policy.limits.pending) <= now;
            (if late { Level::Stuck } else { Level::Progressing }, false)
        }
    }
}

/// The judge's view.
pub(crate) struct Judge<'a> {
    pub(crate) scenario: &'a Scenario,
    /// Everything that is known to exist.
    pub(crate) things: &'a [Rc<Thing>],
    pub(crate) now: i64,
}

impl Judge<'_> {
    /// What `policy` makes of `parent`. `rolled` says how a child stands that is itself a parent.
    pub(crate) fn sum(
        &self,
        policy: &PolicyDef,
        parent: &Thing,
        rolled: &dyn Fn(&Thing) -> Option<Weight>,
    ) -> Sum {
        let (mut counted, mut names) = (Vec::<Weight>::new(), Vec::new());
        let (mut missing, mut surplus, mut total, mut some_ready) = (false, false, 0, false);
        for group in policy.groups.iter().filter(|g| g.critical) {
            let children: Vec<&Rc<Thing>> =
                self.things.iter().filter(|t| is_child(self.scenario, policy, group, parent, t)).collect();
            let weights: Vec<Weight> = children.iter().map(|t| self.weigh(t, policy, rolled)).collect();
            let count = children.len() as u32;
            total += count;
            missing |= count < group.min || matches!(group.quorum, Quorum::Count(n) if count < n);
            missing |= count == 0 && matches!(group.quorum, Quorum::Percent(_));
            some_ready |= weights.iter().any(|w| w.0 == Level::Ready);
            missing |= group.named.is_some_and(|n| {
                let expected = named(&parent.name, n);
                children.iter().all(|c| c.name != expected)
            });
            surplus |= group.max.is_some_and(|max| count > max);
            if !suffices(group, &weights) {
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
        Sum { reason, stalled, worst: worst.map(|(_, name)| name).collect() }
    }

    /// Being deleted is not something that its children know better.
    fn weigh(&self, thing: &Thing, policy: &PolicyDef, rolled: &dyn Fn(&Thing) -> Option<Weight>) -> Weight {
        let own = own(thing, policy, self.now);
        if matches!(own.0, Level::Stuck | Level::Terminating) { own } else { rolled(thing).unwrap_or(own) }
    }
}

/// A group that has its quorum has no trouble that counts.
fn suffices(group: &GroupDef, weights: &[Weight]) -> bool {
    let of = |level: Level| weights.iter().filter(|w| w.0 == level).count() as u32;
    let awake = weights.len() as u32 - of(Level::Suspended);
    let needed = match group.quorum {
        Quorum::All => return false,
        Quorum::Count(n) => n,
        Quorum::Percent(p) => (awake * p).div_ceil(100),
    };
    needed > 0 && of(Level::Ready) >= needed
}
