//! Is each kind seen? Nothing flips before a kind was blind for two minutes, and then it does; a kind that was blind is
//! seen again by a completed list alone.

use std::collections::BTreeMap;
use std::time::Duration;

use aggregator::{KindId, KindState};
use readiness::Time;
use timer::DeadlineQueue;
use watcher::ApiFailureCause;

/// Time without a working list or watch after which a kind is stale. 2 min.
const WATCH_STALE_AFTER: Duration = Duration::from_mins(2);
/// Time before its first list after which a forbidden kind counts as not permitted: a server that has just started
/// rejects all requests for a moment. 3 s.
const WATCH_FORBIDDEN_AFTER: Duration = Duration::from_secs(3);

/// Event that a kind's task sends to the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindEvent {
    /// The kind is followed from the start: cached objects are neither confirmed nor deleted until `Synced`.
    Starting,
    /// Discovery says that no version of its group has it.
    Absent,
    /// A list begins: the server is alive, but nothing is confirmed before `Synced`.
    Listing,
    /// Everything was listed, in every namespace that is followed.
    Synced,
    /// The server answered, for every namespace that is followed.
    Alive,
    /// A list or watch failed.
    Failure(ApiFailureCause, String),
    /// The kind is no longer followed.
    Stopped,
    /// The kind is about to be relisted, because the policies with these names judge it by a different rule.
    RuleChanged(Vec<String>),
}

/// The ways in which a kind is not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blindness {
    /// It could be neither watched nor listed for two minutes.
    Stale,
    /// We may not list or watch it.
    Forbidden,
}

/// Where the list and the watch of one kind stand. A dot means that the stage stays:
///
/// ```text
///             Starting  Listing    Alive   Synced   Absent  Trouble  time is up
/// Unlisted    .         .          .       Watched  Absent  . dated  Blind
/// Watched     Unlisted  Relisting  . again . again  Absent  .        Blind, and a list is ordered
/// Relisting   Unlisted  .          .       Watched  Absent  .        Blind
/// Absent      Unlisted  Unlisted   .       .        . again . dated  Blind
/// Blind       .         .          .       Watched  Absent  .        never
/// ```
///
/// What parents are told of it, by the state that each stage has for the engine:
///
/// - `Unlisted`: nothing new. What they say stays, until two minutes of trouble make it `Blind`. A kind that comes back
///   after it was `Absent` is here: no True may come of the part of a list.
/// - `Watched`, `Relisting`: what is known. Where a relist began, what was known holds until its two minutes are over;
///   what the server answers on the way proves nothing, as a list that always breaks off shows.
/// - `Absent`: that it has no objects. A True that rested on an object of it is over: `expect` misses it.
/// - `Blind`: at most Unknown. **Invariant:** nothing but a completed list, or the proof of its absence, ends it: a
///   watch that the server opens again says nothing about the backlog that it will bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchStage {
    /// No list was completed since it is followed. Since when it is refused, and since when it counts as in trouble: where what
    /// was seen before is being listed by a new task, that may be yet to come.
    Unlisted { refused: Option<Time>, troubled: Option<Time> },
    /// Everything was listed, and a watch stood then.
    Watched { proven: Time },
    /// Everything was listed once, was last seen then, and is being listed again.
    Relisting { proven: Time },
    /// Its API is not installed, as was found out last. Since when that cannot be asked any more.
    Absent { troubled: Option<Time> },
    /// It is not seen.
    Blind(Blindness),
}

impl Default for WatchStage {
    fn default() -> Self {
        WatchStage::Unlisted { refused: None, troubled: None }
    }
}

impl WatchStage {
    fn state(self) -> KindState {
        match self {
            WatchStage::Unlisted { .. } => KindState::Listing,
            WatchStage::Watched { .. } | WatchStage::Relisting { .. } => KindState::Synced,
            WatchStage::Absent { .. } => KindState::Absent,
            WatchStage::Blind(Blindness::Stale) => KindState::Stale,
            WatchStage::Blind(Blindness::Forbidden) => KindState::Forbidden,
        }
    }

    /// The moment at which it becomes blind, if nothing is heard before.
    fn deadline(self) -> Option<Time> {
        match self {
            WatchStage::Unlisted { refused, troubled } => {
                let (refused, troubled) =
                    (refused.map(|at| at + WATCH_FORBIDDEN_AFTER), troubled.map(stale_at));
                refused.into_iter().chain(troubled).min()
            }
            WatchStage::Watched { proven } | WatchStage::Relisting { proven } => Some(stale_at(proven)),
            WatchStage::Absent { troubled } => troubled.map(stale_at),
            WatchStage::Blind(_) => None,
        }
    }

    /// The kind is followed by a new task. Trouble from before stays; and what was seen is not seen from then on: whether its new
    /// task is let wait, or is replaced before it is done, parents do not say True for ever by it. Without trouble its list has
    /// twice the time: those whose rule has changed are told so meanwhile.
    fn started(self, is_troubled: bool) -> WatchStage {
        let troubled = match self {
            WatchStage::Blind(_) => return self,
            WatchStage::Unlisted { troubled, .. } | WatchStage::Absent { troubled } => troubled,
            WatchStage::Watched { proven } | WatchStage::Relisting { proven } if is_troubled => Some(proven),
            WatchStage::Watched { proven } | WatchStage::Relisting { proven } => Some(stale_at(proven)),
        };
        WatchStage::Unlisted { refused: None, troubled }
    }

