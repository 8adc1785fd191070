//! The naive oracle: after faults have stopped and everything is quiet, what every parent says equals what a judge
//! says who looks at nothing but the store.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use readiness::rollup::ParentReason;
use serde_json::Value;

use crate::check::condition_of;
use crate::naive::{Judge, Sum, Weight};
use crate::scenario::PolicyDef;
use crate::sim::Sim;
use crate::thing::{Mark, Thing};

/// What a parent has to say for one policy.
struct Expected {
    reason: ParentReason,
    stalled: bool,
    sum: Sum,
}

struct Oracle<'a> {
    judge: Judge<'a>,
    policies: &'a [PolicyDef],
}

impl Oracle<'_> {
    fn expected(&self, policy: &PolicyDef, parent: &Thing) -> Expected {
        let sum = self.judge.sum(policy, parent, &|thing| self.rolled(thing));
        let (reason, stalled) = match (parent.deleted, parent.mark) {
            (Some(_), _) => (ParentReason::Terminating, false),
            // By now every limit is over.
            (None, Mark::NotYet) => (ParentReason::OperatorSilent, true),
            _ => match sum.reason {
                Some(reason) if policy.deadline.is_some() && reason != ParentReason::ChildrenSuspended => {
                    (ParentReason::DeadlineExceeded, true)
                }
                Some(ParentReason::ChildrenMissing) => (ParentReason::ChildrenMissing, true),
                Some(reason) => (reason, sum.stalled),
                None => (ParentReason::AllChildrenReady, false),
            },
        };
        Expected { reason, stalled, sum }
    }

    fn rolled(&self, thing: &Thing) -> Option<Weight> {
        let policies = self.policies.iter().filter(|p| p.parent == thing.kind);
        let weigh = |policy: &PolicyDef| {
            let expected = self.expected(policy, thing);
            (expected.reason.level(), expected.stalled)
        };
        policies.map(weigh).min()
    }
}

impl Sim {
    fn everything(&self) -> Vec<Rc<Thing>> {
        let mut things = Vec::new();
        for (at, kind) in self.scenario.kinds.iter().enumerate() {
            let objects = self.store.list(&kind.api.api_version(), &kind.api.kind, "");
            let read = |object: &std::sync::Arc<Value>| Rc::new(Thing::read(at, kind, object));
            things.extend(objects.iter().map(read));
        }
        things
    }

    /// Everything is quiet: every parent is as the oracle says, and the reflector holds what the store holds.
    pub(crate) fn check_end(&mut self) {
        let things = self.everything();
        let policies = self.scenario.policies.clone();
        let scenario = self.scenario.clone();
        let judge = Judge { scenario: &scenario, things: &things, now: self.now };
        let oracle = Oracle { judge, policies: &policies };
        self.counts.parents = 0;
        for parent in &things {
            let mut expected = BTreeMap::new();
            for policy in policies.iter().filter(|p| p.parent == parent.kind) {
                if let Some(condition) = condition_of(policy, parent) {
                    expected.insert(condition, oracle.expected(policy, parent));
                }
            }
            if policies.iter().any(|p| p.parent == parent.kind) {
                self.counts.parents += 1;
                self.check_parent(parent, &expected);
            }
        }
        self.check_rows(&things);
    }

    fn check_parent(&mut self, parent: &Thing, expected: &BTreeMap<&'static str, Expected>) {
        let name = format!("{} {}/{}", self.scenario.name(parent.kind), parent.namespace, parent.name);
        let mut types: Vec<&str> = expected.keys().copied().collect();
        for (condition, Expected { reason, stalled, sum }) in expected {
            let Some(said) = parent.ours.get(*condition) else {
                self.fail("eventually exact", format_args!("{name} does not say {condition}: {reason:?}"));
                continue;
            };
            // One that is being deleted was told so once, and is left alone.
            let about = parent.deleted.is_some() || said.observed == parent.generation;
            if !about || said.reason != *reason || said.status != reason.status().word() {
                self.fail(
                    "eventually exact",
                    format_args!("{name} at {} says {said:?}, to be {reason:?}", parent.generation),
                );
            }
            let tells = sum.worst.is_empty() || sum.worst.iter().any(|w| said.message.contains(w.as_str()));
            let names = matches!(
                reason,
                ParentReason::ChildrenFailed
                    | ParentReason::ChildrenStuck
                    | ParentReason::ChildrenProgressing
            );
            if names && !tells {
                let message = &said.message;
                self.fail(
                    "eventually exact",
                    format_args!("{name} does not name {:?}: {message}", sum.worst),
                );
            }
            // What is ready keeps nobody from being ready.
            if said.status == "False" && said.message.contains("(AllChildrenReady)") {
                self.fail("eventually exact", format_args!("{name} blames what is ready: {}", said.message));
            }
            if *condition == "Ready" {
                let neutral = matches!(
                    reason,
                    ParentReason::AllChildrenReady
                        | ParentReason::ChildrenSuspended
                        | ParentReason::Terminating
                );
                types.extend(stalled.then_some("Stalled"));
                types.extend((!stalled && !neutral).then_some("Reconciling"));
            }
        }
        types.sort_unstable();
        let says: Vec<&str> = parent.ours.keys().map(String::as_str).collect();
        if says != types {
            self.fail("eventually exact", format_args!("{name} has {says:?}, to have {types:?}"));
        }
    }

    /// The reflector holds nothing that is not there, and nothing as it no longer is.
    fn check_rows(&mut self, things: &[Rc<Thing>]) {
        let mut there = BTreeSet::new();
        for thing in things {
            there.insert((thing.kind, thing.namespace.clone(), thing.name.clone(), thing.version));
        }
        let mut strange = Vec::new();
        self.core.reflector.each(|_, row| {
            let key = (usize::from(row.kind.0), row.namespace.to_string(), row.name.to_string(), row.version);
            if !there.contains(&key) {
                strange.push(format!("{key:?}"));
            }
        });
        if let Some(first) = strange.first() {
            self.fail("eventually exact", format_args!("the reflector holds {first}, which is not there"));
        }
    }
}
