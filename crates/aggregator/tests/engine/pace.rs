//! Debounce, cascades, messages and write conflicts: the rate of writes to a parent.

use std::time::Duration;

use readiness::Level::{Failed, Progressing, Ready, Stuck, Unknown};

use crate::answers::well;
use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{EngineHarness, POLICY, START};
use crate::policy;
use crate::server::WriteFate;

/// Largest number of writes in any window of this many milliseconds.
fn densest(writes: &[(i64, String)], window: i64) -> usize {
    let within = |from: i64| writes.iter().filter(|(at, _)| (from..from + window).contains(at)).count();
    writes.iter().map(|(at, _)| within(*at)).max().unwrap_or(0)
}

#[test]
fn a_chatty_child_cannot_starve_its_parent() {
    let mut w = well();
    let before = w.told("db").len();
    let start = w.millis();
    for round in 0..200 {
        w.turn("web", [Failed, Progressing, Unknown][round % 3]);
        w.run(50);
    }
    let told = w.told("db")[before..].to_vec();
    assert!(told[0].0 - start <= 10, "the first edge leaves at once: {told:?}");
    assert!(told.len() >= 8, "and then one a window: {told:?}");
    assert!(densest(&told, 1_000) <= 2, "{told:?}");
    assert!(w.engine.evaluation_states().all(|state| !state.yielding), "this is news, not an echo");
}

#[test]
fn what_follows_the_first_edge_is_told_once_it_is_quiet() {
    let mut w = well();
    w.server.delay = Duration::ZERO;
    w.turn("web", Failed);
    w.run(200);
    let before = w.told("db").len();
    for level in [Progressing, Unknown, Progressing, Unknown, Progressing] {
        w.turn("web", level);
        w.run(60);
    }
    assert_eq!(w.told("db").len(), before);
    let quiet = w.millis() + 40;
    w.run(2_000);
    assert_eq!(w.told("db")[before..], [(quiet, "ChildrenProgressing".to_owned())]);
}

#[test]
fn what_has_failed_or_is_stuck_is_told_at_once_amid_whatever_chatter() {
    for (level, reason) in [(Failed, "ChildrenFailed"), (Stuck, "ChildrenStuck!")] {
        let mut w = well();
        w.server.delay = Duration::ZERO;
        w.child("job", "db", Progressing);
        w.run(5_000);
        for level in [Unknown, Progressing, Unknown] {
            w.turn("web", level);
            w.run(60);
        }
        let (before, at) = (w.told("db").len(), w.millis());
        w.turn("job", level);
        w.run(10);
        assert_eq!(w.told("db")[before..], [(at, reason.to_owned())]);
        // Once the answer is written, the debounce applies as before.
        for level in [Unknown, Progressing, Unknown] {
            w.turn("web", level);
            w.run(60);
        }
        assert_eq!(w.told("db").len(), before + 1);
    }
}

