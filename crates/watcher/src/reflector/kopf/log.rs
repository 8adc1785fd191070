//! What Kopf operators log about their parents, where they post it as Events: by default up to 1.43, later with
//! `settings.posting.loggers`.
//!
//! When all handlers of a change are through, Kopf logs how many succeeded and how many failed for good, and before that a line for
//! each that failed (kopf `_core/reactor/processing.py`, `_core/actions/execution.py`). The mark that it leaves is the same in
//! both cases, so these lines are the only trace of a failure. They take a True away and never give one: in most namespaces more
//! people may write Events than parents.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use readiness::Time;
use rustc_hash::FxHashMap;

use super::super::uid_key::UidKey;
use super::generation_start::GenerationStart;
use super::{HandlerProgress, quote_line, render_progress};

/// Most objects whose log is kept; of more, the ones that were noted first are forgotten. Whoever may write Events fills it.
const MAX_LOGGED_OBJECTS: usize = 16_384;
/// Most handlers of one object whose failures are kept until their cycle ends.
const MAX_FAILED_HANDLERS: usize = 4;

/// How a line begins that is about a handler of changes; daemons, timers and indexers have other names.
const HANDLER_PREFIX: &str = "Handler '";
/// What is logged of a handler that will not be tried any more, up to the colon before its message.
const FINAL_FAILURES: [&str; 5] = [
    "failed permanently",
    "failed temporarily but will time out",
    "failed temporarily but will exceed",
    "failed with an exception and will stop now",
    "has ",
];
/// Causes whose handlers act upon the spec, as the line about the end of their cycle begins.
const CHANGES: [&str; 3] = ["Creation", "Updating", "Update"];

/// A line of a Kopf operator's log about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KopfLogLine {
    /// A handler failed for good, with this message.
    HandlerFailed {
        /// Its id.
        handler: Box<str>,
        /// The message, on one line and bounded.
        message: Box<str>,
    },
    /// All handlers of a creation or of an update are through; `true` if none failed.
    ChangeEnded(bool),
    /// All handlers of another cause are through.
    OtherEnded,
}

impl KopfLogLine {
    /// Parses the message of an Event; `None` for a line that says nothing about failures.
    pub fn parse(message: &str) -> Option<KopfLogLine> {
        // A traceback follows on further lines.
        let line = message.lines().next()?;
        if let Some((handler, said)) =
            line.strip_prefix(HANDLER_PREFIX).and_then(|line| line.split_once("' "))
        {
            let is_final = FINAL_FAILURES.iter().any(|known| said.starts_with(known));
            let why = said.split_once(": ").map_or(said, |(_, why)| why);
            return is_final.then(|| KopfLogLine::HandlerFailed {
                handler: quote_line(handler).into(),
                message: quote_line(why).into(),
            });
        }
        let (cause, counts) = line.split_once(" is processed: ")?;
        let failed = counts.split_once("succeeded; ")?.1.strip_suffix(" failed.")?;
        let failed: u32 = failed.parse().ok()?;
        let is_change = CHANGES.iter().any(|change| cause.starts_with(change));
        Some(if is_change { KopfLogLine::ChangeEnded(failed == 0) } else { KopfLogLine::OtherEnded })
    }
}

/// A line with the object that it is about, and when the server took it in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedLine {
    /// `metadata.uid` of the object.
    pub uid: Box<str>,
    /// `metadata.creationTimestamp` of the Event.
    pub at: Time,
    /// What it says.
    pub line: KopfLogLine,
}

/// How the last change of an object ended, by its operator's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::reflector) enum LoggedEnd {
    /// No handler failed.
    Succeeded,
    /// These failed, as text.
    Failed(Option<Box<str>>),
}

/// What is kept of one object's log.
#[derive(Debug, Default)]
struct ObjectLog {
    /// Handlers that failed since the last cycle ended, with their messages.
    failed: BTreeMap<Box<str>, Box<str>>,
    last_end: Option<ChangeEnd>,
}

