//! Is each kind seen? Nothing flips before a kind was blind for two minutes, and then it does.

use std::collections::BTreeMap;
use std::time::Duration;

use aggregator::{KindId, KindState, PolicyId};
use readiness::Time;
use timer::Deadlines;
use watcher::Cause;

/// A kind that could be neither watched nor listed for so long is stale.
const STALE_AFTER: Duration = Duration::from_mins(2);
/// Before its first list a kind that is forbidden for so long counts as not permitted: a server that has just started
/// refuses everybody for a moment.
const REFUSED_AFTER: Duration = Duration::from_secs(3);

/// What a kind's task says to the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It is followed anew: what was known is neither confirmed nor gone until `Synced`.
    Starting,
    /// It is not installed.
    Absent,
    /// A list begins: the server that answers it is alive, and yet nothing is seen before `Synced`.
    Listing,
    /// Everything was listed.
    Synced,
    /// The server answered.
    Alive,
    /// Something is wrong.
    Trouble(Cause, String),
    /// It is not followed any more.
    Stopped,
    /// It is about to be followed anew because these policies judge these of their groups (as bits) by another rule now.
    RuleChanged(Vec<(PolicyId, u64)>),
}

/// What is known of every kind's list and watch.
#[derive(Debug, Default)]
pub struct Health {
    kinds: BTreeMap<KindId, Kind>,
    due: Deadlines<KindId, Time>,
}

#[derive(Debug, Default)]
struct Kind {
    state: KindState,
    synced: bool,
    listing: bool,
    trouble: Option<(Cause, String)>,
}

impl Health {
    /// A kind's task said something; its new state, where that moved.
    pub fn hear(&mut self, id: KindId, news: &News, now: Time) -> Option<KindState> {
        let kind = self.kinds.entry(id).or_default();
        match news {
            News::Starting => *kind = Kind::default(),
            News::RuleChanged(_) => return None,
            News::Absent => (kind.state, kind.trouble) = (KindState::Absent, None),
            News::Listing => {
                kind.listing = true;
                return Some(kind.state);
            }
            News::Synced => {
                (kind.state, kind.trouble) = (KindState::Synced, None);
                (kind.synced, kind.listing) = (true, false);
            }
            News::Alive => kind.trouble = None,
            News::Trouble(cause, detail) => kind.trouble = Some((*cause, detail.clone())),
            News::Stopped => {
                self.kinds.remove(&id);
                self.due.disarm(id);
                return None;
            }
        }
        if matches!(news, News::Alive) && kind.synced && !kind.listing {
            // Whatever it was, it is over: the server serves the watch.
            kind.state = KindState::Synced;
        }
        match (&kind.trouble, kind.state) {
            (_, KindState::Absent) => _ = self.due.disarm(id),
            (Some((Cause::Forbidden, _)), KindState::Listing) => self.due.arm_by(id, now + REFUSED_AFTER),
            (Some(_), KindState::Synced) => self.due.arm_by(id, now + STALE_AFTER),
            (Some(_), _) => {}
            // A healthy watch speaks at least every 90 s: silence is trouble as well.
            (None, KindState::Synced) => self.due.arm(id, now + STALE_AFTER),
            (None, _) => _ = self.due.disarm(id),
        }
        Some(kind.state)
    }

    /// A kind whose time has run out, with its new state.
    pub fn overdue(&mut self, now: Time) -> Option<(KindId, KindState)> {
        while let Some(id) = self.due.take_due(now) {
            if let Some(kind) = self.kinds.get_mut(&id) {
                let forbidden = kind.trouble.as_ref().is_some_and(|(cause, _)| *cause == Cause::Forbidden);
                kind.state = if forbidden { KindState::Forbidden } else { KindState::Stale };
                return Some((id, kind.state));
            }
        }
        None
    }

    /// When one may become overdue.
    pub fn next_deadline(&self) -> Option<Time> {
        self.due.next()
    }

    /// Where a kind stands, and what ails it.
    pub fn of(&self, id: KindId) -> (KindState, Option<(Cause, &str)>) {
        let kind = self.kinds.get(&id);
        let trouble = kind.and_then(|k| k.trouble.as_ref()).map(|(cause, detail)| (*cause, detail.as_str()));
        (kind.map(|k| k.state).unwrap_or_default(), trouble)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: KindId = KindId(1);

    fn at(seconds: i64) -> Time {
        Time(seconds * 1_000)
    }

    fn trouble(cause: Cause) -> News {
        News::Trouble(cause, String::new())
    }

    #[test]
    fn nothing_flips_before_two_minutes_of_blindness() {
        let mut health = Health::default();
        health.hear(K, &News::Starting, at(0));
        assert_eq!(health.hear(K, &News::Synced, at(1)), Some(KindState::Synced));
        assert_eq!(health.hear(K, &trouble(Cause::Connection), at(10)), Some(KindState::Synced));
        assert_eq!(health.overdue(at(120)), None);
        assert_eq!(health.overdue(at(121)), Some((K, KindState::Stale)));
        assert_eq!(health.hear(K, &News::Alive, at(200)), Some(KindState::Synced));
    }

    #[test]
    fn a_silent_watch_is_blind_too() {
        let mut health = Health::default();
        health.hear(K, &News::Synced, at(0));
        health.hear(K, &News::Alive, at(70));
        assert_eq!(health.overdue(at(189)), None);
        assert_eq!(health.overdue(at(190)), Some((K, KindState::Stale)));
    }

    #[test]
    fn a_kind_that_is_refused_at_the_start_is_forbidden_after_a_moment() {
        let mut health = Health::default();
        health.hear(K, &News::Starting, at(0));
        assert_eq!(health.hear(K, &trouble(Cause::Forbidden), at(0)), Some(KindState::Listing));
        assert_eq!(health.overdue(at(3)), Some((K, KindState::Forbidden)));
        assert_eq!(health.hear(K, &News::Synced, at(9)), Some(KindState::Synced));
    }

    #[test]
    fn a_kind_that_was_blind_is_not_seen_again_before_its_new_list_is_through() {
        let mut health = Health::default();
        health.hear(K, &News::Synced, at(0));
        health.hear(K, &trouble(Cause::Forbidden), at(10));
        assert_eq!(health.overdue(at(120)), Some((K, KindState::Forbidden)));
        health.hear(K, &News::Listing, at(200));
        assert_eq!(health.hear(K, &News::Alive, at(200)), Some(KindState::Forbidden));
        assert_eq!(health.hear(K, &News::Synced, at(201)), Some(KindState::Synced));
    }

    #[test]
    fn permission_that_is_taken_away_is_forbidden_after_two_minutes() {
        let mut health = Health::default();
        health.hear(K, &News::Synced, at(0));
        health.hear(K, &trouble(Cause::Forbidden), at(60));
        assert_eq!(health.overdue(at(120)), Some((K, KindState::Forbidden)));
    }
}
