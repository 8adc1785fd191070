//! Many parents, and a server that refuses every write for a while; in virtual time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

mod fixture;
mod release;

use std::collections::BTreeSet;
use std::time::Duration;

use aggregator::{DeliveryOutcome, KindState};

use fixture::{LATENCY, NOW, PARENTS, REFUSED, WriteOutage};

#[test]
fn a_server_that_refuses_every_write_is_probed_and_told_everything_once_it_heals() {
    let mut outage = WriteOutage::begin();
    outage.run_for(Duration::from_mins(2));
    let first_second = outage.sent.iter().filter(|at| **at < NOW + Duration::from_secs(1)).count();
    assert!(first_second <= 8, "{first_second}");
    let busiest = outage.busiest_second(NOW + Duration::from_secs(1));
    assert!((1..=2).contains(&busiest), "{busiest} requests within a second");
    assert!(outage.sent.len() > 100, "it is probed all the time: {}", outage.sent.len());
    assert!(outage.core.write_queue_len() > PARENTS - 200, "parents wait, and nothing is rendered for them");
    outage.failing = None;
    outage.run_for(Duration::from_mins(2));
    assert_eq!(outage.written.len(), PARENTS);
    assert_eq!(outage.core.write_queue_len(), 0);
}

#[test]
fn a_server_that_denies_every_write_is_asked_four_times_a_second() {
    let mut outage = WriteOutage::begin();
    outage.failing = Some(DeliveryOutcome::Denied);
    outage.run_for(Duration::from_mins(20));
    let busiest = outage.busiest_second(NOW + Duration::from_secs(1));
    assert!((3..=6).contains(&busiest), "{busiest} requests within a second");
    let asked = outage.sent.len();
    assert!(asked > 2 * PARENTS, "each has its turn again and again: {asked}");
    outage.failing = None;
    outage.run_for(Duration::from_mins(2));
    assert_eq!((outage.written.len(), outage.core.write_queue_len()), (PARENTS, 0));
}

#[test]
fn what_one_half_of_the_parents_is_refused_is_tried_rarely_though_the_other_half_is_written_all_the_time() {
    for refusal in [REFUSED, DeliveryOutcome::Conflict] {
        let mut outage = WriteOutage::begin();
        outage.failing = Some(refusal);
        outage.refused = |name| name.ends_with(['0', '2', '4', '6', '8']);
        // Each that is refused is found out once, four of them a second, and the others with them.
        outage.run_for(Duration::from_mins(6));
        assert_eq!(outage.written.len(), PARENTS / 2, "{refusal:?}: the others are written");
        outage.sent.clear();
        for round in 0..300 {
            outage.edit_spec(&format!("db-{}", 2 * round + 1));
            outage.run_for(Duration::from_millis(100));
        }
        // Each edit takes a write for its first word, and one for its answer some seconds later.
        let refused = outage.sent.len().saturating_sub(2 * 300);
        assert!(refused <= 30 * 8, "{refusal:?}: {refused} beside the others");
        outage.failing = None;
        outage.run_for(Duration::from_mins(2));
        assert_eq!(outage.written.len(), PARENTS, "{refusal:?}");
    }
}

#[test]
fn few_parents_are_written_in_the_turn_that_decides_it_and_more_with_each_that_lands() {
    let mut outage = WriteOutage::begin();
    let (mut handed_out, mut before) = (Vec::new(), BTreeSet::new());
    for _ in 0..8 {
        let writes = outage.core.run_turn(NOW);
        handed_out.push(writes.len());
        for write in writes {
            assert!(before.insert(write.name.clone()), "each in its turn");
            outage.answer_as(write, None);
        }
    }
    assert_eq!(handed_out, [3, 6, 12, 24, 32, 32, 32, 32], "no more than the writer has room for");
}

