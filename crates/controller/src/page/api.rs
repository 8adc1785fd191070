//! Handler of `/api/v1/parents`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use readiness::Level;
use readiness::rollup::{ConditionStatus, ParentReason};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::authz::ViewerRequest;
use super::page_service::PageService;
use super::refusal::PageRefusal;
use super::view::{PageRow, PageView, sort_key};
use super::view_cache::MAX_MESSAGES_PER_QUERY;
use super::visibility::{VisibleScope, require_any_right, visible_to};
use rollcall_core::{ClusterNames, ParentDetail};

/// Default number of rows in a list.
const DEFAULT_LIST_LIMIT: usize = 100;
/// Maximum number of names offered for each filter.
const MAX_FILTER_CHOICES: usize = 500;

/// Query parameters of a list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ParentListQuery {
    /// Returns only parents of this policy.
    policy: String,
    /// Returns only parents in this namespace.
    namespace: String,
    /// Returns only parents with these verdicts, separated by commas.
    verdict: String,
    /// Returns only parents whose name, namespace, kind, policy or reason contains this text.
    q: String,
    /// Maximum number of rows.
    limit: Option<usize>,
    /// Position after the last row of the previous page.
    r#continue: String,
}

/// Sort position of the last row of a page: severity, namespace, name, kind, policy, uid.
#[derive(Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
struct ListContinue(usize, String, String, String, String, String);

impl ListContinue {
    fn from_row(shown: &PageView, row: &PageRow) -> ListContinue {
        let (severity, rest) = sort_key(&shown.names, row);
        let [namespace, name, kind, policy, uid] = rest.map(str::to_owned);
        ListContinue(severity, namespace, name, kind, policy, uid)
    }
}

impl ParentListQuery {
    fn matches_filters(&self, shown: &PageView, row: &PageRow, needle: &str) -> bool {
        let policy = shown.names.policy_name(row.policy);
        if !self.policy.is_empty() && self.policy != policy {
            return false;
        }
        if !self.namespace.is_empty() && *self.namespace != *row.namespace {
            return false;
        }
        let within = |text: &str| text.to_lowercase().contains(needle);
        needle.is_empty()
            || within(&row.name)
            || within(&row.namespace)
            || within(shown.names.kind_label(row.kind))
            || within(policy)
            || within(row.answer.reason.as_str())
    }

    /// Verdicts that are asked for. Words that are no verdict ask for nothing.
    fn wanted_levels(&self) -> BTreeSet<Level> {
        if self.verdict.is_empty() {
            return Level::ALL.into();
        }
        let words: BTreeSet<&str> = self.verdict.split(',').collect();
        Level::ALL.into_iter().filter(|level| words.contains(level.as_str())).collect()
    }
}

/// Serializes one row.
pub(super) fn row_json(names: &ClusterNames, row: &PageRow, message: &str) -> Value {
    json!({
        "uid": &*row.uid, "kind": names.kind_name(row.kind), "label": names.kind_label(row.kind), "namespace": &*row.namespace, "name": &*row.name,
        "policy": names.policy_name(row.policy), "verdict": row.verdict_level().as_str(),
        "status": status_word(row.answer.reason), "reason": row.answer.reason.as_str(), "message": message,
        "since": row.since.map(|since| since.0), "ready": row.answer.ready, "total": row.answer.total,
        "stalled": row.answer.stalled, "reconciling": row.answer.reconciling,
    })
}

pub(super) fn status_word(reason: ParentReason) -> &'static str {
    match reason.condition_status() {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
    }
}

