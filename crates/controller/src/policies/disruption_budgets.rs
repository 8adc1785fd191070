//! PodDisruptionBudgets: followed while a policy keeps parents True through disruptions that they allow.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use readiness::{DisruptionBudget, ReplicaAmount};
use rollcall_core::StagedList;
use tokio::time::{Instant, sleep_until};
use tracing::warn;
use watcher::plan::{LabelMatchTerm, LabelMatcher};
use watcher::reflector::NamespaceBudgets;
use watcher::{FollowEvent, FollowFailure, ParentObject, follow};

use super::watched_kinds::budget_kind;
use crate::failure_reporter::FailureReporter;
use crate::kind_tasks::KindContext;

/// Longest time for which nothing is judged because the budgets are not listed yet. 5 s.
const FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// A budget by its namespace and name.
type BudgetKey = (Box<str>, Box<str>);
/// Where budgets are listed, and what came of it: the number of the namespace among those that Rollcall is restricted to.
type ScopedEvent = (usize, FollowEvent<ParentObject>);

/// All budgets that can be seen.
#[derive(Default)]
pub(super) struct DisruptionBudgets {
    /// Reports what keeps failing.
    pub(super) failures: FailureReporter,
    events: SelectAll<BoxStream<'static, ScopedEvent>>,
    /// In the whole cluster, or in each namespace that Rollcall is restricted to.
    scopes: Vec<BudgetScope>,
    /// When those that are not listed yet are not waited for any more; `None` once they are not.
    awaited_until: Option<Instant>,
}

#[derive(Default)]
struct BudgetScope {
    list: StagedList<BudgetKey, Option<(LabelMatcher, DisruptionBudget)>>,
    /// They cannot be listed, as far as is known.
    has_failed: bool,
}

impl DisruptionBudgets {
    /// Follows them from now on.
    pub(super) fn follow(&mut self, context: &KindContext) {
        if !self.scopes.is_empty() {
            return;
        }
        self.awaited_until = Some(Instant::now() + FIRST_LIST_TIMEOUT);
        let all = [None].into_iter().take(usize::from(context.namespaces.is_empty()));
        for namespace in all.chain(context.namespaces.iter().cloned().map(Some)) {
            let (client, options) = (context.client.clone(), context.follow_options());
            let open = move || {
                follow::<ParentObject>(&client, &budget_kind(), namespace.as_deref(), options.clone()).boxed()
            };
            let scope = self.scopes.len();
            self.events.push(context.breaks.reopened_after(open).map(move |event| (scope, event)).boxed());
            self.scopes.push(BudgetScope::default());
        }
    }

    /// Returns `true` while nothing is to be judged, because the first list is not through: what a disruption has taken away would
    /// count as lost.
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited_until.is_some()
    }

    /// Waits until other budgets are known, or are not waited for any more. Never completes if none are followed.
    pub(super) async fn next_change(&mut self) -> NamespaceBudgets {
        loop {
            let awaited_until = self.awaited_until;
            let given_up = async {
                match awaited_until {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some((scope, event)) = self.events.next() => {
                    let was_awaited = self.is_awaited();
                    let is_changed = self.apply_event(scope, event);
                    if self.scopes.iter().all(BudgetScope::is_settled) {
                        self.awaited_until = None;
                    }
                    if is_changed || was_awaited && !self.is_awaited() {
                        return self.known();
                    }
                }
                () = given_up => {
                    self.awaited_until = None;
                    return self.known();
                }
            }
        }
    }

    /// Applies an event; returns `true` if other budgets are known now. Their status changes with every pod, and says nothing here.
    fn apply_event(&mut self, scope: usize, event: FollowEvent<ParentObject>) -> bool {
        let Some(BudgetScope { list, has_failed }) = self.scopes.get_mut(scope) else { return false };
        match event {
            FollowEvent::Init => list.begin_list(),
            FollowEvent::InitApply(object) => list.stage_item(key_of(&object), read_budget(&object)),
            FollowEvent::InitDone => {
                let before = list.items().cloned();
                list.finish_list();
                return before.as_ref() != list.items();
            }
            FollowEvent::Apply(object) => {
                let budget = read_budget(&object);
                return list.apply_item(key_of(&object), budget.clone()) != Some(budget);
            }
            FollowEvent::Delete(object) => return list.remove_item(&key_of(&object)).is_some(),
            FollowEvent::Failure(FollowFailure { cause, detail }) => {
                *has_failed = true;
                let reason = cause.metric_label();
                self.failures.report("follow budgets", reason, move |failures| {
                    warn!(
                        cause = reason,
                        detail,
                        failures,
                        "cannot watch PodDisruptionBudgets: a workload may lack no more pods than its own maxUnavailable says"
                    );
                });
            }
            FollowEvent::Alive => {}
        }
        false
    }

    /// What is known of all of them, by namespace.
    fn known(&self) -> NamespaceBudgets {
        let mut known = NamespaceBudgets::new();
        for ((namespace, _), budget) in self.scopes.iter().filter_map(|scope| scope.list.items()).flatten() {
            if let Some(budget) = budget {
                known.entry(namespace.clone()).or_default().push(budget.clone());
            }
        }
        known
    }
}

