//! What is kept of objects for proofs, and the evaluation of a proof over it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use aggregator::{ObjectId, ProofRequest};
use rollcall_cel::ProofExpression;
use rustc_hash::FxHashSet;
use serde_json::value::RawValue;

use super::parts::ReflectorParts;
use super::planned::PlannedInterest;
use super::proof_work::{ProofOutcome, ProofTask, ProofVerdict};
use super::row::{ObjectExcerpt, ObjectRow};
use crate::parent::text_with_type;
use crate::plan::{ExcerptRule, MAX_EXCERPT_BYTES, ProofRule};
use crate::wire::ChildObject;

/// Bytes that the smallest child counts for, of those that are collected for one proof: whoever selects very many stops here, too.
const MIN_CHILD_BYTES: usize = 64;

/// Reduces an object to what proofs read of it.
pub(super) fn take_excerpt(rule: &ExcerptRule, child: &ChildObject, object: &RawValue) -> ObjectExcerpt {
    let (api_version, kind) = &rule.of;
    match rule.fields.project_object(object, MAX_EXCERPT_BYTES) {
        Ok(text) => ObjectExcerpt::Fields(text_with_type(&text, child, api_version, kind).into()),
        Err(_) => ObjectExcerpt::TooLarge,
    }
}

/// Evaluates the proof of a policy for a parent at this generation. Returns the plan by which that was done, too.
pub(super) fn evaluate_proof(
    parts: &ReflectorParts,
    task: &ProofTask,
) -> (ProofOutcome, Option<Arc<PlannedInterest>>) {
    let ProofRequest { parent, policy, generation } = task.request;
    let read = |row: &ObjectRow| {
        let is_current = row.parent.as_ref().is_some_and(|parent| parent.view.generation == generation);
        is_current.then(|| (row.kind, excerpt_of(row)))
    };
    let current = parts.store.rows.read(parent, read).flatten();
    let planned = current.and_then(|(kind, excerpt)| Some((parts.store.plans.planned(kind)?, excerpt)));
    let Some((plan, excerpt)) = planned else { return (ProofVerdict::Outdated.into(), None) };
    let mut rules = plan.interest.parent.iter().filter(|rule| rule.policy == policy);
    let outcome = match rules.next().and_then(|rule| rule.proof.as_ref()) {
        Some(proof) => evaluate_over(parts, proof, excerpt, &task.children),
        None => ProofVerdict::Outdated.into(),
    };
    (outcome, Some(plan))
}

/// Evaluates a proof over what is kept of a parent and of these children.
fn evaluate_over(
    parts: &ReflectorParts,
    proof: &ProofRule,
    parent: Result<Box<str>, ProofVerdict>,
    children: &[(u8, ObjectId)],
) -> ProofOutcome {
    // One that is gone counts by its outcome, and has no fields any more.
    let present = |row: &ObjectRow| {
        (!row.is_remembered()).then(|| (row.namespace.clone(), row.name.clone(), excerpt_of(row)))
    };
    let (mut objects, mut known) = (Vec::new(), FxHashSet::default());
    let mut bytes = parent.as_ref().map_or(0, |text| text.len());
    // One that counts in several groups is one object.
    for (group, child) in children.iter().filter(|(_, child)| known.insert(*child)) {
        if let Some((namespace, name, excerpt)) = parts.store.rows.read(*child, present).flatten() {
            bytes += excerpt.as_ref().map_or(0, |text| text.len()).max(MIN_CHILD_BYTES);
            objects.push((*group, namespace, name, excerpt));
        }
        if bytes > ProofExpression::MAX_BYTES {
            return ProofOutcome { verdict: ProofVerdict::Stopped, steps: ProofExpression::MAX_STEPS };
        }
    }
    objects.sort_unstable_by(|a, b| (a.0, &a.1, &a.2).cmp(&(b.0, &b.1, &b.2)));
    let texts: Result<Vec<_>, _> = objects.into_iter().map(|(.., excerpt)| excerpt).collect();
    match parent.and_then(|parent| Ok((parent, texts?))) {
        Ok((parent, children)) => evaluate_texts(proof, &parent, &children),
        Err(verdict) => verdict.into(),
    }
}

fn excerpt_of(row: &ObjectRow) -> Result<Box<str>, ProofVerdict> {
    match row.extras.as_ref().and_then(|extras| extras.excerpt.as_ref()) {
        Some(ObjectExcerpt::Fields(text)) => Ok(text.clone()),
        Some(ObjectExcerpt::TooLarge) => Err(ProofVerdict::TooLarge),
        // It was read before a policy asked for it.
        None => Err(ProofVerdict::Outdated),
    }
}

/// A panic is confined to this proof.
fn evaluate_texts(proof: &ProofRule, parent: &str, children: &[Box<str>]) -> ProofOutcome {
    let evaluate = || proof.expression.evaluate_proof(parent, children.iter().map(AsRef::as_ref)).into();
    catch_unwind(AssertUnwindSafe(evaluate))
        .unwrap_or(ProofOutcome { verdict: ProofVerdict::NoValue, steps: ProofExpression::MAX_STEPS })
}
