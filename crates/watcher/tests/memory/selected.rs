//! Jobs that nobody owns: a parent selects them by labels or by name, and remembers how they ended.

use aggregator::{ChildSource, LinkTarget};
use readiness::Level;
use serde_json::{Value, json};
use watcher::plan::{
    AllowedNamespaces, FindChildrenBy, Interest, LabelRule, OutcomeRetention, ParentRule, ParentTemplate,
    ReferencePath, ReferenceRule,
};
use watcher::reflector::{ParentOutcomes, Reflector};

use crate::harness::{
    FAILED, NOW, OutcomeMemoryHarness, POLICY, READY, WIDGET, job, jobs, uid, widget, widgets,
};

/// How a parent finds Jobs.
#[derive(Clone, Copy, Debug)]
enum Selection {
    Labels,
    Names,
}

const BOTH: [Selection; 2] = [Selection::Labels, Selection::Names];

fn job_interest(by: Selection) -> Interest {
    let of = ("example.com".into(), "Widget".into());
    let find = match by {
        Selection::Labels => FindChildrenBy::Labels { keys: vec!["release".into()], of },
        Selection::Names => FindChildrenBy::References { of },
    };
    let mut interest = jobs(OutcomeRetention::Remember);
    interest.child[0].find = find;
    interest
}

fn parent_interest(by: Selection) -> Interest {
    let value = ParentTemplate::parse("{parent.spec.release}").unwrap();
    let allowed = AllowedNamespaces::default();
    let labels = LabelRule {
        group: 0,
        values: vec![value],
        annotation_values: Vec::new(),
        namespaces: Vec::new(),
        allowed: allowed.clone(),
    };
    let path = ReferencePath::parse("spec.jobs[*]").unwrap();
    let names = ReferenceRule { group: 0, path, of: ("batch".into(), "Job".into()), allowed };
    let mut rule = ParentRule { remembers_selected: true, ..ParentRule::for_policy(POLICY) };
    match by {
        Selection::Labels => rule.labels.push(labels),
        Selection::Names => rule.references.push(names),
    }
    Interest { parent: vec![rule], ..widgets() }
}

fn parent(n: u32, release: &str) -> Value {
    let mut parent = widget(1, 1);
    parent["metadata"]["uid"] = json!(uid(n));
    parent["metadata"]["name"] = json!(format!("w{n}"));
    parent["spec"] = json!({ "release": release, "jobs": [{ "name": "migrate" }] });
    parent
}

fn ownerless(n: u32, version: u32, ended: &str) -> Value {
    let mut job = job(n, "migrate", version, ended);
    job["metadata"]["ownerReferences"] = json!([]);
    job["metadata"]["labels"] = json!({ "release": "shop" });
    job
}

fn blind(by: Selection) -> OutcomeMemoryHarness {
    let harness = OutcomeMemoryHarness { reflector: Reflector::new(|| ()), jobs: job_interest(by) };
    harness.reflector.set_interest(harness.jobs.clone());
    harness
}

fn watching(by: Selection) -> OutcomeMemoryHarness {
    let harness = blind(by);
    harness.list(&[]);
    harness.parent(&parent(WIDGET, "shop"), &parent_interest(by));
    harness
}

/// Parents for which a remembered Job counts.
fn counts_for(harness: &OutcomeMemoryHarness, n: u32) -> Vec<LinkTarget> {
    let Some(id) = harness.reflector.find_object(&uid(n)) else { return Vec::new() };
    harness.reflector.with_view(id, NOW, |view| {
        view.map(|view| view.links.iter().map(aggregator::ChildLink::target).collect()).unwrap_or_default()
    })
}

