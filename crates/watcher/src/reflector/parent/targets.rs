//! Targets of the answers on one parent, and what templates and expressions make of it.

use std::collections::BTreeSet;

use aggregator::{AnswerExtras, PolicyId, SelectorId};
use arcstr::ArcStr;
use rollcall_cel::{CountBudget, ObjectJson};
use serde_json::value::RawValue;

use super::super::selector_interner::{Selectors, name_hash};
use crate::plan::{CountRule, LabelRule, ParentRule, ParentTemplate, ReadBudget, ReferenceRule};
use crate::wire::{MAX_NAME_BYTES, WireMeta};

/// Longest value of a label (`k8s.io/apimachinery/pkg/util/validation`).
const MAX_LABEL_VALUE_BYTES: usize = 63;
/// Longest name of an Application or an inventory in an annotation: a namespace, a mark between and a name.
const MAX_OWNER_BYTES: usize = 63 + 1 + MAX_NAME_BYTES;

/// Target of one policy's answer on one parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerTarget {
    /// The policy.
    pub policy: PolicyId,
    /// Condition type; `None` if another client owns it and there is no fallback.
    pub condition: Option<ArcStr>,
    /// Rollcall writes `status.observedGeneration` here.
    pub keeps_generation: bool,
    /// What few parents have.
    pub(in crate::reflector) extras: Option<Box<TargetExtras>>,
}

// Every parent has one per policy.
const _: () = assert!(size_of::<AnswerTarget>() <= 24);

/// What few parents have under a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::reflector) struct TargetExtras {
    /// Owner of the condition type, if another client owns it.
    pub(super) owner: Option<Box<str>>,
    /// Status True in the owner's condition, or its word for ready in the field where it says that.
    pub(super) owner_says_true: Option<bool>,
    /// Rendered expected names, by group.
    pub(super) names: Vec<(u8, Box<str>)>,
    /// Reason why a template or expression of the policy could not be evaluated for this parent.
    pub(super) unrendered: Option<Box<str>>,
    /// Condition type under which it spoke before it was edited, or while it had to leave its own to another client, where nothing
    /// stands under the one of now yet.
    pub(super) former_type: Option<Box<str>>,
}

impl TargetExtras {
    /// Boxes the data; `None` if all of it is empty.
    pub(super) fn into_boxed(mut self) -> Option<Box<TargetExtras>> {
        self.names.shrink_to_fit();
        (self != TargetExtras::default()).then(|| Box::new(self))
    }

    /// Bytes that it takes, with what hangs on it.
    pub(in crate::reflector) fn held_bytes(&self) -> usize {
        let texts = [&self.owner, &self.unrendered, &self.former_type]
            .map(|text| text.as_ref().map_or(0, |text| text.len()));
        let names = self.names.iter().map(|(_, name)| name.len());
        size_of_val(self)
            + texts.iter().sum::<usize>()
            + size_of_val(self.names.as_slice())
            + names.sum::<usize>()
    }
}

impl AnswerTarget {
    /// Owner of the condition type, if another client owns it.
    pub fn owner(&self) -> Option<&str> {
        self.extras.as_ref()?.owner.as_deref()
    }

    /// It is written under another type from now on; until it is, what stands under the old one speaks for it.
    pub(super) fn rename(&mut self, condition: &ArcStr) {
        let former = self.condition.replace(condition.clone());
        self.extras.get_or_insert_default().former_type = former.as_deref().map(Into::into);
    }

    /// Condition type under which the policy spoke before, where nothing stands under the one of now yet.
    pub fn former_type(&self) -> Option<&str> {
        self.extras.as_ref()?.former_type.as_deref()
    }

    /// Whether the owner's condition has status True, if another client owns the type, or says elsewhere that the parent is ready.
    pub fn owner_says_true(&self) -> Option<bool> {
        self.extras.as_ref()?.owner_says_true
    }

    /// Rendered expected names, by group.
    pub fn names(&self) -> &[(u8, Box<str>)] {
        self.extras.as_ref().map_or(&[], |extras| &extras.names)
    }

    /// Reason why a template or expression of the policy could not be evaluated for this parent.
    pub fn unrendered(&self) -> Option<&str> {
        self.extras.as_ref()?.unrendered.as_deref()
    }
}

/// What the templates and expressions of a policy make of one parent.
#[derive(Debug, Default)]
pub(super) struct RenderedTarget {
    pub(super) for_engine: AnswerExtras,
    pub(super) names: Vec<(u8, Box<str>)>,
}

/// Renders the templates and evaluates the expressions of a policy for one parent, as far as they can be. The error says which
/// could not be.
pub(super) fn render_target(
    meta: &WireMeta,
    object: &RawValue,
    rule: &ParentRule,
    selectors: &Selectors,
    rendered: &mut RenderedTarget,
) -> Result<(), String> {
    let budget = ReadBudget::default();
    let text = |t: &ParentTemplate| t.render(object, &budget).map_err(|error| error.to_string());
    for labels in &rule.labels {
        let values: Vec<String> = labels.values.iter().map(text).collect::<Result<_, _>>()?;
        check_values(labels, &values)?;
        let mut namespaces = BTreeSet::from([meta.namespace.to_string()]);
        if !labels.namespaces.is_empty() {
            let within = |template| render_namespace((meta, rule), (object, &budget), labels, template);
            namespaces = labels.namespaces.iter().map(within).collect::<Result<_, _>>()?;
        }
        for namespace in namespaces {
            // Objects without an owner of the kind, and objects that the parent owns.
            for owner in ["", &meta.uid] {
                let values = values.iter().map(String::as_str).chain([owner]);
                let selector: SelectorId =
                    selectors.lock().intern_selection(rule.policy, labels.group, &namespace, values);
                rendered.for_engine.selects.push(selector);
            }
        }
    }
    for (group, names) in &rule.names {
        for name in names {
            rendered.expect_name(*group, &text(name)?);
        }
    }
    for references in &rule.references {
        render_references((meta, rule), (object, &budget), references, selectors, rendered)?;
    }
    rendered.for_engine.counts.extend(compute_counts(object, rule)?);
    Ok(())
}

