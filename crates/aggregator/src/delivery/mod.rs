//! What is told to whom, and when: compared with what the parent itself says, one write at a time per parent,
//! patient with conflicts, and yielding where somebody else keeps overwriting.

mod fuse;

use std::time::Duration;

use readiness::Time;
use timer::{Backoff, Seed};

use crate::types::Digest;
use fuse::Fuse;

/// A write that changes only the message goes out at most so often.
const WORDS_EVERY: Duration = Duration::from_secs(10);
/// Where the server drops what we write: whether its schema was mended is tried so often, and only for news.
const PRUNED_EVERY: Duration = Duration::from_mins(10);
/// Being overwritten so often in a row without rest is a fight.
const FIGHT: u32 = 3;
/// While yielding: at most one write a minute.
const YIELD: Duration = Duration::from_mins(1);
/// What was overwritten is written again at once; where it is overwritten again, each time after twice as long.
const INSIST: Backoff = Backoff { base: Duration::from_secs(1), cap: YIELD };
/// A rest after which a fight is over.
const REST: Duration = Duration::from_mins(5);
/// The shortest wait after a write that did not arrive.
const BREATH: Duration = Duration::from_millis(50);

/// What to do with a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The parent says exactly this already.
    Same,
    /// Write it now; [`crate::Engine::settle`] must follow.
    Send,
    /// Not now. The engine asks again by itself.
    Later,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was accepted. What the parent says now was observed before this was reported.
    Written,
    /// A guard failed (409, 422): the parent was read live, and observed, before this was reported.
    Conflict,
    /// Not accepted for now, or not known whether: try again no earlier than after this span.
    Retry(Duration),
    /// The server took it and dropped what was written: no use trying before the parent or its schema changes.
    Pruned,
    /// The parent does not exist any more.
    Gone,
}

/// What sets the waits of one parent apart from those of others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Apart {
    pub(crate) seed: Seed,
    pub(crate) key: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing is on its way.
    #[default]
    Told,
    /// This much was sent, to a parent that said that much.
    Pending { sent: Digest, basis: Digest },
    /// The server drops what we write, this for example.
    Pruned(Digest),
}

/// The delivery of one parent, over all its policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delivery {
    state: State,
    /// What the parent says, as last read; zero where nothing.
    told: Digest,
    /// What we last wrote, and saw there.
    written: Option<Digest>,
    /// What was sent without our hearing whether it arrived.
    lost: Option<Digest>,
    /// When a write last went out.
    sent: Option<Time>,
    /// When the last two writes went out that were not refused, the older one first.
    recent: [Option<Time>; 2],
    /// No write before this.
    not_before: Option<Time>,
    conflicts: u32,
    retries: u32,
    overwrites: u32,
    overwritten: Option<Time>,
    fuse: Fuse,
}

impl Delivery {
    /// The parent was read, and says this.
    pub(crate) fn read(&mut self, told: Digest, apart: Apart, now: Time) {
        if self.told == told {
            return;
        }
        self.told = told;
        match self.state {
            State::Pending { .. } => return,
            State::Pruned(_) => self.state = State::Told,
            State::Told => {}
        }
        if self.lost == Some(told) {
            (self.written, self.lost) = (self.lost, None);
            self.fuse.spend(now);
        }
        if self.written.is_some_and(|w| w.gist != told.gist) {
            self.overwritten(apart, now);
        }
    }

    fn overwritten(&mut self, apart: Apart, now: Time) {
        self.overwrites = self.overwrites.saturating_add(1);
        self.overwritten = Some(now);
        self.written = None;
        if self.overwrites > 1 {
            self.hold_until(now + INSIST.promised(self.overwrites - 1, apart.seed, apart.key));
        }
    }

    fn hold_until(&mut self, at: Time) {
        self.not_before = Some(self.not_before.map_or(at, |old| old.max(at)));
    }

    /// The first conflict is news, not a failure: what was read live may be answered at once.
    fn back_off(&mut self, now: Time) {
        self.conflicts += 1;
        if self.conflicts > 1 {
            let wait = BREATH.saturating_mul(1 << (self.conflicts - 2).min(11));
            self.hold_until(now + wait.min(YIELD));
        }
    }

