//! Two releases in one cluster, each by what it reads in the policies and says in their status.

use serde_json::{Value, json};

use super::tests::{NOW, tell};
use super::*;

mod handovers;

/// A policy of a release, over Databases.
fn manifest(name: &str, release: &str, hour: u32) -> Value {
    json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy",
        "metadata": { "name": name, "uid": format!("uid-{name}"), "resourceVersion": "1", "generation": 1,
            "creationTimestamp": format!("2026-01-01T{hour:02}:00:00Z"), "labels": { "release": release } },
        "spec": { "parent": { "group": "example.com", "kind": "Database" } },
    })
}

fn accepted_spec() -> Value {
    json!({ "generation": 1, "spec": json!({ "parent": { "group": "example.com", "kind": "Database" } }).to_string() })
}

fn settings() -> PolicySettings {
    PolicySettings::with_stuck_after(Duration::from_mins(10))
}

fn after(seconds: u64) -> Time {
    NOW + Duration::from_secs(seconds)
}

/// A merge, as the server does it.
fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            into.as_object_mut().expect("an object").remove(key);
        } else {
            merge(&mut into[key], value);
        }
    }
}

/// A release, which writes what it says of policies as its leader does.
struct Release {
    state: PolicyTaskState,
}

impl Release {
    fn new(name: &str, namespaces: &[&str], policies: &[Value]) -> Release {
        let mut state = PolicyTaskState {
            selector: policy::parse_selector(&format!("release={name}")).expect("a selector"),
            ..PolicyTaskState::default()
        };
        state.others.release = policy::ReleaseIdentity {
            name: format!("ns/{name}"),
            namespaces: namespaces.iter().map(|name| (*name).to_owned()).collect(),
        };
        tell(&mut state, FollowEvent::Init);
        for policy in policies {
            tell(
                &mut state,
                FollowEvent::InitApply(serde_json::from_value(policy.clone()).expect("a policy")),
            );
        }
        tell(&mut state, FollowEvent::InitDone);
        Release { state }
    }

    fn see(&mut self, policy: &Value) {
        let policy = serde_json::from_value(policy.clone()).expect("a policy");
        tell(&mut self.state, FollowEvent::Apply(policy));
    }

    /// Decides, and writes what it has to say of policies; the names of those of which it had.
    fn speak(&mut self, policies: &mut [Value], seconds: u64) -> Vec<String> {
        self.state.decide(&settings(), after(seconds));
        let release = self.state.others.release.clone();
        let changes = self.state.claim_changes(after(seconds));
        let changes: Vec<_> = changes
            .into_iter()
            .map(|(found, change)| (found.clone(), change.patch(found, &release, after(seconds))))
            .collect();
        for (found, patch) in &changes {
            let policy = policies.iter_mut().find(|policy| policy["metadata"]["name"] == *found.name);
            let policy = policy.expect("a policy");
            let version = found.version + 1;
            merge(policy, patch);
            policy["metadata"]["resourceVersion"] = json!(version.to_string());
            // The watch brings it.
            let policy = policy.clone();
            self.see(&policy);
        }
        changes.into_iter().map(|(found, ..)| found.name).collect()
    }

    /// Policies of others whose words are left alone, and those of this release that give way to some.
    fn leaves(&mut self, seconds: u64) -> (usize, Vec<String>) {
        let speaking = self.state.others.speaking(&settings(), after(seconds));
        let rules: Vec<_> = speaking.iter().flat_map(|other| other.rules(&self.state.book)).collect();
        let gives_way = |used: &&PolicyInUse| rules.iter().any(|(_, rule)| rule.outranks.contains(&used.id));
        let given_way = self.state.book.in_use.iter().filter(gives_way).map(|used| used.name.clone());
        (rules.len(), given_way.collect())
    }

    /// What it takes back.
    fn takes_back(&mut self, seconds: u64) -> bool {
        !self.state.released.is_empty() && self.leaves(seconds).0 == 0
    }
}

/// All releases see all policies, and speak, until none has anything to say.
fn settle(releases: &mut [&mut Release], policies: &mut [Value], seconds: u64) {
    for _ in 0..20 {
        let mut said = 0;
        for release in releases.iter_mut() {
            for policy in policies.iter() {
                release.see(policy);
            }
            said += release.speak(policies, seconds).len();
        }
        if said == 0 {
            return;
        }
    }
    panic!("they do not come to rest: {policies:?}");
}

