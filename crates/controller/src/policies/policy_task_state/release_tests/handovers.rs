//! A policy that a release does not select any more: what the release has said by it is taken back, or left to another
//! one that has it.

use super::*;

#[test]
fn what_nobody_selects_any_more_is_taken_back_after_a_while_also_by_a_process_that_never_had_it_in_force() {
    for restarted in [false, true] {
        let mut policies = [manifest("p", "a", 1)];
        let mut a = Release::new("a", &[], &policies);
        settle(&mut [&mut a], &mut policies, 0);
        relabel(&mut policies[0], "nobody");
        if restarted {
            a = Release::new("a", &[], &policies);
        }
        settle(&mut [&mut a], &mut policies, 100);
        assert!(!a.takes_back(100), "another release may have it");
        assert_eq!(a.state.others.next_step(after(100)), Some(after(115)));
        settle(&mut [&mut a], &mut policies, 114);
        assert_eq!(reason(&policies[0]), "", "nothing is said yet");
        settle(&mut [&mut a], &mut policies, 115);
        assert_eq!(reason(&policies[0]), "NotSelected");
        assert_eq!(a.state.others.next_step(after(115)), Some(after(130)));
        if restarted {
            // In between as well.
            a = Release::new("a", &[], &policies);
            settle(&mut [&mut a], &mut policies, 115);
        }
        settle(&mut [&mut a], &mut policies, 129);
        assert!(!a.takes_back(129));
        settle(&mut [&mut a], &mut policies, 130);
        assert!(a.takes_back(130));
        let key = ("example.com".to_owned(), "Database".to_owned());
        let types = a.state.released[&key].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(types, ["Ready", "Reconciling", "Stalled"]);
        assert_eq!(claims(&policies[0]), ["ns/a"], "until no parent has an entry");
        a.state.settle_release(&key);
        settle(&mut [&mut a], &mut policies, 140);
        assert_eq!(policies[0]["status"]["acceptedBy"], json!({}));
        assert!(policies[0]["status"]["accepted"].is_null() && a.state.released.is_empty());
        assert!(!a.state.others.has_left());
        // It is selected again.
        relabel(&mut policies[0], "a");
        settle(&mut [&mut a], &mut policies, 150);
        assert_eq!(claims(&policies[0]), ["ns/a"]);
    }
}

#[test]
fn what_another_release_has_in_some_namespaces_is_taken_back_once_in_the_others() {
    for restarted in [false, true] {
        let mut policies = [manifest("p", "a", 1)];
        let mut a = Release::new("a", &[], &policies);
        settle(&mut [&mut a], &mut policies, 0);
        relabel(&mut policies[0], "b");
        let mut b = Release::new("b", &["red"], &policies);
        for seconds in [0, 15, 30] {
            settle(&mut [&mut b, &mut a], &mut policies, seconds);
        }
        let key = ("example.com".to_owned(), "Database".to_owned());
        assert!(a.state.released.contains_key(&key) && a.leaves(30).0 > 0, "those of b are left to it");
        a.state.settle_release(&key);
        settle(&mut [&mut b, &mut a], &mut policies, 40);
        assert_eq!(claims(&policies[0]), ["ns/b"]);
        if restarted {
            a = Release::new("a", &[], &policies);
        }
        let version = policies[0]["metadata"]["resourceVersion"].clone();
        for seconds in [41, 60, 90, 600] {
            settle(&mut [&mut b, &mut a], &mut policies, seconds);
        }
        assert_eq!(policies[0]["metadata"]["resourceVersion"], version, "nothing is said any more");
        assert!(!a.state.others.has_left() && a.state.released.is_empty());
        assert!(a.leaves(600).0 > 0, "those of b are left to it");
    }
}

#[test]
fn what_another_release_accepts_is_left_to_it_without_a_moment_in_which_it_is_taken_back() {
    for taken_over_after in [0, 14, 20] {
        let mut policies = [manifest("p", "a", 1)];
        let mut a = Release::new("a", &[], &policies);
        settle(&mut [&mut a], &mut policies, 0);
        relabel(&mut policies[0], "b");
        for seconds in [0, 14, 15, 20].into_iter().filter(|at| *at <= taken_over_after) {
            settle(&mut [&mut a], &mut policies, seconds);
            assert!(!a.takes_back(seconds));
        }
        let mut b = Release::new("b", &[], &policies);
        for seconds in [taken_over_after, 30, 60, 120, 600] {
            settle(&mut [&mut b, &mut a], &mut policies, seconds);
            assert!(!a.takes_back(seconds), "{seconds}");
        }
        assert_eq!(claims(&policies[0]), ["ns/b"]);
        assert!(!a.state.others.has_left());
    }
}

