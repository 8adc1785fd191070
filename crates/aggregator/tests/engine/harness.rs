//! A small test cluster: objects that appear, change and disappear, and an engine that observes each of them.

use std::collections::BTreeMap;
use std::time::Duration;

use aggregator::{
    ChildLink, Engine, EnginePolicy, HandledEvidence, KindId, KindState, LinkTarget, ObjectId, ObjectView,
    PolicyId,
};
use readiness::rollup::{ChildWeight, ParentReason};
use readiness::{Level, Time};
use timer::Seed;

use crate::conditions::hash;
use crate::object::{ParentState, StoredObject};
use crate::server::StatusServer;

/// The kind of parents.
pub(crate) const PARENTS: KindId = KindId(0);
/// The kind of children, unless a test says otherwise.
pub(crate) const CHILDREN: KindId = KindId(1);
/// The policy, unless a test has several.
pub(crate) const POLICY: PolicyId = PolicyId(1);
/// Start of virtual time; nothing in a history is older.
pub(crate) const START: Time = Time(1_800_000_000_000);

pub(crate) fn weight(level: Level) -> ChildWeight {
    ChildWeight::of(level)
}

/// The test cluster with the engine.
pub(crate) struct EngineHarness {
    pub(crate) now: Time,
    pub(crate) engine: Engine,
    pub(crate) policies: BTreeMap<PolicyId, EnginePolicy>,
    pub(crate) kinds: BTreeMap<KindId, KindState>,
    pub(crate) objects: BTreeMap<String, StoredObject>,
    pub(crate) server: StatusServer,
    /// Index of the rule by which a policy judges children; 0 where absent.
    pub(crate) rule_indices: BTreeMap<PolicyId, u16>,
    /// How each parent is quoted by those above it.
    pub(crate) quotes: BTreeMap<ObjectId, String>,
    /// For each write, the time of the first touch that led to it.
    pub(crate) called: Vec<Option<Time>>,
    /// Transitions: parent, previous reason, new reason.
    pub(crate) turns: Vec<(String, Option<ParentReason>, ParentReason)>,
    /// Resyncs that were due: time and parent.
    pub(crate) passes: Vec<(i64, String)>,
    /// Proofs that were asked for: time and parent.
    pub(crate) asked: Vec<(i64, String)>,
    pub(crate) places: Vec<Option<String>>,
    /// When the process was restarted, or a policy was set: what was there is found, and does not just appear.
    listed: Time,
    /// Time since which each kind has been listed, or was known otherwise.
    kinds_listed: BTreeMap<KindId, Time>,
    /// Another replica is the leader.
    pub(crate) standby: bool,
    pub(crate) life: u32,
    uids: u32,
}

impl EngineHarness {
    /// A cluster with one policy, all of whose kinds are listed.
    pub(crate) fn with(policy: EnginePolicy) -> EngineHarness {
        let mut harness = EngineHarness::empty();
        harness.policy(POLICY, policy);
        harness.sync();
        harness
    }

    /// A cluster without any policy.
    pub(crate) fn empty() -> EngineHarness {
        EngineHarness {
            now: START,
            engine: EngineHarness::engine(),
            policies: BTreeMap::new(),
            kinds: BTreeMap::new(),
            objects: BTreeMap::new(),
            server: StatusServer::new(),
            rule_indices: BTreeMap::new(),
            quotes: BTreeMap::new(),
            called: Vec::new(),
            turns: Vec::new(),
            passes: Vec::new(),
            asked: Vec::new(),
            places: Vec::new(),
            listed: START,
            kinds_listed: BTreeMap::new(),
            standby: false,
            life: 0,
            uids: 0,
        }
    }

    fn engine() -> Engine {
        Engine::new(Duration::from_secs(30), Duration::from_mins(10), Seed(1))
    }

    /// Adds a policy.
    pub(crate) fn policy(&mut self, id: PolicyId, policy: EnginePolicy) {
        for kind in &policy.kinds {
            self.kinds.entry(*kind).or_default();
        }
        self.listed = self.now;
        self.engine.set_policy(self.now, id, Some(policy.clone()));
        self.policies.insert(id, policy);
    }