/// Lists parents, worst first.
pub(super) async fn list_parents(
    State(page): State<PageService>,
    request: ViewerRequest,
    Query(asked): Query<ParentListQuery>,
) -> Result<Json<Value>, PageRefusal> {
    let viewer = page.0.authz.identify_viewer(&request).await?;
    let after = match &*asked.r#continue {
        "" => None,
        text => Some(
            serde_json::from_str::<ListContinue>(text)
                .map_err(|_| PageRefusal::BadRequest("continue is not a token returned by this API"))?,
        ),
    };
    let shown = page.0.views.current_view().await?;
    let within = |space: &str| asked.namespace.is_empty() || *asked.namespace == *space;
    let wanted = shown.places().filter(|(_, space)| within(space)).cloned();
    let seen = visible_to(&page, &viewer, &shown.names, wanted).await?;
    require_any_right(&page, &viewer, &seen, &shown.names, &asked.namespace).await?;
    let (view, partial) = (shown.clone(), seen.truncated);
    let select = move || ParentList::select_rows(&view, &seen, &asked, after.as_ref());
    let found = page.0.views.select(select).await?;
    let of: Vec<_> = found.rows.iter().map(|row| (row.parent, row.policy)).collect();
    let words = page.0.views.parent_details(&shown, &of).await?;
    let mut answer = found.into_json(&shown, &words, partial);
    answer["view"] = page.0.views.view_json(shown.number);
    Ok(Json(answer))
}

/// Selected rows of a list.
#[derive(Default)]
struct ParentList {
    rows: Vec<Arc<PageRow>>,
    counts: BTreeMap<&'static str, usize>,
    policies: Vec<String>,
    namespaces: Vec<String>,
    matching: usize,
    next: Option<String>,
}

impl ParentList {
    /// Looks at every row: long lists take a while.
    fn select_rows(
        shown: &PageView,
        seen: &VisibleScope,
        asked: &ParentListQuery,
        after: Option<&ListContinue>,
    ) -> ParentList {
        let (needle, levels) = (asked.q.to_lowercase(), asked.wanted_levels());
        let (mut policies, mut namespaces) = (BTreeSet::new(), BTreeSet::new());
        let limit = asked.limit.unwrap_or(DEFAULT_LIST_LIMIT).clamp(1, MAX_MESSAGES_PER_QUERY);
        let mut found = ParentList {
            counts: Level::ALL.iter().map(|level| (level.as_str(), 0)).collect(),
            ..ParentList::default()
        };
        for row in shown.shared_rows().filter(|row| seen.may_see(row.kind, &row.namespace)) {
            policies.insert(shown.names.policy_name(row.policy));
            namespaces.insert(&*row.namespace);
            if !asked.matches_filters(shown, row, &needle) {
                continue;
            }
            *found.counts.entry(row.verdict_level().as_str()).or_default() += 1;
            if !levels.contains(&row.verdict_level()) {
                continue;
            }
            found.matching += 1;
            if after.is_some_and(|mark| ListContinue::from_row(shown, row) <= *mark) {
                continue;
            }
            if found.rows.len() < limit {
                found.rows.push(row.clone());
            } else if found.next.is_none() {
                let mark = found.rows.last().map(|last| ListContinue::from_row(shown, last));
                found.next = mark.and_then(|mark| serde_json::to_string(&mark).ok());
            }
        }
        found.policies = filter_choices(policies);
        found.namespaces = filter_choices(namespaces);
        found
    }

    fn into_json(self, shown: &PageView, words: &[ParentDetail], partial: bool) -> Value {
        let names = &shown.names;
        let rows = self.rows.iter().zip(words).map(|(row, words)| row_json(names, row, &words.message));
        json!({
            "now": shown.now.0, "parents": rows.collect::<Vec<_>>(), "matching": self.matching, "counts": self.counts,
            "policies": self.policies, "namespaces": self.namespaces, "continue": self.next, "partial": partial,
        })
    }
}

/// Names offered for a filter.
fn filter_choices(names: BTreeSet<&str>) -> Vec<String> {
    names.into_iter().take(MAX_FILTER_CHOICES).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_asked_for_by_their_words_however_many_there_are() {
        let levels = |verdict: &str| {
            ParentListQuery { verdict: verdict.to_owned(), ..ParentListQuery::default() }.wanted_levels()
        };
        assert_eq!(levels(""), Level::ALL.into());
        assert_eq!(levels("Failed,Stuck"), [Level::Failed, Level::Stuck].into());
        assert_eq!(levels("nonsense"), [].into());
        assert_eq!(levels(&format!("{}Ready", ",".repeat(32 << 10))), [Level::Ready].into());
    }
}
