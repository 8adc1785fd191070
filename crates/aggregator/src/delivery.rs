//! What is told to whom, and when: compared with what the parent itself says, one write at a time per parent,
//! patient with conflicts, and yielding where somebody else keeps overwriting.

use std::time::Duration;

use readiness::Time;

use crate::types::Digest;

/// A write that changes only the message goes out at most so often.
const WORDS_EVERY: Duration = Duration::from_secs(10);
/// Where the server drops what we write: whether its schema was mended is tried so often, and only for news.
const PRUNED_EVERY: Duration = Duration::from_mins(10);
/// Being overwritten so often in a row without rest is a fight.
const FIGHT: u32 = 3;
/// While yielding: at most one write a minute.
const YIELD_CAP: Duration = Duration::from_mins(1);
/// A rest after which an overwrite counts as the first again.
const REST: Duration = Duration::from_mins(5);

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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing is on its way.
    #[default]
    Told,
    /// This much was sent.
    Pending(Digest),
    /// The server drops what we write, this for example.
    Pruned(Digest),
}

/// The delivery of one parent, over all its policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delivery {
    state: State,
    /// What the parent says, as last read; zero where nothing.
    told: Digest,
    /// What we last wrote successfully.
    written: Option<Digest>,
    /// When a write last went out.
    sent: Option<Time>,
    /// No write before this.
    not_before: Option<Time>,
    failures: u32,
    overwrites: u32,
    overwritten: Option<Time>,
}

impl Delivery {
    /// The parent was read, and says this.
    pub(crate) fn read(&mut self, told: Digest, now: Time) {
        if self.told == told {
            return;
        }
        self.told = told;
        if matches!(self.state, State::Pruned(_)) {
            self.state = State::Told;
        }
        if self.written.is_some_and(|w| w.gist != told.gist) && !matches!(self.state, State::Pending(_)) {
            self.overwritten(now);
        }
    }

    fn overwritten(&mut self, now: Time) {
        if self.overwritten.is_some_and(|at| at + REST <= now) {
            self.overwrites = 0;
        }
        self.overwrites += 1;
        self.overwritten = Some(now);
        self.written = None;
        if self.overwrites >= FIGHT {
            let wait = Duration::from_secs(1).saturating_mul(1 << (self.overwrites - FIGHT).min(10));
            self.hold_until(now + wait.min(YIELD_CAP));
        }
    }

    fn hold_until(&mut self, at: Time) {
        self.not_before = Some(self.not_before.map_or(at, |old| old.max(at)));
    }

    /// The first conflict is news, not a failure: what was read live may be answered at once.
    fn back_off(&mut self, now: Time) {
        self.failures += 1;
        if self.failures > 1 {
            let wait = Duration::from_millis(50).saturating_mul(1 << self.failures.min(10));
            self.hold_until(now + wait.min(YIELD_CAP));
        }
    }

    /// Somebody keeps overwriting our entries.
    pub(crate) fn yielding(&self) -> bool {
        self.overwrites >= FIGHT
    }

    /// The server drops what is written on it.
    pub(crate) fn pruned(&self) -> bool {
        matches!(self.state, State::Pruned(_))
    }

    /// This is to be said. Where the answer is `Later` without a moment, the outcome of a write is awaited.
    pub(crate) fn offer(&mut self, wanted: Digest, now: Time) -> (Decision, Option<Time>) {
        match self.state {
            State::Pending(_) => return (Decision::Later, None),
            State::Pruned(refused) if refused == wanted => return (Decision::Same, None),
            _ => {}
        }
        if wanted == self.told {
            return (Decision::Same, None);
        }
        let mut at = self.not_before;
        if self.pruned() {
            at = at.max(self.sent.map(|sent| sent + PRUNED_EVERY));
        }
        if wanted.gist == self.told.gist {
            at = at.max(self.sent.map(|sent| sent + WORDS_EVERY));
        }
        if let Some(at) = at.filter(|at| *at > now) {
            return (Decision::Later, Some(at));
        }
        self.state = State::Pending(wanted);
        self.not_before = None;
        self.sent = Some(now);
        (Decision::Send, None)
    }

    /// A write ended so.
    pub(crate) fn settle(&mut self, outcome: Outcome, now: Time) {
        let sent = match self.state {
            State::Pending(sent) => sent,
            State::Told | State::Pruned(_) => return,
        };
        self.state = State::Told;
        match outcome {
            Outcome::Written => {
                self.written = Some(sent);
                if self.told == sent {
                    self.failures = 0;
                } else {
                    // Accepted, yet the parent says something else: overwritten at once, or altered on the way in.
                    self.back_off(now);
                }
            }
            Outcome::Pruned => self.state = State::Pruned(sent),
            Outcome::Conflict => self.back_off(now),
            Outcome::Retry(after) => {
                self.failures += 1;
                self.hold_until(now + after);
            }
            Outcome::Gone => {}
        }
    }
}
