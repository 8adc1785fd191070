//! One life of the process: its core, its record store, and the watch of each kind.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use aggregator::{ChildGroup, EnginePolicy, GroupRole, KindId, KindState, PolicyId, Quorum};
use readiness::{StuckLimits, Time};
use rollcall_core::records::{RecordStore, RecordedKinds};
use rollcall_core::{Core, GroupSummary, HeldObject, ParentOperator, PolicySummary, live_reads};
use serde_json::Value;
use timer::{DebounceConfig, Seed};
use watcher::plan::{
    AllowedNamespaces, AssessmentRule, ChildRule, FindChildrenBy, Interest, NamespaceScope, OutcomeRetention,
    ParentRule,
};
use watcher::reflector::{Reflector, RememberedOutcome, RunEnd, RunTrace};
use watcher::{ParentObject, ReflectorObject};

use super::job_cluster::JobCluster;
use super::record_wire::RecordWire;
use super::simulated_job::{JOB_KIND, JobWatchLine, PARENT_KIND};
use crate::scenario::Sabotage;

const RECORD_KIND: KindId = KindId(3);
/// Times after which Events are listed for unobserved runs, in milliseconds: as the product does.
const EVENT_LIST_DELAYS: [i64; 3] = [0, 5_000, 35_000];
pub(super) const MEMORY_POLICY: PolicyId = PolicyId(1);

/// One life of the process.
pub(super) struct ServiceProcess {
    pub(super) core: Core,
    pub(super) records: RecordWire,
    pub(super) after_deletion: OutcomeRetention,
    /// Position of each watch among the lines of its kind; `None` if the kind must be listed.
    watch_positions: BTreeMap<u32, Option<usize>>,
    /// Times at which Events are still to be listed for unobserved runs.
    event_lists_due: VecDeque<i64>,
}

fn job_interest(after: OutcomeRetention) -> Interest {
    let find = FindChildrenBy::Owner { group: "example.com".into(), kind: "Widget".into() };
    let child = ChildRule {
        policy: MEMORY_POLICY,
        group: 0,
        rule_index: 0,
        find,
        allowed: AllowedNamespaces::default(),
        ignore: None,
        made_by_none_of: [].into(),
        scope: NamespaceScope::default(),
        retention: after,
    };
    let judged_by = AssessmentRule { limits: StuckLimits::default(), rule: None, remembers_outcome: true };
    Interest {
        child: vec![child],
        assessment_rules: vec![judged_by],
        ..Interest::for_kind(JOB_KIND, "batch", "Job")
    }
}

fn parent_interest() -> Interest {
    let rule = ParentRule::for_policy(MEMORY_POLICY);
    Interest { parent: vec![rule], ..Interest::for_kind(PARENT_KIND, "example.com", "Widget") }
}

fn memory_policy() -> (EnginePolicy, PolicySummary) {
    let group = ChildGroup {
        kind: JOB_KIND,
        role: GroupRole::Critical,
        min: 1,
        max: None,
        quorum: Quorum::All,
        is_prerequisite: false,
    };
    let kinds = vec![JOB_KIND, PARENT_KIND, RECORD_KIND];
    let policy = EnginePolicy {
        groups: vec![group],
        min: 0,
        joint: Vec::new(),
        kinds: kinds.clone(),
        debounce: DebounceConfig { quiet: Duration::from_millis(100), cap: Duration::from_secs(1) },
        settle: Duration::from_millis(500),
        hold: Duration::ZERO,
        availability: aggregator::Availability::Strict,
        grace: Duration::ZERO,
        pending: Duration::from_mins(10),
        deadline: None,
        // The simulation answers no status writes.
        shadow: true,
        expects_names: false,
        requires_proof: false,
        acceptance: aggregator::Acceptance::Accepted,
    };
    let groups = vec![GroupSummary { kind: "Job".to_owned(), min: 1, ..GroupSummary::default() }];
    (
        policy,
        PolicySummary {
            name: "policy".to_owned(),
            groups,
            min: 0,
            joint: Vec::new(),
            kinds,
            operator: ParentOperator::Trusted,
        },
    )
}

fn parse_object(object: &Value) -> ParentObject {
    serde_json::from_str(&object.to_string())
        .expect("invariant: what the world holds is what a server serves")
}

