//! PodDisruptionBudgets as they are listed and watched: which pods each covers, and what it lets disruptions take away.

use std::collections::BTreeMap;

use readiness::{DisruptionBudget, ReplicaAmount};
use serde::Deserialize;
use serde_json::Value;
use watcher::plan::{LabelMatchTerm, LabelMatcher};
use watcher::reflector::NamespaceBudgets;
use watcher::{FollowEvent, ParentObject};

use crate::staged_list::StagedList;

/// A budget by its namespace and name.
type BudgetKey = (Box<str>, Box<str>);

/// The budgets of the whole cluster, or of one namespace, where they are listed and watched.
#[derive(Debug, Default)]
pub struct ListedBudgets {
    /// `None` of one that bounds nothing that is known.
    list: StagedList<BudgetKey, Option<(LabelMatcher, DisruptionBudget)>>,
}

impl ListedBudgets {
    /// Applies an event; returns `true` if other budgets are known now. Their status changes with every pod, and says nothing here.
    pub fn apply_event(&mut self, event: &FollowEvent<ParentObject>) -> bool {
        let list = &mut self.list;
        match event {
            FollowEvent::Init => list.begin_list(),
            FollowEvent::InitApply(object) => list.stage_item(key_of(object), read_budget(object)),
            FollowEvent::InitDone => {
                let before = list.items().cloned();
                list.finish_list();
                return before.as_ref() != list.items();
            }
            FollowEvent::Apply(object) => {
                let budget = read_budget(object);
                return list.apply_item(key_of(object), budget.clone()) != Some(budget);
            }
            FollowEvent::Delete(object) => return list.remove_item(&key_of(object)).is_some(),
            FollowEvent::Alive | FollowEvent::Failure(_) => {}
        }
        false
    }

    /// Returns `true` once they were listed.
    pub fn are_listed(&self) -> bool {
        self.list.items().is_some()
    }

    /// Adds what is known of them to `known`, by namespace.
    pub fn add_known(&self, known: &mut NamespaceBudgets) {
        for ((namespace, _), budget) in self.list.items().into_iter().flatten() {
            if let Some(budget) = budget {
                known.entry(namespace.clone()).or_default().push(budget.clone());
            }
        }
    }
}

fn key_of(object: &ParentObject) -> BudgetKey {
    (object.child.meta.namespace.clone(), object.child.meta.name.clone())
}

/// A budget, as far as it is read.
#[derive(Deserialize)]
struct WrittenBudget {
    spec: WrittenSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenSpec {
    max_unavailable: Option<Value>,
    min_available: Option<Value>,
    selector: Option<WrittenSelector>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenSelector {
    match_labels: Option<BTreeMap<Box<str>, Box<str>>>,
    match_expressions: Option<Vec<WrittenTerm>>,
}

#[derive(Deserialize)]
struct WrittenTerm {
    key: Box<str>,
    operator: Box<str>,
    values: Option<Vec<Box<str>>>,
}

/// Reads a budget; `None` where it bounds nothing that is known, or it is not known whose pods it covers.
fn read_budget(object: &ParentObject) -> Option<(LabelMatcher, DisruptionBudget)> {
    let WrittenBudget { spec } = serde_json::from_str(object.text.get()).ok()?;
    let budget = match (spec.max_unavailable, spec.min_available) {
        (Some(most), _) => DisruptionBudget::MaxUnavailable(read_amount(&most)?),
        (None, Some(least)) => DisruptionBudget::MinAvailable(read_amount(&least)?),
        (None, None) => return None,
    };
    Some((covered_pods(spec.selector?)?, budget))
}

fn read_amount(amount: &Value) -> Option<ReplicaAmount> {
    match amount {
        Value::String(text) => ReplicaAmount::from_text(text),
        count => count.as_i64().map(ReplicaAmount::Count),
    }
}

/// The pods of a selector. Of a workload only the labels are known that all of its pods have, so that what they must not have
/// is known of none.
fn covered_pods(selector: WrittenSelector) -> Option<LabelMatcher> {
    let labels = selector.match_labels.into_iter().flatten();
    let mut requirements: Vec<_> = labels.map(|(key, value)| LabelMatchTerm::In(key, vec![value])).collect();
    for WrittenTerm { key, operator, values } in selector.match_expressions.into_iter().flatten() {
        requirements.push(match &*operator {
            "In" => LabelMatchTerm::In(key, values.unwrap_or_default()),
            "Exists" => LabelMatchTerm::Exists(key),
            _ => return None,
        });
    }
    Some(LabelMatcher { requirements })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn budget(name: &str, spec: &Value) -> ParentObject {
        let object = json!({ "metadata": { "name": name, "namespace": "shop", "uid": name }, "spec": spec });
        serde_json::from_value(object).expect("a budget")
    }

    fn labels(text: &str) -> Vec<(Box<str>, Box<str>)> {
        text.split_whitespace().filter_map(|p| p.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect()
    }

    /// What is known to bound pods with these labels.
    fn bounds(budgets: &ListedBudgets, of: &str) -> Vec<DisruptionBudget> {
        let mut known = NamespaceBudgets::new();
        budgets.add_known(&mut known);
        let of_shop = known.get("shop").into_iter().flatten();
        of_shop.filter(|(selector, _)| selector.matches(&labels(of))).map(|(_, budget)| *budget).collect()
    }

    #[test]
    fn only_a_change_of_what_a_budget_allows_is_news_and_half_a_list_is_none() {
        let web = json!({ "selector": { "matchLabels": { "app": "web" } }, "maxUnavailable": 2 });
        let mut budgets = ListedBudgets::default();
        assert!(!budgets.apply_event(&FollowEvent::Init));
        assert!(!budgets.apply_event(&FollowEvent::InitApply(budget("web", &web))));
        assert!(bounds(&budgets, "app=web").is_empty() && !budgets.are_listed(), "half a list");
        assert!(budgets.apply_event(&FollowEvent::InitDone));
        let two = DisruptionBudget::MaxUnavailable(ReplicaAmount::Count(2));
        assert_eq!(bounds(&budgets, "app=web tier=front"), [two]);
        assert!(bounds(&budgets, "app=db").is_empty());
        assert!(!budgets.apply_event(&FollowEvent::Apply(budget("web", &web))), "its status has changed");
        assert!(!budgets.apply_event(&FollowEvent::Init));
        assert_eq!(bounds(&budgets, "app=web"), [two], "a list that is under way takes nothing away");
        assert!(budgets.apply_event(&FollowEvent::InitDone), "the list lacks it");
        assert!(bounds(&budgets, "app=web").is_empty());
        assert!(budgets.apply_event(&FollowEvent::Apply(budget("web", &web))));
        assert!(budgets.apply_event(&FollowEvent::Delete(budget("web", &web))));
        assert!(bounds(&budgets, "app=web").is_empty() && budgets.are_listed());
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
            (
                json!({ "selector": { "matchExpressions": [{ "key": "app", "operator": "Exists" }] }, "minAvailable": "50%" }),
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
            (json!({ "selector": app, "minAvailable": [1] }), None),
            (json!({ "selector": "app=web", "minAvailable": 1 }), None),
            (json!(null), None),
        ] {
            let read = read_budget(&budget("web", &spec));
            assert_eq!(read.as_ref().map(|(_, budget)| *budget), expected, "{spec}");
            assert!(read.is_none_or(|(selector, _)| selector.matches(&labels("app=web"))), "{spec}");
        }
    }
}
