//! Malformed objects, lists and watches: the rest is delivered, and the failure is reported.

use std::time::Duration;

use sandbox::{FaultAction, RequestVerb};
use serde::Deserialize;
use serde_json::{Value, json};
use watcher::wire::WireMeta;
use watcher::{ApiFailureCause, FollowEvent, ParentObject, WireObject};

use crate::cluster::{ConsumerMirror, FollowedCluster, deployment, hasty};
use crate::scripted_server::{ScriptedFollow, list, parameter, quiet, text};

/// Decodes only exactly matching objects, like the types of most programs.
#[derive(Clone, Debug, Deserialize)]
struct StrictObject {
    #[serde(rename = "metadata", deserialize_with = "meta")]
    meta: WireMeta,
    #[serde(rename = "spec")]
    _spec: StrictSpec,
}

#[derive(Clone, Debug, Deserialize)]
struct StrictSpec {
    #[serde(rename = "template")]
    _template: Value,
}

fn meta<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<WireMeta, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct PlainObject {
        name: Box<str>,
        uid: Box<str>,
        resource_version: String,
    }
    let PlainObject { name, uid, resource_version } = PlainObject::deserialize(deserializer)?;
    let resource_version = resource_version.parse().map_err(serde::de::Error::custom)?;
    Ok(WireMeta { name, uid, resource_version, ..WireMeta::default() })
}

impl WireObject for StrictObject {
    fn meta(&self) -> &WireMeta {
        &self.meta
    }
}

/// A legal object of 200 levels.
fn deep(name: &str) -> Value {
    let mut object = deployment(name);
    let bottom = (0..200).fold(json!(1), |below, _| json!({ "x": below }));
    object["spec"]["template"]["spec"]["affinity"] = bottom;
    object
}

#[tokio::test]
async fn an_unreadable_object_in_a_list_hides_nobody() {
    for nonsense in
        ["7", "null", "\"text\"", "[]", "{\"metadata\":7}", "{\"metadata\":{\"name\":[]},\"spec\":0}"]
    {
        let cluster = FollowedCluster::new().await.with(&["a", "b"]);
        cluster.on_lists(FaultAction::RawItem(nonsense.into()));
        let mut mirror: ConsumerMirror<ParentObject> = cluster.follow().await;
        mirror.knows(&["a", "b"]).await;
        mirror.hears_of(ApiFailureCause::Undecodable).await;
        cluster.create(deployment("c"));
        mirror.knows(&["a", "b", "c"]).await;
    }
}

#[tokio::test]
async fn an_object_that_a_strict_type_refuses_hides_nobody_and_is_named() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    let odd = r#"{"metadata":{"name":"odd","uid":"u","resourceVersion":"5"},"spec":[]}"#;
    cluster.server.faults().add(
        sandbox::InjectedFault::new(FaultAction::RawItem(odd.into())).on_verb(RequestVerb::List).at_most(2),
    );
    let mut mirror: ConsumerMirror<StrictObject> = cluster.follow_with(hasty()).await;
    mirror.knows(&["a"]).await;
    mirror.until("named it", |mirror| mirror.troubles.iter().any(|t| t.detail.contains("\"odd\""))).await;
    assert_eq!(cluster.asked(RequestVerb::List), 2, "once as quick as can be, once carefully");
}

#[tokio::test]
async fn an_object_that_a_strict_type_refuses_in_a_watch_loses_nothing() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    let odd = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"odd\"}}}\n";
    cluster.on_watches(FaultAction::RawLine(odd.into()));
    let mut mirror: ConsumerMirror<StrictObject> = cluster.follow_with(hasty()).await;
    mirror.hears_of(ApiFailureCause::Undecodable).await;
    cluster.create(deployment("b"));
    mirror.knows(&["a", "b"]).await;
    assert_eq!(cluster.asked(RequestVerb::List), 2, "what was lost is looked for once");
}

#[tokio::test]
async fn an_unreadable_object_in_a_watch_hides_nobody() {
    for nonsense in ["7", "null", "{\"metadata\":7}", "{\"metadata\":{\"uid\":\"\"}}"] {
        let cluster = FollowedCluster::new().await.with(&["a"]);
        let line = format!("{{\"type\":\"MODIFIED\",\"object\":{nonsense}}}\n");
        cluster.on_watches(FaultAction::RawLine(line.into()));
        let mut mirror: ConsumerMirror<ParentObject> = cluster.follow().await;
        mirror.hears_of(ApiFailureCause::Undecodable).await;
        cluster.create(deployment("b"));
        mirror.knows(&["a", "b"]).await;
    }
}

