//! Virtual time: the events to come, and the report of what has happened.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Display;

use readiness::{Time, millis_to_seconds};

use super::invariant_failure::InvariantFailure;
use super::policy_event::PolicyEvent;
use super::sim_event::SimEvent;
use super::simulation_counts::SimulationCounts;

/// Start time of every simulation, in milliseconds since the Unix epoch.
const SIMULATION_START_MS: i64 = 1_800_000_000_000;

/// Virtual time of one run. Its report can be written through a shared reference, because the judges must not change
/// anything else.
pub(crate) struct SimTimeline {
    now: i64,
    queue: BTreeMap<(i64, u64), SimEvent>,
    sequence: u64,
    kind_names: Vec<String>,
    log: RefCell<Vec<String>>,
    failure: OnceCell<InvariantFailure>,
    pub(crate) counts: SimulationCounts,
}

impl SimTimeline {
    pub(crate) fn new(kind_names: Vec<String>) -> SimTimeline {
        SimTimeline {
            now: SIMULATION_START_MS,
            queue: BTreeMap::new(),
            sequence: 0,
            kind_names,
            log: RefCell::default(),
            failure: OnceCell::new(),
            counts: SimulationCounts::default(),
        }
    }

    /// Returns the time in milliseconds.
    pub(crate) fn now(&self) -> i64 {
        self.now
    }

    pub(crate) fn current_time(&self) -> Time {
        Time(self.now)
    }

    pub(crate) fn schedule_event(&mut self, after: i64, event: SimEvent) {
        self.sequence += 1;
        self.queue.insert((self.now + after.max(0), self.sequence), event);
    }

    pub(crate) fn schedule_policy_event(&mut self, after: i64, event: PolicyEvent) {
        self.schedule_event(after, SimEvent::Policy(event));
    }

    /// Moves to the next event, if it is due by `until`.
    pub(crate) fn take_next_event(&mut self, until: i64) -> Option<SimEvent> {
        let entry = self.queue.first_entry().filter(|entry| entry.key().0 <= until)?;
        self.now = entry.key().0;
        self.counts.events += 1;
        Some(entry.remove())
    }

    /// Moves to a later time at which nothing happens.
    pub(crate) fn advance_to(&mut self, at: i64) {
        self.now = at;
    }

    /// Removes the scheduled events of which `which` is true.
    pub(crate) fn remove_events(&mut self, which: impl Fn(&SimEvent) -> bool) {
        self.queue.retain(|_, event| !which(event));
    }

    /// Lets the scheduled events wait of which `which` is true.
    pub(crate) fn postpone_events(&mut self, which: impl Fn(&SimEvent) -> bool, span: i64) {
        let waiting = self.queue.extract_if(.., |_, event| which(event)).collect::<Vec<_>>();
        self.queue.extend(waiting.into_iter().map(|((at, number), event)| ((at + span, number), event)));
    }

    /// Returns the seconds since the simulation began.
    fn elapsed_seconds(&self) -> f64 {
        millis_to_seconds(self.now - SIMULATION_START_MS)
    }

    pub(crate) fn log_event(&self, what: impl Display) {
        self.log.borrow_mut().push(format!("{:>9.3} {what}", self.elapsed_seconds()));
    }

    /// Logs an event of one kind.
    pub(crate) fn log_kind_event(&self, kind: usize, what: impl Display) {
        self.log_event(format_args!("{}: {what}", self.kind_names[kind]));
    }

    /// Records the first violated invariant and ends the run.
    pub(crate) fn fail_invariant(&self, invariant: &'static str, detail: impl Display) {
        if self.has_failed() {
            return;
        }
        self.log_event(format_args!("FAILED {invariant}: {detail}"));
        let detail = format!("at {:.3} s: {detail}", self.elapsed_seconds());
        _ = self.failure.set(InvariantFailure { invariant, detail });
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }

    /// Ends the run with its log, its counts, and the first violated invariant.
    pub(crate) fn into_report(self) -> (Vec<String>, SimulationCounts, Option<InvariantFailure>) {
        let simulated_ms = (self.now - SIMULATION_START_MS).unsigned_abs();
        let counts = SimulationCounts { simulated_ms, ..self.counts };
        (self.log.into_inner(), counts, self.failure.into_inner())
    }
}
