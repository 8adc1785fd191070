//! What is kept of an object that is a parent.

use std::hash::Hasher;

use aggregator::{AnswerView, Evidence, ParentView, PolicyId, SelectorId, Told};
use rules::Object;
use rustc_hash::FxHasher;
use serde_json::value::RawValue;

use super::kopf::{self, Kopf};
use super::selectors::{Selectors, name_hash};
use crate::plan::{CountRule, Interest, ObservedGeneration, ParentRule, ReferenceRule, Template};
use crate::status::time;
use crate::status::{Entry, ParentStatus, digest, raw};
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
    /// What holds its operator up, where that says so.
    pub progress: Option<Box<str>>,
    /// It carries a mark of a Kopf operator's, whatever that says.
    pub(super) marked: bool,
    /// Condition types that were ours here and kept being overwritten.
    pub(super) given_up: Box<[Box<str>]>,
}

/// What was known of a parent, and of others of its policies, before it is read again.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// An operator that handles it leaves a mark.
    pub(super) expects_mark: bool,
    /// Which generation our entries were last seen to be about.
    pub(super) about: Vec<(PolicyId, u64)>,
    pub(super) given_up: Box<[Box<str>]>,
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
    /// Whether that says True.
    pub theirs: Option<bool>,
    /// Names expected, as rendered, by group.
    pub names: Vec<(u8, Box<str>)>,
    /// How many are expected, at least, by group, where the policy computes it from the parent.
    pub counts: Box<[(u8, u32)]>,
    /// Why what the policy says of its children cannot be found out for this parent.
    pub unrendered: Option<Box<str>>,
    /// `status.observedGeneration` is kept by us here.
    pub keeps_generation: bool,
}

