//! Whatever the world answers, our writes do not feed on each other: each costs a token, and only what others do buys
//! new ones at once.

use std::time::Duration;

use readiness::Time;

/// So many writes without a cause outside the parent are believed to be right.
const FULL: u8 = 20;
/// A token comes back by itself so often, while there are any.
const REFILL: Duration = Duration::from_secs(5);
/// What a cause outside the parent is good for: the first edge, and what follows from it.
const CAUSE: u8 = 4;

/// Tokens for the writes of one parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fuse {
    tokens: u8,
    since: Time,
}

impl Default for Fuse {
    fn default() -> Self {
        Fuse { tokens: FULL, since: Time::default() }
    }
}

impl Fuse {
    /// It has blown: until somebody else does something, or for a long rest, writes are few.
    pub(super) fn blown(self) -> bool {
        self.tokens == 0
    }

    /// A write has arrived, as far as we know.
    pub(super) fn spend(&mut self, now: Time) {
        if self.tokens == FULL {
            self.since = now;
        }
        while 0 < self.tokens && self.tokens < FULL && self.since + REFILL <= now {
            self.tokens += 1;
            self.since = if self.tokens == FULL { now } else { self.since + REFILL };
        }
        self.tokens = self.tokens.saturating_sub(1);
    }

    /// Something other than the parent itself has moved.
    pub(super) fn provoke(&mut self, now: Time) {
        if self.blown() {
            self.since = now;
        }
        self.tokens = self.tokens.max(CAUSE);
    }

    /// A long rest is over.
    pub(super) fn mend(&mut self) {
        self.tokens = FULL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes_until_blown(every: Duration, at_most: u32) -> u32 {
        let (mut fuse, mut now) = (Fuse::default(), Time(1_000_000));
        (0..at_most)
            .find(|_| {
                now = now + every;
                fuse.spend(now);
                fuse.blown()
            })
            .map_or(at_most, |n| n + 1)
    }

    #[test]
    fn a_burst_blows_it_and_a_steady_pace_does_not() {
        assert_eq!(writes_until_blown(Duration::from_millis(10), 1_000), 20);
        assert!(writes_until_blown(Duration::from_secs(3), 1_000) > 40);
        assert_eq!(writes_until_blown(Duration::from_secs(5), 1_000), 1_000);
    }

    #[test]
    fn what_others_do_counts_for_a_few_writes_and_no_more() {
        let mut fuse = Fuse::default();
        let spend = |fuse: &mut Fuse| {
            (0..100)
                .take_while(|_| {
                    fuse.spend(Time(7));
                    !fuse.blown()
                })
                .count()
        };
        assert_eq!(spend(&mut fuse), 19);
        fuse.provoke(Time(7));
        fuse.provoke(Time(7));
        assert_eq!(spend(&mut fuse), 3);
        fuse.mend();
        assert!(!fuse.blown());
    }
}
