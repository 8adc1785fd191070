//! One object of a parent, read live: which of its fields decided (`/api/v1/parents/{uid}/branch`), and what stands around it
//! (`…/around`): what it owns and what the Events about it say. Rows keep verdicts, not objects, so it is read once, for
//! somebody who looks at it and may `get` it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use readiness::{Limits, Time};
use rules::Object;
use serde::Deserialize;
use serde_json::{Value, json};
use watcher::{Parent, look};

use super::Page;
use super::api::pick;
use super::gate::{Right, Viewer};
use super::refusal::Refusal;
use crate::inspect::ask::{Ask, CLAIM, EVENTS, PODS, SETS};
use crate::inspect::command;
use crate::inspect::holders::holders;
use crate::kinds::Followed;

/// So many live reads at a time.
pub(super) const AT_ONCE: usize = 4;
/// What was read around an object is good enough for so long, whoever asks.
const FRESH: Duration = Duration::from_secs(5);
/// So many such answers are kept.
const KEPT: usize = 64;

/// Which object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AskedBranch {
    policy: String,
    /// Kind and group, as in `Deployment.apps`.
    label: String,
    namespace: String,
    name: String,
}

/// An object that somebody may get, as it is now.
pub(super) struct Closer {
    page: Page,
    asked: AskedBranch,
    viewer: Viewer,
    followed: Arc<Followed>,
    lens: usize,
    live: Parent,
}

impl Closer {
    fn limits(&self) -> Limits {
        self.followed.interest.lenses.get(self.lens).map(|lens| lens.limits).unwrap_or_default()
    }
}

impl FromRequestParts<Page> for Closer {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, page: &Page) -> Result<Closer, Response> {
        let Path(uid) =
            Path::<String>::from_request_parts(parts, page).await.map_err(IntoResponse::into_response)?;
        let Query(asked) =
            Query::from_request_parts(parts, page).await.map_err(IntoResponse::into_response)?;
        closer(page, &parts.headers, &uid, asked).await.map_err(IntoResponse::into_response)
    }
}

/// Only what belongs to the parent: this is no way around kubectl.
async fn closer(page: &Page, headers: &HeaderMap, uid: &str, asked: AskedBranch) -> Result<Closer, Refusal> {
    let (viewer, shown, row) = pick(page, headers, uid, &asked.policy).await?;
    let nodes = page.0.desk.tree(shown.clone(), row, usize::MAX).await?;
    let meant = |node: &&super::tree::Node| {
        node.label == asked.label && node.namespace == asked.namespace && node.name == asked.name
    };
    let node = nodes.iter().find(meant).ok_or(Refusal::NotFound)?;
    let followed = page.0.known.get(&node.place.0).map(|known| Arc::clone(&known));
    let followed = followed.ok_or(Refusal::NotFound)?;
    let right = Right {
        verb: "get",
        group: followed.api.group.clone(),
        resource: followed.api.plural.clone(),
        namespace: node.namespace.clone(),
        name: node.name.clone(),
    };
    if !page.0.gate.may(&viewer, right).await? {
        return Err(Refusal::NotFound);
    }
    let _turn = page.0.looks.acquire().await.map_err(|_| Refusal::Unreachable)?;
    let scope = Some(node.namespace.as_str()).filter(|n| !n.is_empty());
    let live = look::<Parent>(&page.0.client, &followed.api, scope, &node.name).await;
    let live = live.map_err(|_| Refusal::Unreachable)?.ok_or(Refusal::NotFound)?;
    let live = live.typed(&followed.api.api_version(), &followed.api.kind);
    Ok(Closer { page: page.clone(), lens: usize::from(node.lens), asked, viewer, followed, live })
}

