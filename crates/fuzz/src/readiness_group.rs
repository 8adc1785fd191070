//! ReadinessGroups, which whoever may create them in one namespace writes: read as a watch brings them, and the policies by which
//! they are judged.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api::{GroupMember, ReadinessGroupSpec, ReadinessPolicySpec};
use policy::{
    FoundGroup, FoundPolicy, PolicySettings, check_written_group_spec, policies_of_groups, policy_of_group,
    read_group,
};
use watcher::plan::LabelMatcher;
use watcher::{ParentObject, ServedKind, ServedKinds};

use crate::policy_manifest::check_roles;

pub(crate) const READINESS_GROUP_WORDS: &[&str] = &[
    "---\n",
    "metadata: { name: b, namespace: b }\n",
    "creationTimestamp: \"2026-01-01T00:00:02Z\"",
    "labels: { a: b }",
    "app.kubernetes.io/part-of: ",
    "kinds: [{ group: apps, kind: Deployment }, { kind: Pod }]",
    "{ kind: Service }, ",
    "category: all",
    "helmRelease: a",
    "application: a_b",
    "inventory: a",
    "applySet: a",
    "kustomization: { name: a, namespace: b }",
    "objects: [{ apiVersion: batch/v1, kind: Job, name: a }]",
    "after: [{ name: a }]\n",
    "afterDeletion: remember",
    "ignore: { selector: { matchLabels: { a: b } } }",
    "expect: { min: 0, max: 3 }",
    "quorum: 50%",
    "namespaces: [a, b]",
    "namespace: b, ",
    "ready: { cel: { current: \"spec.a == 'b'\" } }",
    "ready: { lua: return nil }",
    "ready: { profile: flux }",
    "role: optional",
    "settle: 1s\n",
    "limits: { deadline: 30m }\n",
    "'] {parent.metadata.name}",
    "*",
    "~",
    "- ",
    ": ",
    ", ",
    "\"",
];

/// Most bytes of why a group cannot be judged.
const MAX_WHY_BYTES: usize = 1_000;
/// Bytes that the shape of a group never has: about half are admitted.
const MAX_SHAPE_BYTES: usize = 128 << 10;
/// Most ways to select, a member and a kind each, of the groups of one namespace and of all, and the most refusals in their own words.
const MAX_WAYS_OF_NAMESPACE: usize = 64;
const MAX_WAYS: usize = 512;
const MAX_NAMED_REFUSALS: usize = 32;

/// A group has a shape, which says what a policy would and nothing that it selects by, or is told why not. What is in force
/// compiles, is bounded, and is decided alike in whatever order groups are listed.
pub(crate) fn run(data: &[u8]) {
    let Ok(documents) = rollcall_yaml::read_all(data) else { return };
    let mut groups = BTreeMap::new();
    for document in &documents {
        let Ok(group) = serde_json::from_str::<ParentObject>(&document.json) else { continue };
        let found = read_group(&group);
        assert_eq!(found, read_group(&group), "read twice");
        match &found.shape {
            Ok(shape) => check_shape(shape, &group),
            Err(why) => assert!((1..=MAX_WHY_BYTES).contains(&why.len()), "{why}"),
        }
        groups.insert((found.namespace.clone(), found.name.clone()), found);
    }
    let groups: Vec<_> = groups.into_values().collect();
    let shapes = check_policies(&groups, &ServedKinds::default());
    check_quota(&groups, &shapes.iter().map(String::as_str).collect());
    check_policies(&groups, &served_kinds());
}

/// A cluster-scoped kind, and a category of as many kinds as there are letters.
fn served_kinds() -> ServedKinds {
    let kind = |kind: String, namespaced: bool| {
        let categories = vec!["all".into()];
        (("apps".to_owned(), kind), ServedKind { namespaced, is_followable: true, categories })
    };
    let many = (b'A'..=b'Z').map(|letter| kind(char::from(letter).to_string(), true));
    ServedKinds::of(many.chain([kind("Deployment".to_owned(), false)]), BTreeSet::new())
}

fn check_shape(shape: &str, group: &ParentObject) {
    #[derive(serde::Deserialize)]
    struct WrittenGroup {
        spec: ReadinessGroupSpec,
    }
    assert!(shape.len() <= MAX_SHAPE_BYTES, "{} bytes", shape.len());
    let as_policy: ReadinessPolicySpec = serde_json::from_str(shape).unwrap();
    assert_eq!(serde_json::to_string(&as_policy).unwrap(), shape, "read and written again");
    let WrittenGroup { spec } = serde_json::from_str(group.text.get()).unwrap();
    assert_eq!(
        check_written_group_spec(&serde_json::to_value(&spec).unwrap()),
        [],
        "what is judged is admitted"
    );
    for spec in [spec.clone(), selecting_others(spec)] {
        let policy = policy_of_group(&spec).unwrap();
        if names_category(shape) {
            assert!(policy.groups.unwrap().is_refused(), "its kinds are not known");
            continue;
        }
        assert_eq!(policy.spec.as_ref(), Ok(&as_policy), "{spec:?}");
    }
}

