//! Lists and watches of every kind, as `follow` runs them, over a faulty wire: they lag, break, are refused, and find
//! their resume revision compacted.

use rollcall_core::KindEvent;
use sandbox::store::StoreRequest;
use watcher::ApiFailureCause;

use super::kind_wire::{KindWire, WireState, reopen_later};
use super::line_delivery::LineDelivery;
use super::list_in_progress::{AskedList, ListInProgress};
use super::sim_stage::SimStage;
use super::wire_bodies::WireListBody;
use crate::perturbation::HELD_MS;
use crate::scenario::{Dice, DiceStream, Sabotage, SeedStreams, kind_id};
use crate::timeline::SimEvent;
use crate::world::{FaultConcern, FaultDice, SimWorld};

/// Lists and watches of all kinds.
pub(crate) struct KindWires {
    wires: Vec<KindWire>,
    /// Revision of the store by which watches were woken last.
    woken_revision: u64,
    /// How long lists wait before they are answered; `None` where they are at once.
    answer_dice: Option<Dice>,
    /// How soon kinds that are not served are looked for again.
    search_dice: Dice,
    sabotage: Option<Sabotage>,
}

impl KindWires {
    pub(crate) fn new(streams: SeedStreams, kinds: usize, sabotage: Option<Sabotage>) -> KindWires {
        KindWires {
            wires: (0..kinds).map(|_| KindWire::default()).collect(),
            woken_revision: 0,
            answer_dice: streams.widened_by(DiceStream::ListAnswers),
            search_dice: DiceStream::KindSearch.dice(streams.seed),
            sabotage,
        }
    }

    /// Returns the wire of each kind.
    pub(crate) fn all(&self) -> &[KindWire] {
        &self.wires
    }

    /// Returns the wire of a kind, to break it.
    pub(crate) fn wire_mut(&mut self, kind: usize) -> &mut KindWire {
        &mut self.wires[kind]
    }

    /// Draws the usual delay of each kind.
    pub(crate) fn draw_lags(&mut self, faults: &mut FaultDice) {
        for wire in &mut self.wires {
            wire.lag = faults.of(FaultConcern::Lists).between(0, 120);
        }
    }

    pub(crate) fn clear_faults(&mut self) {
        self.wires.iter_mut().for_each(KindWire::clear_faults);
    }

    pub(crate) fn reset_for_restart(&mut self, now: i64) {
        self.wires.iter_mut().for_each(|wire| wire.reset_for_restart(now));
    }

    /// All watches are of a server that is behind from now on. Lists are not: they are read from the store by a quorum.
    pub(crate) fn lag_behind(&mut self) {
        self.wires.iter_mut().for_each(|wire| wire.lag = HELD_MS);
    }

    /// Ends list and watch of a kind.
    pub(crate) fn stop_kind(&mut self, stage: &mut SimStage, kind: usize) {
        stage.feed.reflector.remove_interest(kind_id(kind));
        self.wires[kind].stop();
        stage.world.timeline.remove_events(|event| event.is_of_wire(kind));
    }

    /// The loop asks for a list of a kind that was blind: its watch, whether it stands or not, is given up.
    pub(crate) fn relist(&mut self, world: &mut SimWorld, kind: usize) {
        if self.sabotage == Some(Sabotage::BlindnessForgiven) {
            return;
        }
        self.wires[kind].resume_revision = None;
        if self.wires[kind].drop_watch() {
            world.timeline.schedule_event(0, SimEvent::Open(kind));
        }
    }

    /// Returns the reason why this kind cannot be read now, if there is one.
    pub(crate) fn blocked_cause(&self, world: &SimWorld, kind: usize) -> Option<ApiFailureCause> {
        let is_unserved = || (!world.serves(kind)).then_some(ApiFailureCause::NotInstalled);
        self.wires[kind].blocked_cause(world.now()).or_else(is_unserved)
    }

    /// Looks for a kind that is not served; returns `true` if it is again, and followed anew.
    fn find_kind(&mut self, stage: &mut SimStage, kind: usize) -> bool {
        let wire = &mut self.wires[kind];
        if wire.is_followed {
            wire.begin_search();
            wire.report_trouble(stage, kind, ApiFailureCause::NotInstalled);
            self.search_later(stage, kind);
            return false;
        }
        let mut search = wire.search.unwrap_or_default();
        let is_down = wire.down_until > stage.world.now();
        if !is_down && stage.world.serves(kind) {
            wire.synced &= !search.is_absent;
            wire.search = None;
            stage.feed.follow_anew(kind);
            // A list begins, whatever the server answers.
            self.wires[kind].push_kind_event(stage, kind, KindEvent::Listing);
            return true;
        }
        let holds = stage.feed.reflector.count_held(kind_id(kind)) > 0;
        if is_down {
            search.note_failure();
            self.wires[kind].report_trouble(stage, kind, ApiFailureCause::Connection);
        } else if search.judge_absence(holds) {
            self.note_absence(stage, kind);
        } else {
            self.wires[kind].report_trouble(stage, kind, ApiFailureCause::NotInstalled);
        }
        self.wires[kind].search = Some(search);
        self.search_later(stage, kind);
        false
    }

