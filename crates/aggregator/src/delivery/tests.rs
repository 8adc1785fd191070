//! Backoff, overwrites and late writes of one parent, told in sentences.

use super::*;

#[test]
fn failures_in_a_row_are_answered_ever_more_slowly_up_to_a_minute_and_as_the_server_asks() {
    let sec = Duration::from_secs;
    let retry = DeliveryOutcome::Retry;
    let cases: &[(&[DeliveryOutcome], u64, u64)] = &[
        (&[retry(sec(0))], 0, 1),
        (&[retry(sec(0)); 2], 1, 2),
        (&[retry(sec(0)); 4], 6, 8),
        (&[retry(sec(0)); 7], 45, 60),
        (&[retry(sec(0)); 200], 45, 60),
        (&[retry(sec(90))], 90, 90),
        (&[retry(sec(0)), retry(sec(3))], 3, 3),
        (&[DeliveryOutcome::Denied], 0, 1),
        (&[retry(sec(0)), DeliveryOutcome::Denied], 1, 2),
        (&[DeliveryOutcome::Denied; 7], 45, 60),
        (&[DeliveryOutcome::Invalid, DeliveryOutcome::Denied, retry(sec(0))], 3, 4),
        (&[retry(sec(0)), retry(sec(0)), DeliveryOutcome::Unsent], 1, 1),
        // An answer that is no failure begins the row anew.
        (&[retry(sec(0)), retry(sec(0)), DeliveryOutcome::Conflict, retry(sec(0))], 0, 1),
        (&[retry(sec(0)), retry(sec(0)), DeliveryOutcome::Unobserved], 1, 1),
        (&[retry(sec(0)), retry(sec(0)), DeliveryOutcome::Unobserved, retry(sec(0))], 0, 1),
    ];
    for (outcomes, at_least, at_most) in cases {
        let (mut delivery, mut now) = (ParentDelivery::default(), Time(1_000_000));
        for outcome in *outcomes {
            now = delivery.open.not_before.unwrap_or(now).max(now);
            let (decision, _) = delivery.offer_digest(TICKET, digest(1), Duration::ZERO, now);
            assert_eq!(decision, DeliveryDecision::Send(TICKET), "{outcomes:?}");
            delivery.settle_write(TICKET, *outcome, APART, now);
        }
        let delay = delivery.open.not_before.unwrap() - now;
        assert!(delay >= sec(*at_least) && delay <= sec(*at_most), "{outcomes:?}: {delay:?}");
    }
}

#[test]
fn a_write_is_accepted_also_where_nobody_saw_what_it_did() {
    use DeliveryOutcome::{Conflict, Denied, Gone, Invalid, Pruned, Retry, Unobserved, Unsent, Written};
    let accepted =
        [Written, Unobserved, Conflict, Denied, Gone, Invalid, Pruned, Retry(Duration::ZERO), Unsent]
            .map(DeliveryOutcome::is_accepted);
    assert_eq!(accepted, [true, true, false, false, false, false, false, false, false]);
}

const TICKET: WriteTicket = WriteTicket(1);
const APART: JitterKey = JitterKey { seed: Seed(1), key: 1 };

fn digest(number: u64) -> EntriesDigest {
    EntriesDigest { whole: number, without_messages: number }
}

#[test]
fn a_write_that_is_seen_long_after_its_answer_was_lost_is_ours_all_the_same() {
    let (mut delivery, mut now) = (ParentDelivery::default(), Time(0));
    let window = Duration::from_secs(1);
    for _ in 0..REPEATED_OVERWRITE_COUNT {
        now = now + Duration::from_secs(30);
        assert_eq!(delivery.offer_digest(TICKET, digest(1), window, now).0, DeliveryDecision::Send(TICKET));
        delivery.settle_write(TICKET, DeliveryOutcome::Retry(Duration::ZERO), APART, now);
        delivery.observe_digest(digest(1), APART, now);
        assert_eq!(delivery.offer_digest(TICKET, digest(1), window, now).0, DeliveryDecision::Same);
        assert!(!delivery.is_yielding());
        // Another client overwrites it.
        delivery.observe_digest(digest(2), APART, now);
    }
    assert!(delivery.is_yielding());
}

