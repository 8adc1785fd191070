//! The last good word of a policy.

mod claims;

use std::sync::Arc;
use std::time::Duration;

use rollcall_core::StagedList;
use serde_json::{Value, json};

use super::super::found_policy::read_policy;
use super::super::library_rules::{LibraryState, UnreadLibraries};
use super::super::ready_rule::{ConfigMapName, GroupRule};
use super::*;

/// A policy named `a`, `b`, …, of which the first was created first, as the server has it.
fn policy(name: &str, generation: i64, spec: Value) -> FoundPolicy {
    with_status(name, generation, spec, Value::Null)
}

#[expect(clippy::needless_pass_by_value, reason = "a spec is written where it is passed")]
fn with_status(name: &str, generation: i64, spec: Value, status: Value) -> FoundPolicy {
    let second = name.bytes().next().map_or(0, |first| first - b'a');
    let object = json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy",
        "metadata": { "name": name, "uid": format!("uid-{name}"), "resourceVersion": "1", "generation": generation,
            "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z") },
        "spec": spec, "status": status,
    });
    read_policy(&serde_json::from_value(object).expect("a policy"))
}

fn databases(current: &str) -> Value {
    json!({
        "parent": { "group": "example.com", "kind": "Database" },
        "children": [{ "kind": { "group": "apps", "kind": "Deployment" }, "ready": { "cel": { "current": current } } }],
    })
}

fn saying(condition: &str) -> Value {
    json!({ "parent": { "group": "example.com", "kind": "Database" }, "condition": { "type": condition } })
}

/// Deployments are judged by the scripts of this ConfigMap.
fn by_library(name: &str) -> Value {
    let child = json!({ "kind": { "group": "apps", "kind": "Deployment" }, "ready": { "rules": format!("shop/{name}") } });
    json!({ "parent": { "group": "example.com", "kind": "Database" }, "children": [child] })
}

/// The ConfigMap `there` can be read, `unread` is not read yet, and no other exists.
struct FewLibraries;

impl LibraryRules for FewLibraries {
    fn state(&self, name: &ConfigMapName) -> LibraryState {
        match &*name.name {
            "there" => LibraryState::Current,
            "unread" => LibraryState::Unread,
            _ => LibraryState::Missing("not found".to_owned()),
        }
    }

    fn library_rule(&self, name: &ConfigMapName) -> (Arc<rules::CompiledRule>, Arc<str>) {
        UnreadLibraries.library_rule(name)
    }
}

#[derive(Default)]
struct PolicyDecisions {
    book: PolicyBook,
    registry: IdRegistry,
}

impl PolicyDecisions {
    fn decide(&mut self, policies: &[FoundPolicy]) {
        let settings = PolicySettings::with_stuck_after(Duration::from_mins(10));
        let listed = StagedList::of_complete(policies.iter().cloned().enumerate());
        let listed = listed.complete_list().expect("a complete list");
        self.book.decide(listed, std::iter::empty(), &settings, &FewLibraries, &mut self.registry);
    }

    /// Policies in force, with the condition that each writes and the source of its first rule.
    fn in_force(&self) -> Vec<(&str, &str, String)> {
        let accepted = self.book.in_use.iter().filter(|p| p.acceptance == Acceptance::Accepted);
        accepted.map(|p| (p.name.as_str(), p.compiled.condition.as_str(), rule(&p.compiled))).collect()
    }

    fn why(&self, policy: &str) -> String {
        self.book.refused.get(policy).map_or_else(String::new, |refused| refused.why.clone())
    }
}

fn rule(compiled: &CompiledPolicy) -> String {
    match compiled.groups.first().and_then(|group| group.rule.as_ref()) {
        Some(GroupRule::Own { source, .. }) => source.to_string(),
        _ => String::new(),
    }
}

