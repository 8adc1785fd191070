//! Another release of Rollcall in the same cluster: its policies, their authors, and what it says on parents.

use std::collections::BTreeMap;
use std::sync::Arc;

use sandbox::store::StoreRequest;
use serde_json::{Value, json};
use watcher::status::{FIELD_MANAGER, time::format_seconds, written_types};

use crate::scenario::{Dice, DiceStream, PolicyDef, Scenario, SeedStreams};
use crate::timeline::{OtherReleaseStep, PolicyEvent, SimEvent};
use crate::world::{
    FIRST_POLICIES_MS, ModelObject, OTHER_RELEASE, OTHER_RELEASE_WORDS, OWN_RELEASE, SelectedBy,
    SimObjectRef, SimWorld, StoredPolicy, conditions_of, spec_json,
};

/// Chance of the other release to have all namespaces, in per cent; else it has the first.
const EVERYWHERE_PERCENT: usize = 30;
/// Lowest kind of parents.
const LOWEST_PARENT: usize = 4;
/// Interval at which it looks at all parents, in milliseconds.
const SYNC_MS: i64 = 4_000;
/// By how much its policies are older, or younger, than the first of the release under test, in milliseconds.
const AGE_MS: i64 = 3_600_000;

/// The other release.
pub(crate) struct OtherRelease {
    authors: Dice,
    wire: Dice,
    /// Policies of its own.
    first: Vec<PolicyDef>,
}

impl OtherRelease {
    /// Draws the policies of the other release, which are there from the start, and schedules its first steps.
    pub(crate) fn draw(streams: SeedStreams, world: &mut SimWorld) -> Option<OtherRelease> {
        let mut authors = streams.widened_by(DiceStream::OtherAuthors)?;
        let wire = streams.widened_by(DiceStream::OtherRelease)?;
        let scenario = world.scenario.clone();
        world.policy_server.other_namespaces =
            if authors.chance(EVERYWHERE_PERCENT) { Vec::new() } else { vec!["red".to_owned()] };
        let first = draw_policies(&mut authors, &scenario);
        for spec in &first {
            let age = if authors.chance(60) { -AGE_MS } else { AGE_MS };
            world.policy_server.create_other(spec.clone(), FIRST_POLICIES_MS + age, world.timeline.now());
        }
        world.timeline.schedule_event(3_000, SimEvent::OtherRelease(OtherReleaseStep::Act));
        world.timeline.schedule_event(200, SimEvent::OtherRelease(OtherReleaseStep::Sync));
        Some(OtherRelease { authors, wire, first })
    }

    /// Takes its next step.
    pub(crate) fn run_step(&mut self, world: &mut SimWorld, step: OtherReleaseStep) {
        match step {
            OtherReleaseStep::Act => {
                let said = self.act(world);
                world.timeline.log_event(said);
                self.wake_watch(world);
                let pause = match self.authors.below(10) {
                    0..2 => self.authors.between(20, 2_000),
                    2..5 => self.authors.between(2_000, 20_000),
                    _ => self.authors.between(20_000, 200_000),
                };
                world.timeline.schedule_event(pause, SimEvent::OtherRelease(OtherReleaseStep::Act));
            }
            OtherReleaseStep::Sync => {
                self.claim_policies(world);
                say_on_parents(world);
                let after = self.wire.between(SYNC_MS / 4, SYNC_MS);
                world.timeline.schedule_event(after, SimEvent::OtherRelease(OtherReleaseStep::Sync));
            }
        }
    }

    fn wake_watch(&mut self, world: &mut SimWorld) {
        let lag = self.wire.between(1, 400);
        world.timeline.schedule_policy_event(lag, PolicyEvent::Deliver);
    }

    fn act(&mut self, world: &mut SimWorld) -> String {
        let now = world.timeline.now();
        let own = world.scenario.first_policies.len();
        if self.authors.chance(35) {
            return self.move_policy(world, own);
        }
        let at = self.authors.below(self.first.len());
        let server = &mut world.policy_server;
        let first = &self.first[at];
        let Some(selected_by) = server.stored.get(&first.number).map(|of| of.object.selected_by) else {
            server.create_other(first.clone(), now, now);
            return format!("{} created for the other release", first.name());
        };
        match self.authors.below(10) {
            0..2 => server.delete_policy(first.number, now),
            2..5 => {
                server.edit_other(first.number, PolicyDef::rename_condition, now);
                format!("{} has another type", first.name())
            }
            5..8 => {
                let is_theirs = selected_by == SelectedBy::Theirs;
                let moved = if is_theirs { SelectedBy::Nobody } else { SelectedBy::Theirs };
                server.relabel_policy(first.number, moved, now);
                format!("{} is labelled for {moved:?}", first.name())
            }
            _ => "nobody edits policies of the other release".to_owned(),
        }
    }