    fn list_began(self) -> WatchStage {
        match self {
            WatchStage::Watched { proven } => WatchStage::Relisting { proven },
            WatchStage::Absent { troubled } => WatchStage::Unlisted { refused: None, troubled },
            stays => stays,
        }
    }

    fn answered(self, now: Time) -> WatchStage {
        match self {
            WatchStage::Watched { .. } => WatchStage::Watched { proven: now },
            WatchStage::Unlisted { troubled, .. } => WatchStage::Unlisted { refused: None, troubled },
            stays => stays,
        }
    }

    /// A list is complete. Of an absent kind no list has begun: it is an older one that is complete.
    fn listed(self, now: Time) -> WatchStage {
        match self {
            WatchStage::Absent { .. } => self,
            _ => WatchStage::Watched { proven: now },
        }
    }

    fn troubled(self, cause: ApiFailureCause, now: Time) -> WatchStage {
        match self {
            WatchStage::Unlisted { refused, troubled } => {
                let refused = (cause == ApiFailureCause::Forbidden).then(|| refused.unwrap_or(now));
                WatchStage::Unlisted { refused, troubled: Some(troubled.map_or(now, |at| at.min(now))) }
            }
            WatchStage::Absent { troubled } => WatchStage::Absent { troubled: troubled.or(Some(now)) },
            stays => stays,
        }
    }
}

fn stale_at(seen: Time) -> Time {
    seen + WATCH_STALE_AFTER
}

/// A kind that has become blind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlindKind {
    /// The kind.
    pub kind: KindId,
    /// Its new state.
    pub state: KindState,
    /// The kind is not being listed, and has to be: its task would go on with its watch, which proves nothing.
    pub needs_list: bool,
}

/// State of the list and watch of every kind.
#[derive(Debug, Default)]
pub struct WatchHealth {
    kinds: BTreeMap<KindId, KindSight>,
    deadlines: DeadlineQueue<KindId, Time>,
}

#[derive(Debug, Default)]
struct KindSight {
    stage: WatchStage,
    /// What ails it, for people.
    trouble: Option<(ApiFailureCause, String)>,
}

impl WatchHealth {
    /// A kind's task said something; its state from now on. A kind that is no longer followed awaits a list: a policy that still
    /// rests on it has nothing to go by.
    pub fn observe_event(&mut self, id: KindId, news: &KindEvent, now: Time) -> KindState {
        let KindSight { stage, trouble } = self.kinds.entry(id).or_default();
        *stage = match news {
            KindEvent::Starting | KindEvent::RuleChanged(_) => stage.started(trouble.is_some()),
            KindEvent::Listing => stage.list_began(),
            KindEvent::Absent => WatchStage::Absent { troubled: None },
            KindEvent::Synced => stage.listed(now),
            KindEvent::Alive => stage.answered(now),
            KindEvent::Failure(cause, _) => stage.troubled(*cause, now),
            KindEvent::Stopped => {
                self.kinds.remove(&id);
                self.deadlines.clear_deadline(id);
                return KindState::Listing;
            }
        };
        match news {
            KindEvent::Failure(cause, detail) => *trouble = Some((*cause, detail.clone())),
            KindEvent::Absent | KindEvent::Synced | KindEvent::Alive => *trouble = None,
            _ => {}
        }
        match stage.deadline() {
            Some(at) => self.deadlines.set_deadline(id, at),
            None => _ = self.deadlines.clear_deadline(id),
        }
        stage.state()
    }

    /// A kind whose time has run out.
    pub fn take_overdue(&mut self, now: Time) -> Option<BlindKind> {
        while let Some(id) = self.deadlines.take_due(now) {
            if let Some(kind) = self.kinds.get_mut(&id) {
                let forbidden =
                    kind.trouble.as_ref().is_some_and(|(cause, _)| *cause == ApiFailureCause::Forbidden);
                let needs_list = matches!(kind.stage, WatchStage::Watched { .. });
                kind.stage =
                    WatchStage::Blind(if forbidden { Blindness::Forbidden } else { Blindness::Stale });
                return Some(BlindKind { kind: id, state: kind.stage.state(), needs_list });
            }
        }
        None
    }

    /// Kinds that could be neither watched nor listed for too long.
    pub fn stale_kinds(&self) -> impl Iterator<Item = KindId> {
        let stale = self.kinds.iter().filter(|(_, kind)| kind.stage == WatchStage::Blind(Blindness::Stale));
        stale.map(|(id, _)| *id)
    }

    /// Earliest deadline of a kind.
    pub fn next_deadline(&self) -> Option<Time> {
        self.deadlines.next_deadline()
    }

    /// State of a kind, and its current failure.
    pub fn kind_status(&self, id: KindId) -> (KindState, Option<(ApiFailureCause, &str)>) {
        let kind = self.kinds.get(&id);
        let trouble = kind.and_then(|k| k.trouble.as_ref()).map(|(cause, detail)| (*cause, detail.as_str()));
        (kind.map(|k| k.stage.state()).unwrap_or_default(), trouble)
    }
}

#[cfg(test)]
mod tests;