/// The end of the handling of a change.
#[derive(Debug)]
struct ChangeEnd {
    at: Time,
    how: LoggedEnd,
    /// The generation that it was taken to be about: it is about no other.
    generation: Option<i64>,
}

impl ChangeEnd {
    fn new(at: Time, how: LoggedEnd) -> ChangeEnd {
        ChangeEnd { at, how, generation: None }
    }
}

impl ObjectLog {
    fn note(&mut self, at: Time, line: KopfLogLine) {
        match line {
            KopfLogLine::HandlerFailed { handler, message } => {
                if self.failed.len() < MAX_FAILED_HANDLERS {
                    self.failed.insert(handler, message);
                }
            }
            KopfLogLine::ChangeEnded(true) => {
                self.failed.clear();
                self.last_end = Some(ChangeEnd::new(at, LoggedEnd::Succeeded));
            }
            KopfLogLine::ChangeEnded(false) => {
                let failed = std::mem::take(&mut self.failed).into_iter();
                let notes =
                    failed.map(|(handler, message)| (handler.into(), HandlerProgress::failed_with(&message)));
                let text = render_progress(&notes.collect(), Vec::new());
                self.last_end = Some(ChangeEnd::new(at, LoggedEnd::Failed(text)));
            }
            KopfLogLine::OtherEnded => self.failed.clear(),
        }
    }
}

/// The logs of all objects that Events tell of.
#[derive(Default)]
pub(in crate::reflector) struct KopfLogs(Mutex<LogTable>);

#[derive(Default)]
struct LogTable {
    objects: FxHashMap<UidKey, ObjectLog>,
    /// Their keys, the one that was noted first in front.
    order: VecDeque<UidKey>,
}

impl LogTable {
    /// Adds a line; returns the object that it is about.
    fn note(&mut self, logged: LoggedLine) -> UidKey {
        let uid = UidKey::from_text(&logged.uid);
        if !self.objects.contains_key(&uid) {
            if self.order.len() >= MAX_LOGGED_OBJECTS
                && let Some(first) = self.order.pop_front()
            {
                self.objects.remove(&first);
            }
            self.order.push_back(uid);
        }
        self.objects.entry(uid).or_default().note(logged.at, logged.line);
        uid
    }
}