    /// Moves a policy of the release under test to the other one or to none, or back.
    fn move_policy(&mut self, world: &mut SimWorld, own: usize) -> String {
        let (number, now) = (1 + self.authors.below(own), world.timeline.now());
        let server = &mut world.policy_server;
        let Some(selected_by) = server.stored.get(&number).map(|policy| policy.object.selected_by) else {
            return format!("policy-{number} is not there");
        };
        let moved = match selected_by {
            SelectedBy::Ours if !server.is_deletable(number) => return format!("policy-{number} stays"),
            SelectedBy::Ours if self.authors.chance(65) => SelectedBy::Theirs,
            SelectedBy::Ours => SelectedBy::Nobody,
            _ => SelectedBy::Ours,
        };
        server.relabel_policy(number, moved, now);
        format!("policy-{number} is labelled for {moved:?}")
    }

    /// Says in the status of policies which of them it has.
    fn claim_policies(&mut self, world: &mut SimWorld) {
        let (now, kinds) = (world.timeline.now(), world.scenario.kinds.clone());
        let server = &mut world.policy_server;
        let claim = json!({ "namespaces": server.other_namespaces, "withdrawn": null });
        let mut is_moved = false;
        for policy in server.stored.values().cloned().collect::<Vec<_>>() {
            let key = (policy.number, policy.uid);
            let is_claimed = policy.object.is_claimed_by(OTHER_RELEASE);
            match policy.object.selected_by {
                SelectedBy::Theirs => {
                    let accepted = policy.spec.clone().map(|spec| (policy.generation, spec));
                    let is_new = accepted.is_some() && accepted != policy.kept;
                    if let Some((generation, spec)) = accepted.filter(|_| is_new || !is_claimed) {
                        let text = spec_json(&spec, &kinds).to_string();
                        let status = json!({ "acceptedBy": { OTHER_RELEASE: claim }, "conditions": null,
                            "accepted": { "generation": generation, "spec": text } });
                        server.keep_accepted(policy.number, policy.uid, (generation, spec), now);
                        is_moved |= server.patch_status(key, &json!({ "status": status }), now);
                    }
                }
                SelectedBy::Ours if is_claimed && policy.object.is_claimed_by(OWN_RELEASE) => {
                    let ended = json!({ "status": { "acceptedBy": { OTHER_RELEASE: null } } });
                    is_moved |= server.patch_status(key, &ended, now);
                }
                SelectedBy::Nobody if is_claimed => {
                    let ended =
                        json!({ "status": { "acceptedBy": { OTHER_RELEASE: null }, "accepted": null } });
                    is_moved |= server.patch_status(key, &ended, now);
                }
                _ => {}
            }
        }
        if is_moved {
            self.wake_watch(world);
        }
    }
}

/// Policies of the other release, over the highest kind of parents: no parent is above those, which would count them by what
/// stands on them.
fn draw_policies(dice: &mut Dice, scenario: &Scenario) -> Vec<PolicyDef> {
    let top = scenario.kinds.len() - 1;
    let of_top: Vec<&PolicyDef> = scenario.first_policies.iter().filter(|of| of.parent == top).collect();
    let count = 1 + dice.below(2);
    let mut drawn = Vec::new();
    for at in 0..count {
        let Some(like) = dice.pick(&of_top) else { continue };
        let number = scenario.first_policies.len() + 1 + at;
        let mut spec = PolicyDef { number, fallback: None, shadow: false, ..(*like).clone() };
        if dice.chance(30) {
            spec.rename_condition();
        }
        drawn.push(spec);
    }
    drawn
}