    /// A kind is absent: it has no objects.
    fn note_absence(&mut self, stage: &mut SimStage, kind: usize) {
        let now = stage.world.now();
        stage.world.timeline.log_kind_event(kind, "is absent");
        stage.feed.forget_kind(kind);
        self.wires[kind].synced = true;
        self.wires[kind].note_list(now, now);
        self.wires[kind].push_kind_event(stage, kind, KindEvent::Absent);
    }

    fn search_later(&mut self, stage: &mut SimStage, kind: usize) {
        let Some(search) = &mut self.wires[kind].search else { return };
        let within = search.next_wait();
        let wait = self.search_dice.between(within.start, within.end);
        search.wait(wait);
        stage.world.timeline.schedule_event(wait, SimEvent::Open(kind));
    }

    /// Lists a kind, or resumes its watch.
    pub(crate) fn open_kind(&mut self, stage: &mut SimStage, kind: usize) {
        let is_sought = |cause| cause == Some(ApiFailureCause::NotInstalled);
        if (self.wires[kind].search.is_some() || is_sought(self.blocked_cause(&stage.world, kind)))
            && !self.find_kind(stage, kind)
        {
            return;
        }
        if let Some(cause) = self.blocked_cause(&stage.world, kind) {
            self.wires[kind].report_trouble(stage, kind, cause);
            self.wires[kind].note_blocked(cause);
            return reopen_later(&mut stage.world, kind, 200..4_000);
        }
        self.wires[kind].refusals = 0;
        match self.wires[kind].resume_revision {
            None => self.start_list(stage, kind),
            Some(place) => self.start_watch(stage, kind, place),
        }
    }

    /// Begins a list: the server may answer it much later, as after failures.
    fn start_list(&mut self, stage: &mut SimStage, kind: usize) {
        self.wires[kind].is_followed = true;
        self.wires[kind].state = WireState::Asked(AskedList::begin(stage, kind));
        self.wires[kind].push_kind_event(stage, kind, KindEvent::Listing);
        let is_off = stage.world.faults.is_off();
        let waits = |dice: &mut Dice| if !is_off && dice.chance(30) { dice.between(100, 6_000) } else { 0 };
        match self.answer_dice.as_mut().map_or(0, waits) {
            0 => self.answer_list(stage, kind),
            wait => stage.world.timeline.schedule_event(wait, SimEvent::AnswerList(kind)),
        }
    }

    /// The server answers a list.
    pub(crate) fn answer_list(&mut self, stage: &mut SimStage, kind: usize) {
        let WireState::Asked(asked) = std::mem::take(&mut self.wires[kind].state) else { return };
        if self.blocked_cause(&stage.world, kind).is_some() {
            return self.open_kind(stage, kind);
        }
        let path = stage.world.list_path(kind, "");
        let response = stage.world.read_path(&path);
        let Ok(list) = serde_json::from_slice::<WireListBody>(&response.body) else {
            return stage
                .world
                .timeline
                .fail_invariant("a list can be read", String::from_utf8_lossy(&response.body));
        };
        stage
            .world
            .timeline
            .log_kind_event(kind, format_args!("list of {} at {}", list.items.len(), list.revision()));
        self.wires[kind].state = WireState::Listing(ListInProgress::deliver(asked, list));
        self.wires[kind].push_kind_event(stage, kind, KindEvent::Alive);
        if self.sabotage == Some(Sabotage::SyncedEarly) {
            self.wires[kind].synced = false;
            stage.service.queue_kind_event(kind, KindEvent::Synced);
        }
        let after = stage.world.faults.of(FaultConcern::Lists).between(0, 30);
        stage.world.timeline.schedule_event(after, SimEvent::Page(kind));
    }

    /// Delivers the next objects of a list, or its end.
    pub(crate) fn deliver_page(&mut self, stage: &mut SimStage, kind: usize) {
        let slow = stage.world.faults.of(FaultConcern::Lists).strikes(10);
        let (few, broken) = (
            1 + stage.world.faults.of(FaultConcern::Lists).below(12),
            stage.world.faults.of(FaultConcern::Lists).strikes(4),
        );
        let WireState::Listing(list) = &mut self.wires[kind].state else { return };
        if list.awaits_rules(stage, kind) {
            return stage.world.timeline.schedule_event(5, SimEvent::Page(kind));
        }
        if broken {
            self.wires[kind].state = WireState::Down;
            self.wires[kind].report_trouble(stage, kind, ApiFailureCause::Connection);
            return reopen_later(&mut stage.world, kind, 200..2_000);
        }
        if !list.feed_page(stage, kind, few) {
            return self.finish_list(stage, kind);
        }
        let after = if slow {
            stage.world.faults.of(FaultConcern::Lists).between(500, 5_000)
        } else {
            stage.world.faults.of(FaultConcern::Lists).between(0, 20)
        };
        stage.world.timeline.schedule_event(after, SimEvent::Page(kind));
        stage.service.wake_loop(&mut stage.world);
    }

