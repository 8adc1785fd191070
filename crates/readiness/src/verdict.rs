//! The verdict on one object: its readiness level, the reason, and the next change by time alone.

use std::fmt;

use crate::Time;
use crate::steadiness::Steadiness;

/// Readiness level of one object. The order is the severity, worst first, so `min` of two is the worse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    /// The object failed, by a terminal state of the API or by its own report.
    Failed,
    /// Terminating or pending beyond the limit.
    Stuck,
    /// The object is expected and does not exist.
    Missing,
    /// The object gives no signal, or could not be evaluated.
    Unknown,
    /// Rolling out, starting, or not yet observed by its controller.
    Progressing,
    /// Being deleted, within the limit.
    Terminating,
    /// Suspended on purpose: neutral.
    Suspended,
    /// Ready.
    Ready,
}

impl Level {
    /// Every level, worst first.
    pub const ALL: [Level; 8] = [
        Level::Failed,
        Level::Stuck,
        Level::Missing,
        Level::Unknown,
        Level::Progressing,
        Level::Terminating,
        Level::Suspended,
        Level::Ready,
    ];

    /// Returns the level as printed in JSON output and as a metric's label value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Level::Failed => "Failed",
            Level::Stuck => "Stuck",
            Level::Missing => "Missing",
            Level::Unknown => "Unknown",
            Level::Progressing => "Progressing",
            Level::Terminating => "Terminating",
            Level::Suspended => "Suspended",
            Level::Ready => "Ready",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A level with its reason. The set of reasons is closed, and a reason contains everything needed to print it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Verdict {
    /// Readiness level.
    pub level: Level,
    /// Reason, for machines (a CamelCase token) and for people (its `Display`).
    pub reason: crate::Reason,
    /// How far a parent that was ready with the object can still count on it.
    pub steadiness: Steadiness,
}

/// Result of a rule: the current verdict and, if it depends on time, the next one.
///
/// No rule reads a clock: the engine sets a timer for `then` and does not evaluate the rule again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessment {
    /// Current verdict, valid until the moment in `then`.
    pub verdict: Verdict,
    /// Verdict from that moment on, unless the object changes before.
    pub then: Option<Box<(Time, Verdict)>>,
}

impl Assessment {
    /// Returns the verdict that holds at `now`.
    pub fn verdict_at(&self, now: Time) -> &Verdict {
        match &self.then {
            Some(then) if then.0 <= now => &then.1,
            _ => &self.verdict,
        }
    }
}

impl From<Verdict> for Assessment {
    fn from(verdict: Verdict) -> Self {
        Assessment { verdict, then: None }
    }
}

impl Verdict {
    /// Creates a verdict on an object that, unless it is ready, cannot be counted on.
    pub const fn new(level: Level, reason: crate::Reason) -> Verdict {
        Verdict { level, reason, steadiness: Steadiness::Unsteady }
    }

    /// Returns `true` if the object failed permanently, as stated by the API.
    pub fn is_terminal(&self) -> bool {
        self.level == Level::Failed && self.reason.is_terminal()
    }
}