#[test]
fn a_write_whose_answer_was_lost_is_no_overwrite_of_those_that_fail_after_it() {
    for seen_during_a_write in [false, true] {
        let (mut delivery, mut now) = (ParentDelivery::default(), Time(0));
        let mut send = |delivery: &mut ParentDelivery, number: u64| {
            now = now + Duration::from_secs(120);
            let decision = delivery.offer_digest(TICKET, digest(number), Duration::ZERO, now);
            assert_eq!(decision.0, DeliveryDecision::Send(TICKET));
            now
        };
        for round in 0..=REPEATED_OVERWRITE_COUNT {
            let number = u64::from(round) * 10;
            let now = send(&mut delivery, number + 1);
            delivery.observe_digest(digest(number + 1), APART, now);
            delivery.settle_write(TICKET, DeliveryOutcome::Written, APART, now);
            // This one arrives, and neither its answer nor the event of it does; those after it meet it there.
            let now = send(&mut delivery, number + 2);
            delivery.settle_write(TICKET, DeliveryOutcome::Retry(Duration::ZERO), APART, now);
            let now = send(&mut delivery, number + 3);
            if seen_during_a_write {
                delivery.observe_digest(digest(number + 2), APART, now);
            }
            delivery.settle_write(TICKET, DeliveryOutcome::Conflict, APART, now);
            delivery.observe_digest(digest(number + 2), APART, now);
            assert_eq!(delivery.open.overwrites, 0, "{seen_during_a_write}");
        }
        delivery.observe_digest(digest(99), APART, now);
        assert_eq!(delivery.open.overwrites, 1, "what somebody else writes then is one");
    }
}

#[test]
fn an_entry_that_somebody_took_away_beside_the_one_that_we_wrote_is_written_again() {
    let mut delivery = ParentDelivery::default();
    delivery.observe_digest(digest(1), APART, Time(0));
    assert_eq!(
        delivery.offer_digest(TICKET, digest(2), Duration::ZERO, Time(1)).0,
        DeliveryDecision::Send(TICKET)
    );
    // One of the two entries is the new one, and the other one is not there.
    delivery.observe_digest(digest(3), APART, Time(2));
    delivery.settle_write(TICKET, DeliveryOutcome::Pruned, APART, Time(2));
    assert!(!delivery.is_pruned());
    assert_eq!(
        delivery.offer_digest(TICKET, digest(2), Duration::ZERO, Time(3)).0,
        DeliveryDecision::Send(TICKET)
    );
    // Nothing of it is kept.
    delivery.settle_write(TICKET, DeliveryOutcome::Pruned, APART, Time(4));
    assert!(delivery.is_pruned());
    // The same is tried again once a minute: whatever takes it away has not always done so.
    let again = Time(3) + STRIPPED_RETRY_INTERVAL;
    for (wanted, now, expected) in [
        (2, Time(5), (DeliveryDecision::Later, Some(again))),
        (4, Time(5), (DeliveryDecision::Later, Some(again))),
        (2, again, (DeliveryDecision::Send(TICKET), None)),
    ] {
        assert_eq!(delivery.offer_digest(TICKET, digest(wanted), Duration::ZERO, now), expected);
    }
}

#[test]
fn what_a_parent_that_never_held_a_condition_drops_is_tried_again_rarely() {
    let mut delivery = ParentDelivery::default();
    let offer =
        |delivery: &mut ParentDelivery, now| delivery.offer_digest(TICKET, digest(2), Duration::ZERO, now);
    assert_eq!(offer(&mut delivery, Time(3)).0, DeliveryDecision::Send(TICKET));
    delivery.settle_write(TICKET, DeliveryOutcome::Pruned, APART, Time(4));
    assert!(delivery.is_pruned());
    let again = Time(3) + PRUNED_RETRY_INTERVAL;
    assert_eq!(offer(&mut delivery, Time(5)), (DeliveryDecision::Later, Some(again)));
    // That the schema is mended shows nowhere else.
    assert_eq!(offer(&mut delivery, again).0, DeliveryDecision::Send(TICKET));
    delivery.observe_digest(digest(2), APART, again);
    delivery.settle_write(TICKET, DeliveryOutcome::Written, APART, again);
    assert_eq!(delivery, ParentDelivery { open: OpenDeliverySlot::default(), ..delivery.clone() });
}

