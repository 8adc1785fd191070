//! What a policy was accepted for stays its own while it is refused.

use super::*;

/// As a newer version of the program would write it.
fn of_newer_version(spec: Value) -> Value {
    let mut spec = spec;
    spec["future"] = json!("on");
    spec
}

fn kept(spec: &Value) -> Value {
    json!({ "accepted": { "generation": 1, "spec": spec.to_string() } })
}

/// All that a status can have of a spec that was accepted and cannot be read: by a newer version, too long, or tampered with.
fn traces_of_acceptance(spec: Value) -> Vec<Value> {
    let accepted = json!({ "type": "Accepted", "status": "True", "reason": "Accepted", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    vec![
        kept(&of_newer_version(spec)),
        json!({ "accepted": { "generation": 1, "omitted": "the spec has more than 64 KiB" } }),
        json!({ "accepted": { "generation": 1, "spec": "" } }),
        json!({ "accepted": { "generation": 1, "spec": "{" } }),
        json!({ "acceptedGeneration": 1 }),
        json!({ "conditions": [accepted] }),
    ]
}

fn in_use(decided: &PolicyDecisions) -> Vec<(&str, Acceptance)> {
    decided.book.in_use.iter().map(|policy| (&*policy.name, policy.acceptance)).collect()
}

#[test]
fn no_younger_policy_is_accepted_for_what_a_refused_one_was_accepted_for() {
    let refused = of_newer_version(databases("status.ready"));
    for status in traces_of_acceptance(databases("status.ready")) {
        let mut decided = PolicyDecisions::default();
        let laxer = policy("b", 1, databases("true"));
        for _ in 0..2 {
            decided.decide(&[with_status("a", 2, refused.clone(), status.clone()), laxer.clone()]);
            assert_eq!(in_use(&decided), [("a", Acceptance::Refused)], "{status}");
            assert!(decided.why("a").contains("future"), "{}", decided.why("a"));
            assert!(decided.book.in_use[0].compiled.groups.is_empty(), "nothing is judged by it");
            let why = decided.why("b");
            assert!(
                why.contains("policy a was accepted for Ready on Database and keeps it"),
                "{status}: {why}"
            );
            assert_eq!(decided.book.refused["b"].reason, PolicyReason::Conflict);
        }
        decided.decide(&[with_status("a", 3, databases("status.mended"), status), laxer.clone()]);
        assert_eq!(in_use(&decided), [("a", Acceptance::Accepted)]);
        assert!(decided.why("b").contains("policy a writes Ready on Database already"));
        decided.decide(&[laxer]);
        assert_eq!(in_use(&decided), [("b", Acceptance::Accepted)], "the older one is deleted");
    }
}

#[test]
fn a_refused_policy_keeps_its_rank_where_another_one_selects_its_parents_too() {
    let refused = of_newer_version(of_team("x", databases("status.ready")));
    for status in traces_of_acceptance(of_team("x", databases("status.ready"))) {
        let mut decided = PolicyDecisions::default();
        decided.decide(&[with_status("a", 2, refused.clone(), status), policy("b", 1, databases("true"))]);
        assert_eq!(in_use(&decided), [("a", Acceptance::Refused), ("b", Acceptance::Accepted)]);
        let labels = |team: &str| [("team".into(), team.into())];
        let stub = &decided.book.in_use[0].compiled.selector;
        assert!(stub.matches(&labels("x")) && !stub.matches(&labels("y")));
    }
}

#[test]
fn what_it_was_accepted_for_counts_and_not_what_it_asks_for_now() {
    let mut decided = PolicyDecisions::default();
    let status = kept(&of_newer_version(saying("A")));
    decided.decide(&[
        with_status("a", 2, of_newer_version(saying("B")), status),
        policy("b", 1, saying("A")),
        policy("c", 1, saying("B")),
    ]);
    assert_eq!(in_use(&decided), [("a", Acceptance::Refused), ("c", Acceptance::Accepted)]);
    assert_eq!(decided.book.in_use[0].compiled.condition, "A");
    assert!(decided.why("b").contains("policy a was accepted for A"), "{}", decided.why("b"));
}

#[test]
fn a_claim_that_nobody_can_read_does_not_take_one_that_another_policy_was_accepted_for() {
    let omitted = json!({ "accepted": { "generation": 1, "omitted": "the spec has more than 64 KiB" } });
    for spec in [saying("A"), of_newer_version(saying("A"))] {
        let mut decided = PolicyDecisions::default();
        decided.decide(&[
            with_status("a", 2, spec, omitted.clone()),
            with_status("b", 1, saying("A"), kept(&saying("A"))),
        ]);
        assert_eq!(in_use(&decided), [("b", Acceptance::Accepted)]);
        assert!(!decided.why("a").is_empty());
    }
}

#[test]
fn a_spec_that_is_too_long_to_be_kept_holds_its_claim_for_as_long_as_it_is_not_edited() {
    let omitted = json!({ "accepted": { "generation": 1, "omitted": "the spec has more than 64 KiB" } });
    let mut decided = PolicyDecisions::default();
    decided.decide(&[
        with_status("a", 2, saying("B"), kept(&saying("A"))),
        with_status("b", 1, saying("B"), omitted),
    ]);
    assert_eq!(in_use(&decided), [("a", Acceptance::Accepted), ("b", Acceptance::Accepted)]);
    assert_eq!(decided.book.in_use[0].compiled.condition, "A");
    assert!(decided.why("a").contains("policy b writes B on Database already"), "{}", decided.why("a"));
}

#[test]
fn a_policy_whose_rules_are_gone_keeps_its_claim() {
    let mut decided = PolicyDecisions::default();
    decided.decide(&[
        with_status("a", 1, by_library("gone"), kept(&by_library("gone"))),
        policy("b", 1, databases("true")),
    ]);
    assert_eq!(in_use(&decided), [("a", Acceptance::Refused)]);
    assert!(decided.why("b").contains("policy a was accepted for Ready on Database"), "{}", decided.why("b"));
}
