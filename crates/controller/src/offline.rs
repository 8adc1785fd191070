//! Policies over objects from files: the same reflector and the same core, in a world where nothing moves any more.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aggregator::KindState;
use readiness::Time;
use timer::Seed;
use watcher::Parent;
use watcher::reflector::Reflector;

use crate::core::records::Keeper;
use crate::core::{Ages, Core, TreeNode};
use crate::policies::{Compiled, InUse, Libraries, Plan, Registry, plan};

/// So many turns of the loop are more than any world at rest needs.
const TURNS: usize = 1_000_000;

/// What each policy's parents are at `now`, with everything below them, if these objects are all there is.
///
/// The objects are taken to have been like this for as long as settling and holding ask. A kind of which there is no
/// object counts as listed, unless it is among the `hidden` (group and kind): of those nobody knows. A rule from a
/// ConfigMap finds none, and says so.
pub fn roll_up(
    policies: &[(String, Compiled)],
    objects: &[&Parent],
    hidden: &BTreeSet<(String, String)>,
    now: Time,
) -> Vec<TreeNode> {
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
    begin(&mut core, &plan, objects, start);
    for (id, _) in plan.kinds.iter().filter(|(_, kind)| hidden.contains(&kind.key)) {
        core.engine.set_kind(start, *id, KindState::Forbidden);
    }
    let mut at = start;
    for _ in 0..TURNS {
        core.turn(at);
        match core.engine.next_deadline() {
            Some(next) if next <= now => at = next.max(at),
            _ => break,
        }
    }
    core.turn(now);
    core.trees(now, &mut Ages::default())
}

/// From the first sight of an object to the last word on its parent, and a little more.
fn rest(policy: &Compiled) -> Duration {
    policy.settle + policy.hold + 2 * (policy.debounce.quiet + policy.debounce.cap) + Duration::from_secs(1)
}

pub(crate) fn begin(core: &mut Core, plan: &Plan, objects: &[&Parent], start: Time) {
    core.reflector.tell_time(start);
    for object in objects.iter().filter(|object| &*object.child.meta.kind == "Namespace") {
        core.reflector.set_namespace(&object.child.meta.name, Some(&object.child.meta.labels));
    }
    for (id, kind) in &plan.kinds {
        core.name_kind(*id, &kind.key.1, &kind.key.0);
    }
    for (id, policy) in &plan.policies {
        core.set_policy(start, *id, Some(policy.clone()));
    }
    for kind in plan.kinds.values() {
        core.reflector.recollect(&kind.interest);
    }
    for (id, kind) in &plan.kinds {
        core.reflector.begin(*id, None);
        let mut interest = kind.interest.clone();
        for object in objects.iter().filter(|object| is(object, &kind.key)) {
            let meta = &object.child.meta;
            for rule in interest.lenses.iter_mut().filter_map(|lens| lens.rule.as_mut()) {
                rule.of = (meta.api_version.clone(), meta.kind.clone());
            }
            core.reflector.apply(&interest, &object.child, Some(&object.text));
        }
        core.reflector.finish(*id, None);
    }
    recall(core, plan, objects);
    let moved = core.reflector.take_dirty(usize::MAX);
    core.take_in(start, &moved);
    for id in plan.kinds.keys() {
        core.engine.set_kind(start, *id, KindState::Synced);
    }
}

/// What records among the objects say of those that are gone.
fn recall(core: &Core, plan: &Plan, objects: &[&Parent]) {
    for kind in plan.kinds.values() {
        let Some(spoken_of) = &kind.records else { continue };
        let mut keeper = Keeper::new(spoken_of.clone());
        for record in objects.iter().filter(|object| is(object, &kind.key)) {
            if let Ok(record) = serde_json::from_str(record.text.get()) {
                keeper.read(&core.reflector, &record);
            }
        }
    }
}

fn is(object: &Parent, (group, kind): &(String, String)) -> bool {
    let meta = &object.child.meta;
    let of = meta.api_version.split_once('/').map_or("", |(group, _)| group);
    *meta.kind == **kind && of == group
}