#[test]
fn writes_that_fail_in_a_row_are_told_of_and_one_that_lands_ends_it() {
    let (mut delivery, mut now) = (ParentDelivery::default(), Time(0));
    let mut told = Vec::new();
    for outcome in [
        DeliveryOutcome::Retry(Duration::ZERO),
        DeliveryOutcome::Denied,
        DeliveryOutcome::Unsent,
        DeliveryOutcome::Retry(Duration::ZERO),
        DeliveryOutcome::Written,
    ] {
        now = now + Duration::from_mins(2);
        delivery.offer_digest(TICKET, digest(2), Duration::ZERO, now);
        if outcome == DeliveryOutcome::Written {
            delivery.observe_digest(digest(2), APART, now);
        }
        delivery.settle_write(TICKET, outcome, APART, now);
        told.push(delivery.unwritten().is_some());
    }
    assert_eq!(told, [false, false, false, true, false]);
}

#[test]
fn what_can_be_said_more_briefly_is_at_once_and_in_full_again_after_a_while_or_where_that_did_not_help() {
    let brief = Brevity { is_short: true, ..Brevity::default() };
    let (mut delivery, mut now) = (ParentDelivery::default(), Time(1_000_000));
    let mut waits = Vec::new();
    for _ in 0..7 {
        for (number, outcome) in [(1, DeliveryOutcome::Shortened(brief)), (2, DeliveryOutcome::Invalid)] {
            let (decision, _) = delivery.offer_digest(TICKET, digest(number), Duration::ZERO, now);
            assert_eq!(decision, DeliveryDecision::Send(TICKET));
            delivery.settle_write(TICKET, outcome, APART, now);
            assert_eq!(delivery.brevity(now) == brief, outcome != DeliveryOutcome::Invalid);
        }
        let again = delivery.offer_digest(TICKET, digest(1), Duration::ZERO, now).1.unwrap();
        waits.push((again - now).as_secs());
        now = again;
    }
    assert!(waits.is_sorted() && waits[6] >= 45, "what stays refused is tried ever more rarely: {waits:?}");
    delivery.offer_digest(TICKET, digest(1), Duration::ZERO, now);
    delivery.settle_write(TICKET, DeliveryOutcome::Shortened(brief), APART, now);
    delivery.offer_digest(TICKET, digest(2), Duration::ZERO, now);
    delivery.observe_digest(digest(2), APART, now);
    delivery.settle_write(TICKET, DeliveryOutcome::Written, APART, now);
    assert_eq!(delivery.brevity(now), brief, "it is the only way to say it");
    assert_eq!(delivery.brevity(now + BREVITY_LASTS), Brevity::default(), "the rule may be gone");
}

#[test]
fn what_could_not_be_written_is_tried_again_as_soon_as_the_status_is_of_another_shape() {
    for (outcome, at) in [(DeliveryOutcome::Pruned, 0), (DeliveryOutcome::Invalid, 1_000)] {
        let (mut delivery, begun) = (ParentDelivery::default(), Time(1_000_000));
        let mut now = begun;
        for _ in 0..7 {
            let (_, at) = delivery.offer_digest(TICKET, digest(1), Duration::ZERO, now);
            now = at.unwrap_or(now);
            delivery.offer_digest(TICKET, digest(1), Duration::ZERO, now);
            delivery.settle_write(TICKET, outcome, APART, now);
        }
        let waits = delivery.offer_digest(TICKET, digest(1), Duration::ZERO, now).1.unwrap();
        assert!(waits - now >= Duration::from_secs(45), "{outcome:?}");
        delivery.retry_refused(now);
        let tried_at = Time(now.0 + at);
        if tried_at > now {
            let (decision, later) = delivery.offer_digest(TICKET, digest(1), Duration::ZERO, now);
            assert_eq!((decision, later), (DeliveryDecision::Later, Some(tried_at)));
        }
        let decision = delivery.offer_digest(TICKET, digest(1), Duration::ZERO, tried_at).0;
        assert_eq!(decision, DeliveryDecision::Send(TICKET), "{outcome:?}");
    }
    // A server that fails is left alone all the same.
    let (mut delivery, now) = (ParentDelivery::default(), Time(0));
    delivery.offer_digest(TICKET, digest(1), Duration::ZERO, now);
    delivery.settle_write(TICKET, DeliveryOutcome::Retry(Duration::from_secs(60)), APART, now);
    delivery.retry_refused(now);
    assert_eq!(delivery.offer_digest(TICKET, digest(1), Duration::ZERO, now).1, Some(Time(60_000)));
}