#[test]
fn many_chatty_children_below_many_parents_of_one_do_not_add_up() {
    let mut w = EngineHarness::with(policy());
    w.parent("top");
    for at in 0..20 {
        let (mid, leaf) = (format!("mid-{at}"), format!("leaf-{at}"));
        w.parent(&mid);
        w.change(&mid, |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
        w.child(&leaf, &mid, Ready);
    }
    w.run(30_000);
    assert_eq!(w.says("top"), "AllChildrenReady");
    let before = w.told("top").len();
    for round in 0..400 {
        // Only one child at a time is unready, so each of them changes the top.
        let (up, down) = (format!("leaf-{}", (round + 19) % 20), format!("leaf-{}", round % 20));
        w.turn(&up, Ready);
        w.run(25);
        w.turn(&down, Failed);
        w.run(25);
    }
    let told = w.told("top")[before..].to_vec();
    assert!(densest(&told, 1_000) <= 2, "{told:?}");
}

/// Four levels of parents over one leaf.
fn tower() -> EngineHarness {
    let mut w = EngineHarness::with(policy());
    for (level, above) in
        [("one", None), ("two", Some("one")), ("three", Some("two")), ("four", Some("three"))]
    {
        w.parent(level);
        w.change(level, |it| it.owners = above.map(|a| (POLICY, 0, a.to_owned())).into_iter().collect());
    }
    w.child("leaf", "four", Ready);
    w.run(60_000);
    assert_eq!(w.says("one"), "AllChildrenReady");
    w
}

#[test]
fn a_cascade_of_four_levels_costs_one_debounce() {
    let mut w = tower();
    w.server.delay = Duration::ZERO;
    w.turn("leaf", Failed);
    let at = w.millis();
    w.run(0);
    let told = |w: &EngineHarness, level| w.told(level).last().unwrap().clone();
    for level in ["one", "two", "three", "four"] {
        assert_eq!(told(&w, level), (at, "ChildrenFailed".to_owned()), "the first edge");
    }
    w.run(300);
    w.turn("leaf", Progressing);
    let at = w.millis() + 100;
    w.run(100);
    for level in ["one", "two", "three", "four"] {
        assert_eq!(told(&w, level), (at, "ChildrenProgressing".to_owned()), "one debounce");
    }
}

#[test]
fn the_top_does_not_turn_ready_while_something_below_is_known_to_be_ill() {
    let mut w = tower();
    w.child("beside", "one", Failed);
    w.run(20_000);
    w.turn("leaf", Progressing);
    w.run(10);
    w.turn("leaf", Ready);
    w.run(3_000);
    // `four` was just written, so the next change of its leaf is debounced.
    w.turn("leaf", Progressing);
    w.run(10);
    w.turn("leaf", Ready);
    w.run(150);
    assert_eq!((w.says("four"), w.says("one")), ("AllChildrenReady".into(), "ChildrenFailed".into()));
    w.turn("leaf", Failed);
    w.turn("beside", Ready);
    let before = w.told("one").len();
    w.run(2_000);
    let words = w.words("one")[before..].to_vec();
    assert!(!words.contains(&"AllChildrenReady".to_owned()), "{words:?}");
}

#[test]
fn a_flicker_inside_one_turn_is_never_written() {
    let mut w = tower();
    let before = w.server.log.len();
    w.turn("leaf", Failed);
    w.turn("leaf", Ready);
    w.run(5_000);
    assert_eq!(w.server.log.len(), before);
}

#[test]
fn words_alone_are_written_every_ten_seconds_at_most() {
    let mut w = well();
    w.child("api", "db", Progressing);
    w.run(20_000);
    let before = w.told("db").len();
    for round in 0..120 {
        w.child(&format!("more-{round}"), "db", Progressing);
        w.run(500);
    }
    let told = w.told("db")[before..].to_vec();
    assert!((6..=7).contains(&told.len()), "{told:?}");
    w.run(20_000);
    assert!(w.objects["db"].parent.as_ref().unwrap().status[&POLICY].message.starts_with("1 of 122:"));
}

#[test]
fn words_climb_all_the_way() {
    let mut w = tower();
    w.turn("leaf", Failed);
    w.run(30_000);
    w.child("other", "four", Failed);
    w.run(30_000);
    let message = &w.objects["one"].parent.as_ref().unwrap().status[&POLICY].message;
    assert!(message.contains("leaf") && message.contains("other"), "{message}");
}

#[test]
fn words_climb_through_a_parent_that_is_not_written() {
    let mut w = EngineHarness::empty();
    w.policy(POLICY, policy());
    w.policy(aggregator::PolicyId(2), aggregator::EnginePolicy { shadow: true, ..policy() });
    w.sync();
    w.parent("top");
    w.parent_so("mid", |mid| mid.policies = vec![aggregator::PolicyId(2)]);
    w.change("mid", |mid| mid.owners = vec![(POLICY, 0, "top".to_owned())]);
    let leaf = |w: &mut EngineHarness, name: &str| {
        w.create(name, crate::harness::CHILDREN, Failed, |leaf| {
            leaf.owners = vec![(aggregator::PolicyId(2), 0, "mid".to_owned())];
        });
    };
    leaf(&mut w, "leaf");
    w.run(30_000);
    leaf(&mut w, "other");
    w.run(30_000);
    let message = &w.objects["top"].parent.as_ref().unwrap().status[&POLICY].message;
    assert!(message.contains("leaf") && message.contains("other"), "{message}");
}

#[test]
fn yield_do_not_fight() {
    let mut w = well();
    let before = w.told("db").len();
    for _ in 0..900 {
        let fought = w.told("db").len();
        w.run(1_000);
        if w.told("db").len() > fought || w.says("db") == "AllChildrenReady" {
            overwrite(&mut w);
        }
    }
    let told = w.told("db")[before..].to_vec();
    assert!(told.len() >= 8, "it does not give up: {told:?}");
    let gaps: Vec<_> = told.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(gaps[1..7].windows(2).all(|pair| pair[0] < pair[1]), "ever more slowly: {gaps:?}");
    assert!(gaps[8..].iter().all(|gap| *gap >= 60_000), "and in the end once a minute: {gaps:?}");
    assert!(w.engine.evaluation_states().all(|state| state.yielding));
}

/// Another client changes the condition.
fn overwrite(w: &mut EngineHarness) {
    w.change_parent("db", |p| {
        p.status.get_mut(&POLICY).unwrap().reason = readiness::rollup::ParentReason::ChildrenFailed;
    });
}

#[test]
fn a_neighbour_who_always_comes_first_is_yielded_to_as_well() {
    let mut w = well();
    w.server.delay = Duration::from_millis(50);
    let mut sent = vec![];
    for round in 0..12_000 {
        overwrite(&mut w);
        let flights = w.server.flights.len();
        w.run(25);
        if w.server.flights.len() > flights {
            sent.push(w.millis());
        }
        w.change_parent("db", |p| {
            p.status.get_mut(&POLICY).unwrap().message = format!("round {round}");
        });
        w.run(25);
    }
    assert!(sent.len() < 20, "{sent:?}");
    assert!(w.engine.evaluation_states().all(|state| state.yielding));
}

#[test]
fn a_fight_that_is_over_is_forgotten() {
    let mut w = well();
    for _ in 0..4 {
        overwrite(&mut w);
        w.run(61_000);
    }
    assert!(w.engine.evaluation_states().all(|state| state.yielding));
    w.run(6 * 60_000);
    assert!(w.engine.evaluation_states().all(|state| !state.yielding));
    let before = w.told("db").len();
    overwrite(&mut w);
    w.run(1_000);
    assert_eq!(w.told("db").len(), before + 1);
}

#[test]
fn a_conflict_is_answered_at_once_and_further_ones_ever_later() {
    let mut w = well();
    w.server.fates = vec![WriteFate::Conflict; 12];
    w.turn("web", Failed);
    w.run(300);
    assert!((1..=11).contains(&w.server.fates.len()));
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.run(120_000);
    assert_eq!(w.says("db"), "ChildrenFailed");
}

#[test]
fn a_refused_write_waits_as_long_as_it_is_told_to() {
    let mut w = well();
    w.server.fates = vec![WriteFate::Retry(Duration::from_secs(7))];
    w.turn("web", Failed);
    w.run(6_900);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.run(300);
    assert_eq!(w.says("db"), "ChildrenFailed");
}

#[test]
fn a_server_that_drops_what_is_written_is_not_asked_again() {
    let mut w = EngineHarness::with(policy());
    w.server.fates = vec![WriteFate::Pruned; 100];
    w.parent("db");
    w.child("web", "db", Ready);
    // Less than the ten minutes after which a mended schema is probed.
    w.run(590_000);
    assert_eq!(w.server.fates.len(), 99);
    assert!(
        w.engine
            .evaluation_states()
            .all(|state| state.unwritten == Some(aggregator::UnwrittenBecause::Pruned))
    );
}

#[test]
fn a_write_whose_answer_was_lost_is_not_repeated_where_it_arrived() {
    let mut w = well();
    let before = w.told("db").len();
    w.server.fates = vec![WriteFate::Unheard(Duration::from_secs(1))];
    w.turn("web", Failed);
    w.run(20_000);
    assert_eq!(w.told("db").len(), before + 1);
    assert!(w.now > START);
}
