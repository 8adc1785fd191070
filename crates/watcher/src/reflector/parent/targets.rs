//! Targets of the answers on one parent, and what templates and expressions make of it.

use aggregator::{AnswerView, PolicyId, SelectorId};
use rollcall_cel::ObjectJson;
use serde_json::value::RawValue;

use super::super::selector_interner::{SelectorInterner, name_hash};
use crate::plan::{CountRule, ParentRule, ParentTemplate, ReferenceRule};
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

/// Renders the templates of a policy for one parent. The error says which could not be.
pub(super) fn render_target(
    meta: &WireMeta,
    object: &RawValue,
    rule: &ParentRule,
    selectors: &mut SelectorInterner,
    view: &mut AnswerView,
    target: &mut AnswerTarget,
) -> Result<(), String> {
    let text = |t: &ParentTemplate| t.render(object).map_err(|error| error.to_string());
    for labels in &rule.labels {
        let values: Vec<String> = labels.values.iter().map(text).collect::<Result<_, _>>()?;
        if let Some(value) = values.iter().find(|value| !is_label_value(value)) {
            let start: String = value.chars().take(40).collect();
            return Err(format!("find.labels: no label can have the value {start:?}"));
        }
        let mut namespaces = vec![meta.namespace.to_string()];
        if !labels.namespaces.is_empty() {
            namespaces = labels.namespaces.iter().map(text).collect::<Result<_, _>>()?;
        }
        for namespace in namespaces {
            // Objects without an owner of the kind, and objects that the parent owns.
            for owner in ["", &meta.uid] {
                let values = values.iter().map(String::as_str).chain([owner]);
                let selector: SelectorId =
                    selectors.intern_selection(rule.policy, labels.group, &namespace, values);
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
        render_references(meta, object, rule.policy, references, selectors, (view, target))?;
    }
    Ok(())
}

/// Evaluates the expressions of a policy for one parent whose templates are rendered. They may take as long as their limits
/// allow, so nothing that others need may be locked meanwhile.
pub(in crate::reflector) fn compute_counts(
    object: &RawValue,
    rule: &ParentRule,
    view: &mut AnswerView,
    target: &mut AnswerTarget,
) {
    if rule.counts.is_empty() || view.template_failed {
        return;
    }
    match rule.counts.iter().map(|rule| compute_count(rule, object)).collect::<Result<Box<[_]>, _>>() {
        Ok(counts) => {
            view.counts.clone_from(&counts);
            target.counts = counts;
        }
        Err(error) => {
            target.unrendered = Some(error.into());
            view.template_failed = true;
        }
    }
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
/// leaves the parent's namespace, unless the parent is cluster-scoped.
fn render_references(
    meta: &WireMeta,
    object: &RawValue,
    policy: PolicyId,
    rule: &ReferenceRule,
    selectors: &mut SelectorInterner,
    (view, target): (&mut AnswerView, &mut AnswerTarget),
) -> Result<(), String> {
    let (group, kind) = &rule.of;
    let references = rule.path.read_references(object).map_err(|error| error.to_string())?;
    for reference in references.iter().filter(|reference| reference.refers_to(group, kind)) {
        let Some(name) = reference.name.as_deref().filter(|name| !name.is_empty()) else { continue };
        let namespace = match &*meta.namespace {
            "" => reference.namespace.as_deref().unwrap_or_default(),
            own if reference.namespace.as_deref().is_none_or(|namespace| namespace == own) => own,
            own => return Err(format!("it refers to {kind} {name} outside of its namespace {own}")),
        };
        view.selects.push(selectors.intern_selection(policy, rule.group, namespace, std::iter::once(name)));
        expect_name(rule.group, name, view, target);
    }
    Ok(())
}

fn compute_count(rule: &CountRule, object: &RawValue) -> Result<(u8, u32), String> {
    let count = rule.count.evaluate_count(ObjectJson::Text(object.get()));
    count.map(|count| (rule.group, count)).map_err(|error| format!("expect.cel: {error}"))
}
