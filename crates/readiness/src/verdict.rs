//! The answer: how ready one object is, why, and when that will change by itself.

use std::fmt;

use crate::Time;

/// How ready one object is. The order is the severity: worst first, so `min` of two is the worse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    /// Terminal by the API's own word, or it says that it failed.
    Failed,
    /// Terminating or pending beyond its limit.
    Stuck,
    /// Expected, but there is no such object.
    Missing,
    /// No signal, or it could not be evaluated.
    Unknown,
    /// On its way: rolling out, starting, not yet observed.
    Progressing,
    /// Being deleted, within its limit.
    Terminating,
    /// Paused on purpose: neutral.
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

    /// The word as printed in JSON output and as a metric's label value.
    pub const fn word(self) -> &'static str {
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
        f.pad(self.word())
    }
}

/// A level with its reason. The reason is a closed set; what it needs to be told to a person is inside it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Verdict {
    /// How ready.
    pub level: Level,
    /// Why, for machines (a CamelCase token) and for people (its `Display`).
    pub reason: crate::Reason,
}

/// What a rule says: the verdict now and, where it depends on time, the verdict that it becomes by itself.
///
/// No rule reads a clock: the engine arms `then` and asks nobody again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessment {
    /// The verdict now, that is before `then` has come.
    pub verdict: Verdict,
    /// From that moment on, and if the object says nothing new, this verdict instead.
    pub then: Option<Box<(Time, Verdict)>>,
}

impl Assessment {
    /// The verdict that holds at `now`.
    pub fn at(&self, now: Time) -> &Verdict {
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
    /// Failed for good, by the API's own word.
    pub fn terminal(&self) -> bool {
        self.level == Level::Failed && self.reason.terminal()
    }
}
