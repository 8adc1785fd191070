use super::*;

const K: KindId = KindId(1);
const SEEN: KindState = KindState::Synced;

fn at(seconds: i64) -> Time {
    Time(seconds * 1_000)
}

fn trouble(cause: ApiFailureCause) -> KindEvent {
    KindEvent::Failure(cause, String::new())
}

/// What was heard, each at its second.
fn health_after(events: &[(i64, KindEvent)]) -> WatchHealth {
    let mut health = WatchHealth::default();
    for (second, event) in events {
        health.observe_event(K, event, at(*second));
    }
    health
}

fn blind(state: KindState, needs_list: bool) -> BlindKind {
    BlindKind { kind: K, state, needs_list }
}

/// A kind that was listed at 0 and became blind two minutes later.
fn stale() -> WatchHealth {
    let mut health = health_after(&[(0, KindEvent::Starting), (0, KindEvent::Synced)]);
    assert_eq!(health.take_overdue(at(120)), Some(blind(KindState::Stale, true)));
    health
}

#[test]
fn nothing_flips_before_two_minutes_of_blindness() {
    let mut health = health_after(&[
        (0, KindEvent::Starting),
        (1, KindEvent::Synced),
        (10, trouble(ApiFailureCause::Connection)),
    ]);
    assert_eq!(health.kind_status(K).0, SEEN);
    assert_eq!(health.take_overdue(at(120)), None);
    assert_eq!(health.take_overdue(at(121)), Some(blind(KindState::Stale, true)));
}

#[test]
fn a_silent_watch_is_blind_too() {
    let mut health = health_after(&[(0, KindEvent::Synced), (70, KindEvent::Alive)]);
    assert_eq!(health.take_overdue(at(189)), None);
    assert_eq!(health.take_overdue(at(190)), Some(blind(KindState::Stale, true)));
}

#[test]
fn a_kind_that_was_blind_is_not_seen_again_because_the_server_answers() {
    let mut health = stale();
    for event in
        [KindEvent::Alive, KindEvent::Listing, KindEvent::Alive, KindEvent::Starting, KindEvent::Alive]
    {
        assert_eq!(health.observe_event(K, &event, at(200)), KindState::Stale, "{event:?}");
    }
    assert_eq!(health.next_deadline(), None, "it cannot become blinder");
    assert_eq!(health.observe_event(K, &KindEvent::Synced, at(201)), SEEN);
    assert_eq!(health.next_deadline(), Some(at(321)));
}

#[test]
fn rights_that_were_taken_and_given_back_are_believed_once_everything_was_listed() {
    let mut health = health_after(&[(0, KindEvent::Synced), (60, trouble(ApiFailureCause::Forbidden))]);
    assert_eq!(health.take_overdue(at(120)), Some(blind(KindState::Forbidden, true)));
    assert_eq!(health.observe_event(K, &KindEvent::Alive, at(200)), KindState::Forbidden);
    assert_eq!(health.observe_event(K, &KindEvent::Listing, at(200)), KindState::Forbidden);
    assert_eq!(health.observe_event(K, &KindEvent::Synced, at(201)), SEEN);
}

#[test]
fn a_kind_that_is_refused_at_the_start_is_forbidden_after_a_moment() {
    let mut health = health_after(&[(0, KindEvent::Starting), (0, trouble(ApiFailureCause::Forbidden))]);
    assert_eq!(health.kind_status(K).0, KindState::Listing);
    assert_eq!(health.take_overdue(at(3)), Some(blind(KindState::Forbidden, false)));
    assert_eq!(health.observe_event(K, &KindEvent::Synced, at(9)), SEEN);
}

#[test]
fn a_refusal_at_the_start_that_gives_way_to_another_trouble_does_not_flip_after_a_moment() {
    let mut health = health_after(&[
        (0, KindEvent::Starting),
        (0, trouble(ApiFailureCause::Forbidden)),
        (1, trouble(ApiFailureCause::Connection)),
    ]);
    assert_eq!(health.take_overdue(at(119)), None);
    assert_eq!(health.take_overdue(at(120)), Some(blind(KindState::Stale, false)));
}

#[test]
fn a_kind_that_cannot_be_listed_at_the_start_is_stale_after_two_minutes() {
    let events = [
        (0, KindEvent::Starting),
        (5, trouble(ApiFailureCause::Connection)),
        (100, KindEvent::Listing),
        (101, KindEvent::Alive),
    ];
    let mut health = health_after(&events);
    assert_eq!(health.take_overdue(at(124)), None);
    assert_eq!(health.take_overdue(at(125)), Some(blind(KindState::Stale, false)));
}

#[test]
fn a_long_first_list_without_trouble_has_no_deadline() {
    let health = health_after(&[(0, KindEvent::Starting), (0, KindEvent::Listing), (1, KindEvent::Alive)]);
    assert_eq!(health.next_deadline(), None);
}