/// The branch that decided, and the fields that go with it.
pub(super) async fn branch(closer: Closer) -> Json<Value> {
    let Closer { page, asked, followed, live, .. } = &closer;
    let (now, limits) = (page.0.desk.clock.now(), closer.limits());
    let facts = &live.child.facts;
    let own = followed.interest.lenses.get(closer.lens).and_then(|lens| lens.rule.as_ref());
    let own = own.filter(|_| readiness::before_rules(followed.interest.judge, facts, &limits).is_none());
    let (verdict, branch, rule) = if let Some(rule) = own {
        let judged = rule.rule.judge(Object::Text(live.text.get()), now);
        (judged.assessment.at(now).clone(), judged.branch.to_string(), "the policy's own")
    } else {
        let (assessment, branch) = readiness::why(followed.interest.judge, facts, &limits);
        (assessment.at(now).clone(), branch.to_string(), "Rollcall's for its kind")
    };
    let whole: Value = serde_json::from_str(live.text.get()).unwrap_or_default();
    let object = command::Object {
        group: &followed.api.group,
        kind: &followed.api.kind,
        namespace: &asked.namespace,
        name: &asked.name,
    };
    Json(json!({
        "verdict": verdict.level.word(), "reason": verdict.reason.token(), "detail": verdict.reason.to_string(),
        "branch": branch, "rule": rule, "generation": whole["metadata"]["generation"],
        "created": whole["metadata"]["creationTimestamp"], "deleted": whole["metadata"]["deletionTimestamp"],
        "finalizers": whole["metadata"]["finalizers"], "holders": holders(&whole, &object),
        "conditions": conditions(&whole["status"]["conditions"]),
    }))
}

/// The fields of conditions that people read; what is not a list of objects is none.
fn conditions(list: &Value) -> Value {
    const FIELDS: [&str; 5] = ["type", "status", "reason", "message", "lastTransitionTime"];
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let condition = |entry: &Value| -> Value {
        FIELDS
            .iter()
            .filter(|field| entry[**field].is_string())
            .map(|field| ((*field).to_owned(), entry[*field].clone()))
            .collect()
    };
    list.iter().filter(|entry| entry.is_object()).take(32).map(condition).collect()
}

/// An object by its uid, and what was not to be read of what stands around it.
type Key = (Box<str>, BTreeSet<&'static str>);

/// What was read around objects, for a moment.
#[derive(Debug, Default)]
pub(super) struct Around(Mutex<BTreeMap<Key, (Value, Time)>>);

impl Around {
    fn get(&self, key: &Key, now: Time) -> Option<Value> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(key).filter(|(_, at)| now - *at < FRESH).map(|(value, _)| value.clone())
    }

    fn put(&self, key: Key, value: Value, now: Time) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, (_, at)| now - *at < FRESH);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(key, (value, now));
    }
}

/// What the object owns that explains why it is not ready, and the latest Events about it.
pub(super) async fn around(closer: Closer) -> Result<Json<Value>, Refusal> {
    let Closer { page, asked, .. } = &closer;
    let barred = barred(page, &closer.viewer, &asked.namespace).await?;
    let now = page.0.desk.clock.now();
    let key = (closer.live.child.meta.uid.clone(), barred.clone());
    if let Some(known) = page.0.around.get(&key, now) {
        return Ok(Json(known));
    }
    let _turn = page.0.looks.acquire().await.map_err(|_| Refusal::Unreachable)?;
    let client = &page.0.client;
    let mut ask = Ask::on_behalf(client.clone(), barred);
    let (owns, events) = crate::inspect::around(&mut ask, client, &closer.live, &closer.limits(), now).await;
    let found = json!({ "owns": owns, "events": events, "notRead": ask.refused });
    page.0.around.put(key, found.clone(), now);
    Ok(Json(found))
}

/// What `viewer` may not read in this namespace of what stands around an object.
async fn barred(page: &Page, viewer: &Viewer, namespace: &str) -> Result<BTreeSet<&'static str>, Refusal> {
    const READ: [(&str, &str, &str, &str); 4] = [
        (PODS, "list", "", "pods"),
        (CLAIM, "get", "", "persistentvolumeclaims"),
        (SETS, "list", "apps", "replicasets"),
        (EVENTS, "list", "", "events"),
    ];
    // What lives in no namespace has its Events in this one.
    let namespace = if namespace.is_empty() { "default" } else { namespace };
    let right = |(_, verb, group, resource): &(&str, &'static str, &str, &str)| Right {
        verb,
        group: (*group).to_owned(),
        resource: (*resource).to_owned(),
        namespace: namespace.to_owned(),
        name: String::new(),
    };
    let (allowed, _) = page.0.gate.allowed(viewer, READ.iter().map(right).collect()).await?;
    Ok(READ.iter().enumerate().filter(|(at, _)| !allowed.contains(at)).map(|(_, read)| read.0).collect())
}
