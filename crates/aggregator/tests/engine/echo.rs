//! Rollcall's own writes never trigger each other in a loop, whatever the server answers.

use std::time::Duration;

use aggregator::HandledEvidence;
use readiness::Level::{Failed, Ready};

use crate::answers::well;
use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{EngineHarness, POLICY};
use crate::policy;

/// Number of writes to `name` in each minute since `from`.
fn by_minute(w: &EngineHarness, name: &str, from: i64) -> Vec<usize> {
    let told = w.told(name);
    let minutes = (w.millis() - from) / 60_000;
    let within = |minute: i64| {
        let start = from + minute * 60_000;
        told.iter().filter(|(at, _)| (start..start + 60_000).contains(at)).count()
    };
    (0..minutes).map(within).collect()
}

#[test]
fn a_parent_whose_generation_moves_with_each_write_is_written_once_a_minute() {
    let mut w = EngineHarness::with(policy());
    w.server.moved_by_writes = true;
    w.parent("db");
    w.child("web", "db", Ready);
    w.run(30 * 60_000);
    let writes = by_minute(&w, "db", 0);
    assert!(writes[0] <= 21, "{writes:?}");
    assert!(writes[1..].iter().all(|n| *n == 1), "{writes:?}");
    assert!(w.engine.evaluation_states().all(|state| state.yielding));
}

#[test]
fn what_others_do_is_told_at_once_even_then() {
    let mut w = EngineHarness::with(policy());
    w.server.moved_by_writes = true;
    w.parent("db");
    w.child("web", "db", Ready);
    w.run(5 * 60_000 + 10_000);
    let before = w.told("db").len();
    w.turn("web", Failed);
    w.run(1_000);
    let more = w.told("db").len() - before;
    assert!((1..=4).contains(&more), "{more}");
}

#[test]
fn an_echo_that_has_ended_is_forgotten() {
    let mut w = EngineHarness::with(policy());
    w.server.moved_by_writes = true;
    w.parent("db");
    w.child("web", "db", Ready);
    w.run(5 * 60_000);
    w.server.moved_by_writes = false;
    w.run(3 * 60_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.run(6 * 60_000);
    assert!(w.engine.evaluation_states().all(|state| !state.yielding));
    let before = w.told("db").len();
    w.respecify("db", HandledEvidence::Handled);
    w.run(20_000);
    assert_eq!(w.words("db")[before..], ["ChildrenPending", "AllChildrenReady"]);
}

#[test]
fn an_operator_that_answers_each_write_with_another_mark_does_not_keep_us_busy() {
    let mut w = well();
    w.server.delay = Duration::ZERO;
    let from = w.millis();
    let mut seen = w.server.log.len();
    w.change_parent("db", |p| p.evidence = HandledEvidence::NotYet);
    for _ in 0..6_000 {
        w.run(100);
        if w.server.log.len() > seen {
            seen = w.server.log.len();
            w.change_parent("db", |p| {
                p.evidence = if p.evidence == HandledEvidence::NotYet {
                    HandledEvidence::Handled
                } else {
                    HandledEvidence::NotYet
                };
            });
        }
    }
    let writes = by_minute(&w, "db", from);
    assert!(writes[0] <= 32, "{writes:?}");
    assert!(writes[1..].iter().all(|n| *n <= 1), "{writes:?}");
    assert!(w.engine.evaluation_states().all(|state| state.yielding));
}

#[test]
fn a_webhook_that_alters_what_we_write_is_not_argued_with() {
    for alter_gist in [false, true] {
        let mut w = well();
        w.server.delay = Duration::ZERO;
        let from = w.millis();
        let mut seen = w.server.log.len();
        w.turn("web", Failed);
        for _ in 0..60_000 {
            w.run(10);
            if w.server.log.len() > seen {
                seen = w.server.log.len();
                w.change_parent("db", |p| {
                    let entry = p.status.get_mut(&POLICY).unwrap();
                    entry.message.push_str(" (altered)");
                    entry.reconciling ^= alter_gist;
                });
            }
        }
        let writes = by_minute(&w, "db", from);
        assert!(writes[0] <= 8 && writes[1..].iter().all(|n| *n <= 6), "{alter_gist}: {writes:?}");
    }
}

#[test]
fn an_echo_below_is_none_above() {
    let mut w = EngineHarness::with(policy());
    w.parent("top");
    w.parent("mid");
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
    w.child("leaf", "mid", Ready);
    w.run(20_000);
    w.server.moved_by_writes = true;
    w.turn("leaf", Failed);
    w.run(20 * 60_000);
    for name in ["top", "mid"] {
        let writes = by_minute(&w, name, 20_000);
        assert!(writes[1..].iter().all(|n| *n <= 1), "{name}: {writes:?}");
    }
}

#[test]
fn a_spec_that_changes_now_and_then_is_no_echo() {
    let mut w = well();
    for _ in 0..30 {
        w.respecify("db", HandledEvidence::Handled);
        w.run(15_000);
        assert_eq!(w.says("db"), "AllChildrenReady");
    }
    assert!(w.engine.evaluation_states().all(|state| !state.yielding));
}