#[test]
fn what_was_seen_is_blind_at_last_however_often_it_is_followed_anew() {
    let events = (0..24).map(|turn| (10 * turn, KindEvent::Starting));
    let events: Vec<_> = [(0, KindEvent::Synced)].into_iter().chain(events).collect();
    let mut health = health_after(&events);
    health.observe_event(K, &KindEvent::Alive, at(239));
    assert_eq!(health.take_overdue(at(239)), None);
    assert_eq!(health.take_overdue(at(240)), Some(blind(KindState::Stale, false)));
    // Trouble is not forgiven for it.
    let mut health = health_after(&events[..3]);
    health.observe_event(K, &trouble(ApiFailureCause::Connection), at(30));
    assert_eq!(health.take_overdue(at(150)), Some(blind(KindState::Stale, false)));
}

#[test]
fn a_relist_that_breaks_off_again_and_again_is_blindness_however_alive_the_server_is() {
    let mut health =
        health_after(&[(0, KindEvent::Synced), (30, KindEvent::Alive), (31, trouble(ApiFailureCause::Gone))]);
    for second in (32..150).step_by(4) {
        for event in [KindEvent::Listing, KindEvent::Alive, trouble(ApiFailureCause::Connection)] {
            assert_eq!(health.observe_event(K, &event, at(second)), SEEN, "{second}");
        }
    }
    assert_eq!(health.take_overdue(at(149)), None);
    assert_eq!(health.take_overdue(at(150)), Some(blind(KindState::Stale, false)));
}

#[test]
fn a_kind_that_comes_back_is_not_seen_before_its_list_is_through() {
    let mut health =
        health_after(&[(0, KindEvent::Starting), (0, KindEvent::Synced), (50, KindEvent::Absent)]);
    assert_eq!(health.observe_event(K, &KindEvent::Alive, at(51)), KindState::Absent);
    assert_eq!(health.observe_event(K, &KindEvent::Synced, at(51)), KindState::Absent, "of an older list");
    assert_eq!(health.observe_event(K, &KindEvent::Listing, at(60)), KindState::Listing);
    assert_eq!(health.observe_event(K, &KindEvent::Alive, at(60)), KindState::Listing);
    assert_eq!(health.observe_event(K, &KindEvent::Synced, at(61)), SEEN);
}

#[test]
fn absence_that_cannot_be_asked_for_any_more_is_blindness() {
    let mut health = health_after(&[(0, KindEvent::Absent), (10, trouble(ApiFailureCause::Connection))]);
    assert_eq!(health.take_overdue(at(129)), None);
    assert_eq!(health.take_overdue(at(130)), Some(blind(KindState::Stale, false)));
    assert_eq!(health.observe_event(K, &KindEvent::Absent, at(140)), KindState::Absent);
    assert_eq!(health.next_deadline(), None);
}

#[test]
fn to_be_followed_anew_forgives_no_trouble() {
    let events =
        [(0, KindEvent::Synced), (10, trouble(ApiFailureCause::Connection)), (100, KindEvent::Starting)];
    let mut health = health_after(&events);
    assert_eq!(health.kind_status(K).0, KindState::Listing);
    assert_eq!(health.take_overdue(at(120)), Some(blind(KindState::Stale, false)));
}

/// Every stage, reached by news, and what each news makes of it: `.` for as it was.
#[test]
fn every_transition_is_the_one_that_is_drawn() {
    let columns = [
        KindEvent::Starting,
        KindEvent::Listing,
        KindEvent::Alive,
        KindEvent::Synced,
        KindEvent::Absent,
        trouble(ApiFailureCause::Connection),
        trouble(ApiFailureCause::Forbidden),
    ];
    let time = at(0);
    let proven = WatchStage::Watched { proven: time };
    let drawn = [
        (WatchStage::default(), "U U U W A U U"),
        (proven, "U R W W A W W"),
        (WatchStage::Relisting { proven: time }, "U R R W A R R"),
        (WatchStage::Absent { troubled: None }, "U U A A A A A"),
        (WatchStage::Blind(Blindness::Stale), "S S S W A S S"),
        (WatchStage::Blind(Blindness::Forbidden), "F F F W A F F"),
    ];
    let letter = |stage| match stage {
        WatchStage::Unlisted { .. } => "U",
        WatchStage::Watched { .. } => "W",
        WatchStage::Relisting { .. } => "R",
        WatchStage::Absent { .. } => "A",
        WatchStage::Blind(Blindness::Stale) => "S",
        WatchStage::Blind(Blindness::Forbidden) => "F",
    };
    for (stage, row) in drawn {
        let became = columns.iter().map(|event| {
            let mut health = WatchHealth::default();
            health.kinds.insert(K, KindSight { stage, trouble: None });
            health.observe_event(K, event, at(1));
            letter(health.kinds[&K].stage)
        });
        assert_eq!(became.collect::<Vec<_>>().join(" "), row, "from {stage:?} by {columns:?}");
    }
}

#[test]
fn a_kind_that_is_not_followed_any_more_has_no_deadline_and_proves_nothing() {
    let mut health = health_after(&[(0, KindEvent::Synced)]);
    assert_eq!(health.observe_event(K, &KindEvent::Stopped, at(1)), KindState::Listing);
    assert_eq!((health.kind_status(K).0, health.next_deadline()), (KindState::Listing, None));
}