/// Puts on every parent what the other release says, and takes off what it does not say any more.
fn say_on_parents(world: &mut SimWorld) {
    let kinds = LOWEST_PARENT..world.scenario.kinds.len();
    for (kind, object) in world.list_kinds(kinds) {
        let place = SimObjectRef::of_object(kind, &object);
        let mut object = object;
        // One operation each; a parent has no more conditions than these.
        for _ in 0..8 {
            let model = world.read_object(kind, &object);
            let Some(operation) = next_operation(world, &model, &object) else { break };
            patch_conditions(world, &place, &model, &operation);
            let Some(after) = world.find_object(&place) else { break };
            object = after;
            let said = world.read_object(kind, &object).ours;
            if model.ours.keys().any(|of| !said.contains_key(of)) {
                world.count_overwrite(&model.uid);
            }
        }
    }
}

/// Returns the types that it writes on a parent, each with the policy for which it does.
fn ruled_types<'w>(world: &'w SimWorld, parent: &ModelObject) -> BTreeMap<&'static str, &'w StoredPolicy> {
    let server = &world.policy_server;
    let mut ruled = BTreeMap::new();
    for policy in server.stored.values() {
        let Some(spec) = policy.said().filter(|spec| spec.parent == parent.kind) else { continue };
        if policy.is_others() && server.other_has(&parent.namespace) && server.rules(policy, parent) {
            ruled.insert(spec.condition, policy);
        }
    }
    ruled
}

fn words_of(policy: &StoredPolicy) -> String {
    format!("{OTHER_RELEASE_WORDS}{}", policy.number)
}

fn next_operation(world: &SimWorld, parent: &ModelObject, object: &Arc<Value>) -> Option<Value> {
    if parent.deleted.is_some() {
        return None;
    }
    let (ruled, list) = (ruled_types(world, parent), conditions_of(&object["status"]));
    let beside: Vec<&str> = ruled.keys().flat_map(|of| written_types(of, None)).collect();
    let server = &world.policy_server;
    let is_left = |of: &str| {
        server
            .stored
            .values()
            .any(|own| own.is_own() && own.said_types(parent.kind).contains(&of) && server.rules(own, parent))
    };
    for (at, said) in list.iter().enumerate() {
        let of = said["type"].as_str().unwrap_or_default();
        let is_over = parent.theirs.contains_key(of) && !ruled.contains_key(of) && !is_left(of);
        let is_before = parent.ours.contains_key(of) && beside.contains(&of) && !ruled.contains_key(of);
        if is_over || is_before && !is_left(of) {
            let path = format!("/status/conditions/{at}");
            return Some(
                json!({ "op": "remove", "path": if list.len() == 1 { "/status/conditions" } else { &path } }),
            );
        }
    }
    for (of, policy) in ruled.iter().filter(|(of, _)| !parent.foreign.contains(**of)) {
        let message = words_of(policy);
        let stands = parent.theirs.get(*of);
        if stands.is_some_and(|said| {
            said.message == message && said.observed == parent.generation && said.status == "Unknown"
        }) {
            continue;
        }
        let entry = json!({ "type": of, "status": "Unknown", "reason": "ChildrenPending", "message": message,
            "observedGeneration": parent.generation,
            "lastTransitionTime": format_seconds(world.timeline.current_time()) });
        return Some(match list.iter().position(|said| said["type"] == **of) {
            Some(at) => {
                json!({ "op": "replace", "path": format!("/status/conditions/{at}"), "value": entry })
            }
            None if !list.is_empty() => {
                json!({ "op": "add", "path": "/status/conditions/-", "value": entry })
            }
            None if object["status"].is_object() => {
                json!({ "op": "add", "path": "/status/conditions", "value": [entry] })
            }
            None => json!({ "op": "add", "path": "/status", "value": { "conditions": [entry] } }),
        });
    }
    None
}

fn patch_conditions(world: &mut SimWorld, place: &SimObjectRef, parent: &ModelObject, operation: &Value) {
    let path = world.object_path(place.kind, &place.namespace, &place.name);
    let target = format!("{path}/status?fieldManager={FIELD_MANAGER}");
    let patch = json!([{ "op": "test", "path": "/metadata/uid", "value": parent.uid }, operation]);
    let request = StoreRequest::with_body("PATCH", &target, "application/json-patch+json", &patch);
    let done = world.store.handle_request(world.timeline.now(), &request).is_success();
    let what = world.describe_ref(place);
    world.timeline.log_event(format_args!("the other release on {what}: {operation}, done: {done}"));
}
