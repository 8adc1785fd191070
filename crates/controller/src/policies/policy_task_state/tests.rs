//! Entries are taken off parents for a confirmed deletion, and for nothing else.

use readiness::Time;
use serde_json::json;

use super::super::departures::Departure;
use super::*;
use crate::clock::ServerClock;

pub(super) const NOW: Time = Time(1_800_000_000_000);

/// A policy over a kind of the same name.
fn policy(name: &str) -> ParentObject {
    labelled(name, "mine")
}

fn labelled(name: &str, team: &str) -> ParentObject {
    let object = json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy",
        "metadata": { "name": name, "uid": format!("uid-{name}"), "resourceVersion": "1", "generation": 1,
            "labels": { "team": team } },
        "spec": { "parent": { "group": "example.com", "kind": name } },
    });
    serde_json::from_value(object).expect("a policy")
}

pub(super) fn tell(
    state: &mut PolicyTaskState,
    event: FollowEvent<ParentObject>,
) -> (bool, Vec<FoundPolicy>) {
    let (read, _) = watch::channel(false);
    state.apply_event(event, &read)
}

fn list(state: &mut PolicyTaskState, names: &[&str]) -> Vec<FoundPolicy> {
    tell(state, FollowEvent::Init);
    for name in names {
        tell(state, FollowEvent::InitApply(policy(name)));
    }
    tell(state, FollowEvent::InitDone).1
}

/// Policies in force, and parent kinds whose entries are taken away.
fn decided(state: &mut PolicyTaskState) -> (Vec<String>, Vec<String>) {
    state.decide(&PolicySettings::with_stuck_after(Duration::from_mins(10)), NOW);
    let in_force = state.book.in_use.iter().map(|policy| policy.name.clone()).collect();
    (in_force, state.released.keys().map(|(_, kind)| kind.clone()).collect())
}

fn both() -> (Vec<String>, Vec<String>) {
    (vec!["a".to_owned(), "b".to_owned()], Vec::new())
}

#[test]
fn a_spec_that_reads_otherwise_by_a_changed_crd_is_planned_anew_in_its_generation() {
    let mut state = PolicyTaskState::default();
    list(&mut state, &["a"]);
    let mut newer: serde_json::Value =
        serde_json::from_str(policy("a").text.get()).expect("the text of an object");
    newer["spec"]["future"] = json!("on");
    let newer: ParentObject = serde_json::from_value(newer).expect("a policy");
    assert!(tell(&mut state, FollowEvent::Apply(newer.clone())).0, "it has a field that is not known");
    assert!(!tell(&mut state, FollowEvent::Apply(newer)).0);
    assert!(tell(&mut state, FollowEvent::Apply(policy("a"))).0, "it is as it was");
    assert!(!tell(&mut state, FollowEvent::Apply(policy("a"))).0);
}

/// A server that answers every live read of a policy so, and one of their definition with this.
#[derive(Clone)]
struct FixedAnswerServer(u16, String, String);

impl tower_service::Service<http::Request<kube::client::Body>> for FixedAnswerServer {
    type Response = http::Response<kube::client::Body>;
    type Error = std::io::Error;
    type Future = std::future::Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<kube::client::Body>) -> Self::Future {
        let of_definition = request.uri().path().contains("customresourcedefinitions");
        let (code, text) = if of_definition { (200, &self.2) } else { (self.0, &self.1) };
        let body = kube::client::Body::from(text.clone().into_bytes());
        std::future::ready(Ok(http::Response::builder().status(code).body(body).expect("a response")))
    }
}

fn server(code: u16, body: &serde_json::Value) -> kube::Client {
    defined(code, body, &json!({ "metadata": { "name": "readinesspolicies.rollcall.dev", "uid": "d" } }))
}

/// A server with this definition of policies.
fn defined(code: u16, body: &serde_json::Value, definition: &serde_json::Value) -> kube::Client {
    kube::Client::new(FixedAnswerServer(code, body.to_string(), definition.to_string()), "default")
}

