//! `/api/v1/parents/{uid}/branch`: which field of one object decided. Rows keep verdicts, not objects, so it is read live:
//! once, for somebody who looks at it and may `get` it.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use rules::Object;
use serde::Deserialize;
use serde_json::{Value, json};
use watcher::{Parent, look};

use super::Page;
use super::api::pick;
use super::gate::Right;
use super::refusal::Refusal;

/// So many live reads at a time.
pub(super) const AT_ONCE: usize = 4;

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

/// The branch that decided, and the fields that go with it.
pub(super) async fn branch(
    State(page): State<Page>,
    headers: HeaderMap,
    Path(uid): Path<String>,
    Query(asked): Query<AskedBranch>,
) -> Result<Json<Value>, Refusal> {
    let (viewer, shown, row) = pick(&page, &headers, &uid, &asked.policy).await?;
    let nodes = page.0.desk.tree(shown.clone(), row, usize::MAX).await?;
    // Only what belongs to the parent: this is no way around kubectl.
    let meant = |node: &&super::tree::Node| {
        node.label == asked.label && node.namespace == asked.namespace && node.name == asked.name
    };
    let node = nodes.iter().find(meant).ok_or(Refusal::NotFound)?;
    let followed = page.0.known.get(&node.place.0).map(|known| std::sync::Arc::clone(&known));
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
    let now = page.0.desk.clock.now();
    let lens = followed.interest.lenses.get(usize::from(node.lens));
    let limits = lens.map(|lens| lens.limits).unwrap_or_default();
    let facts = &live.child.facts;
    let own = lens.and_then(|lens| lens.rule.as_ref());
    let own = own.filter(|_| readiness::before_rules(followed.interest.judge, facts, &limits).is_none());
    let (verdict, branch, rule) = if let Some(rule) = own {
        let judged = rule.rule.judge(Object::Text(live.text.get()), now);
        (judged.assessment.at(now).clone(), judged.branch.to_string(), "the policy's own")
    } else {
        let (assessment, branch) = readiness::why(followed.interest.judge, facts, &limits);
        (assessment.at(now).clone(), branch.to_string(), "Rollcall's for its kind")
    };
    let whole: Value = serde_json::from_str(live.text.get()).unwrap_or_default();
    Ok(Json(json!({
        "verdict": verdict.level.word(), "reason": verdict.reason.token(), "detail": verdict.reason.to_string(),
        "branch": branch, "rule": rule, "generation": whole["metadata"]["generation"],
        "created": whole["metadata"]["creationTimestamp"], "deleted": whole["metadata"]["deletionTimestamp"],
        "finalizers": whole["metadata"]["finalizers"], "conditions": conditions(&whole["status"]["conditions"]),
    })))
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
