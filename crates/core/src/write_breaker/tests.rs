use super::*;

const RETRY: DeliveryOutcome = DeliveryOutcome::Retry(Duration::ZERO);
const WRITTEN: DeliveryOutcome = DeliveryOutcome::Written;
/// What is sent, and what may stand there instead.
const SENT: EntriesDigest = EntriesDigest { whole: 1, without_messages: 1 };
const OTHER: EntriesDigest = EntriesDigest { whole: 2, without_messages: 1 };

/// A write that is answered so at once; what it says is on the parent where that was accepted.
fn write(breakers: &mut WriteBreakers, kind: KindId, outcome: DeliveryOutcome, now: Time) {
    let shown = if outcome.is_accepted() { SENT } else { OTHER };
    breakers.begin_write(kind, WriteTicket::default(), SENT, now);
    breakers.end_write(WriteTicket::default(), outcome, Some(shown), now);
}

/// Runs writes of `kinds` kinds, each turn every kind that may, answered at once, in steps of 10 ms; returns the number
/// of requests within this span.
fn requests(kinds: u32, outcome: DeliveryOutcome, from: i64, until: i64) -> usize {
    let (mut breakers, mut sent) = (WriteBreakers::default(), 0);
    for at in (0..until).step_by(10) {
        for kind in (0..kinds).map(KindId).collect::<Vec<_>>() {
            if breakers.may_write(kind, false, Time(at)) {
                write(&mut breakers, kind, outcome, Time(at));
                sent += usize::from(at >= from);
            }
        }
    }
    sent
}

#[test]
fn one_probe_a_second_for_a_kind_and_few_for_all() {
    for (kinds, outcome, expected) in [
        (1, RETRY, 10),
        (5, RETRY, 40),
        (100, RETRY, 40),
        (1, DeliveryOutcome::Retry(Duration::from_secs(5)), 2),
        (1, DeliveryOutcome::Denied, 40),
        (5, DeliveryOutcome::Denied, 40),
        (5, DeliveryOutcome::Conflict, 40),
        (1, DeliveryOutcome::Gone, 40),
        (1, DeliveryOutcome::Pruned, 40),
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
            write(&mut breakers, KindId(1), *outcome, Time(0));
        }
        assert_eq!(!breakers.may_write(KindId(1), false, Time(990)), open, "{outcomes:?}");
        assert!(breakers.may_write(KindId(2), false, Time(990)), "another kind goes on");
    }
}

#[test]
fn what_is_denied_holds_up_nobody_for_long() {
    let mut breakers = WriteBreakers::default();
    for _ in 0..2 {
        assert!(breakers.may_write(KindId(1), false, Time(0)));
        write(&mut breakers, KindId(1), DeliveryOutcome::Denied, Time(0));
    }
    assert!(!breakers.may_write(KindId(1), false, Time(0)));
    let next = breakers.next_write(KindId(1), false).unwrap();
    assert!(next <= Time(1_000) && breakers.may_write(KindId(1), false, next), "{next:?}");
}

#[test]
fn what_is_denied_to_one_kind_does_not_slow_another_whose_writes_land() {
    for outcome in [DeliveryOutcome::Denied, RETRY, DeliveryOutcome::Pruned] {
        let mut breakers = WriteBreakers::default();
        let mut sent = [0; 2];
        for at in (0..20_000).step_by(10) {
            for (kind, outcome) in [(0, outcome), (1, WRITTEN)] {
                if breakers.may_write(KindId(kind), false, Time(at)) {
                    write(&mut breakers, KindId(kind), outcome, Time(at));
                    sent[kind as usize] += usize::from(at >= 10_000);
                }
            }
        }
        assert!(sent[0] <= 41 && sent[1] == 1_000, "{outcome:?}: {sent:?}");
    }
}

#[test]
fn a_probe_without_an_answer_is_followed_by_no_other() {
    let mut breakers = WriteBreakers::default();
    for _ in 0..5 {
        write(&mut breakers, KindId(1), RETRY, Time(0));
    }
    assert_eq!(breakers.next_write(KindId(1), false), Some(Time(1_000)));
    breakers.begin_write(KindId(1), WriteTicket::default(), SENT, Time(1_000));
    assert_eq!(
        (breakers.next_write(KindId(1), false), breakers.may_write(KindId(1), false, Time(9_000))),
        (None, false)
    );
    breakers.end_write(WriteTicket::default(), RETRY, Some(OTHER), Time(15_000));
    assert_eq!(breakers.next_write(KindId(1), false), Some(Time(16_000)));
}

/// Begins as many writes as there is room for, ends them so, and returns their number.
fn fill_window(breaker: &mut KindBreaker, effect: WriteEffect, now: Time) -> usize {
    let mut begun = 0;
    while breaker.has_room(0) && begun < 100 {
        breaker.begin_write(now);
        begun += 1;
    }
    (0..begun).for_each(|_| breaker.end_write(effect, now));
    begun
}

