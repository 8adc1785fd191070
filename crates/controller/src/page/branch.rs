//! One object of a parent, read live: the fields that decided its verdict (`/api/v1/parents/{uid}/branch`), and its
//! context (`…/around`), which is the objects it owns and the Events about it. Rows hold verdicts, not objects, so the
//! object is read once per request, for a viewer who may `get` it.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use readiness::{Level, Reason, StuckLimits, Time, Verdict};
use rollcall_cel::ObjectJson;
use serde::Deserialize;
use serde_json::{Value, json};
use watcher::plan::{Interest, UserRule};
use watcher::{ParentObject, get_live};

use super::authz::{PageViewer, ViewerRequest};
use super::page_service::PageService;
use super::parent_api::find_row;
use super::refusal::PageRefusal;
use crate::kind_tasks::ResolvedKind;
use crate::reviews::AccessRight;
use inspect::client::{CLAIMS_LABEL, EVENTS_LABEL, InspectClient, PODS_LABEL, REPLICA_SETS_LABEL};
use inspect::finalizer_holders::finalizer_holders;
use inspect::kubectl;

/// Query parameters that name one object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ObjectQuery {
    policy: String,
    /// Kind and group, as in `Deployment.apps`.
    label: String,
    namespace: String,
    name: String,
}

/// Object read live for a viewer who may get it.
pub(super) struct PageObject {
    page: PageService,
    query: ObjectQuery,
    viewer: PageViewer,
    followed: Arc<ResolvedKind>,
    interest: Arc<Interest>,
    rule_index: usize,
    live: ParentObject,
}

impl PageObject {
    fn rule_limits(&self) -> StuckLimits {
        self.interest
            .assessment_rules
            .get(self.rule_index)
            .map(|judged_by| judged_by.limits)
            .unwrap_or_default()
    }
}

impl FromRequestParts<PageService> for PageObject {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, page: &PageService) -> Result<PageObject, Response> {
        let Path(uid) =
            Path::<String>::from_request_parts(parts, page).await.map_err(IntoResponse::into_response)?;
        let Query(asked) =
            Query::from_request_parts(parts, page).await.map_err(IntoResponse::into_response)?;
        let Ok(request) = ViewerRequest::from_request_parts(parts, page).await;
        load_object(page, &request, &uid, asked).await.map_err(IntoResponse::into_response)
    }
}

/// Loads only objects of the parent's tree: this API does not replace kubectl.
async fn load_object(
    page: &PageService,
    request: &ViewerRequest,
    uid: &str,
    asked: ObjectQuery,
) -> Result<PageObject, PageRefusal> {
    let (viewer, shown, row) = find_row(page, request, uid, &asked.policy).await?;
    let wanted = [asked.label.clone(), asked.namespace.clone(), asked.name.clone()];
    let node =
        page.0.views.trees.find_node(shown.clone(), row, wanted).await?.ok_or(PageRefusal::NotFound)?;
    let followed = page.0.resolved.get(&node.kind_namespace.0).map(|known| Arc::clone(&known));
    let followed = followed.ok_or(PageRefusal::NotFound)?;
    let interest = page.0.views.reflector.interest(followed.id).ok_or(PageRefusal::NotFound)?;
    let right = AccessRight {
        verb: "get",
        group: followed.api.group.clone(),
        resource: followed.api.plural.clone(),
        namespace: node.namespace.clone(),
        name: node.name.clone(),
    };
    if !page.0.authz.is_allowed(&viewer, right).await? {
        return Err(PageRefusal::NotFound);
    }
    let _turn = page.0.inspections.acquire().await.map_err(|_| PageRefusal::Unreachable)?;
    let scope = Some(node.namespace.as_str()).filter(|n| !n.is_empty());
    let live = get_live::<ParentObject>(&page.0.client, &followed.api, scope, &node.name).await;
    let live = live.map_err(|_| PageRefusal::Unreachable)?.ok_or(PageRefusal::NotFound)?;
    let live = live.with_type_meta(&followed.api.api_version(), &followed.api.kind);
    Ok(PageObject {
        page: page.clone(),
        rule_index: usize::from(node.rule_index),
        query: asked,
        viewer,
        followed,
        interest,
        live,
    })
}

/// Evaluates a rule, which may take as long as its limits allow, beside the runtime's own threads.
async fn evaluate_rule(rule: &UserRule, text: String, now: Time) -> (Verdict, String) {
    let rule = rule.clone();
    let evaluated = tokio::task::spawn_blocking(move || {
        let judged = rule.rule.judge_object(ObjectJson::Text(&text), now);
        (judged.assessment.verdict_at(now).clone(), judged.branch.to_string())
    });
    evaluated.await.unwrap_or_else(|_| (Verdict::new(Level::Unknown, Reason::RuleCrashed), String::new()))
}

