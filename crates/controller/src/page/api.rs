//! Handlers of `/api/v1/parents` and `/api/v1/parents/{uid}`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use readiness::Level;
use readiness::rollup::{ConditionStatus, ParentReason};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::authz::{PageViewer, ViewerRequest};
use super::page_service::PageService;
use super::refusal::PageRefusal;
use super::tree;
use super::view::{PageRow, PageView, sort_key};
use super::view_cache::MAX_MESSAGES_PER_QUERY;
use super::visibility::{VisibleScope, may_list_any, visible_to};
use rollcall_core::{ClusterNames, GroupTally, ParentDetail, Transition};

/// Default number of rows in a list.
const DEFAULT_LIST_LIMIT: usize = 100;
/// Maximum number of objects in a tree.
const MAX_TREE_OBJECTS: usize = 25_000;
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

    fn matches_verdict(&self, row: &PageRow) -> bool {
        self.verdict.is_empty() || self.verdict.split(',').any(|word| word == row.verdict_level().as_str())
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

fn status_word(reason: ParentReason) -> &'static str {
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
    if seen.is_nothing() && !may_list_any(&page, &viewer, &shown.names, &asked.namespace).await? {
        return Err(PageRefusal::NoRights);
    }
    let found = ParentList::select_rows(&shown, &seen, &asked, after.as_ref());
    let of: Vec<_> = found.rows.iter().map(|row| (row.parent, row.policy)).collect();
    let words = page.0.views.parent_details(&shown, &of).await?;
    Ok(Json(found.to_json(&shown, &words, seen.truncated)))
}

/// Selected rows of a list.
#[derive(Default)]
struct ParentList<'a> {
    rows: Vec<&'a PageRow>,
    counts: BTreeMap<&'static str, usize>,
    policies: BTreeSet<&'a str>,
    namespaces: BTreeSet<&'a str>,
    matching: usize,
    next: Option<String>,
}

impl<'a> ParentList<'a> {
    fn select_rows(
        shown: &'a PageView,
        seen: &VisibleScope,
        asked: &ParentListQuery,
        after: Option<&ListContinue>,
    ) -> ParentList<'a> {
        let needle = asked.q.to_lowercase();
        let limit = asked.limit.unwrap_or(DEFAULT_LIST_LIMIT).clamp(1, MAX_MESSAGES_PER_QUERY);
        let mut found = ParentList {
            counts: Level::ALL.iter().map(|level| (level.as_str(), 0)).collect(),
            ..ParentList::default()
        };
        for row in shown.rows().filter(|row| seen.may_see(row.kind, &row.namespace)) {
            found.policies.insert(shown.names.policy_name(row.policy));
            found.namespaces.insert(&row.namespace);
            if !asked.matches_filters(shown, row, &needle) {
                continue;
            }
            *found.counts.entry(row.verdict_level().as_str()).or_default() += 1;
            if !asked.matches_verdict(row) {
                continue;
            }
            found.matching += 1;
            if after.is_some_and(|mark| ListContinue::from_row(shown, row) <= *mark) {
                continue;
            }
            if found.rows.len() < limit {
                found.rows.push(row);
            } else if found.next.is_none() {
                let mark = found.rows.last().map(|last| ListContinue::from_row(shown, last));
                found.next = mark.and_then(|mark| serde_json::to_string(&mark).ok());
            }
        }
        found
    }

    fn to_json(&self, shown: &PageView, words: &[ParentDetail], partial: bool) -> Value {
        let names = &shown.names;
        let rows = self.rows.iter().zip(words).map(|(row, words)| row_json(names, row, &words.message));
        json!({
            "now": shown.now.0, "parents": rows.collect::<Vec<_>>(), "matching": self.matching, "counts": self.counts,
            "policies": self.policies.iter().take(MAX_FILTER_CHOICES).collect::<Vec<_>>(),
            "namespaces": self.namespaces.iter().take(MAX_FILTER_CHOICES).collect::<Vec<_>>(),
            "continue": self.next, "partial": partial,
        })
    }
}

/// Query parameters of one parent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ParentQuery {
    /// Policy to evaluate; defaults to the one with the worst answer.
    pub(super) policy: String,
    /// Maximum number of objects.
    limit: Option<usize>,
}

/// Finds the requested row, if the viewer may see it.
pub(super) async fn find_row(
    page: &PageService,
    request: &ViewerRequest,
    uid: &str,
    policy: &str,
) -> Result<(PageViewer, Arc<PageView>, PageRow), PageRefusal> {
    let viewer = page.0.authz.identify_viewer(request).await?;
    let shown = page.0.views.current_view().await?;
    // Rows are sorted by severity.
    let row = shown
        .rows_of(uid)
        .into_iter()
        .find(|row| policy.is_empty() || shown.names.policy_name(row.policy) == policy)
        .cloned();
    let row = row.ok_or(PageRefusal::NotFound)?;
    let seen = visible_to(page, &viewer, &shown.names, [(row.kind, row.namespace.clone())]).await?;
    if !seen.may_see(row.kind, &row.namespace) {
        return Err(PageRefusal::NotFound);
    }
    Ok((viewer, shown, row))
}

