//! What is kept of an object that is a parent.

use std::hash::Hasher;

use aggregator::{AnswerView, Evidence, ParentView, PolicyId, SelectorId, Told};
use rustc_hash::FxHasher;
use serde_json::value::RawValue;

use super::selectors::{Selectors, name_hash};
use crate::plan::{Interest, ObservedGeneration, ParentRule, TemplateError};
use crate::status::time;
use crate::status::{ParentStatus, digest, raw};
use crate::wire::Meta;

/// A parent, as the renderer and the writer need it.
#[derive(Clone, Debug)]
pub struct ParentRow {
    /// `metadata.uid`, whole: the guard of every write.
    pub uid: Box<str>,
    /// `metadata.generation`; `None` where the object has none.
    pub generation: Option<i64>,
    /// What its status says.
    pub status: ParentStatus,
    /// What the engine is told.
    pub view: ParentView,
    /// By policy: what is written for it here.
    pub targets: Vec<AnswerTarget>,
}

/// Where one policy's answer goes on one parent.
#[derive(Clone, Debug)]
pub struct AnswerTarget {
    /// The policy.
    pub policy: aggregator::PolicyId,
    /// The condition type; `None` where it is somebody else's and there is no fallback.
    pub condition: Option<Box<str>>,
    /// Whose it is, where it is somebody else's.
    pub owner: Option<Box<str>>,
    /// Names expected, as rendered, by group.
    pub names: Vec<(u8, Box<str>)>,
    /// Why a template cannot be rendered.
    pub unrendered: Option<TemplateError>,
    /// `status.observedGeneration` is kept by us here.
    pub keeps_generation: bool,
}

/// Reads a parent; `before` says which generation our entries were last seen to be about.
pub(super) fn read(
    meta: &Meta,
    object: &RawValue,
    interest: &Interest,
    rules: &[&ParentRule],
    selectors: &mut Selectors,
    before: &[(PolicyId, u64)],
) -> ParentRow {
    let takeover: Vec<&str> = rules.iter().filter(|r| r.takeover).map(|r| &*r.condition).collect();
    let status = ParentStatus::read(object, &takeover);
    let counted = (meta.generation > 0).then_some(meta.generation);
    let generation = if interest.counted { meta.generation as u64 } else { spec_hash(object) };
    let mut row = ParentRow {
        uid: meta.uid.clone(),
        generation: counted,
        view: ParentView {
            generation,
            evidence: evidence(meta, object, &status, interest.counted),
            deleting: meta.deleted.is_some(),
            digest: digest(status.ours.iter().map(|o| &o.entry), kept_generation(&status, rules)),
            answers: Vec::with_capacity(rules.len()),
        },
        status,
        targets: Vec::with_capacity(rules.len()),
    };
    for rule in rules {
        let (view, target) = answer(meta, object, rule, &row, interest.counted, selectors, before);
        row.view.answers.push(view);
        row.targets.push(target);
    }
    row
}

/// `status.observedGeneration` as it stands, where it is ours to keep.
fn kept_generation(status: &ParentStatus, rules: &[&ParentRule]) -> Option<i64> {
    rules.iter().any(|r| keeps_generation(status, r)).then_some(status.observed_generation).flatten()
}

fn keeps_generation(status: &ParentStatus, rule: &ParentRule) -> bool {
    match rule.observed_generation {
        ObservedGeneration::Never => false,
        ObservedGeneration::Write => !status.generation_is_foreign,
        ObservedGeneration::Auto => &*rule.condition == "Ready" && status.generation_is_ours,
    }
}

fn answer(
    meta: &Meta,
    object: &RawValue,
    rule: &ParentRule,
    row: &ParentRow,
    counted: bool,
    selectors: &mut Selectors,
    before: &[(PolicyId, u64)],
) -> (AnswerView, AnswerTarget) {
    let condition = match &rule.fallback {
        _ if !row.status.is_foreign(&rule.condition) => Some(&rule.condition),
        Some(fallback) if !row.status.is_foreign(fallback) => Some(fallback),
        _ => None,
    };
    let ours = condition.and_then(|c| row.status.ours(c));
    let about = ours.and_then(|o| o.entry.observed_generation).and_then(|observed| {
        if Some(observed) == row.generation {
            return Some(row.view.generation);
        }
        // Where status writes of others move the generation too, what was said about this spec still is.
        let (_, known) = before.iter().find(|(policy, _)| *policy == rule.policy && !counted)?;
        Some(*known).filter(|about| *about == row.view.generation)
    });
    let told = ours.and_then(|o| {
        let since = time::parse(&o.entry.last_transition_time).unwrap_or_default();
        let stalled = row.status.ours("Stalled").is_some_and(|s| s.entry.is_true());
        Some(Told { reason: o.entry.reason()?, since, stalled })
    });
    let owner =
        row.status.foreign.iter().find(|(kind, _)| *kind == rule.condition).map(|(_, owner)| owner.clone());
    let mut view = AnswerView {
        policy: rule.policy,
        told,
        about,
        owned: condition.is_none(),
        selects: Vec::new(),
        expects: Vec::new(),
        unrendered: false,
    };
    let mut target = AnswerTarget {
        policy: rule.policy,
        condition: condition.cloned(),
        owner,
        names: Vec::new(),
        unrendered: None,
        keeps_generation: keeps_generation(&row.status, rule),
    };
    if let Err(error) = render(meta, object, rule, selectors, &mut view, &mut target) {
        target.unrendered = Some(error);
        view.unrendered = true;
    }
    (view, target)
}