    /// Somebody keeps overwriting our entries, or each write of ours calls for another.
    pub(crate) fn yielding(&self) -> bool {
        self.is_fought() || self.fuse.blown()
    }

    /// Somebody keeps overwriting our entries.
    pub(crate) fn is_fought(&self) -> bool {
        self.overwrites >= FIGHT
    }

    /// When a fight, or an echo, that goes on no further is over.
    pub(crate) fn calm_at(&self) -> Option<Time> {
        let echoed = self.sent.filter(|_| self.fuse.blown());
        self.overwritten.max(echoed).map(|at| at + REST)
    }

    /// It is over: what comes next is the first again.
    pub(crate) fn calm(&mut self) {
        (self.overwrites, self.overwritten) = (0, None);
        self.fuse.mend();
    }

    /// Something other than the parent itself has moved.
    pub(crate) fn provoke(&mut self, now: Time) {
        self.fuse.provoke(now);
    }

    /// A write is on its way.
    pub(crate) fn pending(&self) -> bool {
        matches!(self.state, State::Pending { .. })
    }

    /// The server drops what is written on it.
    pub(crate) fn pruned(&self) -> bool {
        matches!(self.state, State::Pruned(_))
    }

    /// The parent's spec is new: that is news which no write of before may hold up.
    pub(crate) fn hurry(&mut self) {
        self.recent = [None; 2];
    }

    /// This is to be said; at most two writes within any `window`, the leading one and one more. Where the answer is
    /// `Later` without a moment, the outcome of a write is awaited.
    pub(crate) fn offer(&mut self, wanted: Digest, window: Duration, now: Time) -> (Decision, Option<Time>) {
        match self.state {
            State::Pending { .. } => return (Decision::Later, None),
            State::Pruned(refused) if refused == wanted => return (Decision::Same, None),
            _ => {}
        }
        if wanted == self.told {
            return (Decision::Same, None);
        }
        let mut at = self.not_before.max(self.recent[0].map(|sent| sent + window));
        if self.fuse.blown() {
            at = at.max(self.sent.map(|sent| sent + YIELD));
        }
        if self.pruned() {
            at = at.max(self.sent.map(|sent| sent + PRUNED_EVERY));
        }
        if wanted.gist == self.told.gist {
            at = at.max(self.sent.map(|sent| sent + WORDS_EVERY));
        }
        if let Some(at) = at.filter(|at| *at > now) {
            return (Decision::Later, Some(at));
        }
        self.state = State::Pending { sent: wanted, basis: self.told };
        (self.not_before, self.lost) = (None, None);
        self.sent = Some(now);
        (Decision::Send, None)
    }

    /// The same while another one writes: what the parent does not say is for later.
    pub(crate) fn compare(&self, wanted: Digest) -> (Decision, Option<Time>) {
        let same = wanted == self.told || self.state == State::Pruned(wanted);
        (if same { Decision::Same } else { Decision::Later }, None)
    }

    /// Another one writes from now on: what it changes is not taken from us.
    pub(crate) fn hand_over(&mut self) {
        (self.written, self.lost) = (None, None);
    }