/// Returns one parent with its tree of objects.
pub(super) async fn get_parent(
    State(page): State<PageService>,
    request: ViewerRequest,
    Path(uid): Path<String>,
    Query(asked): Query<ParentQuery>,
) -> Result<Json<Value>, PageRefusal> {
    let (viewer, shown, row) = find_row(&page, &request, &uid, &asked.policy).await?;
    let views = &page.0.views;
    let words = views.parent_details(&shown, &[(row.parent, row.policy)]).await?.pop().unwrap_or_default();
    let room = asked.limit.unwrap_or(MAX_TREE_OBJECTS).min(MAX_TREE_OBJECTS);
    let mut nodes = views.pick_tree(shown.clone(), row.clone(), (room, MAX_TREE_OBJECTS)).await?;
    let seen = visible_to(&page, &viewer, &shown.names, nodes.iter().map(|node| node.kind_namespace.clone()))
        .await?;
    let may_see = |node: &tree::PageNode| seen.may_see(node.kind_namespace.0, &node.kind_namespace.1);
    let hidden = tree::hide_nodes(&mut nodes, |node| node.depth, may_see);
    let mut answer = row_json(&shown.names, &row, &words.message);
    answer["now"] = json!(shown.now.0);
    answer["policies"] = shown
        .rows_of(&uid)
        .into_iter()
        .map(|row| json!({ "name": shown.names.policy_name(row.policy), "verdict": row.verdict_level().as_str() }))
        .collect();
    answer["decided"] = json!(deciding_branch(&row, &words.groups));
    // A viewer who may not see all children is not told their tallies.
    let groups = words.groups.iter().filter(|_| !hidden);
    answer["groups"] = groups.map(group_json).collect();
    answer["hidden"] = json!(hidden);
    answer["nodes"] = json!(nodes);
    answer["transitions"] = recent_transitions(&page, &shown, &row);
    Ok(Json(answer))
}

/// Most recent transitions of one answer, newest first.
fn recent_transitions(page: &PageService, shown: &PageView, row: &PageRow) -> Value {
    let transitions = page.0.views.transitions.upgrade();
    let last = transitions.map(|transitions| transitions.last_of_parent(&row.uid)).unwrap_or_default();
    let own = last.iter().rev().filter(|turn| turn.policy == shown.names.policy_name(row.policy));
    let turn = |turn: &std::sync::Arc<Transition>| {
        json!({
            "at": turn.at.0, "verdict": turn.to.child_level().as_str(), "status": status_word(turn.to), "reason": turn.to.as_str(),
            "message": turn.message, "generation": turn.generation,
        })
    };
    own.map(turn).collect()
}

fn group_json(group: &GroupTally) -> Value {
    let at: BTreeMap<_, _> = group.at.iter().map(|(level, n)| (level.as_str(), n)).collect();
    json!({ "kind": group.kind, "min": group.min, "max": group.max, "optional": group.optional, "at": at })
}

/// Explains which branch of the roll-up decided.
fn deciding_branch(row: &PageRow, groups: &[GroupTally]) -> String {
    use ParentReason as R;
    let critical = || groups.iter().filter(|group| !group.optional);
    let count = |level: Level| -> u32 {
        critical().flat_map(|group| &group.at).filter(|(at, _)| *at == level).map(|(_, n)| n).sum()
    };
    let worst = |level: Level| {
        let n = count(level);
        format!("the worst critical child decides: {n} of {} {}", row.answer.total, level.as_str())
    };
    match row.answer.reason {
        R::AllChildrenReady => {
            "every expected critical child is ready, and the operator has handled this generation".to_owned()
        }
        R::ChildrenFailed => worst(Level::Failed),
        R::ChildrenStuck => worst(Level::Stuck),
        R::ChildrenUnknown => worst(Level::Unknown),
        R::ChildrenProgressing => worst(Level::Progressing),
        R::ChildrenTerminating => worst(Level::Terminating),
        R::ChildrenSuspended => worst(Level::Suspended),
        R::ChildrenMissing => {
            let short = critical().filter(|g| g.at.iter().map(|(_, n)| n).sum::<u32>() < g.min);
            let short: Vec<_> = short.map(|g| format!("{} (at least {})", g.kind, g.min)).collect();
            if short.is_empty() {
                "an expected child does not exist".to_owned()
            } else {
                format!("expected but missing: {}", short.join(", "))
            }
        }
        R::TooManyChildren => "more children exist than the policy expects".to_owned(),
        R::ChildrenPending => {
            "the operator has not reported handling this generation; children are not evaluated before it does"
                .to_owned()
        }
        R::ChildrenSettling => "all children are ready; waiting for settle and hold before True".to_owned(),
        R::OperatorSilent => "the operator has not responded within limits.pending".to_owned(),
        R::OperatorFailed => "the operator reports that it failed to handle this generation".to_owned(),
        R::KindNotVisible => "Rollcall is not permitted to list a kind of child".to_owned(),
        R::WatchStale => "a kind of child can be neither watched nor listed".to_owned(),
        R::RuleChanged => "the rule changed; its kind is being relisted".to_owned(),
        R::PolicyRefused => "the policy is refused, and there is no accepted version to judge by".to_owned(),
        R::TemplateFailed => "a template of the policy cannot be rendered for this parent".to_owned(),
        R::Terminating => "the parent itself is being deleted".to_owned(),
        R::DeletionStuck => {
            "the parent itself has been in deletion for longer than limits.terminating".to_owned()
        }
        R::DeadlineExceeded => "not ready for longer than limits.deadline".to_owned(),
    }
}