#[test]
fn few_writes_are_under_way_at_first_and_after_failures_and_one_more_for_each_that_lands() {
    use WriteEffect::{Failed, Refused, Shown, Unacknowledged};
    let mut breaker = KindBreaker::default();
    for (effect, at, begun) in [
        (Shown, 0, 3),
        (Shown, 0, 6),
        (Refused, 0, 12),
        // What is refused takes the room away, and so does what fails.
        (Shown, 900, 1),
        (Failed(Duration::ZERO), 900, 13),
        (Shown, 1_800, 1),
        // No more than at first follow for a while.
        (Shown, 30_800, 3),
        (Shown, 30_900, 3),
        // What landed though the server did not say so is neither a failure nor a success.
        (Unacknowledged, 30_900, 6),
        (Shown, 30_900, 6),
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
                write(&mut breakers, kind, RETRY, Time(0));
                sent += 1;
            }
        }
    }
    assert_eq!(sent, 2, "as many as the budget has saved up");
    assert!(breakers.may_write(KindId(9), false, Time(500)), "of a kind that was not tried nothing is known");
}

/// Whether a write fails, by its number within its kind, the number of its kind, and its number among all.
type Fails = fn(usize, u32, usize) -> bool;

/// Writes of all kinds, as many as may be, answered after 20 ms; returns the most requests in a second that brought
/// nothing, each with its read, and the number of writes that took effect.
fn play(kinds: u32, failure: (DeliveryOutcome, EntriesDigest), fails: Fails) -> (usize, usize) {
    let (mut breakers, mut in_flight) = (WriteBreakers::default(), Vec::<(i64, WriteTicket, bool)>::new());
    let (mut vain, mut landed, mut tried) = (Vec::new(), 0, vec![0; kinds as usize]);
    let mut tickets = (1..).map(WriteTicket);
    for at in (0..40_000).step_by(2) {
        let (over, rest): (Vec<_>, Vec<_>) = in_flight.into_iter().partition(|write| write.0 <= at);
        in_flight = rest;
        for (_, ticket, fails) in over {
            let (outcome, shown) = if fails { failure } else { (WRITTEN, SENT) };
            breakers.end_write(ticket, outcome, Some(shown), Time(at));
            landed += usize::from(!fails);
            if fails {
                vain.extend([at - 20, at]);
            }
        }
        for kind in 0..kinds {
            while breakers.in_flight_count() < 32 && breakers.may_write(KindId(kind), false, Time(at)) {
                let ticket = tickets.next().unwrap();
                breakers.begin_write(KindId(kind), ticket, SENT, Time(at));
                tried[kind as usize] += 1;
                let overall = tried.iter().sum();
                in_flight.push((at + 20, ticket, fails(tried[kind as usize], kind, overall)));
            }
        }
    }
    let late: Vec<_> = vain.into_iter().filter(|at| *at >= 3_000).collect();
    let in_a_second = |from: &i64| late.iter().filter(|at| (*from..*from + 1_000).contains(*at)).count();
    (late.iter().map(in_a_second).max().unwrap_or_default(), landed)
}

#[test]
fn whatever_part_of_the_writes_to_however_many_kinds_fails_costs_few_requests_a_second() {
    let mixtures: [(&str, Fails, usize); 8] = [
        ("all", |_, _, _| true, 0),
        ("every second", |number, _, _| number % 2 == 0, 120),
        ("every fourth", |number, _, _| number % 4 == 0, 300),
        ("every tenth", |number, _, _| number % 10 == 0, 900),
        ("those of every second kind", |_, kind, _| kind % 2 == 0, 0),
        ("all for a while, then every third", |number, _, _| number < 20 || number % 3 == 0, 0),
        ("every second of all kinds", |_, _, overall| overall % 2 == 0, 120),
        // Each kind has rows of writes that take effect, and then as many that do not.
        ("tens of all kinds by turns", |_, _, overall| overall % 20 < 10, 0),
    ];
    for (what, fails, least) in mixtures {
        for kinds in [1, 2, 20] {
            let refusals =
                [RETRY, DeliveryOutcome::Conflict, DeliveryOutcome::Pruned, DeliveryOutcome::Denied];
            // The last one lands, and nobody says so.
            for failure in refusals.map(|outcome| (outcome, OTHER)).into_iter().chain([(RETRY, SENT)]) {
                let (busiest, landed) = play(kinds, failure, fails);
                assert!(busiest <= 20, "{what} of {kinds} kinds, {failure:?}: {busiest} in a second");
                assert!(landed >= least, "{what} of {kinds} kinds, {failure:?}: {landed} were written");
            }
        }
    }
}

#[test]
fn what_is_accepted_and_changed_on_its_way_costs_like_what_is_refused() {
    let (mut breakers, mut sent) = (WriteBreakers::default(), 0);
    for at in (0..20_000).step_by(10) {
        if breakers.may_write(KindId(1), false, Time(at)) {
            breakers.begin_write(KindId(1), WriteTicket::default(), SENT, Time(at));
            breakers.end_write(WriteTicket::default(), WRITTEN, Some(OTHER), Time(at));
            sent += usize::from(at >= 10_000);
        }
    }
    assert!((38..=42).contains(&sent), "{sent}");
}
