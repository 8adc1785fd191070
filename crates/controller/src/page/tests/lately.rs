//! What has changed lately, and parents by their names.

use aggregator::KindId;
use axum::extract::Query;
use readiness::Time;
use readiness::rollup::ParentReason;
use rollcall_core::{ObjectRef, Transition};

use super::scope::databases_in;
use super::*;

/// A database of this namespace that has failed at this time.
fn failed(namespace: &str, at: Time) -> Transition {
    let parent = ObjectRef {
        group: "example.com".to_owned(),
        kind: "Database".to_owned(),
        namespace: namespace.to_owned(),
        name: "db".to_owned(),
    };
    Transition {
        at,
        policy: "databases".to_owned(),
        parent,
        version: String::new(),
        uid: format!("uid-of-{namespace}"),
        generation: Some(1),
        from: Some(ParentReason::AllChildrenReady),
        to: ParentReason::ChildrenFailed,
        message: "nobody else's business".to_owned(),
        causes: Vec::new(),
        shadow: false,
        kind: KindId(0),
    }
}

async fn lately(page: &PageService, token: &str, query: &str) -> Result<Value, PageRefusal> {
    let request = with(header::AUTHORIZATION, token);
    let asked = Query::try_from_uri(&format!("/?{query}").parse().unwrap()).unwrap();
    transitions_api::list_transitions(State(page.clone()), request, asked).await.map(|answer| answer.0)
}

fn namespaces(found: &Value) -> Vec<&str> {
    let transitions = found["transitions"].as_array().unwrap().iter();
    transitions.map(|of| of["namespace"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn of_what_has_changed_each_sees_what_they_may_list() {
    let stage = databases_in(1).await;
    stage.played.set_answer(ann);
    let now = stage.page.0.views.clock.now();
    let ago = |minutes: i64| Time(now.0 - minutes * 60_000);
    let told = [failed("a", ago(90)), failed("a", ago(30)), failed("b", ago(20)), failed("a", ago(10))];
    stage.transitions.publish_transitions(told.to_vec());
    let found = lately(&stage.page, "Bearer ann's", "").await.unwrap();
    assert_eq!(namespaces(&found), ["a", "a"], "of the last hour: {found}");
    assert_eq!(found["transitions"][0]["at"], ago(10).0, "the newest first: {found}");
    assert_eq!((&found["cut"], &found["reaches"]), (&json!(false), &Value::Null));
    assert!(!found.to_string().contains("uid-of-b"), "{found}");
    let first = &found["transitions"][0];
    assert_eq!((&first["from"], &first["verdict"]), (&json!("Ready"), &json!("Failed")));
    assert_eq!(first["label"], "Database.example.com");
    let since = |minutes: i64| format!("since={}", ago(minutes).0);
    assert_eq!(namespaces(&lately(&stage.page, "Bearer ann's", &since(100)).await.unwrap()).len(), 3);
    assert_eq!(namespaces(&lately(&stage.page, "Bearer ann's", &since(15)).await.unwrap()).len(), 1);
    assert!(
        namespaces(&lately(&stage.page, "Bearer ann's", "namespace=a&since=0").await.unwrap()).len() == 3
    );
    assert_eq!(lately(&stage.page, "Bearer bob's", "").await.unwrap_err(), PageRefusal::WrongToken);
    // Who may see none of them, and no kind of parent either, is told so.
    assert_eq!(lately(&stage.page, "Bearer ann's", "namespace=b").await.unwrap_err(), PageRefusal::NoRights);
}

#[tokio::test]
async fn no_more_than_the_newest_thousand_are_listed() {
    let stage = databases_in(1).await;
    stage.played.set_answer(ann);
    let now = stage.page.0.views.clock.now();
    let told = |n: usize| (0..n).map(|_| failed("a", now)).collect();
    stage.transitions.publish_transitions(told(1_000));
    let found = lately(&stage.page, "Bearer ann's", "").await.unwrap();
    assert_eq!((namespaces(&found).len(), &found["cut"]), (1_000, &json!(false)));
    stage.transitions.publish_transitions(told(crate::transitions::MAX_LATEST));
    let found = lately(&stage.page, "Bearer ann's", "").await.unwrap();
    assert_eq!((namespaces(&found).len(), &found["cut"]), (1_000, &json!(true)));
    assert_eq!(found["reaches"], now.0, "so far all are kept");
}

#[tokio::test]
async fn a_parent_has_an_address_by_its_name_for_those_who_may_see_it() {
    let stage = databases_in(300).await;
    let find = async |token: &str, name: &str| {
        let request = with(header::AUTHORIZATION, token);
        let uri = format!("/?label=Database.example.com&{name}").parse().unwrap();
        let asked = Query::try_from_uri(&uri).unwrap();
        parent_api::get_named_parent(State(stage.page.clone()), request, asked).await.map(|answer| answer.0)
    };
    let found = find("Bearer last's", "namespace=n299&name=db").await.unwrap();
    assert_eq!((&found["uid"], &found["name"]), (&json!("uid-299"), &json!("db")), "{found}");
    for name in ["namespace=n299&name=other", "namespace=n298&name=db", "namespace=n299", "name=db"] {
        assert_eq!(find("Bearer last's", name).await.unwrap_err(), PageRefusal::NotFound, "{name}");
    }
    stage.played.set_answer(ann);
    assert_eq!(find("Bearer bob's", "name=db").await.unwrap_err(), PageRefusal::WrongToken);
}
