//! Links of an object: by owner, by label, within a namespace.

use aggregator::LinkTarget;
use serde_json::{Value, json};
use watcher::plan::{
    AllowedNamespaces, FindChildrenBy, ForeignNamespaces, Interest, LabelMatcher, LabelRule, NamespaceScope,
    ParentRule, ParentTemplate, ReferencePath, ReferenceRule, ShapeMatcher,
};
use watcher::reflector::{ApplyOutcome, Reflector, UncountedChild};

use crate::objects::{NOW, POLICY, apply, children, owned, parents, pod, uid, widget};

/// Selects by labels with these values, in the parent's own namespace.
fn rule_of(values: Vec<ParentTemplate>) -> LabelRule {
    LabelRule {
        group: 0,
        values,
        annotation_values: vec![],
        namespaces: vec![],
        allowed: AllowedNamespaces::default(),
    }
}

/// Returns which of these pods the only widget selects by the label `app`.
fn selected(pods: &[Value]) -> Vec<bool> {
    let reflector = Reflector::new(|| ());
    let values = vec![ParentTemplate::parse("{parent.metadata.name}eb").unwrap()];
    let by_name = rule_of(values);
    apply(&reflector, &parents(vec![by_name]), &widget(1, 1, &json!(null)));
    let of = ("example.com".into(), "Widget".into());
    let by_label = children(FindChildrenBy::Labels { keys: vec!["app".into()], of }, None);
    let selects = reflector.read_row(reflector.find_object(&uid(1_000)).unwrap(), |row| {
        row.parent.as_ref().unwrap().view.answers[0].selects().to_vec()
    });
    let selects = selects.unwrap();
    let is_selected = |pod: &Value| {
        apply(&reflector, &by_label, pod);
        let id = reflector.find_object(pod["metadata"]["uid"].as_str().unwrap()).unwrap();
        let target = reflector.with_view(id, NOW, |v| v.unwrap().links[0].target());
        selects.iter().any(|s| LinkTarget::Selector(*s) == target)
    };
    pods.iter().map(is_selected).collect()
}

#[test]
fn labels_find_children_in_the_namespace_of_the_parent_alone() {
    let mut elsewhere = pod(2, 5, "True");
    elsewhere["metadata"]["namespace"] = json!("bank");
    assert_eq!(selected(&[pod(1, 5, "True"), elsewhere]), [true, false]);
}

#[test]
fn a_label_that_was_copied_to_what_a_sibling_owns_selects_nothing() {
    let (mut of_a_sibling, mut of_nobody) = (pod(2, 5, "True"), pod(3, 5, "True"));
    of_a_sibling["metadata"]["ownerReferences"][0]["uid"] = json!(uid(2_000));
    of_nobody["metadata"]["ownerReferences"] = json!([]);
    assert_eq!(selected(&[pod(1, 5, "True"), of_a_sibling, of_nobody]), [true, false, true]);
}

#[test]
fn a_template_that_reads_a_missing_field_is_said_of_its_parent() {
    let reflector = Reflector::new(|| ());
    let bad = rule_of(vec![ParentTemplate::parse("{parent.spec.nothing}").unwrap()]);
    apply(&reflector, &parents(vec![bad]), &widget(1, 1, &json!(null)));
    let unrendered = reflector.read_row(reflector.find_object(&uid(1_000)).unwrap(), |row| {
        let parent = row.parent.as_ref().unwrap();
        (parent.view.answers[0].template_failed, parent.targets[0].unrendered().map(str::to_owned))
    });
    let (unrendered, error) = unrendered.unwrap();
    assert!(unrendered && error.unwrap().contains("parent.spec.nothing"));
}

#[test]
fn a_value_that_an_annotation_has_may_be_longer_than_that_of_a_label() {
    for (length, annotation_values, is_rendered) in [
        (63, vec![], true),
        (64, vec![], false),
        (64, vec![1], false),
        (64, vec![0], true),
        (317, vec![0], true),
        (318, vec![0], false),
    ] {
        let reflector = Reflector::new(|| ());
        let values = vec![ParentTemplate::parse("{parent.spec.name}").unwrap()];
        let rule = LabelRule { annotation_values: annotation_values.clone(), ..rule_of(values) };
        let mut parent = widget(1, 1, &json!(null));
        parent["spec"]["name"] = json!("x".repeat(length));
        apply(&reflector, &parents(vec![rule]), &parent);
        let unrendered = unrendered_text(&reflector).unwrap_or_default();
        assert_eq!(unrendered.is_empty(), is_rendered, "{length} {annotation_values:?}");
        let start = "x".repeat(40);
        let says = format!("characters, and \"{start}…\" has {length}");
        assert!(is_rendered || unrendered.ends_with(&says), "{unrendered}");
    }
}