#[test]
fn a_spec_that_is_refused_leaves_the_one_before_in_force() {
    let mut unknown = databases("true");
    unknown["frobnicate"] = json!(1);
    for (wrong, named) in [
        (databases("nonsense("), "spec.children[0].ready.cel.current"),
        (unknown, "frobnicate"),
        (
            json!({ "parent": { "group": "example.com", "kind": "Database" }, "settle": "soon" }),
            "spec.settle",
        ),
    ] {
        let mut decided = PolicyDecisions::default();
        decided.decide(&[policy("a", 1, databases("status.ready"))]);
        let id = decided.book.in_use[0].id;
        decided.decide(&[policy("a", 2, wrong)]);
        let in_force = decided.in_force();
        assert!(in_force[0].2.contains("status.ready"), "{in_force:?}");
        assert_eq!(decided.book.in_use[0].id, id, "nothing is judged anew");
        assert_eq!(decided.book.accepted["a"].generation, 1);
        assert!(decided.why("a").contains(named), "{}", decided.why("a"));
        decided.decide(&[policy("a", 3, databases("status.mended"))]);
        assert_eq!(decided.book.accepted["a"].generation, 3);
        assert!(decided.in_force()[0].2.contains("status.mended"));
        assert!(decided.book.refused.is_empty());
    }
}

#[test]
fn what_was_accepted_is_found_in_the_status_after_a_restart() {
    let mut before = PolicyDecisions::default();
    before.decide(&[policy("a", 1, databases("status.ready"))]);
    let kept = serde_json::to_value(&*before.book.accepted["a"].kept).expect("JSON");
    let mut after = PolicyDecisions::default();
    after.decide(&[with_status("a", 2, databases("nonsense("), json!({ "accepted": kept }))]);
    assert!(after.in_force()[0].2.contains("status.ready"));
    assert_eq!(after.book.accepted["a"].kept, before.book.accepted["a"].kept);
    assert!(!after.why("a").is_empty());
}

#[test]
fn what_is_kept_names_no_default_and_a_text_that_does_is_not_written_anew() {
    let mut decided = PolicyDecisions::default();
    let wanted =
        json!({ "parent": { "group": "example.com", "kind": "Database" }, "condition": { "type": "A" } });
    decided.decide(&[policy("a", 1, saying("A"))]);
    let kept = decided.book.accepted["a"].kept.spec.clone().expect("text");
    assert_eq!(serde_json::from_str::<Value>(&kept).expect("JSON"), wanted);
    let spec: ReadinessPolicySpec = serde_json::from_value(saying("A")).expect("a spec");
    let in_full = serde_json::to_string(&spec).expect("JSON");
    assert!(in_full.contains("grace"), "{in_full}");
    let status = json!({ "accepted": { "generation": 1, "spec": in_full } });
    let mut upgraded = PolicyDecisions::default();
    for _ in 0..2 {
        upgraded.decide(&[with_status("a", 1, saying("A"), status.clone())]);
        assert_eq!(upgraded.book.accepted["a"].kept.spec.as_ref(), Some(&in_full), "no write at rest");
    }
}

/// Minor version of this program.
const OWN_VERSION: &str = concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));

/// What this version and another one, one minor version before or after it, keep of a policy.
fn kept_of_two(last: (&str, Value), earlier: (&str, Value)) -> Value {
    let text = |(version, spec): (&str, Value), generation: i64| json!({ "version": version, "generation": generation, "spec": spec.to_string() });
    let mut kept = text(last, 2);
    kept["earlier"] = text(earlier, 1);
    json!({ "accepted": kept })
}

/// A field that this version does not know.
fn from_the_future() -> Value {
    let mut spec = databases("status.ready");
    spec["futureField"] = json!(true);
    spec
}