fn claims(policy: &Value) -> Vec<&str> {
    policy["status"]["acceptedBy"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

fn reason(policy: &Value) -> &str {
    policy["status"]["conditions"][0]["reason"].as_str().unwrap_or_default()
}

fn relabel(policy: &mut Value, release: &str) {
    policy["metadata"]["labels"]["release"] = json!(release);
}

/// The status that a release of a version without claims writes.
fn say_as_older_version(policy: &mut Value) {
    policy["status"]["accepted"] = accepted_spec();
    policy["status"]["conditions"] =
        json!([{ "type": "Accepted", "status": "True", "reason": "Accepted", "lastTransitionTime": "" }]);
}

#[test]
fn of_two_policies_of_two_releases_for_the_same_parents_the_older_rules_in_both() {
    let mut policies = [manifest("young", "a", 2), manifest("old", "b", 1)];
    let (mut a, mut b) = (Release::new("a", &[], &policies), Release::new("b", &[], &policies));
    settle(&mut [&mut a, &mut b], &mut policies, 0);
    assert_eq!(policies.each_ref().map(claims), [["ns/a"], ["ns/b"]]);
    assert_eq!(a.leaves(0), (1, vec!["young".to_owned()]));
    assert_eq!(b.leaves(0), (1, vec![]), "what the other one says where this one does not speak is its own");
    // A process that begins now knows it too, and one of which nobody knows whether it runs rules on.
    assert_eq!(
        {
            let mut a = Release::new("a", &[], &policies);
            a.speak(&mut policies, 0);
            a.leaves(0)
        }
        .1,
        ["young"]
    );
    // Of a version that claims nothing.
    policies[1]["status"].as_object_mut().expect("a status").remove("acceptedBy");
    a.see(&policies[1]);
    assert_eq!(a.leaves(0), (1, vec!["young".to_owned()]));
}

#[test]
fn releases_of_different_namespaces_share_policies_and_give_way_only_where_they_meet() {
    let mut policies = [manifest("shared", "a", 1), manifest("young", "c", 2)];
    let (mut a, mut b) = (Release::new("a", &["x"], &policies), Release::new("a", &["y"], &policies));
    b.state.others.release.name = "ns/b".to_owned();
    let mut c = Release::new("c", &[], &policies);
    settle(&mut [&mut a, &mut b, &mut c], &mut policies, 0);
    assert_eq!(claims(&policies[0]), ["ns/a", "ns/b"]);
    let speaking = c.state.others.speaking(&settings(), NOW);
    let rules: Vec<_> = speaking.iter().flat_map(|other| other.rules(&c.state.book)).collect();
    assert_eq!(rules.iter().map(|(_, rule)| rule.namespaces.join(" ")).collect::<Vec<_>>(), ["x y"]);
    assert!(!rules[0].1.outranks.is_empty());
    // Nobody selects it now: each takes back what it said in its own namespaces.
    relabel(&mut policies[0], "nobody");
    for (seconds, left_alone) in [(0, 3), (15, 2), (29, 2), (30, 1)] {
        settle(&mut [&mut a, &mut b], &mut policies, seconds);
        assert_eq!([&mut a, &mut b].map(|release| release.leaves(seconds).0), [left_alone; 2], "{seconds}");
        assert!(
            !a.state.released.is_empty() && !b.state.released.is_empty(),
            "but for those of the younger one"
        );
    }
}

#[test]
fn releases_that_both_select_a_policy_come_to_rest() {
    let mut policies = [manifest("p", "a", 1)];
    let (mut a, mut b) = (Release::new("a", &[], &policies), Release::new("a", &[], &policies));
    b.state.others.release.name = "ns/b".to_owned();
    settle(&mut [&mut a, &mut b], &mut policies, 0);
    assert_eq!(claims(&policies[0]), ["ns/a", "ns/b"]);
}

#[test]
fn words_are_left_alone_for_a_while_of_which_no_status_says_yet_whose_they_are() {
    let mut policies = [manifest("own", "a", 1), manifest("new", "b", 2)];
    let mut a = Release::new("a", &[], &policies);
    let leaves = |a: &mut Release, seconds: u64| {
        a.state.decide(&settings(), after(seconds));
        a.leaves(seconds)
    };
    assert_eq!(leaves(&mut a, 0), (1, vec![]), "it may have been accepted a moment ago");
    assert_eq!(leaves(&mut a, 119), (1, vec![]));
    assert_eq!(a.state.others.next_step(after(119)), Some(after(120)));
    assert_eq!(leaves(&mut a, 120), (0, vec![]), "nobody has it");
    relabel(&mut policies[1], "c");
    a.see(&policies[1]);
    assert_eq!(leaves(&mut a, 200), (1, vec![]), "who selects it now?");
    policies[1]["spec"]["mode"] = json!("shadow");
    a.see(&policies[1]);
    assert_eq!(leaves(&mut a, 201), (0, vec![]), "nothing of it is written");
    policies[1]["spec"]["mode"] = json!("write");
    say_as_older_version(&mut policies[1]);
    a.see(&policies[1]);
    assert_eq!(leaves(&mut a, 1_000), (1, vec![]));
    // It is said before anything else is, and by itself.
    let mut b = Release::new("c", &[], &policies[1..]);
    assert_eq!(b.speak(&mut policies[1..], 0), ["new"]);
    assert_eq!(claims(&policies[1]), ["ns/c"]);
}

#[test]
fn half_a_list_takes_no_policy_of_another_release_away() {
    let mut policies = [manifest("young", "a", 2), manifest("old", "b", 1)];
    let (mut a, mut b) = (Release::new("a", &[], &policies), Release::new("b", &[], &policies));
    settle(&mut [&mut a, &mut b], &mut policies, 0);
    let gives_way = (1, vec!["young".to_owned()]);
    assert_eq!(a.leaves(0), gives_way);
    let own: ParentObject = serde_json::from_value(policies[0].clone()).expect("a policy");
    // Twice, because the first list breaks off.
    for _ in 0..2 {
        tell(&mut a.state, FollowEvent::Init);
        tell(&mut a.state, FollowEvent::InitApply(own.clone()));
        a.state.decide(&settings(), after(5));
        assert_eq!(a.leaves(5), gives_way, "half a list");
    }
    tell(&mut a.state, FollowEvent::InitDone);
    a.state.decide(&settings(), after(5));
    assert_eq!(a.leaves(5).1, [""; 0], "it is gone");
}
