//! Write tokens: they bound the writes of one parent, so that Rollcall's own writes cannot trigger each other in a
//! loop. Each write costs a token; only changes from outside the parent restore tokens at once.

use std::fmt;
use std::time::Duration;

use readiness::Time;

/// Largest number of writes to a parent without an external change.
const MAX_WRITE_TOKENS: u8 = 20;
/// Period after which one token comes back, unless the bucket is exhausted.
const WRITE_TOKEN_REFILL_PERIOD: Duration = Duration::from_secs(5);
/// Number of tokens that an external change restores: enough for the first write and those that follow from it.
const WRITE_TOKENS_PER_EXTERNAL_CHANGE: u8 = 4;

/// Bits that hold the number of tokens.
const TOKEN_BITS: u32 = 5;
const TOKEN_MASK: i64 = (1 << TOKEN_BITS) - 1;
const _: () = assert!((MAX_WRITE_TOKENS as i64) <= TOKEN_MASK);

/// Token bucket for the writes of one parent: the number of tokens, and above it the time since which the next one comes back.
/// Every parent has one for as long as it exists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct WriteTokenBucket(i64);

impl Default for WriteTokenBucket {
    fn default() -> Self {
        WriteTokenBucket::new(MAX_WRITE_TOKENS, Time::default())
    }
}

impl fmt::Debug for WriteTokenBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} since {:?}", self.tokens(), self.since())
    }
}

impl WriteTokenBucket {
    fn new(tokens: u8, since: Time) -> Self {
        WriteTokenBucket((since.0 << TOKEN_BITS) | i64::from(tokens))
    }

    fn tokens(self) -> u8 {
        u8::try_from(self.0 & TOKEN_MASK).unwrap_or(MAX_WRITE_TOKENS)
    }

    fn since(self) -> Time {
        Time(self.0 >> TOKEN_BITS)
    }

    /// Returns `true` if no token is left. Writes are then rare until an external change, or until
    /// [`WriteTokenBucket::refill_all`].
    pub(super) fn is_exhausted(self) -> bool {
        self.tokens() == 0
    }

    /// Spends a token for a write that has probably arrived.
    pub(super) fn spend_token(&mut self, now: Time) {
        let (mut tokens, mut since) = (self.tokens(), self.since());
        if tokens == MAX_WRITE_TOKENS {
            since = now;
        }
        while 0 < tokens && tokens < MAX_WRITE_TOKENS && since + WRITE_TOKEN_REFILL_PERIOD <= now {
            tokens += 1;
            since = if tokens == MAX_WRITE_TOKENS { now } else { since + WRITE_TOKEN_REFILL_PERIOD };
        }
        *self = WriteTokenBucket::new(tokens.saturating_sub(1), since);
    }

    /// Restores tokens after a change of something other than the parent itself.
    pub(super) fn mark_external_change(&mut self, now: Time) {
        let since = if self.is_exhausted() { now } else { self.since() };
        *self = WriteTokenBucket::new(self.tokens().max(WRITE_TOKENS_PER_EXTERNAL_CHANGE), since);
    }

    /// Restores all tokens after a long span without writes.
    pub(super) fn refill_all(&mut self) {
        *self = WriteTokenBucket::new(MAX_WRITE_TOKENS, self.since());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes_until_blown(every: Duration, at_most: u32) -> u32 {
        let (mut fuse, mut now) = (WriteTokenBucket::default(), Time(1_000_000));
        (0..at_most)
            .find(|_| {
                now = now + every;
                fuse.spend_token(now);
                fuse.is_exhausted()
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
        let mut fuse = WriteTokenBucket::default();
        let spend = |fuse: &mut WriteTokenBucket| {
            (0..100)
                .take_while(|_| {
                    fuse.spend_token(Time(7));
                    !fuse.is_exhausted()
                })
                .count()
        };
        assert_eq!(spend(&mut fuse), 19);
        fuse.mark_external_change(Time(7));
        fuse.mark_external_change(Time(7));
        assert_eq!(spend(&mut fuse), 3);
        fuse.refill_all();
        assert!(!fuse.is_exhausted());
    }
}