#[test]
fn after_a_rollback_what_this_version_had_accepted_is_in_force_until_it_can_read_what_there_is() {
    let status = kept_of_two(("9.9", from_the_future()), (OWN_VERSION, databases("status.before")));
    let mut decided = PolicyDecisions::default();
    decided.decide(&[with_status("a", 2, from_the_future(), status.clone())]);
    assert!(decided.in_force()[0].2.contains("status.before"), "{:?}", decided.in_force());
    assert!(decided.why("a").contains("futureField"), "{}", decided.why("a"));
    let accepted = &decided.book.accepted["a"];
    assert_eq!(accepted.generation, 1);
    assert_eq!(
        json!({ "accepted": &*accepted.kept })["accepted"]["spec"],
        status["accepted"]["spec"],
        "the newer one goes on from its own"
    );

    // What does not compile here is as if it were not there, too.
    let status = kept_of_two(("9.9", databases("status.(")), (OWN_VERSION, databases("status.before")));
    let mut decided = PolicyDecisions::default();
    decided.decide(&[with_status("a", 2, databases("status.("), status)]);
    assert!(decided.in_force()[0].2.contains("status.before"));
}

#[test]
fn what_another_version_accepted_last_is_kept_beside_what_this_one_accepts() {
    let kept =
        |decided: &PolicyDecisions| serde_json::to_value(&*decided.book.accepted["a"].kept).expect("JSON");
    let text = |spec: &Value| serde_json::from_str::<Value>(spec.as_str().expect("text")).expect("JSON");
    let other = json!({ "accepted": { "version": "9.9", "generation": 1, "spec": databases("status.other").to_string() } });
    let mut decided = PolicyDecisions::default();
    decided.decide(&[with_status("a", 2, databases("status.first"), other)]);
    let first = kept(&decided);
    assert_eq!((&first["earlier"]["version"], &first["earlier"]["generation"]), (&json!("9.9"), &json!(1)));
    assert_eq!(text(&first["earlier"]["spec"]), databases("status.other"));
    decided.decide(&[with_status("a", 3, databases("status.second"), json!({ "accepted": first }))]);
    let second = kept(&decided);
    assert_eq!(text(&second["spec"]), databases("status.second"));
    assert_eq!(second["earlier"], first["earlier"], "no edit under this version takes its place");

    let mut alone = PolicyDecisions::default();
    alone.decide(&[policy("a", 1, databases("status.first"))]);
    assert_eq!((&kept(&alone)["earlier"], &kept(&alone)["version"]), (&Value::Null, &json!(OWN_VERSION)));
}

/// What somebody wrote into a status, of whom nobody knows who it was.
fn forged(generation: i64, spec: &Value) -> Value {
    json!({ "accepted": { "generation": generation, "spec": spec.to_string() } })
}

#[test]
fn what_a_status_keeps_is_never_taken_for_a_spec_that_is_accepted() {
    for generation in [1, 2, 3] {
        let status = forged(generation, &databases("status.forged"));
        let mut decided = PolicyDecisions::default();
        decided.decide(&[with_status("a", 2, databases("status.ready"), status.clone())]);
        assert!(decided.in_force()[0].2.contains("status.ready"));
        let kept = &decided.book.accepted["a"].kept;
        assert_eq!(kept.generation, 2);
        assert!(kept.spec.as_ref().is_some_and(|spec| spec.contains("status.ready")), "{kept:?}");
        decided.decide(&[with_status("a", 3, databases("nonsense("), status)]);
        assert!(decided.in_force()[0].2.contains("status.ready"), "{generation}: it is the last good word");
    }
}

#[test]
fn a_spec_that_a_status_keeps_is_held_to_what_any_other_is_held_to() {
    let mut secrets = databases("true");
    secrets["children"][0]["kind"] = json!({ "kind": "Secret" });
    let mut unknown = databases("true");
    unknown["frobnicate"] = json!(1);
    for wrong in [secrets, unknown, databases("nonsense("), json!("text")] {
        let mut decided = PolicyDecisions::default();
        decided.decide(&[with_status("a", 2, databases("nonsense("), forged(1, &wrong))]);
        assert_eq!(decided.in_force(), [], "{wrong}");
        assert_eq!(decided.book.in_use[0].acceptance, Acceptance::Refused, "what stands is left");
    }
}

