//! One life of the process: its core, its keeper of records, and a wire to each kind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aggregator::{Group, KindId, KindState, Policy, PolicyId, Quorum, Role};
use controller::core::records::{Done, Errand, Keeper, SpokenOf};
use controller::core::{Core, GroupWords, PolicyWords, Read, reads};
use readiness::{Limits, Time};
use serde_json::Value;
use timer::{Debounce, Seed};
use watcher::plan::{After, ChildRule, Find, Interest, Lens, ParentRule};
use watcher::reflector::{End, Outcome, Reflector, Trace};
use watcher::{Feed, Parent};

use super::server::run;
use super::world::{Line, World};
use crate::sabotage::Sabotage;

pub(super) const JOBS: KindId = KindId(1);
pub(super) const PARENTS: KindId = KindId(2);
const RECORDS: KindId = KindId(3);
pub(super) const POLICY: PolicyId = PolicyId(1);

/// One life.
pub(super) struct Service {
    pub(super) core: Core,
    keeper: Keeper,
    pub(super) after: After,
    interests: BTreeMap<u16, Interest>,
    /// Where each watch stands among the lines of its kind; none: it has to be listed.
    places: BTreeMap<u16, Option<usize>>,
    records_read: bool,
    under_way: Vec<(String, Errand)>,
    /// So often Events are still to be asked what nobody saw.
    asks: u32,
}

fn jobs(after: After) -> Interest {
    let find = Find::Owner { group: "example.com".into(), kind: "Widget".into() };
    let child = ChildRule { policy: POLICY, group: 0, lens: 0, find, ignore: None, after };
    let lens = Lens { limits: Limits::default(), rule: None, remembers: true };
    Interest { child: vec![child], lenses: vec![lens], ..Interest::of(JOBS, "batch", "Job") }
}

fn parents() -> Interest {
    let rule = ParentRule::of(POLICY);
    Interest { parent: vec![rule], ..Interest::of(PARENTS, "example.com", "Widget") }
}

fn policy() -> (Policy, PolicyWords) {
    let group = Group { kind: JOBS, role: Role::Critical, min: 1, max: None, quorum: Quorum::All };
    let kinds = vec![JOBS, PARENTS, RECORDS];
    let policy = Policy {
        groups: vec![group],
        min: 0,
        kinds: kinds.clone(),
        debounce: Debounce { quiet: Duration::from_millis(100), cap: Duration::from_secs(1) },
        settle: Duration::from_millis(500),
        hold: Duration::ZERO,
        pending: Duration::from_mins(10),
        deadline: None,
        // Nobody answers writes here.
        shadow: true,
        names: false,
    };
    let groups = vec![GroupWords { kind: "Job".to_owned(), min: 1, max: None }];
    (policy, PolicyWords { name: "policy".to_owned(), groups, min: 0, kinds })
}

fn parse(object: &Value) -> Parent {
    serde_json::from_str(&object.to_string())
        .expect("invariant: what the world holds is what a server serves")
}

impl Service {
    pub(super) fn new(world: &World) -> Service {
        let spoken_of = SpokenOf::from([
            (("batch".to_owned(), "Job".to_owned()), JOBS),
            (("example.com".to_owned(), "Widget".to_owned()), PARENTS),
        ]);
        let after = if world.is_strict() { After::RememberGeneration } else { After::Remember };
        let (resync, audit) = (Duration::from_secs(30), Duration::from_mins(10));
        let mut core = Core::new(Arc::new(Reflector::new(|| ())), resync, audit, Seed(1));
        core.name_kind(JOBS, "Job", "batch");
        core.name_kind(PARENTS, "Widget", "example.com");
        core.set_policy(Time(world.now), POLICY, Some(policy()));
        core.reflector.recollect(&jobs(after));
        Service {
            core,
            keeper: Keeper::new(spoken_of),
            after,
            interests: BTreeMap::from([(JOBS.0, jobs(after)), (PARENTS.0, parents())]),
            places: BTreeMap::from([(JOBS.0, None), (PARENTS.0, None)]),
            records_read: false,
            under_way: Vec::new(),
            asks: 0,
        }
    }

    /// Was this kind listed in this life?
    pub(super) fn is_listed(&self, kind: KindId) -> bool {
        self.core.reflector.was_listed(kind)
    }

    fn apply(&self, kind: u16, object: &Value) {
        let object = parse(object);
        self.core.reflector.apply(&self.interests[&kind], object.child(), object.text());
    }

    /// A list of a kind, or the next line of its watch.
    pub(super) fn watch(&mut self, world: &mut World, kind: KindId) {
        let reflector = &self.core.reflector;
        let Some(place) = self.places[&kind.0] else {
            world.say(format_args!("list of {kind:?}"));
            reflector.begin(kind, None);
            for object in world.list(kind.0) {
                self.apply(kind.0, &object);
            }
            reflector.finish(kind, None);
            self.places.insert(kind.0, Some(world.lines[&kind.0].len()));
            return self.synced(world, kind);
        };
        let Some(line) = world.lines[&kind.0].get(place).cloned() else { return };
        self.places.insert(kind.0, Some(place + 1));
        match line {
            Line::There(object) => self.apply(kind.0, &object),
            Line::Gone(object) => {
                reflector.deleted(&self.interests[&kind.0], parse(&object).child());
            }
        }
    }

    fn synced(&mut self, world: &World, kind: KindId) {
        let moved = self.core.reflector.take_dirty(usize::MAX);
        self.core.take_in(Time(world.now), &moved);
        self.core.engine.set_kind(Time(world.now), kind, KindState::Synced);
    }

