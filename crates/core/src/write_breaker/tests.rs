use super::*;

const RETRY: DeliveryOutcome = DeliveryOutcome::Retry(Duration::ZERO);
const WRITTEN: DeliveryOutcome = DeliveryOutcome::Written;
/// What is sent, and what may stand there instead.
const SENT: EntriesDigest = EntriesDigest { whole: 1, without_messages: 1 };
const OTHER: EntriesDigest = EntriesDigest { whole: 2, without_messages: 1 };

/// A write that is answered so at once; what it says is on the parent where that was accepted.
fn write(breakers: &mut WriteBreakers, kind: KindId, retries: bool, outcome: DeliveryOutcome, now: Time) {
    let shown = if outcome.is_accepted() { SENT } else { OTHER };
    breakers.begin_write(kind, WriteTicket::default(), SENT, retries, now);
    breakers.end_write(WriteTicket::default(), outcome, Some(shown), now);
}

/// Runs writes of `kinds` kinds, each turn every kind that may, answered at once, in steps of 10 ms; returns the number
/// of requests within this span.
fn requests(kinds: u32, outcome: DeliveryOutcome, from: i64, until: i64) -> usize {
    let (mut breakers, mut sent) = (WriteBreakers::default(), 0);
    for at in (0..until).step_by(10) {
        for kind in (0..kinds).map(KindId).collect::<Vec<_>>() {
            if breakers.may_write(kind, false, Time(at)) {
                write(&mut breakers, kind, false, outcome, Time(at));
                sent += usize::from(at >= from);
            }
        }
    }
    sent
}

#[test]
fn one_probe_a_second_for_a_kind_and_six_for_all() {
    for (kinds, outcome, expected) in [
        (1, RETRY, 10),
        (5, RETRY, 50),
        (100, RETRY, 59),
        (1, DeliveryOutcome::Retry(Duration::from_secs(5)), 2),
        (1, DeliveryOutcome::Denied, 59),
        (5, DeliveryOutcome::Denied, 59),
        (5, DeliveryOutcome::Conflict, 59),
        (1, DeliveryOutcome::Gone, 59),
        (1, DeliveryOutcome::Pruned, 59),
        (1, WRITTEN, 1_000),
    ] {
        let sent = requests(kinds, outcome, 10_000, 20_000);
        assert!(sent.abs_diff(expected) <= 1, "{kinds} kinds, {outcome:?}: {sent}");
    }
}

#[test]
fn it_opens_after_failures_in_a_row_and_the_first_success_closes_it() {
    for (outcomes, open) in [
        (&[RETRY; 4][..], false),
        (&[RETRY; 5], true),
        (&[RETRY, RETRY, RETRY, RETRY, WRITTEN, RETRY], false),
        (&[RETRY, RETRY, RETRY, RETRY, DeliveryOutcome::Denied, RETRY], true),
        (&[RETRY, RETRY, RETRY, RETRY, RETRY, WRITTEN], false),
    ] {
        let mut breakers = WriteBreakers::default();
        for outcome in outcomes {
            write(&mut breakers, KindId(1), false, *outcome, Time(0));
        }
        assert_eq!(!breakers.may_write(KindId(1), false, Time(0)), open, "{outcomes:?}");
        assert!(breakers.may_write(KindId(2), false, Time(0)), "another kind goes on");
    }
}

#[test]
fn what_is_denied_holds_up_nobody_for_long() {
    let mut breakers = WriteBreakers::default();
    let mut write = |outcome, now| {
        write(&mut breakers, KindId(1), false, outcome, now);
        (breakers.may_write(KindId(1), false, now), breakers.next_probe(KindId(1), false))
    };
    for _ in 0..4 {
        assert_eq!(write(DeliveryOutcome::Denied, Time(0)), (true, None));
    }
    let (may, _) = write(DeliveryOutcome::Denied, Time(0));
    assert!(may, "the next one is due");
    assert_eq!(write(DeliveryOutcome::Denied, Time(0)), (false, Some(Time(165))));
    assert_eq!(write(WRITTEN, Time(165)), (true, None), "one that is permitted ends it");
}

#[test]
fn a_probe_without_an_answer_is_followed_by_no_other() {
    let mut breakers = WriteBreakers::default();
    for _ in 0..5 {
        write(&mut breakers, KindId(1), false, RETRY, Time(0));
    }
    assert_eq!(breakers.next_probe(KindId(1), false), Some(Time(1_000)));
    breakers.begin_write(KindId(1), WriteTicket::default(), SENT, false, Time(1_000));
    assert_eq!(
        (breakers.next_probe(KindId(1), false), breakers.may_write(KindId(1), false, Time(9_000))),
        (None, false)
    );
    breakers.end_write(WriteTicket::default(), RETRY, Some(OTHER), Time(15_000));
    assert_eq!(breakers.next_probe(KindId(1), false), Some(Time(16_000)));
}

