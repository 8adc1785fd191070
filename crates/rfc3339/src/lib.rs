//! Timestamps as the API server has them: RFC 3339, and the calendar behind them. Pure.
//!
//! What Go's `time.Parse` reads is read, and nothing else: a 31 February is no date.

mod calendar;
mod read;
mod write;

pub use calendar::{CivilDate, days_since_epoch};
pub use read::{parse_millis, parse_nanos};
pub use write::{MillisText, SecondsText};
