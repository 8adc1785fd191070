//! After blindness a kind is listed anew: a watch that goes on from its old place does not say when its backlog is read.

use std::ops::Range;
use std::time::Duration;

use tokio::time::Instant;
use watcher::{FollowEvent, ParentObject};

use crate::scripted_server::{BodyPart, ScriptedFollow, ScriptedResponse, list, parameter, quiet};

const SECOND: Duration = Duration::from_secs(1);

fn is_watch(target: &str) -> bool {
    parameter(target, "watch").is_some()
}

/// A server to which nothing gets through in this span of seconds; the watches that stood break with it.
fn unreachable_in(outage: Range<u32>) -> ScriptedFollow {
    let (start, outage) = (Instant::now(), outage.start * SECOND..outage.end * SECOND);
    ScriptedFollow::new(move |target| {
        let now = start.elapsed();
        if outage.contains(&now) {
            ScriptedResponse::NoConnection
        } else if !is_watch(target) {
            list(&[])
        } else if now < outage.start {
            ScriptedResponse::Parts(vec![
                BodyPart::Silence(outage.start.saturating_sub(now).min(60 * SECOND)),
                BodyPart::Break,
            ])
        } else {
            quiet(target)
        }
    })
}

/// What was said, in letters: a list begins, is done, alive, trouble.
fn letters(said: &[FollowEvent<ParentObject>]) -> String {
    let letter = |event: &FollowEvent<ParentObject>| match event {
        FollowEvent::Init => 'i',
        FollowEvent::InitDone => 'd',
        FollowEvent::Alive => 'a',
        FollowEvent::Failure(_) => 't',
        FollowEvent::InitApply(_) | FollowEvent::Apply(_) | FollowEvent::Delete(_) => '.',
    };
    said.iter().map(letter).collect()
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_was_blind_is_listed_before_its_watch_goes_on() {
    let mut follow = unreachable_in(50..200);
    let before = letters(&follow.for_span(199 * SECOND).await);
    assert!(before.ends_with("titi"), "by now only a list is tried: {before}");
    let healed = letters(&follow.for_span(100 * SECOND).await);
    let calm = healed.trim_start_matches(['t', 'i']);
    assert!(
        calm.starts_with("da") || calm.starts_with("ad"),
        "a list, before any other sign of life: {healed}"
    );
    assert_eq!(
        follow.asked().iter().filter(|asked| !asked.is_watch() && asked.at >= 200 * SECOND).count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_a_moment_is_gone_on_from_without_a_list() {
    let mut follow = unreachable_in(50..60);
    follow.for_span(300 * SECOND).await;
    assert_eq!(follow.asked().iter().filter(|asked| !asked.is_watch()).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_as_it_is_opened_is_no_sign_of_life() {
    let breaks = |target: &str| {
        if is_watch(target) { ScriptedResponse::Parts(vec![BodyPart::Break]) } else { list(&[]) }
    };
    let mut follow = ScriptedFollow::new(breaks);
    let said = letters(&follow.for_span(600 * SECOND).await);
    let lists = follow.asked().iter().filter(|asked| !asked.is_watch()).count();
    let alive = said.matches('a').count();
    assert_eq!(alive, lists, "only lists were read out: {said}");
    assert!((5..=8).contains(&lists), "each time after 80 s: {said}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_stands_is_a_sign_of_life_and_so_is_its_end() {
    let mut follow = ScriptedFollow::new(|target| if is_watch(target) { quiet(target) } else { list(&[]) });
    assert_eq!(letters(&follow.for_span(3 * SECOND).await), "ida", "it was only opened yet");
    assert_eq!(letters(&follow.for_span(57 * SECOND).await), "a", "it stands");
    assert_eq!(
        letters(&follow.for_span(31 * SECOND).await).matches('a').count(),
        2,
        "it ended, and another stands"
    );
}