/// Returns the branch that decided, and its fields.
pub(super) async fn get_branch(closer: PageObject) -> Json<Value> {
    let PageObject { page, query: asked, followed, interest, live, .. } = &closer;
    let (now, limits) = (page.0.views.clock.now(), closer.rule_limits());
    let facts = &live.child.facts;
    let own = interest.assessment_rules.get(closer.rule_index).and_then(|judged_by| judged_by.rule.as_ref());
    let own = own.filter(|_| readiness::assess_before_rules(interest.judge, facts, &limits).is_none());
    let (verdict, branch, rule) = if let Some(rule) = own {
        let (verdict, branch) = evaluate_rule(rule, live.text.get().to_owned(), now).await;
        (verdict, branch, "the policy's own")
    } else {
        let (assessment, branch) = readiness::assess_with_branch(interest.judge, facts, &limits);
        (assessment.verdict_at(now).clone(), branch.to_string(), "Rollcall's for its kind")
    };
    let whole: Value = serde_json::from_str(live.text.get()).unwrap_or_default();
    let object = kubectl::KubectlObject {
        group: &followed.api.group,
        kind: &followed.api.kind,
        namespace: &asked.namespace,
        name: &asked.name,
    };
    Json(json!({
        "verdict": verdict.level.as_str(), "reason": verdict.reason.as_token(), "detail": verdict.reason.to_string(),
        "branch": branch, "rule": rule, "generation": whole["metadata"]["generation"],
        "created": whole["metadata"]["creationTimestamp"], "deleted": whole["metadata"]["deletionTimestamp"],
        "finalizers": whole["metadata"]["finalizers"], "holders": finalizer_holders(&whole, &object),
        "conditions": condition_fields(&whole["status"]["conditions"]),
    }))
}

/// Fields of conditions that are shown; empty if the value is not a list of objects.
fn condition_fields(list: &Value) -> Value {
    const CONDITION_FIELDS: [&str; 5] = ["type", "status", "reason", "message", "lastTransitionTime"];
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let condition = |entry: &Value| -> Value {
        CONDITION_FIELDS
            .iter()
            .filter(|field| entry[**field].is_string())
            .map(|field| ((*field).to_owned(), entry[*field].clone()))
            .collect()
    };
    list.iter().filter(|entry| entry.is_object()).take(32).map(condition).collect()
}

/// Returns the objects that explain why the object is not ready, and the latest Events about it.
pub(super) async fn get_around(closer: PageObject) -> Result<Json<Value>, PageRefusal> {
    let PageObject { page, query: asked, .. } = &closer;
    let barred = barred_resources(page, &closer.viewer, &asked.namespace).await?;
    let now = page.0.views.clock.now();
    let key = (closer.live.child.meta.uid.clone(), barred.clone());
    if let Some(known) = page.0.around.get(&key, now) {
        return Ok(Json(known));
    }
    let _turn = page.0.inspections.acquire().await.map_err(|_| PageRefusal::Unreachable)?;
    let client = &page.0.client;
    let mut ask = InspectClient::on_behalf(client.clone(), barred);
    let (owns, events) =
        inspect::inspect_object(&mut ask, client, &closer.live, &closer.rule_limits(), now).await;
    let found = json!({ "owns": owns, "events": events, "notRead": ask.refused });
    page.0.around.put(key, found.clone(), 1, now);
    Ok(Json(found))
}

/// Resources of the context that `viewer` may not read in this namespace.
async fn barred_resources(
    page: &PageService,
    viewer: &PageViewer,
    namespace: &str,
) -> Result<BTreeSet<&'static str>, PageRefusal> {
    const AROUND_RIGHTS: [(&str, &str, &str, &str); 4] = [
        (PODS_LABEL, "list", "", "pods"),
        (CLAIMS_LABEL, "get", "", "persistentvolumeclaims"),
        (REPLICA_SETS_LABEL, "list", "apps", "replicasets"),
        (EVENTS_LABEL, "list", "", "events"),
    ];
    // Events about cluster-scoped objects are in this namespace.
    let namespace = if namespace.is_empty() { "default" } else { namespace };
    let right = |(_, verb, group, resource): &(&str, &'static str, &str, &str)| AccessRight {
        verb,
        group: (*group).to_owned(),
        resource: (*resource).to_owned(),
        namespace: namespace.to_owned(),
        name: String::new(),
    };
    let (allowed, _) = page.0.authz.allowed_rights(viewer, AROUND_RIGHTS.iter().map(right).collect()).await?;
    Ok(AROUND_RIGHTS
        .iter()
        .enumerate()
        .filter(|(at, _)| !allowed.contains(at))
        .map(|(_, read)| read.0)
        .collect())
}
