//! A reader of all parents is told everything once, and what changed from then on.

#![allow(clippy::unwrap_used, reason = "what fails here is a failed test")]

mod shadow_cluster;

use rollcall_core::ParentChanges;
use serde_json::Value;

use shadow_cluster::{ShadowCluster, object, pod};

/// Shop books → Database db → Pod, and Shop toys → Database tb → Pod.
fn shops() -> ShadowCluster {
    let policies = [("Shop", ("example.com", "Database")), ("Database", ("", "Pod"))];
    let parent = |kind, name, owner| object(kind, name, owner, 1, &Value::Null);
    ShadowCluster::begin(
        &policies,
        &[
            parent("Shop", "books", None),
            parent("Shop", "toys", None),
            parent("Database", "db", Some("Shop/books")),
            parent("Database", "tb", Some("Shop/toys")),
            pod("db-0", "Database/db", 1, "Pending"),
            pod("tb-0", "Database/tb", 1, "Pending"),
        ],
    )
}

fn ask(shops: &mut ShadowCluster, after: Option<u64>) -> ParentChanges {
    shops.core.take_parent_changes(after, shops.now)
}

/// Names of the parents of which something changed.
fn names(shops: &ShadowCluster, changes: &ParentChanges) -> Vec<String> {
    let name = |id| shops.core.reflector.read_row(id, |row| row.name.to_string()).unwrap();
    let mut names: Vec<_> = changes.changed.iter().map(|id| name(*id)).collect();
    names.sort();
    names
}

#[test]
fn everything_is_told_once_and_then_what_changed_with_all_above_it() {
    let mut shops = shops();
    let whole = ask(&mut shops, None);
    assert_eq!((whole.is_whole, whole.answers.len()), (true, 4));
    let nothing = ask(&mut shops, Some(whole.number));
    assert_eq!((nothing.is_whole, nothing.answers.len()), (false, 0));
    shops.apply(&pod("db-0", "Database/db", 2, "Failed"));
    let changes = ask(&mut shops, Some(nothing.number));
    assert_eq!(
        (changes.is_whole, names(&shops, &changes)),
        (false, vec!["books".to_owned(), "db".to_owned()])
    );
    assert_eq!(changes.answers.len(), 2);
    assert!(changes.answers.iter().all(|answer| answer.not_ready_since.is_some()));
}

#[test]
fn an_answer_that_got_lost_is_told_again_with_what_came_since() {
    let mut shops = shops();
    let whole = ask(&mut shops, None);
    shops.apply(&pod("db-0", "Database/db", 2, "Failed"));
    let lost = ask(&mut shops, Some(whole.number));
    shops.apply(&pod("tb-0", "Database/tb", 2, "Failed"));
    let again = ask(&mut shops, Some(whole.number));
    assert!(lost.changed.is_subset(&again.changed));
    assert_eq!(names(&shops, &again), ["books", "db", "tb", "toys"]);
    let seen = ask(&mut shops, Some(again.number));
    assert_eq!(names(&shops, &seen), [""; 0]);
}

#[test]
fn who_begins_anew_and_who_missed_a_name_is_told_everything() {
    let mut shops = shops();
    let whole = ask(&mut shops, None);
    let pods = shops.kinds.iter().find(|(_, kind)| kind == "Pod").unwrap().0;
    shops.core.set_kind_name(pods, "Pod", "");
    let same = ask(&mut shops, Some(whole.number));
    assert!(!same.is_whole, "it has that name");
    shops.core.set_kind_name(pods, "Pod", "example.com");
    let named = ask(&mut shops, Some(same.number));
    assert!(named.is_whole, "it got another name");
    shops.core.end_parent_feed();
    assert!(ask(&mut shops, Some(named.number)).is_whole, "nothing was recorded in between");
    assert!(ask(&mut shops, None).is_whole);
}