#[tokio::test]
async fn lines_that_are_no_events_do_not_end_the_stream() {
    for line in [
        "<html>502 Bad Gateway</html>\n",
        "{\"type\":\n",
        "\n\n",
        "{}\n",
        "{\"type\":\"SURPRISE\",\"object\":{}}\n",
    ] {
        let cluster = FollowedCluster::new().await.with(&["a"]);
        cluster.on_watches(FaultAction::RawLine(line.into()));
        let mut mirror = cluster.follow().await;
        mirror.knows(&["a"]).await;
        cluster.create(deployment("b"));
        mirror.knows(&["a", "b"]).await;
        cluster.delete("a");
        mirror.knows(&["b"]).await;
    }
}

#[tokio::test]
async fn half_a_line_glued_to_an_event_loses_nothing() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    cluster.on_watches(FaultAction::RawLine("{\"type\":\"MODIFIED\",\"obj".into()));
    let mut mirror = cluster.follow().await;
    mirror.knows(&["a"]).await;
    // The line that reports it cannot be read.
    cluster.create(deployment("b"));
    mirror.knows(&["a", "b"]).await;
    mirror.hears_of(ApiFailureCause::Undecodable).await;
}

#[tokio::test]
async fn objects_of_200_levels_are_followed_like_any_other() {
    let cluster = FollowedCluster::new().await.with(&["a"]);
    cluster.create(deep("listed"));
    let mut mirror = cluster.follow().await;
    mirror.knows(&["a", "listed"]).await;
    cluster.create(deep("watched"));
    mirror.knows(&["a", "listed", "watched"]).await;
    assert_eq!(mirror.troubles, []);
}

#[tokio::test]
async fn bytes_that_are_no_text_cost_nobody_anything() {
    let raw = |name: &str| {
        let object = format!(
            r#"{{"metadata":{{"name":"{name}","uid":"u-{name}","resourceVersion":"3","annotations":{{"x":"@"}}}}}}"#
        );
        object
            .bytes()
            .flat_map(|byte| if byte == b'@' { vec![0xff, 0xc3, 0x28] } else { vec![byte] })
            .collect()
    };
    let cluster = FollowedCluster::new().await.with(&["a"]);
    cluster.on_lists(FaultAction::RawItem(raw("listed")));
    let line: Vec<u8> =
        [b"{\"type\":\"ADDED\",\"object\":".to_vec(), raw("watched"), b"}\n".to_vec()].concat();
    cluster.on_watches(FaultAction::RawLine(line));
    let mut mirror = cluster.follow().await;
    mirror.knows(&["a", "listed", "watched"]).await;
    assert_eq!((mirror.troubles.len(), cluster.asked(RequestVerb::List)), (0, 1), "not even a new list");
}

#[tokio::test]
async fn a_list_that_is_no_json_is_asked_again() {
    for body in ["", "not json", "{\"items\":[{\"metadata\":", "[]", "{\"metadata\":{},\"items\":[]}"] {
        let cluster = FollowedCluster::new().await.with(&["a"]);
        cluster.on_lists(FaultAction::AnswerRaw(body.into()));
        let mut mirror = cluster.follow().await;
        mirror.knows(&["a"]).await;
        assert_eq!(mirror.lists, 1, "what could not be read is no list: {body}");
        mirror.hears_of(ApiFailureCause::Undecodable).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_talks_nonsense_is_not_listed_in_a_storm() {
    let minutes = 10;
    let mut follow = ScriptedFollow::new(|target| {
        if parameter(target, "watch").is_some() { text("nonsense\n") } else { list(&[]) }
    });
    follow.for_span(Duration::from_secs(minutes * 60)).await;
    let lists = follow.asked().iter().filter(|asked| !asked.is_watch()).count();
    assert!((5..40).contains(&lists), "{lists} lists in {minutes} minutes");
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_version_does_not_lose_the_place_in_the_history() {
    let mut watched = 0;
    let mut follow = ScriptedFollow::new(move |target| {
        if parameter(target, "watch").is_none() {
            return list(&[]);
        }
        watched += 1;
        match watched {
            1 => text("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}}\n"),
            _ => quiet(target),
        }
    });
    let said = follow.for_span(Duration::from_secs(30)).await;
    let asked = follow.asked();
    assert_eq!(asked.len(), 3, "one list, two watches: {asked:?}");
    assert_eq!(parameter(&asked[2].target, "resourceVersion"), Some("7"));
    assert!(said.iter().any(|event| matches!(event, FollowEvent::Apply(_))));
}
