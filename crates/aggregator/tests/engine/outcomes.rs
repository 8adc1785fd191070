//! Outcomes of writes that the simulated server never gives by itself: told by hand, one write at a time.

use std::time::Duration;

use aggregator::DeliveryOutcome;
use readiness::Level::{Failed, Progressing, Ready};

use crate::answers::well;
use crate::ask::HarnessQueries as _;
use crate::conditions::Status;
use crate::driver::EngineDriver as _;
use crate::harness::{EngineHarness, POLICY};
use crate::server::PendingWrite;

const LOST: DeliveryOutcome = DeliveryOutcome::Retry(Duration::ZERO);

/// A parent that is ready, whose writes stay on their way until they are answered by hand.
fn by_hand() -> EngineHarness {
    let mut w = well();
    w.run(60_000);
    w.server.delay = Duration::from_hours(100);
    w
}

/// Waits for the next write and takes it off its way.
fn next_write(w: &mut EngineHarness) -> PendingWrite {
    for _ in 0..2_000 {
        if let Some(flight) = w.server.flights.pop() {
            return flight;
        }
        w.run(100);
    }
    panic!("nothing is written")
}

/// Answers a write; `found` is what the parent is seen to say before that.
fn answer(w: &mut EngineHarness, flight: &PendingWrite, found: Option<Status>, outcome: DeliveryOutcome) {
    if let Some(found) = found {
        w.change_parent("db", |p| p.status = found);
    }
    w.engine.settle_write(flight.id, flight.ticket, outcome, w.now);
}

/// The status that a write wanted, with another message or another `Stalled`.
fn altered(flight: &PendingWrite, message_alone: bool) -> Status {
    let mut status = flight.wanted.clone();
    let entry = status.get_mut(&POLICY).unwrap();
    entry.message.push_str(" (altered)");
    entry.stalled ^= !message_alone;
    status
}

#[test]
fn an_admission_webhook_that_alters_messages_overwrites_nothing_and_one_that_alters_answers_does() {
    for message_alone in [true, false] {
        let mut w = by_hand();
        for level in [Failed, Progressing, Failed, Progressing] {
            w.turn("web", level);
            let flight = next_write(&mut w);
            let found = altered(&flight, message_alone);
            answer(&mut w, &flight, Some(found), DeliveryOutcome::Written);
        }
        assert_eq!(w.engine.is_repeatedly_overwritten(w.id("db")), !message_alone);
    }
}

#[test]
fn of_two_writes_whose_answers_were_lost_either_may_be_read_next() {
    let mut w = by_hand();
    for _ in 0..4 {
        w.turn("web", Failed);
        let first = next_write(&mut w);
        answer(&mut w, &first, None, LOST);
        w.turn("web", Progressing);
        let second = next_write(&mut w);
        answer(&mut w, &second, None, LOST);
        // The first one arrived, late.
        w.change_parent("db", |p| p.status = first.wanted.clone());
        assert!(!w.engine.is_repeatedly_overwritten(w.id("db")));
        let third = next_write(&mut w);
        answer(&mut w, &third, Some(third.wanted.clone()), DeliveryOutcome::Written);
        w.turn("web", Ready);
        let last = next_write(&mut w);
        answer(&mut w, &last, Some(last.wanted.clone()), DeliveryOutcome::Written);
    }
    assert!(!w.engine.is_repeatedly_overwritten(w.id("db")));
}

#[test]
fn a_write_that_arrived_and_was_not_answered_is_overwritten_like_any_other() {
    let mut w = by_hand();
    for level in [Failed, Progressing, Failed, Progressing] {
        w.turn("web", level);
        let flight = next_write(&mut w);
        answer(&mut w, &flight, Some(flight.wanted.clone()), LOST);
        w.change_parent("db", |p| p.status = altered(&flight, false));
    }
    assert!(w.engine.is_repeatedly_overwritten(w.id("db")));
}

#[test]
fn what_was_dropped_from_a_parent_that_has_held_conditions_is_tried_once_a_minute() {
    let mut w = well();
    w.server.fates = vec![crate::server::WriteFate::Pruned];
    w.turn("web", Failed);
    w.run(40_000);
    assert_eq!((w.says("db"), w.server.fates.len()), ("AllChildrenReady".to_owned(), 0));
    w.turn("web", Progressing);
    w.run(15_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.run(10_000);
    assert_eq!(w.says("db"), "ChildrenProgressing");
}

#[test]
fn conflicts_in_a_row_are_answered_at_once_and_then_after_a_delay_that_doubles() {
    let mut w = by_hand();
    w.turn("web", Failed);
    let mut delays = Vec::new();
    for _ in 0..18 {
        let since = w.now;
        while w.server.flights.is_empty() {
            w.run(1);
        }
        let flight = w.server.flights.pop().unwrap();
        delays.push((w.now - since).as_millis());
        answer(&mut w, &flight, None, DeliveryOutcome::Conflict);
    }
    // The run of one millisecond that finds a write is counted; up to a quarter is taken off, so that parents that conflict
    // at once do not ask at once again.
    let most = [50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 60_000, 60_000, 60_000];
    assert_eq!(delays[1], 1);
    for (delay, most) in delays[2..].iter().zip(most) {
        assert!((most * 3 / 4..=most).contains(delay), "{delays:?}");
    }
}

#[test]
fn an_outcome_of_another_write_means_nothing() {
    let mut w = by_hand();
    w.turn("web", Failed);
    let first = next_write(&mut w);
    answer(&mut w, &first, None, DeliveryOutcome::Unsent);
    let second = next_write(&mut w);
    // The answer to the first one, heard of again: the second one is still awaited.
    answer(&mut w, &first, None, LOST);
    w.run(60_000);
    assert!(w.server.flights.is_empty());
    assert_eq!(w.engine.write_failures(w.id("db")), 0);
    answer(&mut w, &second, Some(second.wanted.clone()), DeliveryOutcome::Written);
    w.run(60_000);
    assert!(w.server.flights.is_empty());
}

#[test]
fn a_write_whose_effect_was_not_observed_overwrites_nothing() {
    let mut w = by_hand();
    for level in [Failed, Progressing, Failed, Progressing] {
        w.turn("web", level);
        let first = next_write(&mut w);
        // Its kind is being listed: the response was not taken in, and what was known before is still what is known.
        answer(&mut w, &first, None, DeliveryOutcome::Unobserved);
        let since = w.now;
        let second = next_write(&mut w);
        assert!((w.now - since).as_millis() >= 900, "{:?}", w.now - since);
        // It tests for what the first one replaced. What is read then is what the first one wrote.
        answer(&mut w, &second, Some(first.wanted.clone()), DeliveryOutcome::Conflict);
    }
    assert!(!w.engine.is_repeatedly_overwritten(w.id("db")));
    w.turn("web", Ready);
    let last = next_write(&mut w);
    answer(&mut w, &last, Some(last.wanted.clone()), DeliveryOutcome::Written);
    assert_eq!(w.says("db"), "AllChildrenReady");
}