#[test]
fn a_value_that_no_label_can_have_is_quoted_with_a_mark_where_it_is_cut() {
    for (value, says) in [
        (
            "x".repeat(64),
            format!(
                "no label can have a value of more than 63 characters, and \"{}…\" has 64",
                "x".repeat(40)
            ),
        ),
        ("a b".to_owned(), "no label can have the value \"a b\"".to_owned()),
        ("ä".repeat(64), format!("no label can have the value \"{}…\"", "ä".repeat(40))),
        ("-".repeat(40), format!("no label can have the value \"{}\"", "-".repeat(40))),
    ] {
        let reflector = Reflector::new(|| ());
        let mut parent = widget(1, 1, &json!(null));
        parent["spec"]["name"] = json!(value);
        let rule = rule_of(vec![ParentTemplate::parse("{parent.spec.name}").unwrap()]);
        apply(&reflector, &parents(vec![rule]), &parent);
        assert_eq!(unrendered_text(&reflector), Some(format!("find.labels: {says}")));
    }
}

/// What could not be rendered for the parent.
fn unrendered_text(reflector: &Reflector) -> Option<String> {
    let parent = reflector.find_object(&uid(1_000)).unwrap();
    let text = reflector
        .read_row(parent, |row| row.parent.as_ref().unwrap().targets[0].unrendered().map(str::to_owned));
    text.flatten()
}

#[test]
fn a_namespace_that_the_policy_does_not_choose_has_no_parents() {
    let reflector = Reflector::new(|| ());
    let mut interest = parents(vec![]);
    interest.parent[0].namespace_selector = Some(LabelMatcher {
        requirements: vec![watcher::plan::LabelMatchTerm::In("team".into(), vec!["a".into()])],
    });
    assert_eq!(apply(&reflector, &interest, &widget(1, 1, &json!(null))), ApplyOutcome::Unwanted);
    assert!(reflector.set_namespace_labels("shop", Some(&[("team".into(), "a".into())])));
    assert!(!reflector.set_namespace_labels("shop", Some(&[("team".into(), "a".into())])), "that is no news");
    assert_eq!(apply(&reflector, &interest, &widget(2, 1, &json!(null))), ApplyOutcome::Moved(0));
}

#[test]
fn an_owner_in_another_namespace_owns_nothing_whoever_is_seen_first() {
    for parent_first in [true, false] {
        let reflector = Reflector::new(|| ());
        let mut elsewhere = pod(2, 5, "True");
        elsewhere["metadata"]["namespace"] = json!("bank");
        let see_children = || {
            apply(&reflector, &owned(), &pod(1, 5, "True"));
            apply(&reflector, &owned(), &elsewhere);
        };
        if !parent_first {
            see_children();
            reflector.take_dirty(9);
        }
        apply(&reflector, &parents(vec![]), &widget(1, 1, &json!(null)));
        if parent_first {
            see_children();
        }
        assert!(
            reflector.take_dirty(9).contains(&reflector.find_object(&uid(2)).unwrap()),
            "it is looked at again"
        );
        let links =
            |n| reflector.with_view(reflector.find_object(&uid(n)).unwrap(), NOW, |v| v.unwrap().links.len());
        assert_eq!((links(1), links(2)), (1, 0), "parent first: {parent_first}");
        let uncounted = UncountedChild {
            child: "bank/pod-2".to_owned(),
            owner: "shop/w".to_owned(),
            is_owner_cluster_scoped: false,
        };
        assert_eq!(reflector.uncounted_children(9), [uncounted]);
    }
}

/// The widget as a cluster-scoped parent, with this spec.
fn cluster_widget(version: u32, spec: &Value) -> Value {
    let mut widget = widget(version, 1, &json!(null));
    widget["metadata"]["namespace"] = json!(null);
    widget["spec"] = spec.clone();
    widget
}

fn pod_in(namespace: &str, n: u32) -> Value {
    let mut pod = pod(n, 5, "True");
    pod["metadata"]["namespace"] = json!(namespace);
    pod
}

