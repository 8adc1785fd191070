//! The invariants, asked after every step.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use aggregator::{KindId, PolicyId};
use readiness::Level;
use readiness::rollup::ParentReason;

use crate::naive::{Judge, Sum, Weight, is_child};
use crate::scenario::PolicyDef;
use crate::sim::Sim;
use crate::thing::{Mark, Thing};

/// An answer may be behind what the loop has taken in for the debounce's cap, and for the loop's own slowness.
pub(crate) const BEHIND: i64 = 1_000 + 400;

/// What a watcher remembers of one generation of one parent under one policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phase {
    generation: i64,
    since: i64,
    /// A child was created, deleted or changed its spec then.
    stirred: i64,
    /// A child appeared then.
    appeared: i64,
    /// Its operator was seen to have handled it, or was silent for long enough.
    pub(crate) handled: bool,
    /// The last answer was that all is well.
    well: bool,
    /// Since when it has not been so, at the earliest.
    unready: i64,
    /// At the latest.
    down: i64,
    /// Since when the children have been well, where they are.
    well_since: Option<i64>,
    /// Since when the answer is another one than that of the naive judge.
    differs: Option<i64>,
}

/// What the invariants remember.
#[derive(Default)]
pub(crate) struct Watch {
    pub(crate) revision: u64,
    /// Writes that the loop has handed over.
    pub(crate) sent: u64,
    /// Kinds that were synced in this life, as far as the loop has heard.
    pub(crate) open_kinds: BTreeSet<KindId>,
    pub(crate) phases: BTreeMap<(PolicyId, String), Phase>,
    /// Generations of parents that were told something, by policy.
    pub(crate) told: BTreeSet<(PolicyId, String, i64)>,
    turns: u64,
}

impl Watch {
    pub(crate) fn restart(&mut self) {
        self.open_kinds.clear();
        self.phases.clear();
    }
}

/// Does this reason come from the children?
fn is_judged(reason: ParentReason) -> bool {
    use ParentReason as R;
    matches!(
        reason,
        R::AllChildrenReady
            | R::ChildrenSettling
            | R::ChildrenProgressing
            | R::ChildrenTerminating
            | R::ChildrenFailed
            | R::ChildrenStuck
            | R::ChildrenMissing
            | R::TooManyChildren
            | R::ChildrenUnknown
            | R::ChildrenSuspended
    )
}

impl Sim {
    /// The loop took in what was shown: the second cache does, and notes what stirred.
    pub(crate) fn take_in(&mut self) {
        if !self.shown.is_behind() {
            return;
        }
        let steps = self.shown.take();
        let policies = self.scenario.policies.clone();
        for (old, new) in &steps {
            let Some(thing) = new.as_ref().or(old.as_ref()) else { continue };
            for policy in policies.iter().filter(|p| p.parent == thing.kind) {
                self.note_parent(policy, thing, new.as_deref());
            }
        }
        for (old, new) in &steps {
            for policy in &policies {
                self.note_child(policy, old.as_deref(), new.as_deref());
            }
        }
    }

    fn note_parent(&mut self, policy: &PolicyDef, thing: &Thing, new: Option<&Thing>) {
        let key = (policy.id, thing.uid.clone());
        let Some(parent) = new else {
            self.watch.phases.remove(&key);
            return;
        };
        self.mature(policy, parent);
        let first = self.watch.phases.get(&key).is_none_or(|p| p.generation != parent.generation);
        if first {
            let said = entry_of(policy, parent).filter(|s| s.observed == parent.generation);
            let undecided =
                |r: ParentReason| matches!(r, ParentReason::ChildrenPending | ParentReason::OperatorSilent);
            let known = self.watch.phases.get(&key).copied();
            let well = entry_of(policy, parent).is_some_and(|s| s.status == "True");
            let unready = said.map_or(self.now, |said| match said.reason {
                ParentReason::DeadlineExceeded | ParentReason::OperatorSilent => 0,
                _ if said.status == "False" => said.since.min(self.now),
                _ => self.now,
            });
            let phase = Phase {
                generation: parent.generation,
                since: said.filter(|s| undecided(s.reason)).map_or(self.now, |s| s.since.min(self.now)),
                stirred: known.map_or(0, |p| p.stirred),
                appeared: known.map_or(0, |p| p.appeared),
                handled: said.is_some_and(|s| !undecided(s.reason)),
                well: known.map_or(well, |p| p.well),
                unready,
                down: unready,
                well_since: None,
                differs: None,
            };
            self.watch.phases.insert(key.clone(), phase);
        }
        if let Some(phase) = self.watch.phases.get_mut(&key) {
            phase.handled |= parent.mark == Mark::Handled;
        }
    }