    /// Deletes a policy: its parents are observed without it.
    pub(crate) fn forget(&mut self, id: PolicyId) {
        self.engine.set_policy(self.now, id, None);
        self.policies.remove(&id);
        for name in self.objects.keys().cloned().collect::<Vec<_>>() {
            let object = self.objects.get_mut(&name).unwrap();
            object.parent.iter_mut().for_each(|p| p.policies.retain(|p| *p != id));
            object.owners.retain(|(p, _, _)| *p != id);
            object.labels.retain(|(p, _, _)| *p != id);
            object.lends.retain(|(p, _)| *p != id);
            self.observe(&name);
        }
    }

    /// Marks every kind as synced.
    pub(crate) fn sync(&mut self) {
        for kind in self.kinds.keys().copied().collect::<Vec<_>>() {
            self.kind(kind, KindState::Synced);
        }
    }

    /// Changes the list or watch state of a kind.
    pub(crate) fn kind(&mut self, kind: KindId, state: KindState) {
        let is_open = |state: KindState| matches!(state, KindState::Synced | KindState::Absent);
        let was_open = self.kinds.insert(kind, state).is_some_and(is_open);
        // What is not served any more needs no list, as what is listed does not.
        if !(was_open && is_open(state)) {
            self.kinds_listed.insert(kind, self.now);
        }
        self.engine.set_kind_state(self.now, kind, state);
    }

    /// Time since which all kinds of a policy have been listed.
    pub(crate) fn listed_for(&self, policy: PolicyId) -> Time {
        let kinds = &self.policies[&policy].kinds;
        kinds.iter().filter_map(|kind| self.kinds_listed.get(kind)).copied().fold(self.listed, Time::max)
    }

    /// Adds a parent that its operator has handled.
    pub(crate) fn parent(&mut self, name: &str) {
        self.parent_so(name, |_| {});
    }

    /// Adds a parent, changed by `so` before it is observed.
    pub(crate) fn parent_so(&mut self, name: &str, so: impl FnOnce(&mut ParentState)) {
        let mut parent = ParentState {
            policies: vec![POLICY],
            evidence: HandledEvidence::Handled,
            ..ParentState::default()
        };
        so(&mut parent);
        self.create(name, PARENTS, Level::Progressing, |object| object.parent = Some(parent));
    }

    /// Adds a child of the first group.
    pub(crate) fn child(&mut self, name: &str, of: &str, level: Level) {
        let owner = (POLICY, 0, of.to_owned());
        self.create(name, CHILDREN, level, |object| object.owners = vec![owner]);
    }

    /// Adds an object.
    pub(crate) fn create(
        &mut self,
        name: &str,
        kind: KindId,
        level: Level,
        so: impl FnOnce(&mut StoredObject),
    ) {
        self.uids += 1;
        let mut object = StoredObject {
            id: self.place(name),
            uid: self.uids,
            kind,
            weights: vec![weight(level)],
            generation: 1,
            scaled: 0,
            created: self.now,
            owners: Vec::new(),
            labels: Vec::new(),
            lends: Vec::new(),
            remembered: false,
            then: None,
            parent: None,
        };
        so(&mut object);
        self.objects.insert(name.to_owned(), object);
        self.observe(name);
    }

    /// Returns the slot of a name: objects are referred to before they are observed.
    pub(crate) fn place(&mut self, name: &str) -> ObjectId {
        let known = self.places.iter().position(|place| place.as_deref() == Some(name));
        let free = || self.places.iter().position(Option::is_none);
        let at = known.or_else(free).unwrap_or(self.places.len());
        self.places.resize(self.places.len().max(at + 1), None);
        self.places[at] = Some(name.to_owned());
        ObjectId(u32::try_from(at).unwrap())
    }

    /// Changes an object.
    pub(crate) fn change(&mut self, name: &str, change: impl FnOnce(&mut StoredObject)) {
        change(self.objects.get_mut(name).unwrap_or_else(|| panic!("no {name}")));
        self.observe(name);
    }