#[test]
fn a_cluster_scoped_owner_counts_children_of_named_namespaces_alone_whoever_is_seen_first() {
    for parent_first in [true, false] {
        let reflector = Reflector::new(|| ());
        let mut interest = owned();
        interest.child[0].allowed = AllowedNamespaces::listed(["shop", "team-*"]);
        let see_children = || {
            for (n, namespace) in [(1, "shop"), (2, "bank"), (3, "team-a")] {
                apply(&reflector, &interest, &pod_in(namespace, n));
            }
        };
        if !parent_first {
            see_children();
            reflector.take_dirty(9);
        }
        apply(&reflector, &parents(vec![]), &cluster_widget(1, &json!({})));
        if parent_first {
            see_children();
        }
        assert!(
            reflector.take_dirty(9).contains(&reflector.find_object(&uid(2)).unwrap()),
            "it is looked at again"
        );
        let links =
            |n| reflector.with_view(reflector.find_object(&uid(n)).unwrap(), NOW, |v| v.unwrap().links.len());
        assert_eq!([1, 2, 3].map(links), [1, 0, 1], "parent first: {parent_first}");
        let uncounted = UncountedChild {
            child: "bank/pod-2".to_owned(),
            owner: "w".to_owned(),
            is_owner_cluster_scoped: true,
        };
        assert_eq!(reflector.uncounted_children(9), [uncounted]);
    }
}

/// How many selections the widget makes, or why none.
fn selections(rule: ParentRule, widget: &Value) -> Result<usize, String> {
    let reflector = Reflector::new(|| ());
    apply(&reflector, &Interest { parent: vec![rule], ..parents(vec![]) }, widget);
    let read = reflector.read_row(reflector.find_object(&uid(1_000)).unwrap(), |row| {
        let parent = row.parent.as_ref().unwrap();
        match parent.targets[0].unrendered() {
            Some(why) => Err(why.to_string()),
            None => Ok(parent.view.answers[0].selects().len()),
        }
    });
    read.unwrap()
}

#[test]
fn who_writes_a_parent_chooses_a_namespace_only_among_those_that_the_policy_lists() {
    let select = |template: &str, allowed: &[&str], namespace: &str| {
        let rule = LabelRule {
            group: 0,
            values: vec![ParentTemplate::parse("web").unwrap()],
            annotation_values: vec![],
            namespaces: vec![ParentTemplate::parse(template).unwrap()],
            allowed: AllowedNamespaces::listed(allowed.iter().copied()),
        };
        let mut parent = widget(1, 1, &json!(null));
        parent["spec"]["ns"] = json!(namespace);
        selections(ParentRule { labels: vec![rule], ..ParentRule::for_policy(POLICY) }, &parent)
    };
    // Each namespace is selected twice: objects that nobody owns, and those that the parent owns.
    assert_eq!(select("{parent.spec.ns}", &["bank", "team-*"], "bank"), Ok(2));
    assert_eq!(select("{parent.spec.ns}", &["bank", "team-*"], "team-a"), Ok(2));
    assert_eq!(select("{parent.spec.ns}", &[], "shop"), Ok(2), "its own");
    assert_eq!(select("kube-system", &[], "bank"), Ok(2), "the policy's choice");
    for (template, allowed, namespace) in [
        ("{parent.spec.ns}", &[][..], "bank"),
        ("{parent.spec.ns}", &["team-*"], "bank"),
        ("team-{parent.spec.ns}", &["bank"], "a"),
    ] {
        let refused = select(template, allowed, namespace).unwrap_err();
        assert!(refused.contains("is not one of find.allowedNamespaces"), "{refused}");
    }
}

