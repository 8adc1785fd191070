//! Timestamps.

use crate::fault::EvalFault;

pub(crate) const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Nanoseconds since the Unix epoch, in two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CelTimestamp {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

/// First second of the year 1 and last second of the year 9999, since the Unix epoch.
const TIMESTAMP_RANGE: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

impl CelTimestamp {
    /// Returns `None` outside the years 1 to 9999.
    pub(crate) fn from_nanos(nanos: i128) -> Option<CelTimestamp> {
        let seconds = i64::try_from(nanos.div_euclid(i128::from(NANOS_PER_SECOND))).ok()?;
        let nanos = u32::try_from(nanos.rem_euclid(i128::from(NANOS_PER_SECOND))).ok()?;
        TIMESTAMP_RANGE.contains(&seconds).then_some(CelTimestamp { seconds, nanos })
    }

    pub(crate) fn total_nanos(self) -> i128 {
        i128::from(self.seconds) * i128::from(NANOS_PER_SECOND) + i128::from(self.nanos)
    }

    pub(crate) fn add_duration(self, span: i64) -> Result<CelTimestamp, EvalFault> {
        CelTimestamp::from_nanos(self.total_nanos() + i128::from(span))
            .ok_or_else(|| EvalFault::from_message("timestamp overflow"))
    }

    pub(crate) fn subtract_duration(self, span: i64) -> Result<CelTimestamp, EvalFault> {
        CelTimestamp::from_nanos(self.total_nanos() - i128::from(span))
            .ok_or_else(|| EvalFault::from_message("timestamp overflow"))
    }

    pub(crate) fn duration_since(self, earlier: CelTimestamp) -> Result<i64, EvalFault> {
        i64::try_from(self.total_nanos() - earlier.total_nanos())
            .map_err(|_| EvalFault::from_message("duration overflow"))
    }
}
