//! `/api/v1/parents` and `/api/v1/parents/{uid}`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use readiness::Level;
use readiness::rollup::{ParentReason, Status};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::desk::MESSAGES;
use super::refusal::Refusal;
use super::seen::Seen;
use super::shown::{Names, Row, Shown, place};
use super::{Page, tree};
use crate::core::{GroupNow, Transition, Words};

/// Rows of a list where nobody says otherwise.
const LIMIT: usize = 100;
/// Objects of a tree, at most.
const ROOM: usize = 25_000;
/// So many names are offered to choose from.
const CHOICES: usize = 500;

/// What is asked of a list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    /// Only parents of this policy.
    policy: String,
    /// Only parents in this namespace.
    namespace: String,
    /// Only parents that stand so; several are separated by commas.
    verdict: String,
    /// Only parents in whose name, namespace, kind, policy or reason this stands.
    q: String,
    /// At most so many.
    limit: Option<usize>,
    /// Where the last page ended.
    r#continue: String,
}

/// Where a page of a list ends: severity, namespace, name, kind, policy, uid.
#[derive(Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
struct Mark(usize, String, String, String, String, String);

impl Mark {
    fn of(shown: &Shown, row: &Row) -> Mark {
        let (severity, rest) = place(&shown.names, row);
        let [namespace, name, kind, policy, uid] = rest.map(str::to_owned);
        Mark(severity, namespace, name, kind, policy, uid)
    }
}

impl Asked {
    fn matches(&self, shown: &Shown, row: &Row, needle: &str) -> bool {
        let policy = shown.names.policy(row.policy);
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
            || within(shown.names.label(row.kind))
            || within(policy)
            || within(row.answer.reason.word())
    }

    fn stands(&self, row: &Row) -> bool {
        self.verdict.is_empty() || self.verdict.split(',').any(|word| word == row.level().word())
    }
}

/// One row as it is sent.
pub(super) fn row_json(names: &Names, row: &Row, message: &str) -> Value {
    json!({
        "uid": &*row.uid, "kind": names.kind(row.kind), "label": names.label(row.kind), "namespace": &*row.namespace, "name": &*row.name,
        "policy": names.policy(row.policy), "verdict": row.level().word(),
        "status": status(row.answer.reason), "reason": row.answer.reason.word(), "message": message,
        "since": row.since.map(|since| since.0), "ready": row.answer.ready, "total": row.answer.total,
        "stalled": row.answer.stalled, "reconciling": row.answer.reconciling,
    })
}

fn status(reason: ParentReason) -> &'static str {
    match reason.status() {
        Status::True => "True",
        Status::False => "False",
        Status::Unknown => "Unknown",
    }
}

/// Parents, worst first.
pub(super) async fn parents(
    State(page): State<Page>,
    headers: HeaderMap,
    Query(asked): Query<Asked>,
) -> Result<Json<Value>, Refusal> {
    let viewer = page.0.gate.who(&headers).await?;
    let after = match &*asked.r#continue {
        "" => None,
        text => Some(
            serde_json::from_str::<Mark>(text).map_err(|_| Refusal::Nonsense("continue is not a mark"))?,
        ),
    };
    let shown = page.0.desk.shown().await?;
    let within = |space: &str| asked.namespace.is_empty() || *asked.namespace == *space;
    let wanted = shown.places.iter().filter(|(_, space)| within(space)).cloned();
    let seen = page.seen(&viewer, &shown.names, wanted).await?;
    if seen.is_nothing() && !page.may_look(&viewer, &shown.names, &asked.namespace).await? {
        return Err(Refusal::NoRights);
    }
    let found = Found::of(&shown, &seen, &asked, after.as_ref());
    let of: Vec<_> = found.rows.iter().map(|row| (row.parent, row.policy)).collect();
    let words = page.0.desk.words(&shown, &of).await?;
    Ok(Json(found.json(&shown, &words, seen.cut)))
}

/// What a list holds.
#[derive(Default)]
struct Found<'a> {
    rows: Vec<&'a Row>,
    counts: BTreeMap<&'static str, usize>,
    policies: BTreeSet<&'a str>,
    namespaces: BTreeSet<&'a str>,
    matching: usize,
    next: Option<String>,
}

impl<'a> Found<'a> {
    fn of(shown: &'a Shown, seen: &Seen, asked: &Asked, after: Option<&Mark>) -> Found<'a> {
        let needle = asked.q.to_lowercase();
        let limit = asked.limit.unwrap_or(LIMIT).clamp(1, MESSAGES);
        let mut found =
            Found { counts: Level::ALL.iter().map(|level| (level.word(), 0)).collect(), ..Found::default() };
        for row in shown.rows.iter().filter(|row| seen.may(row.kind, &row.namespace)) {
            found.policies.insert(shown.names.policy(row.policy));
            found.namespaces.insert(&row.namespace);
            if !asked.matches(shown, row, &needle) {
                continue;
            }
            *found.counts.entry(row.level().word()).or_default() += 1;
            if !asked.stands(row) {
                continue;
            }
            found.matching += 1;
            if after.is_some_and(|mark| Mark::of(shown, row) <= *mark) {
                continue;
            }
            if found.rows.len() < limit {
                found.rows.push(row);
            } else if found.next.is_none() {
                let mark = found.rows.last().map(|last| Mark::of(shown, last));
                found.next = mark.and_then(|mark| serde_json::to_string(&mark).ok());
            }
        }
        found
    }

    fn json(&self, shown: &Shown, words: &[Words], partial: bool) -> Value {
        let names = &shown.names;
        let rows = self.rows.iter().zip(words).map(|(row, words)| row_json(names, row, &words.message));
        json!({
            "now": shown.now.0, "parents": rows.collect::<Vec<_>>(), "matching": self.matching, "counts": self.counts,
            "policies": self.policies.iter().take(CHOICES).collect::<Vec<_>>(),
            "namespaces": self.namespaces.iter().take(CHOICES).collect::<Vec<_>>(),
            "continue": self.next, "partial": partial,
        })
    }
}

/// What is asked of one parent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AskedOne {
    /// Under this policy; left out, the one with the worst answer.
    pub(super) policy: String,
    /// At most so many objects.
    limit: Option<usize>,
}