    /// A silent operator counts as done once nothing has stirred for long enough.
    pub(crate) fn mature(&mut self, policy: &PolicyDef, parent: &Thing) {
        let settle = policy.settle.as_millis() as i64;
        let now = self.now;
        if let Some(phase) = self.watch.phases.get_mut(&(policy.id, parent.uid.clone())) {
            let quiet_since = phase.since.max(phase.stirred);
            phase.handled |= parent.mark == Mark::Silent && quiet_since + settle <= now;
        }
    }

    fn note_child(&mut self, policy: &PolicyDef, old: Option<&Thing>, new: Option<&Thing>) {
        let Some(thing) = new.or(old) else { return };
        if policy.groups.iter().all(|g| g.kind != thing.kind) {
            return;
        }
        let respecified = matches!((old, new), (Some(a), Some(b)) if a.generation != b.generation);
        let parents: Vec<Rc<Thing>> =
            self.shown.taken.values().filter(|t| t.kind == policy.parent).cloned().collect();
        let open = self.core.engine.is_open(policy.id);
        for parent in parents {
            let counts =
                |t: &Thing| policy.groups.iter().any(|g| is_child(&self.scenario, policy, g, &parent, t));
            let (was, is) = (old.is_some_and(counts), new.is_some_and(counts));
            if was == is && !(is && respecified) {
                continue;
            }
            self.mature(policy, &parent);
            // Before everything was listed, a child did not appear now: it is as old as it says.
            let at = if is && !was && !open { thing.created.min(self.now) } else { self.now };
            if let Some(phase) = self.watch.phases.get_mut(&(policy.id, parent.uid.clone())) {
                phase.stirred = phase.stirred.max(at);
                if is && !was {
                    phase.appeared = phase.appeared.max(at);
                }
            }
        }
    }

    /// How the engine counts a child that is a parent itself: each such answer is checked where it is given.
    fn rolled(&self, thing: &Thing) -> Option<Weight> {
        let policies = self.scenario.policies.iter().filter(|p| p.parent == thing.kind);
        let id = self.core.reflector.find(&thing.uid);
        let weigh = |policy: &PolicyDef| {
            id.and_then(|id| self.core.engine.answer(id, policy.id))
                .map_or((Level::Unknown, false), |a| (a.reason.level(), a.stalled))
        };
        policies.map(weigh).min()
    }

    pub(crate) fn naive(&self, policy: &PolicyDef, parent: &Thing, things: &[Rc<Thing>]) -> Sum {
        let judge = Judge { scenario: &self.scenario, things, now: self.now };
        judge.sum(policy, parent, &|thing| self.rolled(thing))
    }

    /// After each turn: tallies equal a recount, and every answer is that of the naive judge over what was taken in,
    /// or was so within the debounce's cap.
    pub(crate) fn check_answers(&mut self) {
        self.watch.turns += 1;
        let now_and_then = self.watch.turns.is_multiple_of(4);
        if self.calm && !now_and_then {
            return;
        }
        if now_and_then {
            if let Some((parent, policy)) = self.core.engine.miscounted() {
                self.fail("tallies equal a recount", format_args!("{parent:?} under {policy:?}"));
            }
            if !self.core.engine.troubles_are_true() {
                self.fail("tallies equal a recount", "a ready child is among the troubles");
            }
        }
        let things = self.shown.all_taken();
        let policies = self.scenario.policies.clone();
        for policy in &policies {
            if !self.core.engine.is_open(policy.id) {
                continue;
            }
            for parent in things.iter().filter(|t| t.kind == policy.parent) {
                if self.awaits(policy, parent, &things) {
                    if let Some(phase) = self.watch.phases.get_mut(&(policy.id, parent.uid.clone())) {
                        phase.differs = None;
                    }
                } else {
                    self.check_answer(policy, parent, &things);
                }
            }
        }
    }

    /// Below it is a parent whose policy still waits for a list: until that is through, what was said stays.
    fn awaits(&self, policy: &PolicyDef, parent: &Thing, things: &[Rc<Thing>]) -> bool {
        let below = self.scenario.policies.iter().filter(|p| p.id != policy.id);
        let below: Vec<&PolicyDef> =
            below.filter(|p| policy.groups.iter().any(|g| g.kind == p.parent)).collect();
        let counts =
            |t: &&Rc<Thing>| policy.groups.iter().any(|g| is_child(&self.scenario, policy, g, parent, t));
        !below.is_empty()
            && things.iter().filter(counts).any(|child| {
                let mut over = below.iter().filter(|p| p.parent == child.kind);
                over.any(|p| !self.core.engine.is_open(p.id) || self.awaits(p, child, things))
            })
    }