impl ServiceProcess {
    pub(super) fn new(world: &JobCluster) -> ServiceProcess {
        let spoken_of = RecordedKinds::from([
            (("batch".to_owned(), "Job".to_owned()), JOB_KIND),
            (("example.com".to_owned(), "Widget".to_owned()), PARENT_KIND),
        ]);
        let after =
            if world.is_strict() { OutcomeRetention::RememberGeneration } else { OutcomeRetention::Remember };
        let (resync, audit) = (Duration::from_secs(30), Duration::from_mins(10));
        let mut core = Core::new(Arc::new(Reflector::new(|| ())), resync, audit, Seed(1));
        core.set_kind_name(JOB_KIND, "Job", "batch");
        core.set_kind_name(PARENT_KIND, "Widget", "example.com");
        core.set_policy(Time(world.now), MEMORY_POLICY, Some(memory_policy()));
        core.reflector.set_interest(job_interest(after));
        core.reflector.set_interest(parent_interest());
        ServiceProcess {
            core,
            records: RecordWire::new(RecordStore::new(spoken_of)),
            after_deletion: after,
            watch_positions: BTreeMap::from([(JOB_KIND.0, None), (PARENT_KIND.0, None)]),
            event_lists_due: VecDeque::new(),
        }
    }

    /// Returns `true` if this kind was listed in this life of the process.
    pub(super) fn is_listed(&self, kind: KindId) -> bool {
        self.core.reflector.outcomes().was_listed(kind)
    }

    /// Returns `true` if its watch of Jobs has come to this version: a record may tell of a Job before.
    pub(super) fn has_watched(&self, world: &JobCluster, version: u64) -> bool {
        let place = self.watch_positions[&JOB_KIND.0].unwrap_or(0);
        place.checked_sub(1).is_some_and(|last| world.lines[&JOB_KIND.0][last].version() >= version)
    }

    fn apply_object(&self, kind: u32, object: &Value) {
        let object = parse_object(object);
        self.core.reflector.apply_object(KindId(kind), object.as_child(), object.raw_text());
    }

    /// Lists a kind, or applies the next line of its watch.
    pub(super) fn watch_kind(&mut self, world: &mut JobCluster, kind: KindId) {
        let reflector = &self.core.reflector;
        let Some(place) = self.watch_positions[&kind.0] else {
            world.log_event(format_args!("list of {kind:?}"));
            let pass = reflector.begin_list(kind, None);
            for object in world.list_kind(kind.0) {
                let object = parse_object(&object);
                reflector.apply_listed(&pass, object.as_child(), object.raw_text());
            }
            reflector.finish_list(&pass);
            self.watch_positions.insert(kind.0, Some(world.lines[&kind.0].len()));
            return self.mark_synced(world, kind);
        };
        let Some(line) = world.lines[&kind.0].get(place).cloned() else { return };
        self.watch_positions.insert(kind.0, Some(place + 1));
        match line {
            JobWatchLine::Present(object) => self.apply_object(kind.0, &object),
            JobWatchLine::Deleted(object) => {
                reflector.on_deleted(kind, parse_object(&object).as_child());
            }
        }
    }

    fn mark_synced(&mut self, world: &JobCluster, kind: KindId) {
        let moved = self.core.reflector.take_dirty(usize::MAX);
        self.core.observe_objects(Time(world.now), &moved);
        self.core.engine.set_kind_state(Time(world.now), kind, KindState::Synced);
    }

    /// Loses a watch's position: changes until the next list are never delivered.
    pub(super) fn lose_watch_position(&mut self, world: &mut JobCluster) {
        world.log_event("the watch of Jobs lost its place");
        self.watch_positions.insert(JOB_KIND.0, None);
    }

    /// Reads some Job live.
    pub(super) fn read_job_live(&mut self, world: &mut JobCluster) {
        let held = live_reads::held_objects(&self.core.reflector, JOB_KIND, None);
        let at = world.below(held.len());
        let Some(HeldObject { name, known, .. }) = held.into_iter().nth(at) else { return };
        let live = world.list_kind(JOB_KIND.0).into_iter().find(|job| job["metadata"]["name"] == *name);
        world.log_event(format_args!("{name} read live"));
        let live = live.as_ref().map(parse_object);
        let start = self.core.reflector.start_read();
        live_reads::apply_live_read(&self.core.reflector, JOB_KIND, start, Some(known), live.as_ref());
    }

    /// Lists the records, or begins or ends an operation on one.
    pub(super) fn step_records(&mut self, world: &mut JobCluster) {
        if !self.records.is_read() {
            return self.list_records(world, false);
        }
        if world.relist_dice.chance(6) {
            self.records.lose_watch();
        }
        self.list_records(world, false);
        self.records.observe_unread(&self.core.reflector, world);
        self.records.step_operations(&self.core.reflector, world);
    }

    /// Goes on with a list of the records that is due or under way; what happened since it began is told when it is complete.
    fn list_records(&mut self, world: &mut JobCluster, is_calm: bool) {
        if !self.records.is_watching() {
            self.continue_list(world, is_calm);
            self.records.follow_lines(&self.core.reflector, world, usize::MAX);
        }
    }

    fn continue_list(&mut self, world: &mut JobCluster, is_calm: bool) {
        let is_first = !self.records.is_read();
        self.records.step_list(&self.core.reflector, world, is_calm);
        if is_first && self.records.is_read() {
            self.list_events(world);
            self.mark_synced(world, RECORD_KIND);
        }
    }

