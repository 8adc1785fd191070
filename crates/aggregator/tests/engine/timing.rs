//! Latency measurements available to the driver.

use aggregator::HandledEvidence;
use readiness::Level::{Failed, Progressing, Ready};
use readiness::Time;

use crate::answers::well;
use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{EngineHarness, POLICY};
use crate::policy;

fn first_ready(harness: &mut EngineHarness) -> Option<Time> {
    let db = harness.id("db");
    harness.engine.take_first_ready(db, POLICY)
}

#[test]
fn a_generation_becomes_ready_for_the_first_time_once() {
    let mut w = EngineHarness::with(policy());
    w.child("web", "db", Progressing);
    w.run(1_000);
    let start = w.now;
    w.parent("db");
    w.run(60_000);
    assert_eq!(first_ready(&mut w), None, "not ready yet");
    w.turn("web", Ready);
    w.run(60_000);
    assert_eq!(first_ready(&mut w), Some(start));
    w.turn("web", Failed);
    w.run(60_000);
    w.turn("web", Ready);
    w.run(60_000);
    assert_eq!(first_ready(&mut w), None, "ready again, not for the first time");
    let again = w.now;
    w.respecify("db", HandledEvidence::Handled);
    w.run(60_000);
    assert_eq!(first_ready(&mut w), Some(again));
}

#[test]
fn a_generation_that_was_known_before_a_restart_is_not_first_seen() {
    let mut w = well();
    w.turn("web", Failed);
    w.run(10_000);
    w.restart(&["db", "web"]);
    w.turn("web", Ready);
    w.run(60_000);
    assert_eq!((w.says("db"), first_ready(&mut w)), ("AllChildrenReady".to_owned(), None));
}

#[test]
fn a_write_was_called_for_by_the_first_touch_that_led_to_it() {
    let mut w = well();
    w.run(60_000);
    w.called.clear();
    let first = w.now;
    w.turn("web", Failed);
    // The effects of the write itself are over by then, but a second write is not due at once yet.
    w.run(500);
    let second = w.now;
    for level in [Progressing, Failed, Ready] {
        w.turn("web", level);
        w.run(40);
    }
    w.run(2_000);
    assert_eq!(w.called, [Some(first), Some(second)], "the second was awaited to be quiet");
}

#[test]
fn what_calls_for_no_write_is_not_remembered_for_the_next() {
    let mut w = well();
    w.run(60_000);
    w.called.clear();
    w.turn("web", Failed);
    w.turn("web", Ready);
    w.run(10_000);
    let later = w.now;
    w.turn("web", Failed);
    w.run(10);
    assert_eq!(w.called, [Some(later)]);
}

#[test]
fn what_time_alone_calls_for_was_called_for_by_nothing() {
    let mut w = EngineHarness::with(policy());
    w.child("web", "db", Ready);
    w.parent("db");
    w.run(60_000);
    assert_eq!(w.words("db"), ["ChildrenPending", "ChildrenSettling", "AllChildrenReady"]);
    assert!(w.called[0].is_some(), "it was seen");
    assert_eq!(w.called[2], None, "its operator counts as done after a while");
}

#[test]
fn a_write_that_is_delayed_on_purpose_was_called_for_by_nothing() {
    // A message alone waits for ten seconds, a failed write for as long as the server asks.
    let message: fn(&mut EngineHarness) = |w| w.child("api", "db", Progressing);
    let failed: fn(&mut EngineHarness) = |w| {
        w.server.fates = vec![crate::server::WriteFate::Retry(std::time::Duration::from_secs(7))];
        w.turn("web", Ready);
    };
    for (change, called) in [(message, 1), (failed, 2)] {
        let mut w = well();
        w.run(60_000);
        w.turn("web", Progressing);
        w.run(2_000);
        w.called.clear();
        change(&mut w);
        w.run(30_000);
        assert_eq!((w.called.len(), w.called[called - 1]), (called, None));
    }
}

#[test]
fn a_write_that_waits_for_its_window_was_called_for_by_what_waits() {
    for (delay, quiet, between) in [(5, 100, 400), (0, 0, 0)] {
        let debounce = timer::DebounceConfig {
            quiet: std::time::Duration::from_millis(quiet),
            cap: std::time::Duration::from_secs(1),
        };
        let mut w = EngineHarness::with(aggregator::EnginePolicy { debounce, ..policy() });
        w.server.delay = std::time::Duration::from_millis(delay);
        w.parent("db");
        w.child("web", "db", Ready);
        w.run(60_000);
        w.called.clear();
        let mut times = Vec::new();
        for level in [Failed, Progressing, Failed] {
            times.push(Some(w.now));
            w.turn("web", level);
            w.run(between);
        }
        w.run(2_000);
        assert_eq!(w.called, times, "the third one waits for a second to be over since the first");
    }
}