#[test]
fn a_parent_that_says_itself_what_it_asks_for_leads_to_namespaces_that_are_open_and_in_force() {
    let select = |grants: &str, in_force: NamespaceScope, namespace: &str| {
        let labels = LabelRule {
            group: 0,
            values: vec![ParentTemplate::parse("web").unwrap()],
            annotation_values: vec![],
            namespaces: vec![ParentTemplate::parse("{parent.spec.ns}").unwrap()],
            allowed: AllowedNamespaces::any(),
        };
        let mut parent = widget(1, 1, &json!(null));
        parent["spec"]["ns"] = json!(namespace);
        let rule = ParentRule {
            labels: vec![labels],
            foreign: ForeignNamespaces { grants: grants.parse().unwrap(), ..ForeignNamespaces::default() },
            namespaces: in_force,
            shape: Some(ShapeMatcher::is("x".into(), |_| Ok("x".to_owned()))),
            ..ParentRule::for_policy(POLICY)
        };
        selections(rule, &parent)
    };
    assert_eq!(select("", NamespaceScope::default(), "shop"), Ok(2), "its own");
    assert_eq!(select("shop=bank", NamespaceScope::default(), "bank"), Ok(2));
    let closed = select("bank=*", NamespaceScope::default(), "bank").unwrap_err();
    assert!(closed.contains("--group-namespaces 'shop=bank'"), "{closed}");
    let awaited = select("shop=*", NamespaceScope::only(["shop"]), "bank").unwrap_err();
    assert!(awaited.contains("not in force in namespace \"bank\" yet"), "{awaited}");
}

#[test]
fn a_reference_of_a_cluster_scoped_parent_leads_to_named_namespaces_alone() {
    let select = |allowed: &[&str], namespace: &Value| {
        let rule = ReferenceRule {
            group: 0,
            path: ReferencePath::parse("spec.refs[*]").unwrap(),
            of: ("".into(), "Pod".into()),
            allowed: AllowedNamespaces::listed(allowed.iter().copied()),
        };
        let parent = cluster_widget(1, &json!({ "refs": [{ "name": "web", "namespace": namespace }] }));
        selections(ParentRule { references: vec![rule], ..ParentRule::for_policy(POLICY) }, &parent)
    };
    assert_eq!(select(&["shop"], &json!("shop")), Ok(1));
    assert_eq!(select(&[], &json!(null)), Ok(1), "a cluster-scoped object");
    let refused = select(&["shop"], &json!("bank")).unwrap_err();
    assert!(refused.contains("Pod web in namespace \"bank\""), "{refused}");
}

#[test]
fn of_one_name_in_two_namespaces_each_is_expected() {
    let expected = |refs: Value| {
        let rule = ReferenceRule {
            group: 0,
            path: ReferencePath::parse("spec.refs[*]").unwrap(),
            of: ("".into(), "Pod".into()),
            allowed: AllowedNamespaces::listed(["shop", "bank"]),
        };
        let rule = ParentRule { references: vec![rule], ..ParentRule::for_policy(POLICY) };
        let reflector = Reflector::new(|| ());
        let interest = Interest { parent: vec![rule], ..parents(vec![]) };
        apply(&reflector, &interest, &cluster_widget(1, &json!({ "refs": refs })));
        let id = reflector.find_object(&uid(1_000)).unwrap();
        let row = reflector.read_row(id, |row| row.parent.clone()).flatten().unwrap();
        let extras = row.view.answers[0].extras.as_ref().unwrap();
        (extras.expects.len(), extras.counts.clone())
    };
    let at = |namespace: &str, name: &str| json!({ "name": name, "namespace": namespace });
    assert_eq!(expected(json!([at("shop", "web"), at("bank", "web")])), (2, vec![(0, 2)]));
    let thrice = json!([at("shop", "web"), at("bank", "web"), at("shop", "web"), at("shop", "api")]);
    assert_eq!(expected(thrice), (4, vec![(0, 3)]));
    assert_eq!(
        expected(json!([at("shop", "web"), at("bank", "api")])),
        (2, vec![]),
        "their names are enough"
    );
}

#[test]
fn an_object_has_a_row_where_it_carries_all_label_keys_that_children_are_found_by_and_else_none() {
    let reflector = Reflector::new(|| ());
    let of = ("example.com".into(), "Widget".into());
    let by_labels = children(FindChildrenBy::Labels { keys: vec!["app".into(), "tier".into()], of }, None);
    for (number, labels, has_row) in [
        (1, json!({ "app": "shop", "tier": "web" }), true),
        // No parent selects these values, and one that comes may.
        (2, json!({ "app": "other", "tier": "other" }), true),
        (3, json!({ "app": "shop" }), false),
        (4, json!({}), false),
    ] {
        let mut unowned = pod(number, 5, "True");
        unowned["metadata"]["ownerReferences"] = json!([]);
        unowned["metadata"]["labels"] = labels.clone();
        apply(&reflector, &by_labels, &unowned);
        let found = reflector.find_object(unowned["metadata"]["uid"].as_str().unwrap());
        assert_eq!(found.is_some(), has_row, "{labels}");
    }
}