    fn finish_list(&mut self, stage: &mut SimStage, kind: usize) {
        let wire = &mut self.wires[kind];
        let WireState::Listing(list) = std::mem::take(&mut wire.state) else { return };
        wire.note_list(list.asked_at, stage.world.now());
        let revision = list.finish(stage, kind, self.sabotage != Some(Sabotage::NoSweep));
        (wire.resume_revision, wire.synced) = (Some(revision), true);
        stage.world.timeline.log_kind_event(kind, format_args!("listed"));
        wire.push_kind_event(stage, kind, KindEvent::Synced);
        self.open_kind(stage, kind);
    }

    fn start_watch(&mut self, stage: &mut SimStage, kind: usize, place: u64) {
        let path = stage.world.list_path(kind, "");
        let seconds = stage.world.faults.of(FaultConcern::Lists).between(60, 90);
        let target = format!(
            "{path}?watch=1&resourceVersion={place}&timeoutSeconds={seconds}&allowWatchBookmarks=true"
        );
        let opened = stage.world.store.open_watch(stage.world.now(), &StoreRequest::new("GET", &target));
        match opened {
            Ok(cursor) => {
                let wake = cursor.wake_at();
                self.wires[kind].state = WireState::Watching(Box::new(cursor));
                self.wires[kind].push_kind_event(stage, kind, KindEvent::Alive);
                if self.sabotage == Some(Sabotage::BlindnessForgiven) {
                    stage.service.queue_kind_event(kind, KindEvent::Synced);
                }
                let now = stage.world.now();
                self.schedule_delivery(stage, kind, wake.unwrap_or(now));
                self.schedule_delivery(stage, kind, now);
            }
            Err(refusal) => stage.world.timeline.fail_invariant("a watch can be opened", refusal.message()),
        }
    }

    /// Schedules a delivery of a watch no later than `at`.
    fn schedule_delivery(&mut self, stage: &mut SimStage, kind: usize, at: i64) {
        let wire = &mut self.wires[kind];
        if wire.deliver_at.is_none_or(|old| old > at) {
            wire.deliver_at = Some(at);
            stage.world.timeline.schedule_event(at - stage.world.now(), SimEvent::Deliver(kind));
        }
    }

    /// Schedules, after a change, the delivery of every watch that is behind, after its lag.
    pub(crate) fn wake_watches(&mut self, stage: &mut SimStage) {
        let revision = stage.world.store.revision();
        for kind in 0..self.wires.len() {
            let behind = matches!(&self.wires[kind].state, WireState::Watching(c) if c.revision() < revision);
            if behind && revision != self.woken_revision {
                let lag = self.wires[kind].lag + stage.world.faults.of(FaultConcern::Lists).between(1, 25);
                let at = stage.world.now() + lag;
                self.schedule_delivery(stage, kind, at);
            }
        }
        self.woken_revision = revision;
    }

    /// Delivers the available lines of a watch, unless it breaks.
    pub(crate) fn deliver_watch(&mut self, stage: &mut SimStage, kind: usize) {
        if self.wires[kind].deliver_at != Some(stage.world.now()) {
            return;
        }
        self.wires[kind].deliver_at = None;
        if self.wires[kind].down_until > stage.world.now() {
            return self.break_watch(stage, kind);
        }
        let WireState::Watching(mut cursor) = std::mem::take(&mut self.wires[kind].state) else { return };
        // A lagging replica may have only a part of the changes.
        let limit = if stage.world.faults.of(FaultConcern::Lists).strikes(20) {
            cursor.revision() + stage.world.faults.of(FaultConcern::Lists).between(0, 4).unsigned_abs()
        } else {
            u64::MAX
        };
        while let Some(line) = stage.world.store.next_line_until(stage.world.now(), &mut cursor, limit) {
            let bytes = line.to_bytes();
            let wire = &mut self.wires[kind];
            let mut delivery = LineDelivery { wire, kind, sabotage: self.sabotage };
            if !delivery.deliver(stage, &bytes, &line.object) {
                return;
            }
            self.wires[kind].resume_revision =
                Some(line.revision().max(self.wires[kind].resume_revision.unwrap_or(0)));
        }
        let (now, ended, wake) = (stage.world.now(), cursor.has_ended(), cursor.wake_at());
        let behind = cursor.revision() < stage.world.store.revision() && limit != u64::MAX;
        self.wires[kind].state = WireState::Watching(cursor);
        if ended || stage.world.faults.of(FaultConcern::Lists).strikes(2) {
            self.wires[kind].state = WireState::Down;
            return reopen_later(&mut stage.world, kind, 1..300);
        }
        if behind {
            let after = stage.world.faults.of(FaultConcern::Lists).between(5, 100);
            self.schedule_delivery(stage, kind, now + after);
        }
        self.schedule_delivery(stage, kind, wake.unwrap_or(now + 60_000));
    }

    fn break_watch(&mut self, stage: &mut SimStage, kind: usize) {
        if self.wires[kind].drop_watch() {
            self.wires[kind].report_trouble(stage, kind, ApiFailureCause::Connection);
            reopen_later(&mut stage.world, kind, 200..2_000);
        }
    }
}