    /// Changes a parent.
    pub(crate) fn change_parent(&mut self, name: &str, change: impl FnOnce(&mut ParentState)) {
        self.change(name, |object| change(object.parent.as_mut().unwrap()));
    }

    /// Changes the level of a child.
    pub(crate) fn turn(&mut self, name: &str, level: Level) {
        self.change(name, |object| object.weights = vec![weight(level)]);
    }

    /// Changes the spec of a parent; `evidence` is the reaction of its operator.
    pub(crate) fn respecify(&mut self, name: &str, evidence: HandledEvidence) {
        self.change(name, |object| {
            object.generation += 1;
            object.parent.as_mut().unwrap().evidence = evidence;
        });
    }

    /// Deletes an object and frees its slot unless another object refers to it.
    pub(crate) fn remove(&mut self, name: &str) {
        let Some(object) = self.objects.remove(name) else { return };
        self.engine.observe_object(self.now, object.id, None);
        self.quotes.remove(&object.id);
        for at in 0..self.places.len() {
            let Some(place) = self.places[at].clone() else { continue };
            let owned = |object: &StoredObject| object.owners.iter().any(|(_, _, owner)| *owner == place);
            if !self.objects.contains_key(&place) && !self.objects.values().any(owned) {
                self.places[at] = None;
            }
        }
    }

    /// Shows the current state of an object to the engine.
    pub(crate) fn observe(&mut self, name: &str) {
        let Some(object) = self.objects.get(name).cloned() else { return };
        let mut links: Vec<ChildLink> = Vec::new();
        for (policy, group, owner) in &object.owners {
            let target = LinkTarget::Object(self.place(owner));
            let rule_index = self.rule_indices.get(policy).copied().unwrap_or_default();
            let link = ChildLink::new(*policy, *group, rule_index, target);
            links.push(if object.remembered { link.with_other_source() } else { link });
        }
        for (policy, group, selector) in &object.labels {
            let target = LinkTarget::Selector(*selector);
            links.push(ChildLink::new(*policy, *group, 0, target));
        }
        let parent = object.parent.as_ref().map(|p| p.view(&object));
        let turned = object.then.filter(|(at, _)| *at <= self.now);
        let weights = turned.map_or_else(|| object.weights.clone(), |(_, weight)| vec![weight]);
        let view = ObjectView {
            kind: object.kind,
            weights: &weights,
            spec_mark: object.spec_mark(),
            created: object.created,
            name: hash(name),
            links: &links,
            recheck: object.then.map(|(at, _)| at).filter(|at| *at > self.now),
            lent_selectors: &object.lends,
            parent: parent.as_ref(),
        };
        self.engine.observe_object(self.now, object.id, Some(&view));
    }

    /// Restarts Rollcall: it observes every object, in this order or (for those left out) by name, and then every kind
    /// is listed.
    pub(crate) fn restart(&mut self, order: &[&str]) {
        self.engine = EngineHarness::engine();
        self.engine.set_standby(self.now, self.standby);
        self.life += 1;
        self.listed = self.now;
        self.server.flights.clear();
        self.quotes.clear();
        for (id, policy) in &self.policies {
            self.engine.set_policy(self.now, *id, Some(policy.clone()));
        }
        let rest = self.objects.keys().filter(|name| !order.contains(&name.as_str())).cloned();
        let names: Vec<String> = order.iter().map(|name| (*name).to_owned()).chain(rest).collect();
        for name in &names {
            self.observe(name);
        }
        for (kind, state) in self.kinds.clone() {
            self.engine.set_kind_state(self.now, kind, state);
        }
    }

    /// Makes another replica the leader, or this one.
    pub(crate) fn stand_by(&mut self, standby: bool) {
        self.standby = standby;
        self.engine.set_standby(self.now, standby);
    }

    /// Milliseconds since the start.
    pub(crate) fn millis(&self) -> i64 {
        self.now.0 - START.0
    }

    pub(crate) fn name(&self, id: ObjectId) -> Option<String> {
        let found = self.objects.iter().find(|(_, object)| object.id == id);
        found.map(|(name, _)| name.clone())
    }

    pub(crate) fn id(&self, name: &str) -> ObjectId {
        self.objects[name].id
    }
}
