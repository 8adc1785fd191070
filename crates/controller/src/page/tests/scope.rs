//! Viewers who may list in more namespaces than one request reviews, and views that are built for clients who go away.

use aggregator::{KindId, PolicyId};
use axum::extract::Query;
use readiness::rollup::ParentReason;
use watcher::ApiKind;
use watcher::plan::{Interest, ParentRule};

use super::super::view::PageView;
use super::*;
use crate::kind_tasks::ResolvedKind;

/// A viewer who may list databases in the last namespace alone.
fn last_only(path: &str, review: &Value) -> Value {
    if path.ends_with("/tokenreviews") {
        return json!({ "status": { "authenticated": true, "user": { "username": "last" } } });
    }
    let right = &review["spec"]["resourceAttributes"];
    json!({ "status": { "allowed": right["resource"] == "databases" && right["namespace"] == "n299" } })
}

/// A page of databases, one in each of so many namespaces.
pub(super) async fn databases_in(namespaces: usize) -> PageHarness {
    let stage = stage("0.0.0.0:80");
    stage.played.set_answer(last_only);
    let id = KindId(0);
    let api = ApiKind {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        kind: "Database".to_owned(),
        plural: "databases".to_owned(),
        namespaced: true,
        has_status: true,
    };
    stage.page.0.resolved.insert(id, Arc::new(ResolvedKind::new(id, api)));
    let interest = Interest::for_kind(id, "example.com", "Database");
    let parent = vec![ParentRule::for_policy(PolicyId(0))];
    stage.page.0.views.reflector.set_interest(Interest { parent, ..interest });
    stage.page.0.views.hold_view(view_of(namespaces)).await;
    stage
}

fn view_of(namespaces: usize) -> PageView {
    let namespaces: Vec<_> = (0..namespaces).map(|n| format!("n{n:03}")).collect();
    let parent = |namespace| (namespace, "db", ParentReason::ChildrenFailed);
    PageView::of_parents(&namespaces.iter().map(|namespace| parent(&**namespace)).collect::<Vec<_>>())
}

fn last() -> ViewerRequest {
    with(header::AUTHORIZATION, "Bearer last's")
}

async fn list(page: &PageService, request: ViewerRequest) -> Result<Value, PageRefusal> {
    let list = api::list_parents(State(page.clone()), request, Query::default()).await;
    list.map(|list| list.0)
}

#[tokio::test]
async fn who_may_not_list_in_the_namespaces_that_were_reviewed_is_refused_only_if_all_were() {
    let few = databases_in(10).await;
    assert_eq!(list(&few.page, last()).await.unwrap_err(), PageRefusal::NoRights);
    assert_eq!(open(&few.page, last()).await.0, StatusCode::FORBIDDEN);
    let many = databases_in(300).await;
    let (first, (code, _)) = (list(&many.page, last()).await.unwrap(), open(&many.page, last()).await);
    assert_eq!((&first["partial"], &first["matching"], code), (&json!(true), &json!(0), StatusCode::OK));
    let second = list(&many.page, last()).await.unwrap();
    assert_eq!(
        (&second["partial"], &second["matching"]),
        (&json!(false), &json!(1)),
        "the rest was reviewed"
    );
}

#[tokio::test]
async fn a_batch_of_more_namespaces_than_one_request_reviews_is_read_again() {
    let stage = databases_in(300).await;
    let (_, mut stream) = open(&stage.page, last()).await;
    // Of which nothing has been reviewed.
    let mut rows: Vec<_> = view_of(600).shared_rows().cloned().collect();
    let changed = rows.drain(..).skip(300).map(|row| (row, String::new())).collect();
    let names = Arc::default();
    let batch =
        ChangeBatch { number: 1, now: readiness::Time(7), changed, gone: Vec::new(), reload: false, names };
    stage.page.0.views.batches.send(Arc::new(batch)).unwrap();
    let mut event = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    while event.starts_with(b"event: beat") {
        event = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    }
    assert!(event.starts_with(b"event: reload"), "{event:?}");
}

#[tokio::test]
async fn a_client_who_goes_away_while_a_view_is_built_leaves_it_to_the_next() {
    let stage = stage("127.0.0.1:80");
    let views = &stage.page.0.views;
    let asked = || stage.worlds.load(Ordering::Relaxed);
    views.current_view().await.unwrap();
    views.expire_view().await;
    stage.snapshot.send_replace(Arc::default());
    let mut gone = Box::pin(views.current_view());
    assert!(futures::poll!(&mut gone).is_pending());
    drop(gone);
    let before = asked();
    views.current_view().await.unwrap();
    // The loop may have answered the one who is gone, too.
    assert!((1..=2).contains(&(asked() - before)), "what has moved is still to be shown");
    views.expire_view().await;
    let before = asked();
    views.current_view().await.unwrap();
    assert_eq!(asked(), before);
}

#[tokio::test]
async fn lists_wait_for_each_other_and_not_the_service_for_them() {
    let stage = stage("127.0.0.1:80");
    let turns = stage.page.0.views.lists.clone();
    let others = turns.acquire_many(2).await.unwrap();
    let mut waiting = Box::pin(list(&stage.page, local()));
    assert!(tokio::time::timeout(Duration::from_millis(100), &mut waiting).await.is_err());
    drop(others);
    waiting.await.unwrap();
}