/// The row that is asked for, if this somebody may see it.
pub(super) async fn pick(
    page: &Page,
    headers: &HeaderMap,
    uid: &str,
    policy: &str,
) -> Result<(super::gate::Viewer, Arc<Shown>, Row), Refusal> {
    let viewer = page.0.gate.who(headers).await?;
    let shown = page.0.desk.shown().await?;
    // Rows are in the order of trouble.
    let row =
        shown.of(uid).find(|row| policy.is_empty() || shown.names.policy(row.policy) == policy).cloned();
    let row = row.ok_or(Refusal::NotFound)?;
    let seen = page.seen(&viewer, &shown.names, [(row.kind, row.namespace.clone())]).await?;
    if !seen.may(row.kind, &row.namespace) {
        return Err(Refusal::NotFound);
    }
    Ok((viewer, shown, row))
}

/// One parent with everything below it.
pub(super) async fn parent(
    State(page): State<Page>,
    headers: HeaderMap,
    Path(uid): Path<String>,
    Query(asked): Query<AskedOne>,
) -> Result<Json<Value>, Refusal> {
    let (viewer, shown, row) = pick(&page, &headers, &uid, &asked.policy).await?;
    let desk = &page.0.desk;
    let words = desk.words(&shown, &[(row.parent, row.policy)]).await?.pop().unwrap_or_default();
    let room = asked.limit.unwrap_or(ROOM).min(ROOM);
    let mut nodes = desk.tree(shown.clone(), row.clone(), room).await?;
    let seen = page.seen(&viewer, &shown.names, nodes.iter().map(|node| node.place.clone())).await?;
    let hidden = tree::hide(&mut nodes, |(kind, namespace)| seen.may(*kind, namespace));
    let mut answer = row_json(&shown.names, &row, &words.message);
    answer["now"] = json!(shown.now.0);
    answer["policies"] = shown
        .of(&uid)
        .map(|row| json!({ "name": shown.names.policy(row.policy), "verdict": row.level().word() }))
        .collect();
    answer["decided"] = json!(decided(&row, &words.groups));
    // Whoever may not see all of them is not told how they stand.
    let groups = words.groups.iter().filter(|_| !hidden);
    answer["groups"] = groups.map(group).collect();
    answer["hidden"] = json!(hidden);
    answer["nodes"] = json!(nodes);
    answer["transitions"] = transitions(&page, &shown, &row);
    Ok(Json(answer))
}

/// The last turns of one answer, newest first.
fn transitions(page: &Page, shown: &Shown, row: &Row) -> Value {
    let transitions = page.0.desk.transitions.upgrade();
    let last = transitions.map(|transitions| transitions.last(&row.uid)).unwrap_or_default();
    let own = last.iter().rev().filter(|turn| turn.policy == shown.names.policy(row.policy));
    let turn = |turn: &std::sync::Arc<Transition>| {
        json!({
            "at": turn.at.0, "verdict": turn.to.level().word(), "status": status(turn.to), "reason": turn.to.word(),
            "message": turn.message, "generation": turn.generation,
        })
    };
    own.map(turn).collect()
}

fn group(group: &GroupNow) -> Value {
    let at: BTreeMap<_, _> = group.at.iter().map(|(level, n)| (level.word(), n)).collect();
    json!({ "kind": group.kind, "min": group.min, "max": group.max, "optional": group.optional, "at": at })
}

/// Which branch of the roll-up decided.
fn decided(row: &Row, groups: &[GroupNow]) -> String {
    use ParentReason as R;
    let critical = || groups.iter().filter(|group| !group.optional);
    let count = |level: Level| -> u32 {
        critical().flat_map(|group| &group.at).filter(|(at, _)| *at == level).map(|(_, n)| n).sum()
    };
    let worst = |level: Level| {
        let n = count(level);
        format!("the worst critical child decides: {n} of {} {}", row.answer.total, level.word())
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
                format!("expected and not there: {}", short.join(", "))
            }
        }
        R::TooManyChildren => "more children exist than the policy expects".to_owned(),
        R::ChildrenPending => {
            "the operator has not said that it handled this generation; children are not judged before"
                .to_owned()
        }
        R::ChildrenSettling => "all is well; True waits for settle and hold".to_owned(),
        R::OperatorSilent => "no sign of the operator within limits.pending".to_owned(),
        R::KindNotVisible => "a kind of child may not be listed".to_owned(),
        R::WatchStale => "a kind of child can be neither watched nor listed".to_owned(),
        R::RuleChanged => "the rule changed, and its kind is being listed anew".to_owned(),
        R::TemplateFailed => "a template of the policy cannot be rendered for this parent".to_owned(),
        R::Terminating => "the parent itself is being deleted".to_owned(),
        R::DeadlineExceeded => "not ready for longer than limits.deadline".to_owned(),
    }
}
