//! The rate of requests, whatever the server does. Minutes pass in paused time.

use std::time::Duration;

use watcher::{ApiFailureCause, FollowEvent};

use crate::scripted_server::{
    BodyPart, RecordedRequest, ScriptedFollow, ScriptedResponse, list, parameter, quiet, text, troubles,
};

const MINUTE: Duration = Duration::from_secs(60);

fn lists(asked: &[RecordedRequest]) -> Vec<Duration> {
    asked.iter().filter(|asked| !asked.is_watch()).map(|asked| asked.at).collect()
}

fn watches(asked: &[RecordedRequest]) -> Vec<Duration> {
    asked.iter().filter(|asked| asked.is_watch()).map(|asked| asked.at).collect()
}

fn gaps(at: &[Duration]) -> Vec<Duration> {
    at.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect()
}

fn is_watch(target: &str) -> bool {
    parameter(target, "watch").is_some()
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_at_once_is_not_reopened_at_once() {
    let mut follow =
        ScriptedFollow::new(
            |target| if is_watch(target) { ScriptedResponse::Parts(vec![]) } else { list(&[]) },
        );
    let said = follow.for_span(10 * MINUTE).await;
    let asked = follow.asked();
    let gaps = gaps(&watches(&asked));
    assert!((20..40).contains(&gaps.len()), "{} watches in ten minutes", gaps.len());
    assert!(gaps.windows(2).take(6).all(|pair| pair[0] < pair[1]), "waits grow: {gaps:?}");
    assert!(gaps.iter().all(|gap| *gap <= Duration::from_secs(30)), "and stay bounded: {gaps:?}");
    let unseen = self::gaps(&lists(&asked));
    let seen = unseen.iter().all(|gap| (80..115).contains(&gap.as_secs()));
    assert!(unseen.len() >= 4 && seen, "as it is no sign of life, lists are: {unseen:?}");
    assert_eq!(troubles(&said, ApiFailureCause::EndedAtOnce), gaps.len() + 1, "each is reported");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_after_each_event_is_not_a_storm_either() {
    let mut version = 7;
    let mut follow = ScriptedFollow::new(move |target| {
        if !is_watch(target) {
            return list(&[]);
        }
        version += 1;
        let object = format!(r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"{version}"}}}}"#);
        text(&format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\n"))
    });
    follow.for_span(10 * MINUTE).await;
    let watches = watches(&follow.asked()).len();
    assert!((20..40).contains(&watches), "{watches} watches in ten minutes");
}