    fn check_answer(&mut self, policy: &PolicyDef, parent: &Thing, things: &[Rc<Thing>]) {
        let id = self.core.reflector.find(&parent.uid);
        let answer = id.and_then(|id| self.core.engine.answer(id, policy.id));
        let sum = self.naive(policy, parent, things);
        let said = answer.map(|a| a.reason);
        let key = (policy.id, parent.uid.clone());
        let (unready, down) =
            self.watch.phases.get(&key).map_or((self.now, self.now), |p| (p.unready, p.down));
        let due = |since: i64| policy.deadline.map(|limit| since + limit.as_millis() as i64);
        if said == Some(ParentReason::DeadlineExceeded) && due(unready).is_none_or(|due| self.now < due) {
            let name = format!("{}/{}", parent.namespace, parent.name);
            self.fail("answers follow what was shown", format_args!("{name}: its deadline is not over"));
        }
        let suspended = sum.reason == Some(ParentReason::ChildrenSuspended);
        let agrees = match said {
            None => false,
            Some(ParentReason::DeadlineExceeded) => {
                parent.deleted.is_none()
                    && !suspended
                    && (sum.reason.is_some() || parent.mark != Mark::Handled)
            }
            Some(ParentReason::Terminating) => parent.deleted.is_some(),
            Some(reason) if is_judged(reason) => {
                let well = matches!(reason, ParentReason::AllChildrenReady | ParentReason::ChildrenSettling);
                let late = !well && !suspended && due(down).is_some_and(|due| due + BEHIND < self.now);
                !late
                    && parent.deleted.is_none()
                    && parent.mark != Mark::NotYet
                    && sum.reason == (!well).then_some(reason)
            }
            Some(_) => parent.deleted.is_none(),
        };
        let now = self.now;
        self.mature(policy, parent);
        let Some(phase) = self.watch.phases.get_mut(&key) else { return };
        if sum.reason.is_some() {
            phase.well_since = None;
        } else if phase.well_since.is_none() {
            phase.well_since = Some(now);
        }
        phase.differs = if agrees { None } else { Some(phase.differs.unwrap_or(now)) };
        let well = said == Some(ParentReason::AllChildrenReady);
        phase.down = if phase.well && !well { now } else { phase.down };
        phase.unready = if well { now } else { phase.unready };
        let turned = !std::mem::replace(&mut phase.well, well) && well;
        let phase = *phase;
        if phase.differs.is_some_and(|since| since + BEHIND < now) {
            let (namespace, name) = (&parent.namespace, &parent.name);
            let what = format!("{:?}: {namespace}/{name} is {said:?}, to be {:?}", policy.id, sum.reason);
            self.fail("answers follow what was shown", what);
        }
        if turned {
            self.check_turned(policy, parent, &phase);
        }
    }

    /// An answer has just become True.
    fn check_turned(&mut self, policy: &PolicyDef, parent: &Thing, phase: &Phase) {
        let millis = |span: std::time::Duration| span.as_millis() as i64;
        let (settle, hold) = (millis(policy.settle), millis(policy.hold));
        let name = format!("{}/{}", parent.namespace, parent.name);
        if !phase.handled {
            self.fail("no false ready", format_args!("{name}: its operator has not handled it"));
        }
        if phase.appeared + millis(policy.debounce.quiet) + settle + hold > self.now {
            self.fail("no false ready", format_args!("{name}: a child has just appeared"));
        }
        // In calm, not every turn is looked at.
        if !self.calm && phase.well_since.is_none_or(|since| since + hold > self.now) {
            self.fail("no false ready", format_args!("{name}: not well for as long as the policy asks"));
        }
    }
}

/// What a parent says for a policy.
pub(crate) fn entry_of<'a>(policy: &PolicyDef, parent: &'a Thing) -> Option<&'a crate::thing::Said> {
    let condition = condition_of(policy, parent)?;
    parent.ours.get(condition)
}

/// Where a policy's answer goes.
pub(crate) fn condition_of(policy: &PolicyDef, parent: &Thing) -> Option<&'static str> {
    let types = [Some(policy.condition), policy.fallback];
    types.into_iter().flatten().find(|kind| !parent.foreign.contains(*kind))
}
