//! Policies over objects from files: the same reflector and the same core, in a world where nothing moves any more.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aggregator::{KindId, KindState};
use readiness::Time;
use timer::Seed;
use watcher::Parent;
use watcher::plan::Interest;
use watcher::reflector::Reflector;

use crate::core::records::Keeper;
use crate::core::{Ages, Core, TreeNode};
use crate::policies::{Compiled, InUse, Libraries, Plan, Registry, plan};

/// So many turns of the loop are more than any world at rest needs.
const TURNS: usize = 1_000_000;
/// The kind that remembers outcomes.
const RECORD: &str = "ReadinessRecord";

/// What each policy's parents are at `now`, with everything below them, if these objects are all there is.
pub fn roll_up(
    policies: &[(String, Compiled)],
    objects: &[&Parent],
    hidden: &BTreeSet<(String, String)>,
    now: Time,
) -> Vec<TreeNode> {
    let mut world = World::new(policies, now);
    for object in objects.iter().filter(|object| &*object.child.meta.kind == "Namespace") {
        world.namespace(object);
    }
    for object in objects {
        world.take(object);
    }
    world.end(hidden)
}

/// A world that is told object by object, so that nobody has to hold all of them.
///
/// The objects are taken to have been like this for as long as settling and holding ask. A kind of which there is no
/// object counts as listed, unless it is hidden: of those nobody knows. A rule from a ConfigMap finds none, and says so.
pub struct World {
    core: Core,
    plan: Plan,
    intake: Intake,
    start: Time,
    now: Time,
}

impl World {
    /// An empty one.
    pub fn new(policies: &[(String, Compiled)], now: Time) -> World {
        let mut registry = Registry::default();
        let in_use: Vec<_> = policies
            .iter()
            .map(|(name, compiled)| InUse {
                id: registry.policy(),
                name: name.clone(),
                // Nobody answers writes here, so nothing may wait for an answer.
                compiled: Compiled { shadow: true, ..compiled.clone() },
            })
            .collect();
        let plan = plan(&in_use, &[], &mut registry, &Libraries::default());
        let rest = in_use.iter().map(|policy| rest(&policy.compiled)).max().unwrap_or_default();
        let start = Time(now.0 - i64::try_from(rest.as_millis()).unwrap_or(0));
        let mut core = Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, Seed(0));
        let intake = Intake::open(&mut core, &plan, start);
        World { core, plan, intake, start, now }
    }

    /// A Namespace, by whose labels others may be chosen: before these.
    pub fn namespace(&self, object: &Parent) {
        self.core.reflector.set_namespace(&object.child.meta.name, Some(&object.child.meta.labels));
    }

    /// An object, with its type.
    pub fn take(&mut self, object: &Parent) {
        self.intake.take(&self.core, object);
    }

    /// What was told of this kind (group and kind) so far is void: it is told anew.
    pub fn again(&mut self, kind: &(String, String)) {
        for (id, _) in self.plan.kinds.iter().filter(|(_, planned)| planned.key == *kind) {
            self.core.reflector.begin(*id, None);
        }
    }

    /// This was all. Of the `hidden` kinds (group and kind) nobody knows what there is.
    pub fn end(mut self, hidden: &BTreeSet<(String, String)>) -> Vec<TreeNode> {
        self.intake.close(&mut self.core, &self.plan, self.start);
        for (id, _) in self.plan.kinds.iter().filter(|(_, kind)| hidden.contains(&kind.key)) {
            self.core.engine.set_kind(self.start, *id, KindState::Forbidden);
        }
        let mut at = self.start;
        for _ in 0..TURNS {
            self.core.turn(at);
            match self.core.engine.next_deadline() {
                Some(next) if next <= self.now => at = next.max(at),
                _ => break,
            }
        }
        self.core.turn(self.now);
        self.core.trees(self.now, &mut Ages::default())
    }
}

/// From the first sight of an object to the last word on its parent, and a little more.
fn rest(policy: &Compiled) -> Duration {
    policy.settle + policy.hold + 2 * (policy.debounce.quiet + policy.debounce.cap) + Duration::from_secs(1)
}

/// The way of objects into a core, in any order.
struct Intake {
    kinds: Vec<(KindId, (String, String), Interest)>,
    /// What speaks of those that are gone.
    records: Vec<(usize, Parent)>,
}