impl BudgetScope {
    fn is_settled(&self) -> bool {
        self.has_failed || self.list.items().is_some()
    }
}

fn key_of(object: &ParentObject) -> BudgetKey {
    (object.child.meta.namespace.clone(), object.child.meta.name.clone())
}

/// Reads a budget; `None` where it bounds nothing that is known, or it is not known whose pods it covers.
fn read_budget(object: &ParentObject) -> Option<(LabelMatcher, DisruptionBudget)> {
    let PodDisruptionBudget { spec, .. } = serde_json::from_str(object.text.get()).ok()?;
    let PodDisruptionBudgetSpec { max_unavailable, min_available, selector, .. } = spec?;
    let budget = match (max_unavailable, min_available) {
        (Some(most), _) => DisruptionBudget::MaxUnavailable(read_amount(&most)?),
        (None, Some(least)) => DisruptionBudget::MinAvailable(read_amount(&least)?),
        (None, None) => return None,
    };
    Some((covered_pods(&selector?)?, budget))
}

fn read_amount(amount: &IntOrString) -> Option<ReplicaAmount> {
    match amount {
        IntOrString::Int(count) => Some(ReplicaAmount::Count(i64::from(*count))),
        IntOrString::String(text) => ReplicaAmount::from_text(text),
    }
}

