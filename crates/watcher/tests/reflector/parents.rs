//! Parents: evidence of handling, and the condition type that is written.

use aggregator::PolicyId;
use serde_json::json;
use watcher::plan::{ElsewhereRule, Interest, KopfMarkRule, LabelMatchTerm, LabelMatcher, ParentRule};
use watcher::reflector::{OutrankedPolicy, Reflector, RulingPolicy};

use crate::objects::{NOW, apply, parents, uid, widget};

#[test]
fn evidence_is_read_from_what_the_operator_left() {
    use aggregator::HandledEvidence::{Handled, NotYet, Silent};
    let by = |manager: &str| json!([{"manager": manager, "operation": "Update", "fieldsV1": {"f:status": {"f:observedGeneration": {}}}}]);
    let kopf =
        |spec: &str| json!({"kopf.zalando.org/last-handled-configuration": format!("{{\"spec\":{spec}}}\n")});
    for (annotations, fields, status, expected) in [
        (json!({}), json!([]), json!({}), Silent),
        (json!({}), by("operator"), json!({"observedGeneration": 3}), Handled),
        (json!({}), by("operator"), json!({"observedGeneration": 2}), NotYet),
        (json!({}), by("rollcall"), json!({"observedGeneration": 3}), Silent),
        (
            json!({}),
            json!([]),
            json!({"conditions": [{"type": "Synced", "status": "True", "observedGeneration": 3}]}),
            Handled,
        ),
        (
            json!({}),
            json!([]),
            json!({"conditions": [{"type": "Synced", "status": "True", "observedGeneration": 2}]}),
            NotYet,
        ),
        (kopf(r#"{"size":1}"#), json!([]), json!({}), Handled),
        (kopf(r#"{"size":0}"#), json!([]), json!({}), NotYet),
        (kopf("not json"), json!([]), json!({}), NotYet),
        (kopf("not json"), by("operator"), json!({"observedGeneration": 3}), NotYet),
        (kopf(r#"{"size":0}"#), by("operator"), json!({"observedGeneration": 3}), NotYet),
    ] {
        let reflector = Reflector::new(|| ());
        let mut parent = widget(1, 3, &status);
        parent["metadata"]["annotations"] = annotations.clone();
        parent["metadata"]["managedFields"] = fields.clone();
        apply(&reflector, &parents(vec![]), &parent);
        let evidence = reflector.with_view(reflector.find_object(&uid(1_000)).unwrap(), NOW, |v| {
            v.unwrap().parent.unwrap().evidence
        });
        assert_eq!(evidence, expected, "{annotations} {fields} {status}");
    }
}

/// Returns the evidence of parents that are observed one after another, each with or without a mark, once all were
/// observed.
fn evidence_of(marks: KopfMarkRule, seen: &[(u32, &str, bool)]) -> Vec<aggregator::HandledEvidence> {
    let reflector = Reflector::new(|| ());
    let mut interest = parents(vec![]);
    interest.parent[0].kopf_marks = marks;
    for (n, namespace, marked) in seen {
        let mut parent = widget(*n, 1, &json!(null));
        parent["metadata"]["uid"] = json!(uid(1_000 + n));
        parent["metadata"]["namespace"] = json!(namespace);
        if *marked {
            let mark = json!({"kopf.zalando.org/last-handled-configuration": "{\"spec\":{\"size\":1}}\n"});
            parent["metadata"]["annotations"] = mark;
        }
        apply(&reflector, &interest, &parent);
    }
    let evidence = |(n, ..): &(u32, &str, bool)| {
        let id = reflector.find_object(&uid(1_000 + n)).unwrap();
        reflector.with_view(id, NOW, |view| view.unwrap().parent.unwrap().evidence)
    };
    seen.iter().map(evidence).collect()
}

#[test]
fn a_parent_without_a_mark_is_not_handled_where_its_neighbour_has_one_whichever_was_seen_first() {
    use aggregator::HandledEvidence::{Handled, Silent, Unmarked};
    let shop = [(1, "shop", false), (2, "shop", true), (3, "shop", false)];
    assert_eq!(evidence_of(KopfMarkRule::Learned, &shop), [Unmarked, Handled, Unmarked]);
    assert_eq!(evidence_of(KopfMarkRule::Optional, &shop), [Silent, Handled, Silent]);
    let alone = [(1, "shop", false)];
    assert_eq!(evidence_of(KopfMarkRule::Learned, &alone), [Silent]);
    assert_eq!(evidence_of(KopfMarkRule::Expected, &alone), [Unmarked]);
    // A mark can be forged by anyone who may write in its namespace, so it counts only there.
    let elsewhere = [(1, "shop", false), (2, "bank", true)];
    assert_eq!(evidence_of(KopfMarkRule::Learned, &elsewhere), [Silent, Handled]);
}

#[test]
fn a_type_that_is_given_up_is_said_by_the_fallback_from_the_next_reading_on_and_by_nothing_else() {
    let reflector = Reflector::new(|| ());
    let mut interest = parents(vec![]);
    interest.parent[0].fallback = Some("ChildrenReady".into());
    let see = |interest: &Interest, version: u32| {
        let entry = |kind: &str| json!({"type": kind, "status": "False", "reason": "ChildrenMissing", "message": "Shard a missing"});
        let status = json!({"conditions": [entry("Ready")]});
        apply(&reflector, interest, &widget(version, 1, &status));
        let said = reflector.read_row(reflector.find_object(&uid(1_000)).unwrap(), |row| {
            let parent = row.parent.as_ref().unwrap();
            (parent.targets[0].condition.clone().unwrap(), parent.view.answers[0].owned_by_other)
        });
        said.map(|(condition, owned)| (condition.to_string(), owned)).unwrap()
    };
    assert_eq!(see(&interest, 1), ("Ready".to_owned(), false));
    reflector.use_fallback_type(reflector.find_object(&uid(1_000)).unwrap());
    for version in [2, 3, 4] {
        assert_eq!(see(&interest, version), ("ChildrenReady".to_owned(), false));
        reflector.use_fallback_type(reflector.find_object(&uid(1_000)).unwrap());
    }
    // Another type is not affected, and without a fallback there is no alternative.
    interest.parent[0].condition = "Healthy".into();
    assert_eq!(see(&interest, 5), ("Healthy".to_owned(), false));
    interest.parent[0].condition = "Ready".into();
    interest.parent[0].fallback = None;
    assert_eq!(see(&interest, 6), ("Ready".to_owned(), false));
}

/// Another replica wrote it, which did not lead any more: nobody else wants the type.
#[test]
fn a_type_that_rollcall_alone_has_is_not_given_up() {
    for (manager, is_given_up) in [("rollcall", false), ("db-operator", true)] {
        let reflector = Reflector::new(|| ());
        let mut interest = parents(vec![]);
        interest.parent[0].fallback = Some("ChildrenReady".into());
        interest.parent[0].takeover = true;
        for version in [1, 2] {
            let entry = json!({"type": "Ready", "status": "False", "reason": "ChildrenMissing", "message": "Shard a missing"});
            let mut parent = widget(version, 1, &json!({"conditions": [entry]}));
            parent["metadata"]["managedFields"] = json!([{"manager": manager, "subresource": "status",
                "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {"f:reason": {}}}}}}]);
            apply(&reflector, &interest, &parent);
            reflector.use_fallback_type(reflector.find_object(&uid(1_000)).unwrap());
        }
        let written = reflector.read_row(reflector.find_object(&uid(1_000)).unwrap(), |row| {
            row.parent.as_ref().unwrap().targets[0].condition.clone().unwrap().to_string()
        });
        assert_eq!(written.as_deref() == Some("ChildrenReady"), is_given_up, "{manager}: {written:?}");
    }
}

#[test]
fn a_type_that_was_given_up_stays_so_for_a_process_that_finds_the_fallback_in_its_place() {
    let mut interest = parents(vec![]);
    interest.parent[0].fallback = Some("ChildrenReady".into());
    let ours = |kind: &str| json!({"type": kind, "status": "False", "reason": "ChildrenMissing", "message": "Shard a missing"});
    let theirs = json!({"type": "Ready", "status": "True", "reason": "UpAndRunning", "message": ""});
    for (name, readings, condition) in [
        ("nothing was said", vec![vec![]], "Ready"),
        ("after a restart", vec![vec![ours("ChildrenReady")]], "ChildrenReady"),
        ("in standby", vec![vec![ours("Ready")], vec![ours("ChildrenReady")]], "ChildrenReady"),
        (
            "in standby, taken away",
            vec![vec![ours("Ready")], vec![], vec![ours("ChildrenReady")]],
            "ChildrenReady",
        ),
        ("owned", vec![vec![theirs.clone(), ours("ChildrenReady")]], "ChildrenReady"),
        (
            "released by its owner",
            vec![
                vec![theirs, ours("ChildrenReady")],
                vec![ours("ChildrenReady")],
                vec![ours("ChildrenReady")],
            ],
            "Ready",
        ),
    ] {
        let reflector = Reflector::new(|| ());
        for (version, conditions) in (1..).zip(&readings) {
            apply(&reflector, &interest, &widget(version, 1, &json!({ "conditions": conditions })));
        }
        let id = reflector.find_object(&uid(1_000)).unwrap();
        let says = reflector.read_row(id, |row| row.parent.as_ref().unwrap().targets[0].condition.clone());
        assert_eq!(says.flatten().as_deref(), Some(condition), "{name}");
    }
}

#[test]
fn a_parent_whose_status_another_aggregator_keeps_is_not_written_and_that_aggregator_is_named() {
    let kro = "kro.run/finalizer";
    let composite = "composite.apiextensions.crossplane.io";
    // (finalizer, condition, fallback, takeover): the condition that is written
    for (finalizer, condition, fallback, takeover, written) in [
        (kro, "Ready", None, false, None),
        // It replaces the whole status: no other type stays there either.
        (kro, "ChildrenReady", Some("Other"), false, None),
        (kro, "Ready", None, true, Some("Ready")),
        (composite, "Ready", None, false, None),
        (composite, "Ready", Some("ChildrenReady"), false, Some("ChildrenReady")),
        (composite, "ChildrenReady", None, false, Some("ChildrenReady")),
        ("example.com/guard", "Ready", None, false, Some("Ready")),
    ] {
        let reflector = Reflector::new(|| ());
        let mut interest = parents(vec![]);
        interest.parent[0].condition = condition.into();
        interest.parent[0].fallback = fallback.map(Into::into);
        interest.parent[0].takeover = takeover;
        let mut parent = widget(1, 3, &json!({}));
        parent["metadata"]["finalizers"] = json!([finalizer]);
        apply(&reflector, &interest, &parent);
        let id = reflector.find_object(&uid(1_000)).unwrap();
        let (found, owner, elsewhere) = reflector
            .read_row(id, |row| {
                let parent = row.parent.as_ref().unwrap();
                let target = &parent.targets[0];
                (
                    target.condition.clone(),
                    target.owner().map(str::to_owned),
                    parent.view.answers[0].owned_by_other,
                )
            })
            .unwrap();
        assert_eq!(found.as_deref(), written, "{finalizer} {condition} {fallback:?} {takeover}");
        assert_eq!(elsewhere, written.is_none(), "{finalizer} {condition}");
        let named = owner.is_some_and(|owner| owner.contains(finalizer));
        assert_eq!(named, written != Some(condition), "{finalizer} {condition}");
    }
}

#[test]
fn what_another_aggregator_says_of_a_parent_is_known_whatever_the_type_of_the_policy_is() {
    for (finalizer, condition, says) in [
        ("kro.run/finalizer", "Ready", Some(true)),
        ("kro.run/finalizer", "ChildrenReady", Some(true)),
        // There both stand, and each has its own meaning.
        ("composite.apiextensions.crossplane.io", "ChildrenReady", None),
        ("example.com/guard", "ChildrenReady", None),
    ] {
        let reflector = Reflector::new(|| ());
        let mut interest = parents(vec![]);
        interest.parent[0].condition = condition.into();
        let ready = json!({ "type": "Ready", "status": "True", "reason": "Ready", "observedGeneration": 3 });
        let mut parent = widget(1, 3, &json!({ "conditions": [ready] }));
        parent["metadata"]["finalizers"] = json!([finalizer]);
        apply(&reflector, &interest, &parent);
        let id = reflector.find_object(&uid(1_000)).unwrap();
        let found = reflector.read_row(id, |row| row.parent.as_ref().unwrap().targets[0].owner_says_true());
        assert_eq!(found.flatten(), says, "{finalizer} {condition}");
    }
}

#[test]
fn a_condition_that_stands_on_a_composite_already_is_kept() {
    let reflector = Reflector::new(|| ());
    let ours = json!({ "conditions": [{ "type": "Ready", "status": "False", "reason": "ChildrenFailed",
        "message": "1 of 1 not ready: Shard a failed", "observedGeneration": 3, "lastTransitionTime": "2026-01-01T00:00:00Z" }] });
    let mut parent = widget(1, 3, &ours);
    parent["metadata"]["finalizers"] = json!(["composite.apiextensions.crossplane.io"]);
    apply(&reflector, &parents(vec![]), &parent);
    let id = reflector.find_object(&uid(1_000)).unwrap();
    let condition = reflector.read_row(id, |row| row.parent.as_ref().unwrap().targets[0].condition.clone());
    assert_eq!(condition.flatten().as_deref(), Some("Ready"));
}

#[test]
fn of_policies_that_select_a_parent_for_one_condition_the_first_rules_and_the_others_are_named() {
    let labelled = |policy: u32, team: &str, condition: &str| ParentRule {
        selector: LabelMatcher { requirements: vec![LabelMatchTerm::In("team".into(), vec![team.into()])] },
        condition: condition.into(),
        ..ParentRule::for_policy(PolicyId(policy))
    };
    let reflector = Reflector::new(|| ());
    let all = ParentRule::for_policy(PolicyId(3));
    let rules = vec![labelled(1, "x", "Ready"), labelled(2, "y", "Ready"), all, labelled(4, "x", "Other")];
    let interest = Interest { parent: rules, ..parents(vec![]) };
    let ruled = |version: u32, team: &str| {
        let mut parent = widget(version, 1, &json!(null));
        parent["metadata"]["labels"] = json!({ "team": team });
        apply(&reflector, &interest, &parent);
        let read = reflector.read_row(reflector.find_object(&uid(1_000)).unwrap(), |row| {
            let parent = row.parent.as_ref().unwrap();
            let ruling: Vec<_> = parent.targets.iter().map(|target| target.policy.0).collect();
            let by = |left: &OutrankedPolicy| match &left.by {
                RulingPolicy::Own(policy) => policy.0,
                RulingPolicy::Other(other) => panic!("{other} is of this release"),
            };
            (ruling, parent.outranked().iter().map(|left| (left.policy.0, by(left))).collect::<Vec<_>>())
        });
        read.unwrap()
    };
    assert_eq!(ruled(1, "x"), (vec![1, 4], vec![(3, 1)]));
    assert_eq!(ruled(2, "y"), (vec![2], vec![(3, 2)]), "its label moved");
    assert_eq!(ruled(3, "z"), (vec![3], vec![]));
}

#[test]
fn what_another_release_says_of_a_parent_is_not_ours() {
    let ours = |kind: &str| json!({"type": kind, "status": "True", "reason": "AllChildrenReady", "message": "1 of 1 ready"});
    let by_tier = |tier: &str| LabelMatcher {
        requirements: vec![LabelMatchTerm::In("tier".into(), vec![tier.into()])],
    };
    let mut interest = parents(vec![]);
    interest.parent[0].selector = by_tier("gold");
    interest.elsewhere.push(ElsewhereRule {
        selector: by_tier("silver"),
        types: vec!["Ready".into(), "Reconciling".into()],
        ..spoken_for(&[])
    });
    // (tier, types that are ours, or None where nothing is kept of it)
    for (tier, own) in [
        ("gold", Some(vec!["Ready", "Stalled"])),
        ("silver", Some(vec!["Stalled"])),
        ("bronze", Some(vec!["Ready", "Stalled"])),
    ] {
        let mut parent = widget(1, 1, &json!({ "conditions": [ours("Ready"), ours("Stalled")] }));
        parent["metadata"]["labels"] = json!({ "tier": tier });
        let reflector = Reflector::new(|| ());
        apply(&reflector, &interest, &parent);
        let written = reflector.find_object(&uid(1_000)).and_then(|id| {
            reflector.read_row(id, |row| {
                let written = row.parent.as_ref()?.status.written().map(|entry| entry.kind().to_owned());
                Some(written.collect::<Vec<_>>())
            })
        });
        let own = own.map(|own| own.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(written.flatten(), own, "{tier}");
    }
    // By the labels of its namespace: where these are not known, it may be another's.
    let mut taken_up = interest;
    taken_up.elsewhere[0].namespace_selector = Some(by_tier("gold"));
    for (labels, is_ours) in [(None, false), (Some("gold"), false), (Some("silver"), true)] {
        let mut parent = widget(1, 1, &json!({ "conditions": [ours("Ready")] }));
        parent["metadata"]["labels"] = json!({ "tier": "silver" });
        let reflector = Reflector::new(|| ());
        if let Some(tier) = labels {
            reflector.set_namespace_labels("shop", Some(&[("tier".into(), tier.into())]));
        }
        apply(&reflector, &taken_up, &parent);
        assert_eq!(reflector.find_object(&uid(1_000)).is_some(), is_ours, "{labels:?}");
    }
    taken_up.elsewhere[0].namespace_selector = None;
    taken_up.elsewhere[0].types = vec!["Ready".into(), "Reconciling".into(), "Stalled".into()];
    let mut parent = widget(1, 1, &json!({ "conditions": [ours("Ready")] }));
    parent["metadata"]["labels"] = json!({ "tier": "silver" });
    let reflector = Reflector::new(|| ());
    apply(&reflector, &taken_up, &parent);
    assert!(reflector.find_object(&uid(1_000)).is_none(), "nothing of it is of interest");
}

/// What another release says in `Ready` on every parent; these policies give way to it.
fn spoken_for(outranks: &[u32]) -> ElsewhereRule {
    ElsewhereRule {
        selector: LabelMatcher::default(),
        namespace_selector: None,
        namespaces: Vec::new(),
        types: vec!["Ready".into(), "Reconciling".into(), "Stalled".into()],
        policy: "old of release ns/x".into(),
        outranks: outranks.iter().copied().map(PolicyId).collect(),
    }
}

#[test]
fn an_older_policy_of_another_release_rules_a_parent_and_the_younger_ones_are_named() {
    let of = |policy: u32, condition: &str| ParentRule {
        condition: condition.into(),
        ..ParentRule::for_policy(PolicyId(policy))
    };
    let by_tier = LabelMatcher { requirements: vec![LabelMatchTerm::In("tier".into(), vec!["gold".into()])] };
    let outranks = |policies: &[u32]| spoken_for(policies);
    let in_namespace = |name: &str| ElsewhereRule { namespaces: vec![name.into()], ..spoken_for(&[1]) };
    let by_labels = || ElsewhereRule { namespace_selector: Some(by_tier.clone()), ..spoken_for(&[1]) };
    let ready = || vec![of(1, "Ready")];
    let shadow = || vec![ParentRule { is_shadow: true, ..of(1, "Ready") }];
    let older = || vec![of(0, "Ready"), of(1, "Ready")];
    // (rules, the other release's, tier of the namespace, policies that rule, those that give way to it, own types of conditions)
    for (what, rules, other, tier, ruling, given_way, own) in [
        ("a younger one", ready(), outranks(&[1]), None, vec![], vec![1], vec!["Healthy"]),
        ("one in shadow mode", shadow(), outranks(&[]), None, vec![1], vec![], vec!["Healthy"]),
        ("an older one", ready(), outranks(&[]), None, vec![1], vec![], vec!["Ready", "Healthy"]),
        ("one of each age", older(), outranks(&[1]), None, vec![0], vec![], vec!["Ready", "Healthy"]),
        ("in its namespace", ready(), in_namespace("shop"), None, vec![], vec![1], vec!["Healthy"]),
        ("in another one", ready(), in_namespace("bank"), None, vec![1], vec![], vec!["Ready", "Healthy"]),
        ("labels not known", ready(), by_labels(), None, vec![1], vec![], vec!["Ready", "Healthy"]),
        ("other labels", ready(), by_labels(), Some("tin"), vec![1], vec![], vec!["Ready", "Healthy"]),
        ("its labels", ready(), by_labels(), Some("gold"), vec![], vec![1], vec!["Healthy"]),
    ] {
        let reflector = Reflector::new(|| ());
        if let Some(tier) = tier {
            reflector.set_namespace_labels("shop", Some(&[("tier".into(), tier.into())]));
        }
        let ours = |kind: &str| json!({"type": kind, "status": "True", "reason": "AllChildrenReady", "message": "1 of 1 ready"});
        let interest = Interest {
            parent: rules,
            elsewhere: vec![other],
            release: vec!["Healthy".into()],
            ..parents(vec![])
        };
        let parent = widget(1, 1, &json!({ "conditions": [ours("Ready"), ours("Healthy")] }));
        apply(&reflector, &interest, &parent);
        let id = reflector.find_object(&uid(1_000)).expect("a row");
        let read = reflector.read_row(id, |row| {
            let parent = row.parent.as_ref().unwrap();
            let is_others =
                |left: &&OutrankedPolicy| left.by == RulingPolicy::Other("old of release ns/x".into());
            let left = parent.outranked().iter().filter(is_others).map(|left| left.policy.0);
            let own = parent.status.written().map(|entry| entry.kind().to_owned());
            (
                parent.targets.iter().map(|target| target.policy.0).collect::<Vec<_>>(),
                left.collect::<Vec<_>>(),
                own.collect::<Vec<_>>(),
            )
        });
        let own = own.into_iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(read.unwrap(), (ruling, given_way, own), "{what}");
    }
    // Where nothing of it is ours: it is known all the same, and said when it goes.
    let reflector = Reflector::new(|| ());
    let interest = Interest { parent: ready(), elsewhere: vec![outranks(&[1])], ..parents(vec![]) };
    apply(&reflector, &interest, &widget(1, 1, &json!(null)));
    let id = reflector.find_object(&uid(1_000)).expect("a row");
    assert_eq!(reflector.take_reread_parents(), [id]);
    reflector.delete_object(&uid(1_000), 2);
    assert_eq!(reflector.take_reread_parents(), [id]);
}