#[test]
fn what_somebody_else_wrote_before_our_write_was_heard_of_is_no_fight() {
    let mut delivery = ParentDelivery::default();
    assert_eq!(
        delivery.offer_digest(TICKET, digest(1), Duration::ZERO, Time(0)).0,
        DeliveryDecision::Send(TICKET)
    );
    delivery.settle_write(TICKET, DeliveryOutcome::Retry(Duration::ZERO), APART, Time(1));
    for other in 2..10 {
        delivery.observe_digest(digest(other), APART, Time(2));
    }
    assert!(!delivery.is_yielding());
}

/// Times of the writes against a rival that overwrites each write after a delay chosen by the seed.
fn fought(apart: JitterKey, hours: u64) -> Vec<u64> {
    let (mut delivery, mut now, mut writes) = (ParentDelivery::default(), Time(0), vec![]);
    while now.0.unsigned_abs() < hours * 3_600_000 {
        match delivery.offer_digest(TICKET, digest(1), Duration::from_secs(1), now) {
            (DeliveryDecision::Send(TICKET), _) => {
                writes.push(now.0.unsigned_abs());
                delivery.observe_digest(digest(1), apart, now);
                delivery.settle_write(TICKET, DeliveryOutcome::Written, apart, now);
                now = now + apart.seed.duration_below(Duration::from_secs(5), now.0.unsigned_abs());
                delivery.observe_digest(digest(2), apart, now);
            }
            (_, at) => now = at.unwrap(),
        }
    }
    writes
}

#[test]
fn a_rival_is_answered_ever_more_slowly_and_never_given_up() {
    for seed in 0..200 {
        let writes = fought(JitterKey { seed: Seed(seed), key: seed ^ 7 }, 2);
        let gaps: Vec<u64> = writes.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let expected = [1_000_u64, 2_000, 4_000, 8_000, 16_000, 32_000];
        for (gap, full) in gaps[1..].iter().zip(expected) {
            // Up to a quarter is jitter, and the rival took up to five seconds.
            assert!((full * 3 / 4..full + 5_000).contains(gap), "{gaps:?}");
        }
        assert!(gaps[7..].iter().all(|gap| (60_000..65_000).contains(gap)), "{gaps:?}");
        assert!(gaps.len() > 100, "{gaps:?}");
    }
}

#[test]
fn after_a_rest_the_next_one_is_answered_at_once() {
    let mut delivery = ParentDelivery::default();
    for n in 0..10 {
        let now = Time(n * 600_000);
        assert_eq!(
            delivery.offer_digest(TICKET, digest(1), Duration::ZERO, now).0,
            DeliveryDecision::Send(TICKET)
        );
        delivery.observe_digest(digest(1), APART, now);
        delivery.settle_write(TICKET, DeliveryOutcome::Written, APART, now);
        delivery.observe_digest(digest(2), APART, now);
    }
    assert!(delivery.is_repeatedly_overwritten());
    delivery.end_conflict();
    let now = Time(7_000_000);
    assert_eq!(
        delivery.offer_digest(TICKET, digest(1), Duration::ZERO, now).0,
        DeliveryDecision::Send(TICKET)
    );
    delivery.observe_digest(digest(1), APART, now);
    delivery.settle_write(TICKET, DeliveryOutcome::Written, APART, now);
    delivery.observe_digest(digest(2), APART, now);
    assert_eq!(
        delivery.offer_digest(TICKET, digest(1), Duration::ZERO, now).0,
        DeliveryDecision::Send(TICKET)
    );
}