impl KopfLogs {
    /// Adds lines in the order in which they were logged; returns the objects that they are about.
    pub(super) fn note(&self, lines: impl IntoIterator<Item = LoggedLine>) -> BTreeSet<UidKey> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.into_iter().map(|line| table.note(line)).collect()
    }

    /// How the handlers of a generation that began then ended, where the log says so. What ends in the second in which it began
    /// may be about the one before, unless that has been told so.
    pub(in crate::reflector) fn find_end(
        &self,
        uid: UidKey,
        start: GenerationStart,
        generation: i64,
    ) -> Option<LoggedEnd> {
        if !start.is_known() {
            return None;
        }
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let end = table.objects.get_mut(&uid)?.last_end.as_mut()?;
        let is_of_generation =
            start.may_have_logged(end.at) && *end.generation.get_or_insert(generation) == generation;
        is_of_generation.then(|| end.how.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(handler: &str, message: &str) -> KopfLogLine {
        KopfLogLine::HandlerFailed { handler: handler.into(), message: message.into() }
    }

    #[test]
    fn a_line_says_that_a_handler_is_given_up_or_how_a_cycle_ended_or_nothing() {
        for (line, expected) in [
            ("Handler 'up' failed permanently: no such image", Some(failed("up", "no such image"))),
            (
                "Handler 'up/sub' failed temporarily but will exceed 3 retries: busy",
                Some(failed("up/sub", "busy")),
            ),
            (
                "Handler 'up' failed temporarily but will time out after 9 seconds: busy",
                Some(failed("up", "busy")),
            ),
            (
                "Handler 'up' failed with an exception and will stop now (it would exceed 3 retries on the next attempt): boom",
                Some(failed("up", "boom")),
            ),
            (
                "Handler 'up' failed with an exception and will stop now: boom\nTraceback (most recent call last):\n  File: x",
                Some(failed("up", "boom")),
            ),
            ("Handler 'up' has exceeded 3 retries.", Some(failed("up", "has exceeded 3 retries."))),
            ("Handler 'up' failed temporarily: busy", None),
            ("Handler 'up' failed with an exception and will try again in 60 seconds: boom", None),
            ("Handler 'up' failed with an exception and will ignore it: boom", None),
            ("Handler 'up' succeeded.", None),
            ("Timer 'tick' failed permanently: boom", None),
            ("Daemon 'watch' failed permanently: boom", None),
            ("Creation is processed: 2 succeeded; 0 failed.", Some(KopfLogLine::ChangeEnded(true))),
            ("Updating is processed: 1 succeeded; 1 failed.", Some(KopfLogLine::ChangeEnded(false))),
            ("Update event is processed: 0 succeeded; 2 failed.", Some(KopfLogLine::ChangeEnded(false))),
            ("Resuming is processed: 0 succeeded; 1 failed.", Some(KopfLogLine::OtherEnded)),
            ("Update is processed: some succeeded; many failed.", None),
            ("", None),
        ] {
            assert_eq!(KopfLogLine::parse(line), expected, "{line}");
        }
    }

    #[test]
    fn what_was_logged_before_a_generation_began_says_nothing_of_it() {
        let began = |second: u32| GenerationStart::at_second(second);
        let second = |number: i64| Time(number * 1_000);
        let line = |at, line| LoggedLine { uid: "u".into(), at: second(at), line };
        let (logs, uid) = (KopfLogs::default(), UidKey::from_text("u"));
        let text = Some("handler up failed: no such image".into());
        logs.note([line(4, failed("up", "no such image"))]);
        assert_eq!(logs.find_end(uid, began(4), 1), None, "another handler may still be tried");
        logs.note([line(5, KopfLogLine::ChangeEnded(false))]);
        assert_eq!(logs.find_end(uid, began(5), 1), Some(LoggedEnd::Failed(text)));
        assert_eq!(
            logs.find_end(uid, began(5), 2),
            None,
            "it was about the first, which began in that second, too"
        );
        assert_eq!(logs.find_end(uid, began(6), 2), None);
        assert_eq!(logs.find_end(uid, GenerationStart::default(), 1), None, "nobody asks for it");
        logs.note([line(7, failed("resume", "gone"))]);
        logs.note([line(7, KopfLogLine::OtherEnded)]);
        logs.note([line(8, KopfLogLine::ChangeEnded(true))]);
        assert_eq!(logs.find_end(uid, began(5), 1), Some(LoggedEnd::Succeeded), "it was tried again");
        logs.note([line(9, KopfLogLine::ChangeEnded(false))]);
        assert_eq!(
            logs.find_end(uid, began(5), 1),
            Some(LoggedEnd::Failed(None)),
            "its lines did not arrive"
        );
    }

    #[test]
    fn whoever_writes_events_about_many_objects_pushes_out_what_was_logged_first() {
        let logs = KopfLogs::default();
        let uid = |number: usize| format!("00000000-0000-4000-8000-{number:012x}");
        let line = |number| LoggedLine {
            uid: uid(number).into(),
            at: Time(5_000),
            line: KopfLogLine::ChangeEnded(false),
        };
        logs.note((0..=MAX_LOGGED_OBJECTS).map(line));
        let began = GenerationStart::at_second(5);
        let held = |number| logs.find_end(UidKey::from_text(&uid(number)), began, 1).is_some();
        assert!(!held(0) && held(1) && held(MAX_LOGGED_OBJECTS));
    }
}
