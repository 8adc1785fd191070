use super::*;
use crate::transitions::ObjectRef;

const NOW: Time = Time(1_800_000_000_000);

fn notice(uid: &str, reason: &'static str) -> EventNotice {
    let about = ObjectRef {
        group: "example.com".to_owned(),
        kind: "Database".to_owned(),
        namespace: "shop".to_owned(),
        name: uid.to_owned(),
    };
    let (version, uid, note) = ("v1".to_owned(), uid.to_owned(), "1 of 3 not ready".to_owned());
    EventNotice { about, version, uid, reason, note, warning: true }
}

fn admit(ledger: &mut EventCorrelator, notice: EventNotice, now: Time) -> bool {
    ledger.admit_notice(notice, now, now)
}

fn after(seconds: u64) -> Time {
    NOW + Duration::from_secs(seconds)
}

/// Sends everything that is due at `now`; all of it arrives.
fn send(ledger: &mut EventCorrelator, now: Time) -> Vec<EventRequest> {
    let orders: Vec<_> = std::iter::from_fn(|| ledger.take_due(now)).collect();
    for order in &orders {
        ledger.settle_request(order, true, now);
    }
    orders
}

fn counts(orders: &[EventRequest]) -> Vec<u32> {
    let count = |order: &EventRequest| match order {
        EventRequest::Create(_) => 1,
        EventRequest::Repeat(series) => series.count,
    };
    orders.iter().map(count).collect()
}

#[test]
fn the_same_within_ten_minutes_is_one_event_with_a_count() {
    let mut ledger = EventCorrelator::default();
    assert!(admit(&mut ledger, notice("a", "ChildrenFailed"), NOW));
    assert_eq!(counts(&send(&mut ledger, NOW)), [1]);
    for second in 1..=5 {
        assert!(admit(&mut ledger, notice("a", "ChildrenFailed"), after(second)));
    }
    assert!(send(&mut ledger, after(6)).is_empty(), "they are gathered first");
    let orders = send(&mut ledger, after(61));
    assert_eq!(counts(&orders), [6]);
    let [EventRequest::Repeat(series)] = &orders[..] else { panic!("{orders:?}") };
    assert_eq!(series.last, after(5));
    // A different reason is a different Event, and so is the same one much later.
    assert!(admit(&mut ledger, notice("a", "ChildrenStuck"), after(70)));
    assert!(admit(&mut ledger, notice("a", "ChildrenFailed"), after(700)));
    let orders = send(&mut ledger, after(700));
    assert!(orders.iter().all(|order| matches!(order, EventRequest::Create(_))), "{orders:?}");
    assert_eq!(orders.len(), 2);
}

#[test]
fn what_repeats_before_its_event_was_sent_is_counted_too() {
    let mut ledger = EventCorrelator::default();
    for _ in 0..3 {
        admit(&mut ledger, notice("a", "ChildrenFailed"), NOW);
    }
    assert_eq!(counts(&send(&mut ledger, NOW)), [1]);
    assert_eq!(ledger.next_due().map(|at| at >= after(60)), Some(true));
    assert_eq!(counts(&send(&mut ledger, after(60))), [3]);
    assert_eq!(ledger.next_due(), None);
}

#[test]
fn one_parent_may_not_talk_all_the_time() {
    let mut ledger = EventCorrelator::default();
    let reason = |at: usize| readiness::rollup::ParentReason::ALL[at % 18].as_str();
    // 18 reasons with more than ten minutes between repetitions, so that the parent's own limit applies.
    let mut sent = 0;
    for round in 0..200 {
        let at = after(round * 40);
        sent += usize::from(admit(&mut ledger, notice("a", reason(usize::try_from(round).unwrap())), at));
        send(&mut ledger, at);
    }
    // 25 at once, and one more every five minutes of 8,000 seconds.
    assert!((25..=25 + 8_000 / 300 + 1).contains(&sent), "{sent}");
    assert!(admit(&mut ledger, notice("b", "ChildrenFailed"), after(8_000)), "others may");
}

#[test]
fn all_together_are_no_faster_than_five_a_second_and_what_waits_is_bounded() {
    let mut ledger = EventCorrelator::default();
    let noted =
        (0..5_000).filter(|at| admit(&mut ledger, notice(&format!("p-{at}"), "ChildrenFailed"), NOW)).count();
    assert_eq!(noted, MAX_QUEUED_EVENTS);
    let sent = u32::try_from(send(&mut ledger, NOW).len()).unwrap();
    assert!((f64::from(sent) - TOTAL_EVENT_BURST).abs() < 0.5, "{sent}");
    let next = ledger.next_due().unwrap();
    assert!(next > NOW && next - NOW <= TOTAL_EVENT_REFILL + Duration::from_millis(2), "{next:?}");
    assert_eq!(send(&mut ledger, after(2)).len(), 10);
}

#[test]
fn what_did_not_arrive_begins_anew() {
    let mut ledger = EventCorrelator::default();
    admit(&mut ledger, notice("a", "ChildrenFailed"), NOW);
    let order = ledger.take_due(NOW).unwrap();
    ledger.settle_request(&order, false, NOW);
    admit(&mut ledger, notice("a", "ChildrenFailed"), after(1));
    assert!(matches!(ledger.take_due(after(1)), Some(EventRequest::Create(_))));
}

#[test]
fn it_is_bounded_whatever_happens() {
    let mut ledger = EventCorrelator::default();
    for at in 0..50_000_u32 {
        let now = NOW + Duration::from_millis(u64::from(at));
        admit(&mut ledger, notice(&format!("p-{at}"), "ChildrenFailed"), now);
        send(&mut ledger, now);
    }
    assert!(ledger.series.len() <= MAX_TRACKED_SERIES && ledger.quiet.len() == ledger.series.len());
    assert!(ledger.parents.len() <= 2 * MAX_TRACKED_SERIES, "{}", ledger.parents.len());
    assert!(ledger.due.len() <= MAX_TRACKED_SERIES);
}

#[test]
fn a_name_is_one_that_the_server_takes() {
    let mut long = notice("a", "ChildrenFailed");
    long.about.name = format!("{}.{}", "x".repeat(229), "y".repeat(20));
    let name = event_name(&long, NOW);
    assert!(name.len() <= 253 && !name.contains(".."), "{name}");
    assert_ne!(super::event_name(&long, after(1)), name);
}
