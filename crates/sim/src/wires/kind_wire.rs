//! The list and the watch of one kind, as far as they have come.

use std::ops::Range;

use readiness::saturating_millis;
use rollcall_core::KindEvent;
use sandbox::store::WatchCursor;
use watcher::ApiFailureCause;

use super::kind_search::KindSearch;
use super::list_in_progress::{AskedList, ListInProgress};
use super::sim_stage::SimStage;
use crate::judges::{BLIND_LIMIT, MAX_ANSWER_LAG_MS};
use crate::timeline::SimEvent;
use crate::world::{FaultConcern, SimWorld};

/// Number of refusals in a row after which the resume revision is dropped and the kind is listed again.
const MAX_WATCH_REFUSALS: u32 = 3;

/// State of a kind's list or watch.
#[derive(Default)]
pub(crate) enum WireState {
    /// Neither a list nor a watch is open.
    #[default]
    Down,
    /// A list that the server has not answered.
    Asked(AskedList),
    /// A list whose objects are being delivered.
    Listing(ListInProgress),
    /// An open watch.
    Watching(Box<WatchCursor>),
}

/// How far the service has been shown all that the server had of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CaughtUp {
    /// The time as of which it was read.
    pub(crate) as_of: i64,
    /// The time at which all of it has arrived.
    pub(crate) at: i64,
}

/// List and watch of one kind.
#[derive(Default)]
pub(crate) struct KindWire {
    pub(crate) state: WireState,
    /// Revision from which a watch can resume.
    pub(crate) resume_revision: Option<u64>,
    pub(crate) refusals: u32,
    pub(crate) deliver_at: Option<i64>,
    /// End of the current outage: nothing gets through before.
    pub(crate) down_until: i64,
    /// End of the current permission loss: lists and watches are refused before.
    pub(crate) forbidden_until: i64,
    /// Usual delay, in milliseconds.
    pub(crate) lag: i64,
    /// Everything was listed once in this life of the process.
    pub(crate) synced: bool,
    /// Time of the server's last answer, or of the start of the process.
    pub(crate) last_answer: i64,
    /// Nothing was heard for longer than blindness takes, and no list was completed since.
    pub(crate) unproven: bool,
    pub(crate) repeatable_line: Option<Box<[u8]>>,
    /// How far it has been looked for, if it was not served when it was asked for last.
    pub(super) search: Option<KindSearch>,
    /// The kind has been listed, or was to be, since it was found.
    pub(super) is_followed: bool,
    /// The last list or audit by which the service has seen everything; `None` before one, or where the server has denied since
    /// that an object is there.
    pub(crate) caught_up: Option<CaughtUp>,
    /// Last time at which it did so: only a list that begins later makes up for it.
    denied_at: Option<i64>,
}

/// Schedules the next list or watch of a kind.
pub(super) fn reopen_later(world: &mut SimWorld, kind: usize, within: Range<i64>) {
    let again = world.faults.of(FaultConcern::Lists).between(within.start, within.end);
    world.timeline.schedule_event(again, SimEvent::Open(kind));
}

impl KindWire {
    pub(crate) fn reset_for_restart(&mut self, now: i64) {
        let (down_until, forbidden_until, lag) = (self.down_until, self.forbidden_until, self.lag);
        *self = KindWire { down_until, forbidden_until, lag, last_answer: now, ..KindWire::default() };
    }

    /// Ends list and watch: what comes next is a list.
    pub(crate) fn stop(&mut self) {
        (self.state, self.resume_revision, self.deliver_at) = (WireState::Down, None, None);
        (self.refusals, self.synced, self.repeatable_line, self.caught_up) = (0, false, None, None);
        (self.search, self.is_followed) = (None, false);
    }

    pub(crate) fn clear_faults(&mut self) {
        (self.down_until, self.forbidden_until, self.lag) = (0, 0, 0);
    }

    /// Notes an answer of the server, which ends a list or does not.
    fn note_answer(&mut self, now: i64, ends_list: bool) {
        let deaf = now - self.last_answer > saturating_millis(BLIND_LIMIT) + MAX_ANSWER_LAG_MS;
        self.unproven = !ends_list && (self.unproven || deaf);
        self.last_answer = now;
    }

    /// Tells the service of an event of this kind.
    pub(super) fn push_kind_event(&mut self, stage: &mut SimStage, kind: usize, event: KindEvent) {
        if matches!(event, KindEvent::Alive | KindEvent::Synced | KindEvent::Absent) {
            self.note_answer(stage.world.now(), event != KindEvent::Alive);
        }
        stage.service.push_kind_event(&mut stage.world, kind, event);
    }

    /// Tells the service why this kind cannot be read.
    pub(super) fn report_trouble(&mut self, stage: &mut SimStage, kind: usize, cause: ApiFailureCause) {
        stage.world.timeline.log_kind_event(kind, format_args!("{}", cause.metric_label()));
        self.push_kind_event(stage, kind, KindEvent::Failure(cause, cause.metric_label().to_owned()));
    }

    /// Notes that the server denies that an object is there.
    pub(super) fn note_denial(&mut self, now: i64) {
        (self.denied_at, self.caught_up) = (Some(now), None);
    }

    /// Notes a complete list, which was asked for at `as_of`.
    pub(super) fn note_list(&mut self, as_of: i64, now: i64) {
        if self.denied_at.is_none_or(|denied| denied < as_of) {
            (self.denied_at, self.caught_up) = (None, Some(CaughtUp { as_of, at: now }));
        }
    }

    /// Notes an audit that reads everything that differs until `at`.
    pub(super) fn note_audit(&mut self, now: i64, at: i64) {
        if self.denied_at.is_none() && self.synced {
            self.caught_up = Some(CaughtUp { as_of: now, at });
        }
    }

    /// Returns the reason why nothing can be read now, if there is one.
    pub(super) fn blocked_cause(&self, now: i64) -> Option<ApiFailureCause> {
        match () {
            () if self.down_until > now => Some(ApiFailureCause::Connection),
            () if self.forbidden_until > now => Some(ApiFailureCause::Forbidden),
            () => None,
        }
    }

    /// Ends list and watch of a kind that is not served: it is looked for from now on.
    pub(super) fn begin_search(&mut self) {
        (self.state, self.resume_revision, self.deliver_at) = (WireState::Down, None, None);
        (self.repeatable_line, self.is_followed) = (None, false);
        self.search = Some(KindSearch::default());
    }

    /// Notes that a list or watch could not begin.
    pub(super) fn note_blocked(&mut self, cause: ApiFailureCause) {
        self.refusals += u32::from(cause == ApiFailureCause::Forbidden);
        if self.refusals >= MAX_WATCH_REFUSALS {
            (self.resume_revision, self.refusals) = (None, 0);
        }
    }

    /// Ends an open watch; returns `false` if there was none.
    pub(super) fn drop_watch(&mut self) -> bool {
        let is_watching = matches!(self.state, WireState::Watching(_));
        if is_watching {
            self.state = WireState::Down;
        }
        is_watching
    }
}