#[test]
fn a_claim_of_a_release_that_is_gone_ends_when_another_one_gets_the_policy() {
    let mut policies = [manifest("p", "a", 1)];
    let mut a = Release::new("a", &[], &policies);
    settle(&mut [&mut a], &mut policies, 0);
    for round in 0..2 {
        relabel(&mut policies[0], "b");
        a.see(&policies[0]);
        let mut b = Release::new("b", &[], &policies);
        settle(&mut [&mut b, &mut a], &mut policies, 100 * round);
        assert_eq!(claims(&policies[0]), ["ns/b"]);
        // It is gone from here on.
        relabel(&mut policies[0], "a");
        settle(&mut [&mut a], &mut policies, 100 * round + 1);
        assert_eq!(claims(&policies[0]), ["ns/a"]);
    }
    relabel(&mut policies[0], "nobody");
    for seconds in [300, 315, 330] {
        settle(&mut [&mut a], &mut policies, seconds);
    }
    assert!(a.takes_back(330));
}

#[test]
fn what_a_release_has_that_claims_nothing_is_left_to_it_when_it_contradicts() {
    let mut policies = [manifest("p", "a", 1)];
    let mut a = Release::new("a", &[], &policies);
    settle(&mut [&mut a], &mut policies, 0);
    relabel(&mut policies[0], "older");
    settle(&mut [&mut a], &mut policies, 0);
    settle(&mut [&mut a], &mut policies, 15);
    assert_eq!(reason(&policies[0]), "NotSelected");
    say_as_older_version(&mut policies[0]);
    for seconds in [25, 30, 60, 600] {
        settle(&mut [&mut a], &mut policies, seconds);
        assert!(!a.takes_back(seconds), "{seconds}");
    }
    assert_eq!((reason(&policies[0]), claims(&policies[0])), ("Accepted", vec![]));
    let mut again = Release::new("a", &[], &policies);
    settle(&mut [&mut again], &mut policies, 700);
    assert_eq!(again.leaves(700).0, 1);
}

#[test]
fn what_a_release_of_the_same_name_has_is_left_to_it_when_it_contradicts() {
    let mut policies = [manifest("p", "twin", 1)];
    let (mut a, mut twin) = (Release::new("a", &[], &policies), Release::new("twin", &[], &policies));
    twin.state.others.release.name = "ns/a".to_owned();
    settle(&mut [&mut twin], &mut policies, 0);
    settle(&mut [&mut a], &mut policies, 0);
    a.see(&policies[0]);
    a.speak(&mut policies, 15);
    assert_eq!(reason(&policies[0]), "NotSelected");
    a.see(&policies[0]);
    a.speak(&mut policies, 15);
    for seconds in [20, 30, 60, 600] {
        settle(&mut [&mut twin, &mut a], &mut policies, seconds);
        assert!(!a.takes_back(seconds), "{seconds}");
    }
    assert_eq!(claims(&policies[0]), ["ns/a"]);
}

#[test]
fn a_policy_that_is_deleted_while_it_is_handed_over_takes_its_words_along() {
    let mut policies = [manifest("p", "a", 1)];
    let mut a = Release::new("a", &[], &policies);
    settle(&mut [&mut a], &mut policies, 0);
    relabel(&mut policies[0], "nobody");
    let mut a = Release::new("a", &[], &policies);
    settle(&mut [&mut a], &mut policies, 5);
    assert!(!a.takes_back(5));
    tell(&mut a.state, FollowEvent::Delete(serde_json::from_value(policies[0].clone()).expect("a policy")));
    a.state.decide(&settings(), after(6));
    assert!(a.takes_back(6));
    // A list does not have it any more.
    let mut a = Release::new("a", &[], &policies);
    settle(&mut [&mut a], &mut policies, 5);
    tell(&mut a.state, FollowEvent::Init);
    tell(&mut a.state, FollowEvent::InitDone);
    a.state.decide(&settings(), after(6));
    assert!(a.takes_back(6));
}