#[test]
fn after_a_restart_nothing_is_judged_by_rules_that_are_gone_and_what_stands_is_left() {
    let kept = |spec: &Value| json!({ "accepted": { "generation": 1, "spec": spec.to_string() } });
    for (spec, last) in [
        (by_library("gone"), by_library("gone")),
        (by_library("gone"), by_library("gone-too")),
        (databases("nonsense("), by_library("gone")),
    ] {
        let mut decided = PolicyDecisions::default();
        for _ in 0..2 {
            decided.decide(&[with_status("a", 2, spec.clone(), kept(&last))]);
            let [stub] = decided.book.in_use.as_slice() else { panic!("{:?}", decided.book.in_use) };
            assert_eq!(
                (stub.acceptance, stub.compiled.groups.len()),
                (Acceptance::Refused, 0),
                "{spec} {last}"
            );
            assert_eq!(decided.book.accepted["a"].generation, 1, "it is in force again when they come back");
        }
        assert!(!decided.why("a").is_empty());
    }
    let mut mended = PolicyDecisions::default();
    mended.decide(&[with_status("a", 2, by_library("gone"), kept(&by_library("there")))]);
    assert_eq!(mended.in_force().len(), 1, "the spec before can be judged by");
}

#[test]
fn a_new_policy_whose_rules_are_missing_says_unknown_and_is_not_accepted() {
    let mut decided = PolicyDecisions::default();
    for _ in 0..2 {
        decided.decide(&[policy("a", 1, by_library("gone"))]);
        assert_eq!(decided.in_force().len(), 1, "what it judges is Unknown");
        assert!(decided.book.accepted.is_empty() && decided.why("a").contains("shop/gone: not found"));
    }
    decided.decide(&[policy("a", 1, by_library("unread"))]);
    assert!(decided.book.undecided.contains("a"));
    decided.decide(&[policy("a", 1, by_library("there"))]);
    assert!(decided.book.undecided.is_empty() && decided.book.refused.is_empty());
    assert_eq!(decided.book.accepted["a"].generation, 1);
}

#[test]
fn a_policy_that_was_never_accepted_only_says_whose_entries_they_are() {
    let mut decided = PolicyDecisions::default();
    let mut unknown = saying("ChildrenReady");
    unknown["frobnicate"] = json!(1);
    decided.decide(&[policy("a", 1, unknown)]);
    let [stub] = decided.book.in_use.as_slice() else { panic!("{:?}", decided.book.in_use) };
    assert_eq!(stub.acceptance, Acceptance::Refused);
    assert_eq!((&*stub.compiled.parent.kind, &*stub.compiled.condition), ("Database", "ChildrenReady"));
    assert!(stub.compiled.groups.is_empty());
    assert!(decided.book.accepted.is_empty());
    decided.decide(&[policy("a", 1, databases("nonsense("))]);
    let [stub] = decided.book.in_use.as_slice() else { panic!("{:?}", decided.book.in_use) };
    assert_eq!((stub.acceptance, &*stub.compiled.condition), (Acceptance::Refused, "Ready"));
}

#[test]
fn a_condition_stays_with_the_policy_that_was_accepted_with_it() {
    let mut decided = PolicyDecisions::default();
    let (older, younger) = (policy("a", 1, saying("A")), policy("b", 1, saying("B")));
    decided.decide(&[older.clone(), younger.clone()]);
    // Of two that are new, the younger one would give way.
    let edited = policy("a", 2, saying("B"));
    decided.decide(&[edited.clone(), younger]);
    let claims = |decided: &PolicyDecisions| -> Vec<_> {
        decided.in_force().into_iter().map(|(name, condition, _)| format!("{name} {condition}")).collect()
    };
    assert_eq!(claims(&decided), ["a A", "b B"]);
    assert!(decided.why("a").contains("policy b writes B on Database already"), "{}", decided.why("a"));
    decided.decide(&[edited, policy("b", 2, saying("A"))]);
    assert_eq!(claims(&decided), ["a B", "b A"], "both want what the other gives up");
    assert!(decided.book.refused.is_empty());
}