/// Renders the name of a namespace to search. An author of parents must not choose it, unless the policy says among which.
fn render_namespace(
    (meta, rule): (&WireMeta, &ParentRule),
    (object, budget): (&RawValue, &ReadBudget),
    labels: &LabelRule,
    template: &ParentTemplate,
) -> Result<String, String> {
    let namespace = template.render(object, budget).map_err(|error| error.to_string())?;
    if rule.shape.is_some() {
        return rule.check_child_namespace(&meta.namespace, &namespace).map(|()| namespace);
    }
    if template.is_literal() || *namespace == *meta.namespace || labels.allowed.allows(&namespace) {
        return Ok(namespace);
    }
    let quoted = quote_start(&namespace, 63);
    Err(format!("find.namespaces: {quoted} is not one of find.allowedNamespaces"))
}

/// Evaluates the expressions of a policy for one parent whose templates are rendered. They are bounded more strictly than rules,
/// all of a policy together, because they are evaluated where the parent is taken in.
fn compute_counts(object: &RawValue, rule: &ParentRule) -> Result<Vec<(u8, u32)>, String> {
    // Who writes groups may be anyone, and may write thousands.
    let budget = if rule.shape.is_some() { CountBudget::of_author() } else { CountBudget::default() };
    rule.counts.iter().map(|rule| compute_count(rule, object, &budget)).collect()
}

/// Refuses values that no object can be found by.
fn check_values(labels: &LabelRule, values: &[String]) -> Result<(), String> {
    for (at, value) in values.iter().enumerate() {
        let is_in_annotation = labels.annotation_values.contains(&at);
        let (what, most) =
            if is_in_annotation { ("annotation", MAX_OWNER_BYTES) } else { ("label", MAX_LABEL_VALUE_BYTES) };
        let quoted = || quote_start(value, 40);
        if !is_value(value) {
            return Err(format!("find.labels: no {what} can have the value {}", quoted()));
        }
        if value.len() > most {
            let (quoted, length) = (quoted(), value.len());
            return Err(format!(
                "find.labels: no {what} can have a value of more than {most} characters, and {quoted} has {length}"
            ));
        }
    }
    Ok(())
}

/// Quotes a text of somebody else: its first characters, with a mark if there are more.
fn quote_start(text: &str, most: usize) -> String {
    let mut start: String = text.chars().take(most).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    format!("{start:?}")
}

/// Returns `true` for what the API server accepts as the value of a label, unless it is too long: letters, digits, `-`, `_` and
/// `.`, with a letter or digit at both ends. What annotations say of an Application or an inventory is made of these too.
fn is_value(value: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let outer = |c: char| c.is_ascii_alphanumeric();
    let framed = value.starts_with(outer) && value.ends_with(outer);
    value.is_empty() || (framed && value.chars().all(inner))
}

impl RenderedTarget {
    fn expect_name(&mut self, group: u8, name: &str) {
        self.for_engine.expects.push((group, name_hash(name)));
        self.names.push((group, name.into()));
    }
}

/// Renders the references of a parent, which are both selected and expected. A reference can be forged, so it never
/// leaves the parent's namespace; that of a cluster-scoped parent leads to the namespaces alone that its policy allows, and that of
/// a group to those that an administrator has opened to it.
fn render_references(
    (meta, of_parent): (&WireMeta, &ParentRule),
    (object, budget): (&RawValue, &ReadBudget),
    rule: &ReferenceRule,
    selectors: &Selectors,
    rendered: &mut RenderedTarget,
) -> Result<(), String> {
    let (group, kind) = &rule.of;
    let references = rule.path.read_references(object, budget).map_err(|error| error.to_string())?;
    let mut places = BTreeSet::new();
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
            own if of_parent.shape.is_some() => {
                let other = reference.namespace.as_deref().unwrap_or(own);
                of_parent.check_child_namespace(own, other)?;
                other
            }
            own => return Err(format!("it refers to {kind} {name} outside of its namespace {own}")),
        };
        let selector =
            selectors.lock().intern_selection(of_parent.policy, rule.group, namespace, std::iter::once(name));
        rendered.for_engine.selects.push(selector);
        rendered.expect_name(rule.group, name);
        places.insert((namespace.to_owned(), name));
    }
    // Of one name in two namespaces each is expected, which the name alone does not tell.
    let names: BTreeSet<_> = places.iter().map(|(_, name)| name).collect();
    if names.len() < places.len() {
        let count = u32::try_from(places.len()).unwrap_or(u32::MAX);
        rendered.for_engine.counts.push((rule.group, count));
    }
    Ok(())
}

fn compute_count(rule: &CountRule, object: &RawValue, budget: &CountBudget) -> Result<(u8, u32), String> {
    let count = rule.count.evaluate_count_within(ObjectJson::Text(object.get()), budget);
    count.map(|count| (rule.group, count)).map_err(|error| format!("expect.cel: {error}"))
}