/// Reads a parent; `sent` is what was last sent where the server drops the generation from it.
pub(super) fn read(
    meta: &Meta,
    object: &RawValue,
    interest: &Interest,
    rules: &[&ParentRule],
    selectors: &mut Selectors,
    before: Before,
    sent: &[Entry],
) -> ParentRow {
    let takeover: Vec<&str> = rules.iter().filter(|r| r.takeover).map(|r| &*r.condition).collect();
    let mut status = ParentStatus::read(object, &takeover);
    status.recall(sent);
    let counted = (meta.generation > 0).then_some(meta.generation);
    let generation = if interest.counted { meta.generation as u64 } else { spec_hash(object) };
    let kopf = kopf::read(object);
    let mut row = ParentRow {
        uid: meta.uid.clone(),
        generation: counted,
        view: ParentView {
            generation,
            evidence: match evidence(meta, &kopf, &status, interest.counted) {
                Evidence::Silent if !kopf.marked && before.expects_mark => Evidence::Unmarked,
                evidence => evidence,
            },
            deleting: meta.deleted.is_some(),
            digest: digest(status.ours.iter().map(|o| &o.entry), kept_generation(&status, rules)),
            answers: Vec::with_capacity(rules.len()),
        },
        status,
        targets: Vec::with_capacity(rules.len()),
        progress: kopf.progress,
        marked: kopf.marked,
        given_up: before.given_up,
    };
    for rule in rules {
        let (view, target) = answer(meta, object, rule, &row, interest.counted, selectors, &before.about);
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
    let foreign = row.status.is_foreign(&rule.condition);
    let condition = match &rule.fallback {
        Some(fallback)
            if (foreign || row.given_up.contains(&rule.condition)) && !row.status.is_foreign(fallback) =>
        {
            Some(fallback)
        }
        _ => Some(&rule.condition).filter(|_| !foreign),
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
    let theirs = row.status.foreign.iter().find(|(kind, ..)| *kind == rule.condition);
    let owner = theirs.map(|(_, owner, _)| owner.clone());
    let mut view = AnswerView {
        policy: rule.policy,
        told,
        about,
        owned: condition.is_none(),
        selects: Vec::new(),
        expects: Vec::new(),
        counts: Box::default(),
        unrendered: false,
    };
    let mut target = AnswerTarget {
        policy: rule.policy,
        condition: condition.cloned(),
        owner,
        theirs: theirs.map(|(_, _, is_true)| *is_true),
        names: Vec::new(),
        counts: Box::default(),
        unrendered: None,
        keeps_generation: keeps_generation(&row.status, rule),
    };
    if let Err(error) = render(meta, object, rule, selectors, &mut view, &mut target) {
        target.unrendered = Some(error.into());
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
) -> Result<(), String> {
    let text = |t: &Template| t.render(object).map_err(|error| error.to_string());
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
            // What nobody of its kind owns, and what it owns itself.
            for owner in ["", &meta.uid] {
                let values = values.iter().map(String::as_str).chain([owner]);
                let selector: SelectorId = selectors.id(rule.policy, labels.group, &namespace, values);
                view.selects.push(selector);
            }
        }
    }
    for (group, names) in &rule.names {
        for name in names {
            expect(*group, &text(name)?, view, target);
        }
    }
    for references in &rule.references {
        refer(meta, object, rule.policy, references, selectors, (view, target))?;
    }
    if !rule.counts.is_empty() {
        target.counts = rule.counts.iter().map(|rule| count(rule, object)).collect::<Result<_, _>>()?;
        view.counts.clone_from(&target.counts);
    }
    Ok(())
}

/// As the API server has it: at most 63 letters, digits, `-`, `_` and `.`, and neither end one of the last three.
fn is_label_value(value: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let outer = |c: char| c.is_ascii_alphanumeric();
    let framed = value.starts_with(outer) && value.ends_with(outer);
    value.is_empty() || (value.len() <= 63 && framed && value.chars().all(inner))
}

fn expect(group: u8, name: &str, view: &mut AnswerView, target: &mut AnswerTarget) {
    view.expects.push((group, name_hash(name)));
    target.names.push((group, name.into()));
}

/// What a parent refers to is both selected and expected. A reference can be forged: it does not leave the parent's
/// namespace, unless the parent has none.
fn refer(
    meta: &Meta,
    object: &RawValue,
    policy: PolicyId,
    rule: &ReferenceRule,
    selectors: &mut Selectors,
    (view, target): (&mut AnswerView, &mut AnswerTarget),
) -> Result<(), String> {
    let (group, kind) = &rule.of;
    let references = rule.path.read(object).map_err(|error| error.to_string())?;
    for reference in references.iter().filter(|reference| reference.means(group, kind)) {
        let Some(name) = reference.name.as_deref().filter(|name| !name.is_empty()) else { continue };
        let namespace = match &*meta.namespace {
            "" => reference.namespace.as_deref().unwrap_or_default(),
            own if reference.namespace.as_deref().is_none_or(|namespace| namespace == own) => own,
            own => return Err(format!("it refers to {kind} {name} outside of its namespace {own}")),
        };
        view.selects.push(selectors.id(policy, rule.group, namespace, std::iter::once(name)));
        expect(rule.group, name, view, target);
    }
    Ok(())
}

fn count(rule: &CountRule, object: &RawValue) -> Result<(u8, u32), String> {
    let count = rule.count.judge(Object::Text(object.get()));
    count.map(|count| (rule.group, count)).map_err(|error| format!("expect.cel: {error}"))
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
fn evidence(meta: &Meta, kopf: &Kopf, status: &ParentStatus, counted: bool) -> Evidence {
    let mut marks = Vec::new();
    if counted {
        let own = status.observed_generation.filter(|_| status.generation_is_foreign);
        marks.extend(own.or(status.foreign_generation).map(|observed| observed >= meta.generation));
    }
    marks.extend(kopf.handled);
    match marks.as_slice() {
        [] => Evidence::Silent,
        marks if marks.contains(&false) => Evidence::NotYet,
        _ => Evidence::Handled,
    }
}

impl ParentRow {
    pub(super) fn before(&self) -> Before {
        let about = self.view.answers.iter().filter_map(|a| Some((a.policy, a.about?))).collect();
        Before { about, given_up: self.given_up.clone(), expects_mark: false }
    }

    /// Nothing says whether it was handled, neither a mark nor anything else.
    pub(super) fn is_silent(&self) -> bool {
        self.view.evidence == Evidence::Silent && !self.marked
    }

    /// What it is told by now is given up, where a policy names another type to tell it by.
    pub(super) fn give_up(&mut self) {
        let (given_up, targets) = (std::mem::take(&mut self.given_up), &self.targets);
        let mut types: Vec<Box<str>> = given_up.into_vec();
        for condition in targets.iter().filter_map(|target| target.condition.as_ref()) {
            if !types.contains(condition) {
                types.push(condition.clone());
            }
        }
        self.given_up = types.into();
    }

    /// Where its answers go is the same.
    pub(super) fn targets_equal(&self, other: &ParentRow) -> bool {
        let key = |t: &AnswerTarget| {
            let whose = (t.condition.clone(), t.owner.clone(), t.theirs);
            (whose, t.names.clone(), t.counts.clone(), t.unrendered.clone())
        };
        self.targets.iter().map(key).eq(other.targets.iter().map(key))
    }
}