/// Returns `true` for a shape whose kinds only the API server knows.
fn names_category(shape: &str) -> bool {
    shape.contains(r#""group":"*""#)
}

/// Returns `true` for a shape all of whose rules can be.
fn has_sound_rules(shape: &str) -> bool {
    let spec = serde_json::from_str::<ReadinessPolicySpec>(shape).unwrap();
    let compiled = policy::compile(&spec, Duration::ZERO).err().unwrap_or_default();
    compiled.iter().all(|problem| !problem.field.contains(".ready"))
        && spec.children.iter().all(|child| child.ready.is_none() || child.kind.group != "rollcall.dev")
}

/// A group that selects as this one does, and nothing that this one does.
fn selecting_others(mut spec: ReadinessGroupSpec) -> ReadinessGroupSpec {
    for (at, earlier) in spec.after.iter_mut().enumerate() {
        earlier.name = format!("other-{at}");
    }
    let change = |text: &mut Option<String>| {
        if let Some(text) = text {
            "other".clone_into(text);
        }
    };
    for member in &mut spec.members {
        let GroupMember { labels, helm_release, application, apply_set, inventory, namespaces, .. } = member;
        for namespace in namespaces {
            "other".clone_into(namespace);
        }
        for value in labels.values_mut() {
            "other".clone_into(value);
        }
        for text in [helm_release, application, apply_set, inventory] {
            change(text);
        }
        if let Some(kustomization) = &mut member.kustomization {
            "other".clone_into(&mut kustomization.name);
            change(&mut kustomization.namespace);
        }
        for (at, object) in member.objects.iter_mut().enumerate() {
            object.name = format!("other-{at}");
        }
    }
    spec
}

/// Returns the specs of the policies that are in force.
fn check_policies(groups: &[FoundGroup], served: &ServedKinds) -> BTreeSet<String> {
    let labels = LabelMatcher::default();
    let settings = PolicySettings::with_stuck_after(Duration::from_secs(600));
    let policies = policies_of_groups(groups.iter(), &labels, served, &settings);
    assert_eq!(
        policies,
        policies_of_groups(groups.iter().rev(), &labels, served, &settings),
        "listed the other way round"
    );
    assert_eq!(policies.is_empty(), groups.is_empty());
    let names: BTreeSet<_> = policies.iter().map(|policy| &policy.name).collect();
    assert_eq!(names.len(), policies.len(), "each has a name of its own");
    let is_refused = |policy: &&FoundPolicy| policy.groups.as_ref().unwrap().is_refused();
    let (refused, in_force): (Vec<_>, Vec<_>) = policies.iter().partition(is_refused);
    // Those whose rules cannot be have taken ways.
    assert!(refused.len() <= MAX_NAMED_REFUSALS + MAX_WAYS + 1, "{} refusals", refused.len());

    let mut shapes = BTreeSet::new();
    for policy in in_force {
        let compiled = policy.compile_spec(&settings);
        let compiled = compiled.unwrap_or_else(|why| panic!("{}: {why}", policy.name));
        check_roles(&policy.name, &compiled);
        shapes.insert(serde_json::to_string(policy.spec.as_ref().unwrap()).unwrap());
    }
    shapes
}

/// No shape is in force that no group has, and none is refused where there is room for all.
fn check_quota(groups: &[FoundGroup], in_force: &BTreeSet<&str>) {
    let mut by_namespace: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (group, shape) in groups.iter().filter_map(|group| Some((group, group.shape.as_deref().ok()?))) {
        if !names_category(shape) && has_sound_rules(shape) {
            by_namespace.entry(&group.namespace).or_default().insert(shape);
        }
    }
    let all: BTreeSet<&str> = by_namespace.values().flatten().copied().collect();
    assert!(in_force.is_subset(&all), "what no group asked for is in force");
    assert!(count_ways(in_force) <= MAX_WAYS, "{} ways", count_ways(in_force));
    let has_room = |shapes: &BTreeSet<&str>| count_ways(shapes) <= MAX_WAYS_OF_NAMESPACE;
    if by_namespace.values().all(has_room) && count_ways(&all) <= MAX_WAYS {
        assert_eq!(in_force, &all);
    }
}

fn count_ways(shapes: &BTreeSet<&str>) -> usize {
    let policy = |shape: &&str| serde_json::from_str::<ReadinessPolicySpec>(shape).unwrap();
    shapes.iter().map(|shape| policy(shape).children.len()).sum()
}