#[test]
fn writes_that_arrived_though_their_answers_were_lost_are_no_row_of_failures() {
    let mut delivery = ParentDelivery::default();
    for number in 1..10 {
        let now = Time(i64::try_from(number).unwrap() * 120_000);
        let decision = delivery.offer_digest(TICKET, digest(number), Duration::ZERO, now);
        assert_eq!(decision.0, DeliveryDecision::Send(TICKET));
        delivery.observe_digest(digest(number), APART, now);
        delivery.settle_write(TICKET, DeliveryOutcome::Retry(Duration::ZERO), APART, now);
        assert!(delivery.open.not_before.unwrap() - now <= Duration::from_secs(1), "{number}");
    }
}

#[test]
fn a_delivery_that_came_to_rest_holds_nothing_but_what_was_said() {
    let (mut delivery, now) = (ParentDelivery::default(), Time(1_000_000));
    for _ in 0..2 {
        assert_eq!(
            delivery.offer_digest(TICKET, digest(1), Duration::ZERO, now).0,
            DeliveryDecision::Send(TICKET)
        );
        assert_ne!(delivery.open, OpenDeliverySlot::default());
        delivery.observe_digest(digest(1), APART, now);
        delivery.settle_write(TICKET, DeliveryOutcome::Written, APART, now);
        assert_eq!(delivery.open, OpenDeliverySlot::default());
        delivery.observe_digest(digest(2), APART, now);
        assert_ne!(delivery.open, OpenDeliverySlot::default(), "an overwrite is remembered");
        delivery.end_conflict();
        assert_eq!(delivery.open, OpenDeliverySlot::default());
    }
}

#[test]
fn what_could_not_be_added_is_offered_again_later_and_what_stands_is_changed_at_once() {
    let (mut delivery, mut now) = (ParentDelivery::default(), Time(0));
    let [ready, with_reconciling, without] = [1, 2, 3].map(digest);
    let send = |delivery: &mut ParentDelivery, number: EntriesDigest, now: Time| {
        let decision = delivery.offer_digest(TICKET, number, Duration::ZERO, now).0;
        assert_eq!(decision, DeliveryDecision::Send(TICKET));
    };
    delivery.observe_digest(ready, APART, now);
    while delivery.may_add_types(now) {
        send(&mut delivery, with_reconciling, now);
        delivery.settle_write(TICKET, DeliveryOutcome::Contended, APART, now);
    }
    send(&mut delivery, without, now);
    delivery.observe_digest(without, APART, now);
    delivery.settle_write(TICKET, DeliveryOutcome::Written, APART, now);
    let (decision, again) = delivery.offer_digest(TICKET, without, Duration::ZERO, now);
    assert_eq!(decision, DeliveryDecision::Same);
    now = again.expect("the rest is tried later");
    send(&mut delivery, with_reconciling, now);
    delivery.observe_digest(with_reconciling, APART, now);
    delivery.settle_write(TICKET, DeliveryOutcome::Written, APART, now);
    let offered = delivery.offer_digest(TICKET, with_reconciling, Duration::ZERO, now);
    assert_eq!(offered, (DeliveryDecision::Same, None), "it is over");
    assert_eq!(delivery.failures(), 0, "the parent took all that was written to it");
}

#[test]
fn a_write_that_is_forestalled_also_without_what_it_adds_backs_off_to_a_minute() {
    let (mut delivery, mut now) = (ParentDelivery::default(), Time(0));
    let mut sent = Vec::new();
    while now < Time(0) + Duration::from_mins(30) {
        match delivery.offer_digest(TICKET, digest(2), Duration::ZERO, now) {
            (DeliveryDecision::Send(_), _) => {
                sent.push(now);
                delivery.settle_write(TICKET, DeliveryOutcome::Contended, APART, now);
            }
            (_, again) => now = again.unwrap(),
        }
    }
    let last_ten_minutes = sent.iter().filter(|at| **at >= Time(0) + Duration::from_mins(20)).count();
    assert!((1..=40).contains(&last_ten_minutes), "{last_ten_minutes} writes in ten minutes");
}