/// That there is no policy of this name, as kube-apiserver says it.
fn not_found(name: &str) -> serde_json::Value {
    let details = json!({ "name": name, "group": "rollcall.dev", "kind": "readinesspolicies" });
    json!({ "kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "details": details })
}

async fn confirm(
    state: &mut PolicyTaskState,
    client: &kube::Client,
    suspects: Vec<FoundPolicy>,
) -> Departure {
    state.departures.confirm(client, &ServerClock::assume_local(), suspects);
    state.departures.next(&state.selector).await.expect("an answer")
}

#[test]
fn a_plan_is_never_made_from_half_a_list() {
    let mut state = PolicyTaskState::default();
    tell(&mut state, FollowEvent::Init);
    tell(&mut state, FollowEvent::InitApply(policy("a")));
    assert!(!state.decide(&PolicySettings::with_stuck_after(Duration::ZERO), NOW), "nothing was listed yet");
    list(&mut state, &["a", "b"]);
    assert_eq!(decided(&mut state), both());
    tell(&mut state, FollowEvent::Init);
    tell(&mut state, FollowEvent::InitApply(policy("a")));
    assert_eq!(decided(&mut state), both(), "half a list");
    tell(&mut state, FollowEvent::Init);
    assert_eq!(decided(&mut state), both(), "it broke off");
}

#[tokio::test]
async fn a_deletion_takes_nothing_away_before_the_server_confirms_it() {
    let gone = server(404, &not_found("b"));
    let recreated = json!({ "metadata": { "name": "b", "uid": "another", "labels": { "team": "mine" } } });
    for client in [gone, server(200, &recreated)] {
        for watched in [true, false] {
            let mut state = PolicyTaskState::default();
            list(&mut state, &["a", "b"]);
            decided(&mut state);
            let suspects = if watched {
                tell(&mut state, FollowEvent::Delete(policy("b"))).1
            } else {
                list(&mut state, &["a"])
            };
            assert_eq!(decided(&mut state), both(), "not confirmed yet");
            let departure = confirm(&mut state, &client, suspects).await;
            assert!(matches!(&departure, Departure::Confirmed(gone) if gone.name == "b"), "{departure:?}");
            assert_eq!(decided(&mut state), (vec!["a".to_owned()], vec!["b".to_owned()]));
        }
    }
}

#[tokio::test]
async fn a_policy_that_a_list_has_lost_is_found_again_by_a_live_read() {
    let mut state = PolicyTaskState::default();
    list(&mut state, &["a", "b"]);
    decided(&mut state);
    let suspects = list(&mut state, &["a"]);
    let client = server(200, &serde_json::from_str(policy("b").text.get()).expect("JSON"));
    let Departure::Refuted(policy) = confirm(&mut state, &client, suspects).await else {
        panic!("it is there")
    };
    state.insert_policy(&policy);
    assert_eq!(decided(&mut state), both());
    assert_eq!(state.policies.items().map(BTreeMap::len), Some(2));
}

#[tokio::test]
async fn a_server_that_cannot_answer_confirms_nothing() {
    let mut state = PolicyTaskState::default();
    list(&mut state, &["a", "b"]);
    decided(&mut state);
    let suspects = tell(&mut state, FollowEvent::Delete(policy("b"))).1;
    let departure =
        confirm(&mut state, &server(403, &json!({ "kind": "Status", "code": 403 })), suspects).await;
    assert!(matches!(departure, Departure::Unconfirmed(_)), "{departure:?}");
    assert_eq!(decided(&mut state), both());
}

#[tokio::test]
async fn policies_that_go_with_their_definition_stay_in_force() {
    let deleted = json!({ "metadata": { "name": "readinesspolicies.rollcall.dev", "uid": "d",
        "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    let gone = defined(404, &not_found("b"), &deleted);
    let mut state = PolicyTaskState::default();
    list(&mut state, &["a", "b"]);
    decided(&mut state);
    let suspects = tell(&mut state, FollowEvent::Delete(policy("b"))).1;
    let departure = confirm(&mut state, &gone, suspects.clone()).await;
    assert!(matches!(departure, Departure::Unconfirmed(_)), "{departure:?}");
    assert_eq!(decided(&mut state), both());
    // It is back, without the policy.
    let departure = confirm(&mut state, &server(404, &not_found("b")), suspects).await;
    assert!(matches!(departure, Departure::Confirmed(_)), "{departure:?}");
}

#[tokio::test]
async fn policies_that_went_with_their_definition_stay_in_force_for_a_while_after_it_is_back() {
    let now = ServerClock::assume_local().now();
    let before = |minutes: u64| Time(now.0 - i64::try_from(minutes * 60_000).expect("minutes"));
    // The ages of the definition and of the policy in minutes.
    for (defined_for, there_for, is_gone) in
        [(0, 60, false), (9, 60, false), (11, 60, true), (60, 5, true), (5, 5, true)]
    {
        let definition = json!({ "metadata": { "name": "readinesspolicies.rollcall.dev", "uid": "e",
            "creationTimestamp": before(defined_for).to_string() } });
        let mut state = PolicyTaskState::default();
        list(&mut state, &["a", "b"]);
        decided(&mut state);
        let mut suspects = tell(&mut state, FollowEvent::Delete(policy("b"))).1;
        suspects[0].created = Time::from_rfc3339(&before(there_for).to_string());
        let departure = confirm(&mut state, &defined(404, &not_found("b"), &definition), suspects).await;
        let told = matches!(departure, Departure::Confirmed(_));
        assert_eq!(told, is_gone, "defined for {defined_for}, there for {there_for}: {departure:?}");
    }
}

#[test]
fn a_policy_that_loses_its_labels_is_gone_by_the_event_itself() {
    let mut state = PolicyTaskState {
        selector: policy::parse_selector("team=mine").expect("a selector"),
        ..PolicyTaskState::default()
    };
    list(&mut state, &["a", "b"]);
    decided(&mut state);
    let (moved, suspects) = tell(&mut state, FollowEvent::Delete(labelled("b", "theirs")));
    assert!(moved && suspects.is_empty());
    assert_eq!(decided(&mut state), (vec!["a".to_owned()], vec!["b".to_owned()]));
}

#[test]
fn a_refusal_that_lasts_takes_back_what_was_never_accepted() {
    let mut state = PolicyTaskState::default();
    let mut wrong: serde_json::Value = serde_json::from_str(policy("a").text.get()).expect("JSON");
    wrong["spec"]["frobnicate"] = json!(1);
    tell(&mut state, FollowEvent::Init);
    tell(&mut state, FollowEvent::InitApply(serde_json::from_value(wrong).expect("a policy")));
    tell(&mut state, FollowEvent::InitDone);
    let mut after = |seconds: u64| {
        state.decide(&PolicySettings::with_stuck_after(Duration::ZERO), NOW + Duration::from_secs(seconds));
        state.book.in_use[0].acceptance
    };
    assert_eq!(after(0), Acceptance::Refused);
    assert_eq!(after(119), Acceptance::Refused);
    assert_eq!(after(120), Acceptance::RefusedForLong);
}

/// A policy over Databases that writes this condition.
fn writing(name: &str, generation: u32, condition: &serde_json::Value) -> ParentObject {
    let mut object: serde_json::Value = serde_json::from_str(policy(name).text.get()).expect("JSON");
    object["metadata"]["generation"] = json!(generation);
    object["metadata"]["resourceVersion"] = json!(generation.to_string());
    object["spec"] =
        json!({ "parent": { "group": "example.com", "kind": "Database" }, "condition": condition });
    serde_json::from_value(object).expect("a policy")
}

#[tokio::test]
async fn types_are_released_that_a_predecessor_wrote_and_nobody_writes_now() {
    let mut state = PolicyTaskState::default();
    list(&mut state, &[]);
    let released = |state: &mut PolicyTaskState| {
        state.decide(&PolicySettings::with_stuck_after(Duration::from_secs(600)), NOW);
        assert!(state.book.refused.is_empty(), "{:?}", state.book.refused.keys());
        state.released.values().flatten().map(String::as_str).collect::<Vec<_>>().join(" ")
    };
    let (ready, healthy) = (json!({}), json!({ "type": "Healthy", "fallback": "ChildrenReady" }));
    tell(&mut state, FollowEvent::Apply(writing("a", 1, &ready)));
    assert_eq!(released(&mut state), "");
    tell(&mut state, FollowEvent::Apply(writing("a", 2, &healthy)));
    assert_eq!(released(&mut state), "Ready Reconciling Stalled");
    tell(&mut state, FollowEvent::Apply(writing("b", 1, &ready)));
    assert_eq!(released(&mut state), "");
    let suspects = tell(&mut state, FollowEvent::Delete(writing("a", 2, &healthy))).1;
    confirm(&mut state, &server(404, &not_found("a")), suspects).await;
    assert_eq!(released(&mut state), "ChildrenReady Healthy");
    let suspects = tell(&mut state, FollowEvent::Delete(writing("b", 1, &ready))).1;
    confirm(&mut state, &server(404, &not_found("b")), suspects).await;
    assert_eq!(released(&mut state), "ChildrenReady Healthy Ready Reconciling Stalled");
}

/// Types under which each policy in force spoke before it was edited, as its plan has them.
fn former_types(state: &mut PolicyTaskState) -> Vec<(String, Vec<String>)> {
    state.decide(&PolicySettings::with_stuck_after(Duration::from_mins(10)), NOW);
    let mut plan =
        policy::build_plan(&state.book.in_use, &state.released, &mut state.registry, &state.libraries);
    state.former.recall_in(&mut plan);
    let rules = plan.kinds.values().flat_map(|kind| &kind.interest.parent);
    let of_rule = |rule: &watcher::plan::ParentRule| {
        let mut former: Vec<String> = rule.former.iter().map(ToString::to_string).collect();
        former.sort_unstable();
        (plan.policies[&rule.policy].1.name.clone(), former)
    };
    let mut all: Vec<_> = rules.map(of_rule).filter(|(_, former)| !former.is_empty()).collect();
    all.sort_unstable();
    all
}

#[test]
fn a_policy_answers_for_the_types_that_it_had_until_nothing_of_them_is_left_or_another_writes_them() {
    let mut state = PolicyTaskState::default();
    list(&mut state, &[]);
    let types = |of: &[&str]| of.iter().map(|&of| of.to_owned()).collect::<Vec<_>>();
    let typed = |of: &str| json!({ "type": of });
    tell(&mut state, FollowEvent::Apply(writing("a", 1, &json!({ "type": "Ready", "fallback": "Whole" }))));
    assert_eq!(former_types(&mut state), []);
    tell(&mut state, FollowEvent::Apply(writing("a", 2, &typed("Healthy"))));
    assert_eq!(former_types(&mut state), [("a".to_owned(), types(&["Ready", "Whole"]))]);
    tell(&mut state, FollowEvent::Apply(writing("a", 3, &typed("Sound"))));
    assert_eq!(former_types(&mut state), [("a".to_owned(), types(&["Healthy", "Ready", "Whole"]))]);
    tell(&mut state, FollowEvent::Apply(writing("b", 1, &typed("Ready"))));
    assert_eq!(former_types(&mut state), [("a".to_owned(), types(&["Healthy", "Whole"]))], "that is b's now");
    tell(&mut state, FollowEvent::Apply(writing("a", 4, &typed("Healthy"))));
    assert_eq!(former_types(&mut state), [("a".to_owned(), types(&["Sound", "Whole"]))]);
    state.released.clear();
    assert_eq!(former_types(&mut state), [], "no parent has any of them");
}

/// What was kept of policies with these uids and names, each over a kind of its name.
fn kept(items: &[(&str, &str, &str)]) -> InventoryResult {
    let item = |(uid, name, of): &(&str, &str, &str)| {
        let on_kind = json!({ "group": "example.com", "kind": name, "types": [of] });
        ((*uid).to_owned(), json!({ "policy": name, "written": [on_kind] }).to_string())
    };
    let (read, unreadable) = KeptState::read(&items.iter().map(item).collect());
    assert!(unreadable.is_empty(), "{unreadable:?}");
    InventoryResult::Read(read)
}

fn uids(state: &PolicyTaskState) -> Vec<String> {
    state.inventory.iter().flat_map(|inventory| inventory.to_data().into_keys()).collect()
}

#[test]
fn what_a_policy_left_that_went_while_nothing_ran_is_released_when_the_server_confirms_it() {
    let mut state = PolicyTaskState::default();
    list(&mut state, &["a"]);
    decided(&mut state);
    assert!(!state.apply_inventory(kept(&[("uid-b", "b", "Ready")])), "nobody knows yet whether it is gone");
    assert_eq!(decided(&mut state), (vec!["a".to_owned()], Vec::new()));
    let unconfirmed = |state: &PolicyTaskState| {
        let asked = state.inventory.as_ref().and_then(|kept| kept.conditions.next_unconfirmed());
        asked.map(|(uid, name)| format!("{uid} {name}"))
    };
    assert_eq!(unconfirmed(&state), Some("uid-b b".to_owned()));
    let asked = |gone| InventoryResult::Asked { uid: "uid-b".to_owned(), gone };
    let mut elsewhere = PolicyTaskState { inventory: state.inventory.clone(), ..PolicyTaskState::default() };
    list(&mut elsewhere, &["a"]);
    assert!(!elsewhere.apply_inventory(asked(false)), "it is another release's");
    assert_eq!((decided(&mut elsewhere).1, unconfirmed(&elsewhere)), (Vec::new(), None));
    assert!(state.apply_inventory(asked(true)));
    assert_eq!(decided(&mut state), (vec!["a".to_owned()], vec!["b".to_owned()]));
    assert_eq!(uids(&state), ["uid-a", "uid-b"], "until the last entry is removed");
    state.settle_release(&("example.com".to_owned(), "b".to_owned()));
    assert_eq!((decided(&mut state).1, uids(&state)), (Vec::new(), vec!["uid-a".to_owned()]));
}

#[test]
fn entries_of_a_policy_that_was_created_again_while_nothing_ran_are_taken_over() {
    let mut state = PolicyTaskState::default();
    list(&mut state, &["a"]);
    decided(&mut state);
    state.apply_inventory(kept(&[("uid-before", "a", "Ready")]));
    assert!(!state.apply_inventory(InventoryResult::Asked { uid: "uid-before".to_owned(), gone: true }));
    assert_eq!((decided(&mut state).1, uids(&state)), (Vec::new(), vec!["uid-a".to_owned()]));
}

#[test]
fn a_type_that_a_policy_gave_up_while_nothing_ran_is_released() {
    let mut state = PolicyTaskState::default();
    list(&mut state, &["a"]);
    decided(&mut state);
    assert!(state.apply_inventory(kept(&[("uid-a", "a", "Healthy")])));
    let released: Vec<_> = state.released.values().flatten().cloned().collect();
    assert_eq!(released, ["Healthy"]);
}

#[tokio::test]
async fn a_policy_in_the_inventory_that_goes_stays_there_until_its_entries_are_removed() {
    let mut state = PolicyTaskState::default();
    list(&mut state, &["a", "b"]);
    decided(&mut state);
    state.apply_inventory(kept(&[]));
    assert_eq!(uids(&state), ["uid-a", "uid-b"]);
    let suspects = tell(&mut state, FollowEvent::Delete(policy("b"))).1;
    decided(&mut state);
    confirm(&mut state, &server(404, &not_found("b")), suspects).await;
    assert_eq!((decided(&mut state).1, uids(&state).len()), (vec!["b".to_owned()], 2));
    state.settle_release(&("example.com".to_owned(), "b".to_owned()));
    assert_eq!((decided(&mut state).1, uids(&state)), (Vec::new(), vec!["uid-a".to_owned()]));
}