fn render(
    meta: &Meta,
    object: &RawValue,
    rule: &ParentRule,
    selectors: &mut Selectors,
    view: &mut AnswerView,
    target: &mut AnswerTarget,
) -> Result<(), TemplateError> {
    for labels in &rule.labels {
        let values: Vec<String> = labels.values.iter().map(|t| t.render(object)).collect::<Result<_, _>>()?;
        let mut namespaces = vec![meta.namespace.to_string()];
        if !labels.namespaces.is_empty() {
            namespaces = labels.namespaces.iter().map(|t| t.render(object)).collect::<Result<_, _>>()?;
        }
        for namespace in namespaces {
            let values = values.iter().map(String::as_str);
            let selector: SelectorId = selectors.id(rule.policy, labels.group, &namespace, values);
            view.selects.push(selector);
        }
    }
    for (group, names) in &rule.names {
        for name in names {
            let name = name.render(object)?;
            view.expects.push((*group, name_hash(&name)));
            target.names.push((*group, name.into()));
        }
    }
    Ok(())
}

/// A hash of the object without metadata and status: the generation where the server counts status writes too.
fn spec_hash(object: &RawValue) -> u64 {
    let members = raw::members(object);
    let mut keys: Vec<_> = members.keys().collect();
    keys.sort_unstable();
    let mut hash = FxHasher::default();
    for key in keys.into_iter().filter(|k| !matches!(&***k, "metadata" | "status" | "apiVersion" | "kind")) {
        hash.write(key.as_bytes());
        hash.write(members[key].get().as_bytes());
    }
    hash.finish()
}

/// What the operator left behind that says whether it has handled the current spec.
fn evidence(meta: &Meta, object: &RawValue, status: &ParentStatus, counted: bool) -> Evidence {
    let mut marks = Vec::new();
    if counted {
        let own = status.observed_generation.filter(|_| status.generation_is_foreign);
        marks.extend(own.or(status.foreign_generation).map(|observed| observed >= meta.generation));
    }
    marks.extend(kopf_handled(object));
    match marks.as_slice() {
        [] => Evidence::Silent,
        marks if marks.contains(&false) => Evidence::NotYet,
        _ => Evidence::Handled,
    }
}

/// Kopf keeps the last handled configuration: in an annotation under its prefix or one of the operator's own, or in
/// `status.kopf`. Equal specs mean handled. What cannot be compared says nothing.
fn kopf_handled(object: &RawValue) -> Option<bool> {
    const MARK: &str = "last-handled-configuration";
    let annotations = raw::at(object, &["metadata", "annotations"]).map(raw::members).unwrap_or_default();
    let mut prefixes: Vec<_> =
        annotations.iter().filter(|(key, _)| key.ends_with(&format!("/{MARK}"))).collect();
    prefixes.sort_by(|a, b| a.0.cmp(b.0));
    let mark =
        prefixes.first().map(|(_, mark)| **mark).or_else(|| raw::at(object, &["status", "kopf", MARK]))?;
    let essence: serde_json::Value = serde_json::from_str(&raw::string(mark)?).ok()?;
    let spec = match raw::member(object, "spec") {
        Some(spec) => serde_json::from_str(spec.get()).ok()?,
        None => serde_json::Value::Null,
    };
    Some(essence.get("spec").unwrap_or(&serde_json::Value::Null) == &spec)
}

impl ParentRow {
    /// Which generation its entries are about, by policy.
    pub(super) fn about(&self) -> Vec<(PolicyId, u64)> {
        self.view.answers.iter().filter_map(|a| Some((a.policy, a.about?))).collect()
    }

    /// Where its answers go is the same.
    pub(super) fn targets_equal(&self, other: &ParentRow) -> bool {
        let key =
            |t: &AnswerTarget| (t.condition.clone(), t.owner.clone(), t.names.clone(), t.unrendered.clone());
        self.targets.iter().map(key).eq(other.targets.iter().map(key))
    }
}
