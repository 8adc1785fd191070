//! Targets of the answers on one parent, and what templates and expressions make of it.

use aggregator::{AnswerView, PolicyId, SelectorId};
use rollcall_cel::{CountBudget, ObjectJson};
use serde_json::value::RawValue;

use super::super::selector_interner::{Selectors, name_hash};
use crate::plan::{CountRule, LabelRule, ParentRule, ParentTemplate, ReadBudget, ReferenceRule};
use crate::wire::WireMeta;

/// Target of one policy's answer on one parent.
#[derive(Clone, Debug)]
pub struct AnswerTarget {
    /// The policy.
    pub policy: PolicyId,
    /// Condition type; `None` if another client owns it and there is no fallback.
    pub condition: Option<Box<str>>,
    /// Owner of the condition type, if another client owns it.
    pub owner: Option<Box<str>>,
    /// Status True in the owner's condition.
    pub owner_says_true: Option<bool>,
    /// Rendered expected names, by group.
    pub names: Vec<(u8, Box<str>)>,
    /// Minimum number of children by group, if the policy computes it from the parent.
    pub counts: Box<[(u8, u32)]>,
    /// Reason why a template or expression of the policy could not be evaluated for this parent.
    pub unrendered: Option<Box<str>>,
    /// Rollcall writes `status.observedGeneration` here.
    pub keeps_generation: bool,
}

/// Renders the templates and evaluates the expressions of a policy for one parent. The error says which could not be.
pub(super) fn render_target(
    meta: &WireMeta,
    object: &RawValue,
    rule: &ParentRule,
    selectors: &Selectors,
    view: &mut AnswerView,
    target: &mut AnswerTarget,
) -> Result<(), String> {
    let budget = ReadBudget::default();
    let text = |t: &ParentTemplate| t.render(object, &budget).map_err(|error| error.to_string());
    for labels in &rule.labels {
        let values: Vec<String> = labels.values.iter().map(text).collect::<Result<_, _>>()?;
        if let Some(value) = values.iter().find(|value| !is_label_value(value)) {
            let start: String = value.chars().take(40).collect();
            return Err(format!("find.labels: no label can have the value {start:?}"));
        }
        let mut namespaces = vec![meta.namespace.to_string()];
        if !labels.namespaces.is_empty() {
            let within = |template| render_namespace(meta, (object, &budget), labels, template);
            namespaces = labels.namespaces.iter().map(within).collect::<Result<_, _>>()?;
        }
        for namespace in namespaces {
            // Objects without an owner of the kind, and objects that the parent owns.
            for owner in ["", &meta.uid] {
                let values = values.iter().map(String::as_str).chain([owner]);
                let selector: SelectorId =
                    selectors.lock().intern_selection(rule.policy, labels.group, &namespace, values);
                view.selects.push(selector);
            }
        }
    }
    for (group, names) in &rule.names {
        for name in names {
            expect_name(*group, &text(name)?, view, target);
        }
    }
    for references in &rule.references {
        render_references(meta, (object, &budget), rule.policy, references, selectors, (view, target))?;
    }
    let counts = compute_counts(object, rule)?;
    view.counts.clone_from(&counts);
    target.counts = counts;
    Ok(())
}

/// Renders the name of a namespace to search. Whoever writes a parent must not choose it, unless the policy says among which.
fn render_namespace(
    meta: &WireMeta,
    (object, budget): (&RawValue, &ReadBudget),
    labels: &LabelRule,
    template: &ParentTemplate,
) -> Result<String, String> {
    let namespace = template.render(object, budget).map_err(|error| error.to_string())?;
    if template.is_literal() || *namespace == *meta.namespace || labels.allowed.allows(&namespace) {
        return Ok(namespace);
    }
    let start: String = namespace.chars().take(63).collect();
    Err(format!("find.namespaces: {start:?} is not one of find.allowedNamespaces"))
}

/// Evaluates the expressions of a policy for one parent whose templates are rendered. They are bounded more strictly than rules,
/// all of a policy together, because they are evaluated where the parent is taken in.
fn compute_counts(object: &RawValue, rule: &ParentRule) -> Result<Box<[(u8, u32)]>, String> {
    let budget = CountBudget::default();
    rule.counts.iter().map(|rule| compute_count(rule, object, &budget)).collect()
}

/// Returns `true` if the API server accepts the label value: at most 63 letters, digits, `-`, `_` and `.`, with a
/// letter or digit at both ends.
fn is_label_value(value: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let outer = |c: char| c.is_ascii_alphanumeric();
    let framed = value.starts_with(outer) && value.ends_with(outer);
    value.is_empty() || (value.len() <= 63 && framed && value.chars().all(inner))
}

fn expect_name(group: u8, name: &str, view: &mut AnswerView, target: &mut AnswerTarget) {
    view.expects.push((group, name_hash(name)));
    target.names.push((group, name.into()));
}

/// Renders the references of a parent, which are both selected and expected. A reference can be forged, so it never
/// leaves the parent's namespace; that of a cluster-scoped parent leads to the namespaces alone that its policy allows.
fn render_references(
    meta: &WireMeta,
    (object, budget): (&RawValue, &ReadBudget),
    policy: PolicyId,
    rule: &ReferenceRule,
    selectors: &Selectors,
    (view, target): (&mut AnswerView, &mut AnswerTarget),
) -> Result<(), String> {
    let (group, kind) = &rule.of;
    let references = rule.path.read_references(object, budget).map_err(|error| error.to_string())?;
    for reference in references.iter().filter(|reference| reference.refers_to(group, kind)) {
        let Some(name) = reference.name.as_deref().filter(|name| !name.is_empty()) else { continue };
        let namespace = match &*meta.namespace {
            "" => match reference.namespace.as_deref().unwrap_or_default() {
                outside if !outside.is_empty() && !rule.allowed.allows(outside) => {
                    let start: String = outside.chars().take(63).collect();
                    return Err(format!(
                        "it refers to {kind} {name} in namespace {start:?}, which is not one of find.allowedNamespaces"
                    ));
                }
                allowed => allowed,
            },
            own if reference.namespace.as_deref().is_none_or(|namespace| namespace == own) => own,
            own => return Err(format!("it refers to {kind} {name} outside of its namespace {own}")),
        };
        let selector =
            selectors.lock().intern_selection(policy, rule.group, namespace, std::iter::once(name));
        view.selects.push(selector);
        expect_name(rule.group, name, view, target);
    }
    Ok(())
}

fn compute_count(rule: &CountRule, object: &RawValue, budget: &CountBudget) -> Result<(u8, u32), String> {
    let count = rule.count.evaluate_count_within(ObjectJson::Text(object.get()), budget);
    count.map(|count| (rule.group, count)).map_err(|error| format!("expect.cel: {error}"))
}