#[test]
fn what_waits_to_be_said_of_a_blindness_is_not_said_when_it_is_over() {
    let mut outage = WriteOutage::of_ready_parents();
    outage.core.engine.set_kind_state(outage.now, outage.pods, KindState::Stale);
    outage.run_for(LATENCY);
    let begun = outage.reasons.len();
    assert!((1..PARENTS / 2).contains(&begun), "{begun} of {PARENTS} parents are on their way");
    assert!(outage.reasons.iter().all(|reason| reason == "WatchStale"));
    assert!(outage.core.write_queue_len() > 0, "others wait");
    outage.core.engine.set_kind_state(outage.now, outage.pods, KindState::Synced);
    outage.run_for(Duration::from_mins(5));
    let after = &outage.reasons[begun..];
    assert!(after.iter().all(|reason| reason == "AllChildrenReady"), "{after:?}");
    assert_eq!(after.len(), begun, "and only where the blindness was told");
}

#[test]
fn an_outage_that_heals_turns_no_more_parents_than_showed_that_it_is_over() {
    let mut outage = WriteOutage::of_ready_parents();
    outage.failing = Some(REFUSED);
    outage.core.engine.set_kind_state(outage.now, outage.pods, KindState::Stale);
    outage.run_for(Duration::from_secs(30));
    assert!(!outage.core.take_outage_end(), "it goes on");
    outage.failing = None;
    outage.written.clear();
    outage.run_for(Duration::from_secs(5));
    assert!(outage.core.take_outage_end(), "what is not seen can be listed now");
    assert!(!outage.core.take_outage_end());
    assert_eq!(outage.written.len(), 1, "the write that was answered");
    outage.core.engine.set_kind_state(outage.now, outage.pods, KindState::Synced);
    outage.run_for(Duration::from_mins(5));
    assert_eq!(
        (outage.written.len(), outage.core.write_queue_len()),
        (1, 0),
        "and that one is told that all is well"
    );
    assert_eq!(outage.reasons.last().map(String::as_str), Some("AllChildrenReady"));
}

#[test]
fn a_kind_that_stays_blind_after_an_outage_is_told_of_twenty_seconds_later_and_a_new_generation_at_once() {
    let mut outage = WriteOutage::of_ready_parents();
    outage.failing = Some(REFUSED);
    outage.core.engine.set_kind_state(outage.now, outage.pods, KindState::Stale);
    outage.run_for(Duration::from_secs(30));
    outage.failing = None;
    outage.written.clear();
    outage.run_for(Duration::from_secs(2));
    outage.edit_spec("db-1234");
    outage.run_for(Duration::from_secs(2));
    assert!(outage.written.contains("db-1234") && outage.written.len() == 2, "{:?}", outage.written);
    outage.run_for(Duration::from_mins(1));
    assert_eq!((outage.written.len(), outage.core.write_queue_len()), (PARENTS, 0));
}

#[test]
fn a_true_that_does_not_hold_any_more_is_taken_back_before_others_are_told_that_they_are_ready() {
    let mut outage = WriteOutage::of_ready_parents();
    outage.turn_pods(0..400, false);
    outage.run_for(Duration::from_mins(1));
    outage.failing = Some(REFUSED);
    outage.fails_every_second = true;
    outage.turn_pods(0..400, true);
    outage.run_for(Duration::from_secs(5));
    let (waiting, end) = (outage.core.write_queue_len(), PARENTS);
    assert!(waiting > 300, "{waiting} have good news");
    outage.written.clear();
    outage.turn_pods(end - 20..end, false);
    outage.run_for(Duration::from_secs(12));
    let withdrawn = (end - 20..end).filter(|at| outage.written.contains(&format!("db-{at}"))).count();
    assert!(withdrawn >= 19, "{withdrawn} of 20 within twelve seconds");
    assert!(outage.core.write_queue_len() > 200, "the others wait meanwhile");
    outage.run_for(Duration::from_mins(5));
    assert_eq!(outage.core.write_queue_len(), 0, "and are told");
}