    /// A write ended so.
    pub(crate) fn settle(&mut self, outcome: Outcome, apart: Apart, now: Time) {
        let State::Pending { sent, basis } = self.state else { return };
        self.state = State::Told;
        let landed = match outcome {
            Outcome::Written => true,
            Outcome::Retry(_) => self.told != basis,
            _ => false,
        };
        if landed {
            self.recent = [self.recent[1], self.sent];
            self.fuse.spend(now);
            self.retries = 0;
        }
        match outcome {
            Outcome::Written if self.told == sent => {
                self.written = Some(sent);
                self.conflicts = 0;
            }
            // Accepted, yet the parent says something else; or somebody changes our entry while we write it.
            Outcome::Written if self.told.gist != sent.gist => self.overwritten(apart, now),
            Outcome::Conflict if self.told != basis => self.overwritten(apart, now),
            Outcome::Written | Outcome::Conflict => self.back_off(now),
            Outcome::Pruned => self.state = State::Pruned(sent),
            Outcome::Retry(after) => {
                if self.told == sent {
                    self.written = Some(sent);
                } else {
                    self.lost = Some(sent);
                }
                let breath = BREATH.saturating_mul(1 << self.retries.min(4));
                self.retries += 1;
                self.hold_until(now + after.max(breath));
            }
            Outcome::Gone => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APART: Apart = Apart { seed: Seed(1), key: 1 };

    fn digest(number: u64) -> Digest {
        Digest { whole: number, gist: number }
    }

    #[test]
    fn a_write_that_is_seen_long_after_its_answer_was_lost_is_ours_all_the_same() {
        let (mut delivery, mut now) = (Delivery::default(), Time(0));
        let window = Duration::from_secs(1);
        for _ in 0..FIGHT {
            now = now + Duration::from_secs(30);
            assert_eq!(delivery.offer(digest(1), window, now).0, Decision::Send);
            delivery.settle(Outcome::Retry(Duration::ZERO), APART, now);
            delivery.read(digest(1), APART, now);
            assert_eq!(delivery.offer(digest(1), window, now).0, Decision::Same);
            assert!(!delivery.yielding());
            // Somebody overwrites it.
            delivery.read(digest(2), APART, now);
        }
        assert!(delivery.yielding());
    }

    #[test]
    fn what_somebody_else_wrote_before_our_write_was_heard_of_is_no_fight() {
        let mut delivery = Delivery::default();
        assert_eq!(delivery.offer(digest(1), Duration::ZERO, Time(0)).0, Decision::Send);
        delivery.settle(Outcome::Retry(Duration::ZERO), APART, Time(1));
        for other in 2..10 {
            delivery.read(digest(other), APART, Time(2));
        }
        assert!(!delivery.yielding());
    }

    /// When it was written, by a rival that overwrites each write after a while that the seed chooses.
    fn fought(apart: Apart, hours: u64) -> Vec<u64> {
        let (mut delivery, mut now, mut writes) = (Delivery::default(), Time(0), vec![]);
        while now.0 < (hours * 3_600_000) as i64 {
            match delivery.offer(digest(1), Duration::from_secs(1), now) {
                (Decision::Send, _) => {
                    writes.push(now.0 as u64);
                    delivery.read(digest(1), apart, now);
                    delivery.settle(Outcome::Written, apart, now);
                    now = now + apart.seed.below(Duration::from_secs(5), now.0 as u64);
                    delivery.read(digest(2), apart, now);
                }
                (_, at) => now = at.unwrap(),
            }
        }
        writes
    }

    #[test]
    fn a_rival_is_answered_ever_more_slowly_and_never_given_up() {
        for seed in 0..200 {
            let writes = fought(Apart { seed: Seed(seed), key: seed ^ 7 }, 2);
            let gaps: Vec<u64> = writes.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let expected = [1_000_u64, 2_000, 4_000, 8_000, 16_000, 32_000];
            for (gap, full) in gaps[1..].iter().zip(expected) {
                // Up to a quarter is taken off, and the rival took up to five seconds.
                assert!((full * 3 / 4..full + 5_000).contains(gap), "{gaps:?}");
            }
            assert!(gaps[7..].iter().all(|gap| (60_000..65_000).contains(gap)), "{gaps:?}");
            assert!(gaps.len() > 100, "{gaps:?}");
        }
    }

    #[test]
    fn after_a_rest_the_next_one_is_answered_at_once() {
        let mut delivery = Delivery::default();
        for n in 0..10 {
            let now = Time(n * 600_000);
            assert_eq!(delivery.offer(digest(1), Duration::ZERO, now).0, Decision::Send);
            delivery.read(digest(1), APART, now);
            delivery.settle(Outcome::Written, APART, now);
            delivery.read(digest(2), APART, now);
        }
        assert!(delivery.is_fought());
        delivery.calm();
        let now = Time(7_000_000);
        assert_eq!(delivery.offer(digest(1), Duration::ZERO, now).0, Decision::Send);
        delivery.read(digest(1), APART, now);
        delivery.settle(Outcome::Written, APART, now);
        delivery.read(digest(2), APART, now);
        assert_eq!(delivery.offer(digest(1), Duration::ZERO, now).0, Decision::Send);
    }
}