    /// Lists the records, or reads what has become of some of them, while another process writes them.
    pub(super) fn follow_records(&mut self, world: &mut JobCluster, lines: usize) {
        if world.record_list_dice.chance(6) {
            self.records.lose_watch();
        }
        if !self.records.is_watching() {
            return self.continue_list(world, false);
        }
        self.records.follow_lines(&self.core.reflector, world, lines);
        self.records.ask_questions(&self.core.reflector, world);
    }

    /// Applies all that the watches of records and parents have.
    pub(super) fn catch_up(&mut self, world: &mut JobCluster) {
        self.list_records(world, true);
        self.records.follow_lines(&self.core.reflector, world, usize::MAX);
        self.records.ask_questions(&self.core.reflector, world);
        while self.watch_positions[&PARENT_KIND.0].is_none_or(|at| at < world.lines[&PARENT_KIND.0].len()) {
            self.watch_kind(world, PARENT_KIND);
        }
    }

    /// Looks for Events about unobserved runs: at once, and two more times.
    pub(super) fn seek_evidence(&mut self, world: &mut JobCluster) {
        for unseen in self.core.reflector.outcomes().take_unseen_runs() {
            let end = world.events.readable_events(world.now).end_of(&unseen.uid);
            if end != RunEnd::Open {
                world.log_event(format_args!("evidence of {}: {end:?}", unseen.uid));
                self.core.reflector.outcomes().apply_evidence(&unseen.uid, &end);
            }
        }
        if self.records.is_read() {
            self.list_events(world);
        }
    }

    fn list_events(&mut self, world: &mut JobCluster) {
        let reflector = &self.core.reflector;
        if !reflector.outcomes().take_blind_namespaces().is_empty() {
            self.event_lists_due = EVENT_LIST_DELAYS.map(|after| world.now + after).into();
        }
        if self.event_lists_due.front().is_none_or(|due| *due > world.now)
            || world.sabotage == Some(Sabotage::OutagesForgotten)
        {
            return;
        }
        self.event_lists_due.pop_front();
        let traces = world.events.readable_events(world.now).into_run_traces();
        for trace in &traces {
            reflector.outcomes().apply_evidence(&trace.uid, &trace.end);
        }
        let there = |uid: &str| world.jobs.iter().any(|job| job.uid == *uid && !job.gone);
        let gone: Vec<_> = reflector
            .outcomes()
            .unobserved_traces("shop", &traces)
            .into_iter()
            .filter(|trace| !there(&trace.uid))
            .collect();
        for trace in &gone {
            world.log_event(format_args!("Events tell of {}: {:?}", trace.uid, trace.end));
        }
        world.superseded += reflector.outcomes().supersede_runs("shop", gone) as u64;
        if world.sabotage == Some(Sabotage::HearsayBelieved) {
            self.apply_traces_as_edits(world, &traces);
        }
    }

    /// Sabotage: applies outcomes from Events as if a person had set them in the record.
    fn apply_traces_as_edits(&self, world: &JobCluster, traces: &[RunTrace]) {
        let reflector = &self.core.reflector;
        for memories in
            world.parents.iter().filter_map(|parent| reflector.outcomes().parent_outcomes(&parent.uid))
        {
            let told =
                |o: &RememberedOutcome| traces.iter().find(|trace| o.known_from_events && trace.uid == o.uid);
            let believed = memories.outcomes.iter().filter_map(|o| Some((o, told(o)?)));
            let believed =
                believed.map(|(o, trace)| RememberedOutcome { end: trace.end.clone(), ..o.clone() });
            reflector.outcomes().consider_edit(&believed.collect::<Vec<_>>());
        }
    }

    /// Runs a turn of the loop.
    pub(super) fn run_turn(&mut self, world: &JobCluster) {
        let now = Time(world.now);
        while self.core.reflector.dirty_len() > 0 {
            let moved = self.core.reflector.take_dirty(16);
            self.core.observe_objects(now, &moved);
        }
        self.core.run_turn(now);
    }

    /// Applies all pending work in order.
    pub(super) fn drain_all(&mut self, world: &mut JobCluster) {
        if self.watch_positions[&JOB_KIND.0].is_some() || self.records.is_read() {
            self.list_records(world, true);
        }
        for kind in [PARENT_KIND, JOB_KIND] {
            self.watch_kind(world, kind);
            while self.watch_positions[&kind.0].is_some_and(|place| place < world.lines[&kind.0].len()) {
                self.watch_kind(world, kind);
            }
        }
        self.seek_evidence(world);
        self.records.observe_unread(&self.core.reflector, world);
        self.records.end_operation(&self.core.reflector, world);
    }
}