    /// A watch has lost its place: what happens until the next list is never told.
    pub(super) fn lose_place(&mut self, world: &mut World) {
        world.say("the watch of Jobs lost its place");
        self.places.insert(JOBS.0, None);
    }

    /// Some Job is read live.
    pub(super) fn look(&mut self, world: &mut World) {
        let held = reads::held(&self.core.reflector, JOBS, None);
        let at = world.below(held.len());
        let Some(Read::One { name, known, .. }) = held.into_iter().nth(at) else { return };
        let live = world.list(JOBS.0).into_iter().find(|job| job["metadata"]["name"] == *name);
        world.say(format_args!("{name} read live"));
        let live = live.as_ref().map(parse);
        reads::found(&self.core.reflector, &self.interests[&JOBS.0], known, live.as_ref());
    }

    /// Records are read, or an errand about one begins or ends.
    pub(super) fn keep(&mut self, world: &mut World) {
        if !self.records_read {
            world.say("records are read");
            self.keeper.begin();
            for record in world.records.values() {
                self.keeper.read(&self.core.reflector, record);
            }
            self.keeper.finish();
            self.records_read = true;
            self.ask(world);
            return self.synced(world, RECORDS);
        }
        self.under_way.extend(self.keeper.errands(&self.core.reflector));
        let at = world.below(self.under_way.len());
        if self.under_way.is_empty() || world.chance(30) {
            return;
        }
        let (name, errand) = self.under_way.swap_remove(at);
        let fate = world.below(100);
        let mut done = if fate < 10 { Done::Failed } else { run(world, &name, &errand) };
        if fate > 94 {
            // It was done, and nobody heard of it.
            done = Done::Failed;
        }
        self.keeper.done(&self.core.reflector, &name, &done);
    }

    /// A record is seen in its watch.
    pub(super) fn record(&mut self, record: &Value) {
        if self.records_read {
            self.keeper.read(&self.core.reflector, record);
        }
    }

    pub(super) fn record_gone(&mut self, name: &str) {
        if self.records_read {
            self.keeper.vanish(name);
        }
    }

    /// There may be evidence of what nobody saw. It is asked for at once, and twice more.
    pub(super) fn seek(&mut self, world: &mut World) {
        for unseen in self.core.reflector.take_unseen() {
            let end = world.heard().end_of(&unseen.uid);
            if end != End::Open {
                world.say(format_args!("evidence of {}: {end:?}", unseen.uid));
                self.core.reflector.evidence(&unseen.uid, &end);
            }
        }
        if self.records_read {
            self.ask(world);
        }
    }

    fn ask(&mut self, world: &mut World) {
        let reflector = &self.core.reflector;
        if !reflector.take_blind().is_empty() {
            self.asks = 3;
        }
        if self.asks == 0 || world.sabotage == Some(Sabotage::OutagesForgotten) {
            return;
        }
        self.asks -= 1;
        let traces = world.heard().traces();
        for trace in &traces {
            reflector.evidence(&trace.uid, &trace.end);
        }
        let there = |uid: &str| world.jobs.iter().any(|job| job.uid == *uid && !job.gone);
        let gone: Vec<_> =
            reflector.unheard("shop", &traces).into_iter().filter(|trace| !there(&trace.uid)).collect();
        for trace in &gone {
            world.say(format_args!("Events tell of {}: {:?}", trace.uid, trace.end));
        }
        world.superseded += reflector.supersede("shop", gone) as u64;
        if world.sabotage == Some(Sabotage::HearsayBelieved) {
            self.believe(world, &traces);
        }
    }

    /// As a record says it that a person has set.
    fn believe(&self, world: &World, traces: &[Trace]) {
        let reflector = &self.core.reflector;
        for memories in world.parents.iter().filter_map(|parent| reflector.memories(&parent.uid)) {
            let told = |o: &Outcome| traces.iter().find(|trace| o.heard && trace.uid == o.uid);
            let believed = memories.outcomes.iter().filter_map(|o| Some((o, told(o)?)));
            let believed = believed.map(|(o, trace)| Outcome { end: trace.end.clone(), ..o.clone() });
            reflector.recall(memories.whose.clone(), believed.collect());
        }
    }

    /// The loop goes around.
    pub(super) fn turn(&mut self, world: &World) {
        let now = Time(world.now);
        while self.core.reflector.dirty() > 0 {
            let moved = self.core.reflector.take_dirty(16);
            self.core.take_in(now, &moved);
        }
        self.core.turn(now);
    }

    /// Everything gets through, one thing after the other.
    pub(super) fn calm(&mut self, world: &mut World) {
        if self.places[&JOBS.0].is_some() && !self.records_read {
            self.keep(world);
        }
        for kind in [PARENTS, JOBS] {
            self.watch(world, kind);
            while self.places[&kind.0].is_some_and(|place| place < world.lines[&kind.0].len()) {
                self.watch(world, kind);
            }
        }
        self.seek(world);
        self.under_way.extend(self.keeper.errands(&self.core.reflector));
        if let Some((name, errand)) = self.under_way.pop() {
            let done = run(world, &name, &errand);
            self.keeper.done(&self.core.reflector, &name, &done);
        }
    }

    /// Nothing is left to be done about records.
    pub(super) fn rests(&self) -> bool {
        self.under_way.is_empty()
    }

    /// The process ends; what it had sent may still arrive.
    pub(super) fn die(&mut self, world: &mut World) {
        for (name, errand) in std::mem::take(&mut self.under_way) {
            if world.chance(50) {
                run(world, &name, &errand);
            }
        }
    }
}