#[test]
fn of_two_new_policies_for_one_condition_the_later_one_is_refused() {
    let mut decided = PolicyDecisions::default();
    decided.decide(&[policy("b", 1, saying("A")), policy("a", 1, saying("A"))]);
    assert_eq!(decided.in_force().len(), 1);
    assert_eq!(decided.in_force()[0].0, "a");
    assert!(decided.why("b").contains("policy a writes A"));
}

/// Its parents are those with this label.
fn of_team(team: &str, mut spec: Value) -> Value {
    spec["parent"]["selector"] = json!({ "matchLabels": { "team": team } });
    spec
}

#[test]
fn policies_that_choose_different_parents_are_all_in_force_the_oldest_first() {
    let mut decided = PolicyDecisions::default();
    decided.decide(&[
        policy("c", 1, saying("A")),
        policy("b", 1, of_team("y", saying("A"))),
        policy("a", 1, of_team("x", saying("A"))),
        policy("d", 1, of_team("x", saying("A"))),
    ]);
    let names: Vec<_> = decided.in_force().into_iter().map(|(name, ..)| name.to_owned()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(decided.why("d").contains("policy a writes A on Database already"), "{}", decided.why("d"));
    assert!(decided.why("d").contains("spec.parent.selector"), "{}", decided.why("d"));
}

#[test]
fn a_policy_that_was_never_accepted_rules_nothing_that_another_one_does() {
    let mut decided = PolicyDecisions::default();
    let broken = |spec: Value| {
        let mut spec = spec;
        spec["frobnicate"] = json!(1);
        spec
    };
    decided.decide(&[
        policy("a", 1, broken(of_team("x", saying("A")))),
        policy("b", 1, saying("A")),
        policy("c", 1, broken(saying("A"))),
    ]);
    let ranked: Vec<_> =
        decided.book.in_use.iter().map(|policy| (&*policy.name, policy.acceptance)).collect();
    assert_eq!(ranked, [("b", Acceptance::Accepted), ("a", Acceptance::Refused)]);
    let labels = |team: &str| [("team".into(), team.into())];
    let stub = &decided.book.in_use[1].compiled.selector;
    assert!(stub.matches(&labels("x")) && !stub.matches(&labels("y")), "it is known whose entries they are");
}

#[test]
fn a_spec_that_is_too_large_is_not_kept_in_the_status_and_that_is_said() {
    let mut decided = PolicyDecisions::default();
    let long = format!("metadata.name != '{}'", "x".repeat(4_000));
    let child = |n: usize| json!({ "kind": { "group": "apps", "kind": format!("Kind{n}") }, "ready": { "cel": { "current": long } } });
    let mut large = databases("true");
    large["children"] = (0..18).map(child).collect();
    decided.decide(&[policy("a", 1, large)]);
    let kept = &decided.book.accepted["a"].kept;
    assert_eq!((kept.generation, &kept.spec), (1, &None));
    assert_eq!(kept.omitted.as_deref(), Some("the spec has more than 64 KiB"));
    decided.decide(&[policy("a", 2, databases("nonsense("))]);
    assert_eq!(decided.book.accepted["a"].generation, 1, "in memory it is kept");
    assert_eq!(decided.in_force().len(), 1);
}

#[test]
fn a_policy_of_the_same_name_inherits_nothing() {
    let mut decided = PolicyDecisions::default();
    decided.decide(&[policy("a", 1, databases("true"))]);
    let recreated = FoundPolicy { uid: "another".to_owned(), ..policy("a", 1, databases("nonsense(")) };
    decided.decide(&[recreated]);
    assert_eq!(decided.in_force(), []);
}
