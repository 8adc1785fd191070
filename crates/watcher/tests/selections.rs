//! Interned selections live as long as a row refers to them, and no longer.

#![allow(clippy::unwrap_used, reason = "what fails here is a failed test")]

use aggregator::{KindId, LinkTarget, PolicyId, SelectorId};
use readiness::{StuckLimits, Time};
use serde_json::{Value, json};
use timer::Seed;
use watcher::plan::{
    AllowedNamespaces, AssessmentRule, ChildRule, FindChildrenBy, Interest, LabelRule, NamespaceScope,
    OutcomeRetention, ParentRule, ParentTemplate,
};
use watcher::reflector::Reflector;
use watcher::{ParentObject, ReflectorObject};

const SETS: KindId = KindId(1);
const CLAIMS: KindId = KindId(2);
const WIDGETS: KindId = KindId(3);
const POLICY: PolicyId = PolicyId(7);

fn child(group: u8, find: FindChildrenBy) -> ChildRule {
    ChildRule {
        policy: POLICY,
        group,
        rule_index: 0,
        find,
        allowed: AllowedNamespaces::default(),
        ignore: None,
        made_by_none_of: [].into(),
        scope: NamespaceScope::default(),
        retention: OutcomeRetention::Forget,
    }
}

fn of_widgets() -> FindChildrenBy {
    FindChildrenBy::Owner { group: "example.com".into(), kind: "Widget".into() }
}

fn lenses() -> Vec<AssessmentRule> {
    vec![AssessmentRule { limits: StuckLimits::default(), rule: None, remembers_outcome: false }]
}

fn sets() -> Interest {
    let (child, claims) = (vec![child(0, of_widgets())], vec![(POLICY, 1)]);
    Interest { child, claims, assessment_rules: lenses(), ..Interest::for_kind(SETS, "apps", "StatefulSet") }
}

fn claims() -> Interest {
    let of = ("example.com".into(), "Widget".into());
    let labelled = child(2, FindChildrenBy::Labels { keys: vec!["db".into()], of });
    let child = vec![child(1, FindChildrenBy::Claims), labelled];
    Interest { child, assessment_rules: lenses(), ..Interest::for_kind(CLAIMS, "", "PersistentVolumeClaim") }
}

fn widgets() -> Interest {
    let values = vec![ParentTemplate::parse("{parent.metadata.name}").unwrap()];
    let labels = vec![LabelRule {
        group: 2,
        values,
        annotation_values: vec![],
        namespaces: vec![],
        allowed: AllowedNamespaces::default(),
    }];
    let rule = ParentRule { labels, ..ParentRule::for_policy(POLICY) };
    Interest { parent: vec![rule], ..Interest::for_kind(WIDGETS, "example.com", "Widget") }
}

fn uid(class: u32, n: u64) -> String {
    format!("{class:08}-0000-4000-8000-{n:012}")
}

fn object(kind: u32, n: u64, name: &str, version: u64) -> Value {
    json!({ "metadata": { "name": name, "namespace": "shop", "uid": uid(kind, n), "generation": 1,
        "resourceVersion": version.to_string() } })
}

fn set(n: u64, replicas: u64, version: u64) -> Value {
    let mut set = object(1, n, &format!("db-{n}"), version);
    let owner = json!([{ "apiVersion": "example.com/v1", "kind": "Widget", "name": format!("w-{n}"), "uid": uid(3, n) }]);
    set["metadata"]["ownerReferences"] = owner;
    let templates = json!([{ "metadata": { "name": "data" } }, { "metadata": { "name": "log" } }]);
    set["spec"] = json!({ "replicas": replicas, "volumeClaimTemplates": templates });
    set
}

fn claim(n: u64, ordinal: u64, version: u64) -> Value {
    let mut claim = object(2, 100 * n + ordinal, &format!("data-db-{n}-{ordinal}"), version);
    claim["metadata"]["labels"] = json!({ "db": format!("w-{n}") });
    claim
}

fn apply(reflector: &Reflector, interest: &Interest, object: &Value) {
    let object: ParentObject = serde_json::from_str(&object.to_string()).unwrap();
    if reflector.interest(interest.id).is_none() {
        reflector.set_interest(interest.clone());
    }
    reflector.apply_object(interest.id, object.as_child(), object.raw_text());
}

#[test]
fn what_the_controller_of_a_left_out_kind_has_made_is_not_selected() {
    let mut interest = claims();
    interest.child.retain(|rule| rule.group == 2);
    interest.child[0].made_by_none_of = [("apps".into(), "StatefulSet".into())].into();
    let owner = |api_version: &str, controller: bool| {
        json!([{ "apiVersion": api_version, "kind": "StatefulSet", "name": "db-1", "uid": uid(1, 1),
            "controller": controller }])
    };
    for (owners, is_selected) in [
        (json!([]), true),
        (owner("apps/v1", true), false),
        (owner("apps/v1beta2", true), false),
        (owner("apps/v1", false), true),
        (owner("example.com/v1", true), true),
    ] {
        let reflector = Reflector::new(|| ());
        let mut labelled = claim(1, 0, 1);
        labelled["metadata"]["ownerReferences"] = owners.clone();
        apply(&reflector, &interest, &labelled);
        assert_eq!(speaks_of(&reflector, &uid(2, 100)).len(), usize::from(is_selected), "{owners}");
    }
}

/// The selector by which a claim counts, and the selectors that a StatefulSet lends.
fn speaks_of(reflector: &Reflector, uid: &str) -> Vec<SelectorId> {
    let Some(id) = reflector.find_object(uid) else { return Vec::new() };
    reflector.with_view(id, Time(0), |view| {
        let Some(view) = view else { return Vec::new() };
        let links = view.links.iter().filter_map(|link| match link.target() {
            LinkTarget::Selector(id) => Some(id),
            LinkTarget::Object(_) => None,
        });
        links.chain(view.lent_selectors.iter().map(|(_, id)| *id)).collect()
    })
}

#[test]
fn what_nobody_speaks_of_any_more_is_forgotten() {
    let reflector = Reflector::new(|| ());
    let (sets, claims, widgets) = (sets(), claims(), widgets());
    let seed = Seed(7);
    let mut most = 0;
    for round in 1..2_000 {
        let pick = |which: u64, below: u64| seed.number_for(3 * round + which) % below;
        let (what, n, more) = (pick(0, 8), pick(1, 5), pick(2, 4));
        match what {
            0 => apply(&reflector, &widgets, &object(3, n, &format!("w-{n}"), round)),
            1 => reflector.delete_object(&uid(3, n), round),
            2 | 3 => apply(&reflector, &sets, &set(n, more, round)),
            // Older than the stored version.
            4 => apply(&reflector, &sets, &set(n, more, 1)),
            5 => reflector.delete_object(&uid(1, n), round),
            6 => apply(&reflector, &claims, &claim(n, more, round)),
            _ => reflector.delete_object(&uid(2, 100 * n + more), round),
        }
        for n in 0..5 {
            let lent = speaks_of(&reflector, &uid(1, n));
            for ordinal in 0..(lent.len() as u64 / 2) {
                let counts_by = speaks_of(&reflector, &uid(2, 100 * n + ordinal));
                let meant = counts_by.is_empty() || counts_by.iter().any(|id| lent.contains(id));
                assert!(meant, "round {round}: {counts_by:?} is not among {lent:?}");
            }
        }
        most = most.max(reflector.count_selections());
    }
    assert!(most > 20, "{most}");
    for kind in [SETS, CLAIMS, WIDGETS] {
        reflector.forget_kind(kind);
    }
    assert_eq!(reflector.count_selections(), 0);
}
