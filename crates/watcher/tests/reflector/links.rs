//! Links of an object: by owner, by label, within a namespace.

use aggregator::LinkTarget;
use serde_json::{Value, json};
use watcher::plan::{FindChildrenBy, LabelMatcher, LabelRule, ParentTemplate};
use watcher::reflector::{ApplyOutcome, Reflector};

use crate::objects::{NOW, apply, children, owned, parents, pod, uid, widget};

/// Returns which of these pods the only widget selects by the label `app`.
fn selected(pods: &[Value]) -> Vec<bool> {
    let reflector = Reflector::new(|| ());
    let values = vec![ParentTemplate::parse("{parent.metadata.name}eb").unwrap()];
    let by_name = LabelRule { group: 0, values, namespaces: vec![] };
    apply(&reflector, &parents(vec![by_name]), &widget(1, 1, &json!(null)));
    let of = ("example.com".into(), "Widget".into());
    let by_label = children(FindChildrenBy::Labels { keys: vec!["app".into()], of }, None);
    let selects = reflector.read_row(reflector.find_object(&uid(1_000)).unwrap(), |row| {
        row.parent.as_ref().unwrap().view.answers[0].selects.clone()
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
    let bad = LabelRule {
        group: 0,
        values: vec![ParentTemplate::parse("{parent.spec.nothing}").unwrap()],
        namespaces: vec![],
    };
    apply(&reflector, &parents(vec![bad]), &widget(1, 1, &json!(null)));
    let unrendered = reflector.read_row(reflector.find_object(&uid(1_000)).unwrap(), |row| {
        let parent = row.parent.as_ref().unwrap();
        (
            parent.view.answers[0].template_failed,
            parent.targets[0].unrendered.as_ref().map(ToString::to_string),
        )
    });
    let (unrendered, error) = unrendered.unwrap();
    assert!(unrendered && error.unwrap().contains("parent.spec.nothing"));
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
        assert_eq!(reflector.cross_namespace_children(9), [("bank/pod-2".to_owned(), "shop/w".to_owned())]);
    }
}