impl Intake {
    fn open(core: &mut Core, plan: &Plan, start: Time) -> Intake {
        core.reflector.tell_time(start);
        for (id, kind) in &plan.kinds {
            core.name_kind(*id, &kind.key.1, &kind.key.0);
        }
        for (id, policy) in &plan.policies {
            core.set_policy(start, *id, Some(policy.clone()));
        }
        for kind in plan.kinds.values() {
            core.reflector.recollect(&kind.interest);
        }
        for id in plan.kinds.keys() {
            core.reflector.begin(*id, None);
        }
        let kinds = plan.kinds.iter().map(|(id, kind)| (*id, kind.key.clone(), kind.interest.clone()));
        Intake { kinds: kinds.collect(), records: Vec::new() }
    }

    fn take(&mut self, core: &Core, object: &Parent) {
        let meta = &object.child.meta;
        for (at, (_, key, interest)) in self.kinds.iter_mut().enumerate() {
            if !is(object, key) {
                continue;
            }
            for rule in interest.lenses.iter_mut().filter_map(|lens| lens.rule.as_mut()) {
                rule.of = (meta.api_version.clone(), meta.kind.clone());
            }
            core.reflector.apply(interest, &object.child, Some(&object.text));
            if &*meta.kind == RECORD {
                self.records.push((at, object.clone()));
            }
        }
    }

    fn close(&self, core: &mut Core, plan: &Plan, start: Time) {
        for (id, _, _) in &self.kinds {
            core.reflector.finish(*id, None);
        }
        self.recall(core, plan);
        let moved = core.reflector.take_dirty(usize::MAX);
        core.take_in(start, &moved);
        for id in plan.kinds.keys() {
            core.engine.set_kind(start, *id, KindState::Synced);
        }
    }

    /// What records among the objects say of those that are gone.
    fn recall(&self, core: &Core, plan: &Plan) {
        for (at, (id, _, _)) in self.kinds.iter().enumerate() {
            let Some(spoken_of) = plan.kinds.get(id).and_then(|kind| kind.records.as_ref()) else { continue };
            let mut keeper = Keeper::new(spoken_of.clone());
            for (_, record) in self.records.iter().filter(|(of, _)| *of == at) {
                if let Ok(record) = serde_json::from_str(record.text.get()) {
                    keeper.read(&core.reflector, &record);
                }
            }
        }
    }
}

/// Everything at once.
#[cfg(test)]
pub(crate) fn begin(core: &mut Core, plan: &Plan, objects: &[&Parent], start: Time) {
    let mut intake = Intake::open(core, plan, start);
    for object in objects {
        intake.take(core, object);
    }
    intake.close(core, plan, start);
}

fn is(object: &Parent, (group, kind): &(String, String)) -> bool {
    let meta = &object.child.meta;
    let of = meta.api_version.split_once('/').map_or("", |(group, _)| group);
    *meta.kind == **kind && of == group
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::compile;
    use serde_json::{Value, json};

    const NOW: Time = Time(1_800_000_000_000);

    fn object(kind: &str, api_version: &str, name: &str, owner: Option<&str>) -> Parent {
        let owners = owner.map(|owner| {
            json!([{ "apiVersion": "example.com/v1", "kind": "Database", "name": owner, "uid": owner }])
        });
        let ready = json!([{ "type": "Ready", "status": "True" }]);
        let value: Value = json!({ "apiVersion": api_version, "kind": kind,
            "metadata": { "name": name, "namespace": "shop", "uid": name, "generation": 1,
                "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": owners },
            "status": { "observedGeneration": 1, "phase": "Running", "conditions": ready } });
        serde_json::from_str(&value.to_string()).unwrap()
    }

    fn children(told: impl Fn(&mut World)) -> Vec<String> {
        let spec = json!({ "parent": { "group": "example.com", "kind": "Database" }, "children": [{ "kind": { "kind": "Pod" } }] });
        let policy = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
        let mut world = World::new(&[("p".to_owned(), policy)], NOW);
        told(&mut world);
        let trees = world.end(&BTreeSet::new());
        assert_eq!(trees.len(), 1);
        trees[0].children.iter().map(|child| child.name.clone()).collect()
    }

    #[test]
    fn objects_come_in_any_order_and_a_list_that_is_told_anew_counts_alone() {
        let (db, web) = (object("Database", "example.com/v1", "db", None), |n: u8| {
            object("Pod", "v1", &format!("web-{n}"), Some("db"))
        });
        let pods = (String::new(), "Pod".to_owned());
        let mixed = children(|world| {
            for object in [&web(1), &db, &web(0)] {
                world.take(object);
            }
        });
        assert_eq!(mixed, ["web-0", "web-1"]);
        let anew = children(|world| {
            for object in [&db, &web(0), &web(1)] {
                world.take(object);
            }
            world.again(&pods);
            world.take(&web(1));
            world.take(&web(2));
        });
        assert_eq!(anew, ["web-1", "web-2"]);
    }
}
