//! Whether the `Ready` of an operator waits for its children, by the times at which conditions became True.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use inspect::owned_reader::answer_in_time;
use readiness::Time;
use watcher::wire::ChildObject;
use watcher::{ApiKind, LivePage, stream_live_pages};

use super::owner_survey::{OwnerSurvey, PAGE_TIMEOUT};
use super::parent_evidence::{SeenParent, ready_since};
use super::suggested_policy::PolicySuggestion;

/// When the last child of a parent became ready, by the parent's uid, and which it is.
pub(super) type LastChildren = BTreeMap<Box<str>, (Time, String)>;

/// Reads when the children of these parents became ready, as far as they say so, page by page.
pub(super) async fn read_last_children(
    (client, namespace): (&kube::Client, Option<&str>),
    survey: &OwnerSurvey,
    suggestion: &PolicySuggestion,
    unread: &mut BTreeMap<String, String>,
) -> LastChildren {
    let mut last = LastChildren::new();
    for child in &suggestion.children {
        let of = |api: &&ApiKind| api.group == child.group && api.kind == child.kind;
        let Some(api) = survey.served.iter().find(of) else { continue };
        let scope = namespace.filter(|_| api.namespaced);
        let mut pages = stream_live_pages::<ChildObject>(client, api, scope).boxed();
        loop {
            match answer_in_time("you", "list", PAGE_TIMEOUT, pages.try_next()).await {
                // What a list that begins anew shows again is no later than it was.
                Ok(Some(LivePage::Restart)) => {}
                Ok(Some(LivePage::Objects(objects))) => {
                    for object in &objects {
                        note_child(object, &child.kind, &mut last);
                    }
                }
                Ok(None) => break,
                Err(why) => {
                    unread.insert(api.to_string(), why);
                    break;
                }
            }
        }
    }
    last
}

fn note_child(object: &ChildObject, kind: &str, last: &mut LastChildren) {
    let Some(since) = ready_since(&object.facts) else { return };
    for owner in &object.meta.owners {
        let named = || (since, format!("{kind} {}", object.meta.name));
        let known = last.entry(owner.uid.clone()).or_insert_with(named);
        if known.0 < since {
            *known = named();
        }
    }
}

/// Says whether the `Ready` of these parents came after that of the last of their children that are ready, for those of which both are
/// known. `None` where there is none.
pub(super) fn describe_order<'p>(
    parents: impl Iterator<Item = &'p SeenParent>,
    last: &LastChildren,
) -> Option<String> {
    let known = parents.filter_map(|parent| Some((parent, parent.ready_since?, last.get(&parent.uid)?)));
    let (early, late): (Vec<_>, Vec<_>) = known.partition(|(_, said, (child, _))| said < child);
    if let Some((parent, said, (since, child))) = early.first() {
        let seconds = (*since - *said).as_secs();
        return Some(format!(
            "its Ready did not wait for a child, or stayed while one was replaced: that of {} is older than that of the last of \
             them: {}/{}, {seconds} s before {child}",
            early.len(),
            parent.namespace,
            parent.name
        ));
    }
    (!late.is_empty()).then(|| {
        format!(
            "its Ready may wait for its children: that of {} is no older than that of the last of them",
            late.len()
        )
    })
}