/// The pods of a selector. Of a workload only the labels are known that all of its pods have, so that what they must not have
/// is known of none.
fn covered_pods(selector: &LabelSelector) -> Option<LabelMatcher> {
    let labels = selector.match_labels.iter().flatten();
    let mut requirements: Vec<_> = labels
        .map(|(key, value)| LabelMatchTerm::In(key.as_str().into(), vec![value.as_str().into()]))
        .collect();
    for term in selector.match_expressions.iter().flatten() {
        let key = term.key.as_str().into();
        requirements.push(match term.operator.as_str() {
            "In" => {
                LabelMatchTerm::In(key, term.values.iter().flatten().map(|v| v.as_str().into()).collect())
            }
            "Exists" => LabelMatchTerm::Exists(key),
            _ => return None,
        });
    }
    Some(LabelMatcher { requirements })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use watcher::ApiFailureCause;

    use super::*;

    fn budget(name: &str, spec: &Value) -> ParentObject {
        let object = json!({ "metadata": { "name": name, "namespace": "shop", "uid": name }, "spec": spec });
        serde_json::from_value(object).expect("a budget")
    }

    fn followed() -> DisruptionBudgets {
        DisruptionBudgets {
            scopes: vec![BudgetScope::default()],
            awaited_until: Some(Instant::now()),
            ..DisruptionBudgets::default()
        }
    }

    fn labels(text: &str) -> Vec<(Box<str>, Box<str>)> {
        text.split_whitespace().filter_map(|p| p.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect()
    }

    /// What is known to bound pods with these labels.
    fn bounds(budgets: &DisruptionBudgets, of: &str) -> Vec<DisruptionBudget> {
        let known = budgets.known();
        let of_shop = known.get("shop").into_iter().flatten();
        of_shop.filter(|(selector, _)| selector.matches(&labels(of))).map(|(_, budget)| *budget).collect()
    }

    #[tokio::test]
    async fn only_a_change_of_what_a_budget_allows_is_news_and_half_a_list_is_none() {
        let web = json!({ "selector": { "matchLabels": { "app": "web" } }, "maxUnavailable": 2 });
        let mut budgets = followed();
        assert!(!budgets.apply_event(0, FollowEvent::Init));
        assert!(!budgets.apply_event(0, FollowEvent::InitApply(budget("web", &web))));
        assert!(budgets.known().is_empty() && !budgets.scopes[0].is_settled(), "half a list");
        assert!(budgets.apply_event(0, FollowEvent::InitDone));
        let two = DisruptionBudget::MaxUnavailable(ReplicaAmount::Count(2));
        assert_eq!(bounds(&budgets, "app=web tier=front"), [two]);
        assert!(bounds(&budgets, "app=db").is_empty());
        assert!(!budgets.apply_event(0, FollowEvent::Apply(budget("web", &web))), "its status has changed");
        assert!(!budgets.apply_event(0, FollowEvent::Init));
        assert_eq!(bounds(&budgets, "app=web"), [two], "a list that is under way takes nothing away");
        assert!(budgets.apply_event(0, FollowEvent::InitDone), "the list lacks it");
        assert!(bounds(&budgets, "app=web").is_empty());
    }

    #[tokio::test]
    async fn budgets_that_cannot_be_listed_are_not_waited_for() {
        let mut budgets = followed();
        let failure = FollowFailure { cause: ApiFailureCause::Forbidden, detail: "no".to_owned() };
        assert!(!budgets.apply_event(0, FollowEvent::Failure(failure)));
        assert!(budgets.scopes[0].is_settled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_does_not_come_is_waited_for_no_longer_than_its_time() {
        let mut budgets = followed();
        budgets.awaited_until = Some(Instant::now() + FIRST_LIST_TIMEOUT);
        budgets.events.push(futures::stream::pending().boxed());
        let begun = Instant::now();
        assert!(budgets.next_change().await.is_empty());
        assert!(!budgets.is_awaited() && begun.elapsed() >= FIRST_LIST_TIMEOUT);
    }

    #[test]
    fn a_budget_says_what_it_covers_and_allows_or_counts_for_nothing() {
        let app = json!({ "matchLabels": { "app": "web" } });
        let half = DisruptionBudget::MinAvailable(ReplicaAmount::Percent(50));
        for (spec, expected) in [
            (json!({ "selector": app, "minAvailable": "50%" }), Some(half)),
            (json!({ "selector": {}, "minAvailable": "50%" }), Some(half)),
            (
                json!({ "selector": { "matchExpressions": [{ "key": "app", "operator": "In", "values": ["web"] }] }, "minAvailable": "50%" }),
                Some(half),
            ),
            // Whether its pods have other labels beside is not known.
            (
                json!({ "selector": { "matchExpressions": [{ "key": "canary", "operator": "DoesNotExist" }] }, "minAvailable": "50%" }),
                None,
            ),
            (json!({ "selector": app }), None),
            (json!({ "minAvailable": "50%" }), None),
            (json!({ "selector": app, "minAvailable": "half" }), None),
            (json!({ "selector": "app=web", "minAvailable": 1 }), None),
        ] {
            let read = read_budget(&budget("web", &spec));
            assert_eq!(read.as_ref().map(|(_, budget)| *budget), expected, "{spec}");
            assert!(read.is_none_or(|(selector, _)| selector.matches(&labels("app=web"))), "{spec}");
        }
    }
}
