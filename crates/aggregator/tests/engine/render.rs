//! How the conditions of a parent are rendered from the engine's answers.

use aggregator::{GroupRole, ObjectId, PolicyAnswer, PolicyId};
use readiness::Level;
use readiness::rollup::ParentReason;

use crate::conditions::{ParentEntry, Status};
use crate::harness::EngineHarness;

/// Renders the conditions of a parent from the engine's answers. A policy without an answer leaves its condition as
/// it is.
pub(crate) fn render(harness: &EngineHarness, name: &str) -> Option<Status> {
    let object = &harness.objects[name];
    let parent = object.parent.as_ref()?;
    let mut wanted = Status::new();
    for (policy, answer) in harness.engine.answers_to_write(object.id) {
        assert!(parent.policies.contains(&policy), "{name} is told for a policy that does not apply");
        wanted.insert(policy, entry(harness, name, policy, answer));
    }
    let undecided = parent.policies.iter().filter(|p| !harness.engine.has_evaluated(object.id, **p));
    for policy in undecided {
        if let Some(entry) = parent.status.get(policy) {
            wanted.insert(*policy, entry.clone());
        }
    }
    Some(wanted)
}

fn entry(harness: &EngineHarness, name: &str, policy: PolicyId, answer: PolicyAnswer) -> ParentEntry {
    let object = &harness.objects[name];
    let told = object.parent.as_ref().and_then(|p| p.status.get(&policy));
    let stands = told.filter(|e| e.status() == answer.reason.condition_status());
    ParentEntry {
        reason: answer.reason,
        about: object.generation,
        stalled: answer.stalled,
        reconciling: answer.reconciling,
        message: message(harness, object.id, policy, answer),
        since: stands.map_or(harness.now, |e| e.since),
        turned: None,
    }
}

fn message(harness: &EngineHarness, id: ObjectId, policy: PolicyId, answer: PolicyAnswer) -> String {
    match answer.reason {
        ParentReason::ChildrenPending | ParentReason::OperatorSilent | ParentReason::Terminating => {
            String::new()
        }
        _ => format!("{} of {}: {}", answer.ready, answer.total, causes(harness, id, policy)),
    }
}

/// Lists every unready child with its own causes.
pub(crate) fn causes(harness: &EngineHarness, id: ObjectId, policy: PolicyId) -> String {
    let cause = |trouble: aggregator::UnreadyChild| {
        let name = harness.name(trouble.child).unwrap_or_default();
        // What is being deleted says itself why it is there.
        let quote =
            harness.quotes.get(&trouble.child).filter(|_| trouble.weight.level() != Level::Terminating);
        format!("{name} {}[{}]", trouble.weight.level(), quote.map_or("", |quote| quote))
    };
    harness.engine.unready_children(id, policy, GroupRole::Critical).map(cause).collect::<Vec<_>>().join(" ")
}