#[test]
fn second_attempts_are_spread_while_none_succeeds_though_first_ones_do() {
    let mut breakers = WriteBreakers::default();
    let mut write = |retries, outcome, now| {
        write(&mut breakers, KindId(1), retries, outcome, now);
        (breakers.may_write(KindId(1), false, now), breakers.may_write(KindId(1), true, now))
    };
    for _ in 0..4 {
        write(true, RETRY, Time(0));
        assert_eq!(write(false, WRITTEN, Time(0)), (true, true));
    }
    write(true, RETRY, Time(0));
    assert_eq!(write(false, WRITTEN, Time(0)), (true, true), "the next one is due");
    write(true, RETRY, Time(0));
    assert_eq!(write(false, WRITTEN, Time(0)), (true, false));
    assert_eq!(write(true, WRITTEN, Time(165)), (true, true), "one that succeeds ends it");
}

/// Begins as many writes as there is room for, ends them so, and returns their number.
fn fill_window(breaker: &mut KindBreaker, effect: WriteEffect, now: Time) -> usize {
    let mut begun = 0;
    while breaker.has_room(0) && begun < 100 {
        breaker.begin_write(now);
        begun += 1;
    }
    (0..begun).for_each(|_| breaker.end_write(effect, false, false, now));
    begun
}

#[test]
fn few_writes_are_under_way_at_first_and_after_failures_and_one_more_for_each_that_lands() {
    use WriteEffect::{Failed, Refused, Shown, Unacknowledged};
    let mut breaker = KindBreaker::default();
    for (effect, at, begun) in [
        (Shown, 0, 4),
        (Shown, 0, 8),
        (Refused, 0, 16),
        // What is refused takes the room away, and so does what fails.
        (Shown, 900, 1),
        (Failed(Duration::ZERO), 900, 17),
        (Shown, 1_800, 1),
        // No more than at first follow for a while.
        (Shown, 30_800, 4),
        (Shown, 30_900, 4),
        // What landed though the server did not say so is neither a failure nor a success.
        (Unacknowledged, 30_900, 8),
        (Shown, 30_900, 8),
    ] {
        assert_eq!(fill_window(&mut breaker, effect, Time(at)), begun, "{effect:?} at {at}");
    }
    breaker.begin_write(Time(31_900));
    assert_eq!(breaker.window, FIRST_WINDOW, "it begins anew after a rest");
}

#[test]
fn a_server_that_fails_at_many_kinds_is_found_out_by_a_few_writes_in_all() {
    let mut breakers = WriteBreakers::default();
    let mut sent = 0;
    for _ in 0..10 {
        for kind in (0..4).map(KindId) {
            if breakers.may_write(kind, false, Time(0)) {
                write(&mut breakers, kind, false, RETRY, Time(0));
                sent += 1;
            }
        }
    }
    assert_eq!(sent, 5);
    assert!(breakers.may_write(KindId(9), false, Time(0)), "of a kind that was not tried nothing is known");
}

#[test]
fn in_no_second_are_more_than_eight_writes_refused_whatever_failed_before() {
    for (kinds, failures) in [(1, 0), (1, 5), (2, 0), (2, 5), (20, 0), (20, 7)] {
        let (mut breakers, mut sent, mut failed) = (WriteBreakers::default(), Vec::new(), 0);
        for at in (0..30_000).step_by(2) {
            for kind in (0..kinds).map(KindId).filter(|kind| kind.0 == 0 || at > 3_000).collect::<Vec<_>>() {
                if breakers.may_write(kind, false, Time(at)) {
                    let outcome = if failed < failures { RETRY } else { DeliveryOutcome::Conflict };
                    failed += 1;
                    write(&mut breakers, kind, false, outcome, Time(at));
                    sent.push(at);
                }
            }
        }
        let in_a_second = |from: &i64| sent.iter().filter(|at| (*from..*from + 1_000).contains(at)).count();
        let most = sent.iter().map(in_a_second).max().unwrap();
        // One more for each kind that was never refused and joins those that are.
        assert!(
            most < 8 + usize::try_from(kinds).unwrap(),
            "{kinds} kinds, {failures} failures: {most} in a second"
        );
    }
}

#[test]
fn what_is_accepted_and_changed_on_its_way_is_spread_like_what_is_refused() {
    let (mut breakers, mut sent) = (WriteBreakers::default(), 0);
    for at in (0..20_000).step_by(10) {
        if breakers.may_write(KindId(1), false, Time(at)) {
            breakers.begin_write(KindId(1), WriteTicket::default(), SENT, false, Time(at));
            breakers.end_write(WriteTicket::default(), WRITTEN, Some(OTHER), Time(at));
            sent += usize::from(at >= 10_000);
        }
    }
    assert!((58..=60).contains(&sent), "{sent}");
}