#[tokio::test(start_paused = true)]
async fn waits_grow_while_the_list_fails_and_start_anew_after_a_watch_has_stood() {
    let failures = [
        || ScriptedResponse::Status(500, None),
        || ScriptedResponse::NoConnection,
        || text("{\"items\":["),
        || ScriptedResponse::Parts(vec![BodyPart::Text("{\"items\":[".into()), BodyPart::Break]),
    ];
    for failure in failures {
        let (mut listed, mut watched) = (0, 0);
        let mut follow = ScriptedFollow::new(move |target| {
            if is_watch(target) {
                watched += 1;
                // The first watch stands until the server ends it; the second one gets 410.
                return if watched == 1 { quiet(target) } else { ScriptedResponse::Status(410, None) };
            }
            listed += 1;
            if listed == 8 { list(&[]) } else { failure() }
        });
        follow.for_span(4 * MINUTE).await;
        let lists = lists(&follow.asked());
        let waits = gaps(&lists[..8]);
        assert!(waits.windows(2).all(|pair| pair[0] < pair[1]), "waits grow: {waits:?}");
        assert!(waits[6] > Duration::from_secs(8), "{waits:?}");
        assert!(lists[9].saturating_sub(lists[8]) < Duration::from_secs(1), "and start anew: {lists:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_server_that_was_gone_asks_as_soon_as_the_connections_are_there_again() {
    let mut follow = ScriptedFollow::new(|_| ScriptedResponse::NoConnection);
    follow.for_span(MINUTE).await;
    let before = lists(&follow.asked());
    assert!(gaps(&before).last().is_some_and(|gap| *gap > Duration::from_secs(8)), "{before:?}");
    for round in 1..=5 {
        // In the midst of a wait.
        follow.for_span(Duration::from_secs(1)).await;
        let asked = follow.asked().len();
        follow.turns.note_restored();
        follow.for_span(Duration::from_secs(1)).await;
        assert_eq!(follow.asked().len(), asked + 1, "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_server_has_asked_for_is_waited_for_though_the_connections_are_new() {
    let mut follow = ScriptedFollow::new(|_| ScriptedResponse::Status(429, Some(20)));
    follow.for_span(Duration::from_secs(2)).await;
    follow.turns.note_restored();
    follow.for_span(Duration::from_secs(15)).await;
    assert_eq!(lists(&follow.asked()).len(), 1, "it said twenty seconds");
    follow.for_span(Duration::from_secs(15)).await;
    assert_eq!(lists(&follow.asked()).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_lists_well_and_refuses_every_watch_is_not_listed_in_a_storm() {
    for status in [410, 404, 400, 403, 500] {
        let mut follow = ScriptedFollow::new(move |target| {
            if is_watch(target) { ScriptedResponse::Status(status, None) } else { list(&[]) }
        });
        follow.for_span(10 * MINUTE).await;
        let lists = lists(&follow.asked()).len();
        assert!((5..40).contains(&lists), "{lists} lists in ten minutes of {status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_place_in_the_history_that_is_refused_again_and_again_is_given_up() {
    // A server restored from a backup does not know the version: 504 and `Retry-After: 1` each time.
    let mut watched = 0;
    let mut follow = ScriptedFollow::new(move |target| {
        watched += usize::from(is_watch(target));
        match watched {
            1 if is_watch(target) => quiet(target),
            _ if is_watch(target) => ScriptedResponse::Status(504, Some(1)),
            _ => list(&[]),
        }
    });
    follow.for_span(3 * MINUTE).await;
    let asked = follow.asked();
    let relisted = lists(&asked)[1];
    let refused = watches(&asked).iter().filter(|at| **at < relisted).count() - 1;
    assert_eq!(refused, 3, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_warms_up_is_asked_when_it_says_and_listed_once() {
    // Like kube-apiserver after a restart: 429 for a while, then 410.
    let mut watches = 0;
    let mut follow = ScriptedFollow::new(move |target| {
        if !is_watch(target) {
            return list(&[]);
        }
        watches += 1;
        match watches {
            1 => ScriptedResponse::Parts(vec![BodyPart::Silence(Duration::from_secs(20)), BodyPart::Break]),
            2..=5 => ScriptedResponse::NoConnection,
            6..=12 => ScriptedResponse::Status(429, Some(7)),
            13 => text(
                "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}}\n",
            ),
            _ => quiet(target),
        }
    });
    let said = follow.for_span(5 * MINUTE).await;
    let asked = follow.asked();
    assert_eq!(lists(&asked).len(), 2, "the first list and one more: {asked:?}");
    let waits = gaps(&self::watches(&asked)[5..12]);
    let bounds = Duration::from_secs(7)..Duration::from_millis(8_750);
    assert!(waits.iter().all(|wait| bounds.contains(wait)), "{waits:?}");
    assert_eq!(troubles(&said, ApiFailureCause::Throttled), 7);
    assert_eq!(troubles(&said, ApiFailureCause::Gone), 1);
    let lists = lists(&asked);
    assert!(lists[1].saturating_sub(self::watches(&asked)[12]) < Duration::from_secs(10), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_throttled_is_asked_again_when_the_server_says() {
    let mut refusals = 5;
    let mut follow = ScriptedFollow::new(move |target| {
        if is_watch(target) {
            return quiet(target);
        }
        refusals -= 1;
        if refusals >= 0 { ScriptedResponse::Status(429, Some(3)) } else { list(&[]) }
    });
    let said = follow.for_span(MINUTE).await;
    let waits = gaps(&lists(&follow.asked()));
    let bounds = Duration::from_secs(3)..Duration::from_millis(3_750);
    assert!(waits.len() == 5 && waits.iter().all(|wait| bounds.contains(wait)), "{waits:?}");
    assert_eq!(troubles(&said, ApiFailureCause::Throttled), 5);
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_reopened_every_60_to_100_seconds() {
    let silent = |target: &str| {
        if is_watch(target) { ScriptedResponse::Parts(vec![BodyPart::SilenceForEver]) } else { list(&[]) }
    };
    let mut follow = ScriptedFollow::new(silent);
    let said = follow.for_span(15 * MINUTE).await;
    let asked = follow.asked();
    let waits = gaps(&watches(&asked));
    let bounds = Duration::from_secs(60)..Duration::from_secs(100);
    assert!(waits.len() >= 9 && waits.iter().all(|wait| bounds.contains(wait)), "{waits:?}");
    assert_eq!(troubles(&said, ApiFailureCause::Stalled), waits.len());
    assert_eq!(lists(&asked).len(), waits.len() + 1, "what such a watch may have kept to itself is listed");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_kind_beats_at_least_every_90_seconds() {
    let mut follow = ScriptedFollow::new(|target| if is_watch(target) { quiet(target) } else { list(&[]) });
    let begin = tokio::time::Instant::now();
    let mut beats = Vec::new();
    while begin.elapsed() < 20 * MINUTE {
        if let Some(FollowEvent::Alive) = futures::StreamExt::next(&mut follow.events).await {
            beats.push(begin.elapsed());
        }
    }
    assert!(gaps(&beats).iter().all(|gap| *gap <= Duration::from_secs(91)), "{beats:?}");
    let lengths: std::collections::BTreeSet<_> = follow
        .asked()
        .iter()
        .filter_map(|a| parameter(&a.target, "timeoutSeconds").map(str::to_owned))
        .collect();
    assert!(lengths.len() > 5, "lengths vary: {lengths:?}");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_never_answers_or_stops_half_way_is_given_up_and_asked_again() {
    for stalls in [
        || ScriptedResponse::Never,
        || ScriptedResponse::Parts(vec![BodyPart::Text("{\"items\":[".into()), BodyPart::SilenceForEver]),
    ] {
        let mut first = true;
        let mut follow = ScriptedFollow::new(move |target| {
            if is_watch(target) {
                quiet(target)
            } else if std::mem::take(&mut first) {
                stalls()
            } else {
                list(&[])
            }
        });
        let said = follow.for_span(MINUTE).await;
        assert_eq!(troubles(&said, ApiFailureCause::Stalled), 1, "{said:?}");
        let lists = lists(&follow.asked());
        assert!(lists.len() == 2 && lists[1] < Duration::from_secs(31), "{lists:?}");
        let done: Vec<_> =
            said.iter().filter(|e| matches!(e, FollowEvent::Init | FollowEvent::InitDone)).collect();
        assert_eq!(done.len(), 3, "Init, Init, InitDone: {said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_asks_at_the_same_instants_and_another_does_not() {
    async fn run(seed: u64) -> Vec<RecordedRequest> {
        let mut count = 0_u32;
        let mut follow = ScriptedFollow::seeded(seed, move |target| {
            count += 1;
            match count % 7 {
                1 => ScriptedResponse::Status(503, Some(2)),
                4 => ScriptedResponse::NoConnection,
                _ if is_watch(target) => quiet(target),
                _ => list(&[]),
            }
        });
        follow.for_span(10 * MINUTE).await;
        follow.asked()
    }
    let (once, again, other) = (run(1).await, run(1).await, run(2).await);
    assert_eq!(once, again);
    assert_ne!(once, other);
}