#[test]
fn a_job_that_nobody_owns_counts_after_its_deletion_for_who_selected_it() {
    for by in BOTH {
        for (ended, counts) in [("Complete", READY), ("Failed", FAILED)] {
            let harness = watching(by);
            harness.see(&ownerless(1, 5, ""));
            harness.see(&ownerless(1, 6, ended));
            harness.deleted(&ownerless(1, 7, ended));
            assert_eq!(harness.counts(1), counts, "{by:?}");
            // Who selects the like later was not there.
            harness.parent(&parent(2_000, "shop"), &parent_interest(by));
            let whose = harness.reflector.find_object(&uid(WIDGET)).map(LinkTarget::Object);
            assert_eq!(counts_for(&harness, 1), whose.into_iter().collect::<Vec<_>>(), "{by:?}");
        }
    }
}

#[test]
fn its_end_may_be_seen_in_its_deletion_alone() {
    for by in BOTH {
        let harness = watching(by);
        harness.deleted(&ownerless(1, 7, "Complete"));
        assert_eq!(harness.counts(1), READY, "{by:?}");
        // A parent that comes when the Job has ended remembers it, if it comes before the deletion.
        let late = blind(by);
        late.list(&[ownerless(1, 5, "Complete")]);
        late.parent(&parent(WIDGET, "shop"), &parent_interest(by));
        late.deleted(&ownerless(1, 7, "Complete"));
        assert_eq!(late.counts(1), READY, "{by:?}");
    }
}

#[test]
fn it_outlives_a_restart_in_whatever_order_things_are_read() {
    for by in BOTH {
        let harness = watching(by);
        harness.see(&ownerless(1, 5, "Complete"));
        harness.deleted(&ownerless(1, 7, "Complete"));
        let ParentOutcomes { parent: whose, outcomes } = harness.memories();
        assert_eq!(outcomes.len(), 1);
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let next = blind(by);
            for step in order {
                match step {
                    0 => next.reflector.outcomes().recall_record(whose.clone(), outcomes.clone()),
                    1 => next.list(&[]),
                    _ => next.parent(&parent(WIDGET, "shop"), &parent_interest(by)),
                }
            }
            assert_eq!(next.counts(1), READY, "{by:?} {order:?}");
        }
    }
}

#[test]
fn a_job_that_is_still_there_is_remembered_though_its_parent_is_read_later() {
    for by in BOTH {
        let harness = watching(by);
        harness.see(&ownerless(1, 5, "Complete"));
        let next = blind(by);
        let ParentOutcomes { parent: whose, outcomes } = harness.memories();
        next.reflector.outcomes().recall_record(whose, outcomes);
        next.list(&[ownerless(1, 5, "Complete")]);
        // It goes unseen, before the parent was read.
        next.list(&[]);
        next.parent(&parent(WIDGET, "shop"), &parent_interest(by));
        assert_eq!(next.counts(1), READY, "{by:?}");
    }
}

#[test]
fn a_run_of_the_same_name_replaces_it_and_what_is_not_selected_any_more_is_forgotten() {
    for by in BOTH {
        let harness = watching(by);
        harness.see(&ownerless(1, 5, "Failed"));
        harness.deleted(&ownerless(1, 6, "Failed"));
        assert_eq!(harness.counts(1), FAILED, "{by:?}");
        harness.see(&ownerless(2, 7, "Complete"));
        assert_eq!(harness.counts(1), None, "{by:?}");
        let from_watch = harness.counts(2).map(|(level, source)| (level, source == ChildSource::Remembered));
        assert_eq!(from_watch, Some((Level::Ready, false)), "{by:?}");
        harness.deleted(&ownerless(2, 8, "Complete"));
        assert_eq!(harness.counts(2), READY, "{by:?}");
    }
    let harness = watching(Selection::Labels);
    harness.see(&ownerless(1, 5, "Complete"));
    let mut moved = ownerless(1, 6, "Complete");
    moved["metadata"]["labels"] = json!({ "release": "books" });
    harness.see(&moved);
    moved["metadata"]["resourceVersion"] = json!("7");
    harness.deleted(&moved);
    assert_eq!((harness.counts(1), harness.memories().outcomes.len()), (None, 0));
}
