//! Rule for Pod: running and ready, or the cause that holds it.

use crate::branch::Branch;
use crate::counted_unit::CountedUnit;
use crate::facts::{Facts, OwnerKind, TruthValue, UnreadyContainer};
use crate::readiness_ruling::ReadinessRuling;
use crate::stuck_limits::StuckLimits;
use crate::text::BoundedText;
use crate::{Level, Reason};

pub(crate) fn judge_pod<'a>(f: &'a Facts, limits: &StuckLimits) -> ReadinessRuling<'a> {
    let phase = f.status.state_text("phase");
    let branch = Branch::Text("status.phase", phase.unwrap_or_default());
    match phase {
        Some("Succeeded") => ReadinessRuling::ready(Reason::Complete, branch),
        Some("Failed") => judge_failed_pod(f, branch),
        Some("Running") => judge_running_pod(f),
        Some("Pending") => judge_pending_pod(f, limits),
        None => ReadinessRuling::progressing(Reason::NotStarted, Branch::Fact("status.phase is absent"))
            .escalate_after(f.created, limits.pending, Level::Stuck),
        Some(other) => {
            ReadinessRuling::unknown(Reason::SaysUnknown(BoundedText::new(&format!("phase {other}"))), branch)
        }
    }
}

fn judge_failed_pod<'a>(f: &'a Facts, branch: Branch<'a>) -> ReadinessRuling<'a> {
    // A Job tries again as often as it says; a ReplicaSet has replaced the pod, and does not count it any more: it was evicted, or
    // its node had no room for it. What is left of it stays until it is collected, which may take days.
    if matches!(f.owner, OwnerKind::Job | OwnerKind::ReplicaSet) {
        return ReadinessRuling::suspended(Reason::OwnerDecides, branch);
    }
    let ended = f.status.containers.troubled.iter().find(|c| c.ended.is_some()).map(exit_text);
    let text = match (&f.status.reason, ended) {
        (Some(reason), _) if !reason.is_empty() => BoundedText::new(reason),
        (_, Some(exit)) => exit,
        _ => BoundedText::new("pod failed"),
    };
    ReadinessRuling::failed(Reason::PodFailed(text), branch)
}

fn judge_running_pod(f: &Facts) -> ReadinessRuling<'_> {
    let ready = f.status.find_condition("Ready");
    if let Some(ready) = ready.filter(|c| c.status == TruthValue::True) {
        return ReadinessRuling::ready(Reason::Ready, Branch::Condition(ready));
    }
    if let Some(trouble) = judge_containers(f) {
        return trouble;
    }
    let containers = &f.status.containers;
    let branch = ready.map_or(Branch::Fact("conditions[Ready] is absent"), Branch::Condition);
    ReadinessRuling::progressing(
        Reason::Count(CountedUnit::Containers, containers.ready.min(containers.all), containers.all),
        branch,
    )
}

fn judge_pending_pod<'a>(f: &'a Facts, limits: &StuckLimits) -> ReadinessRuling<'a> {
    if let Some(trouble) = judge_containers(f) {
        return trouble.escalate_after(f.created, limits.pending, Level::Stuck);
    }
    if let Some(scheduled) = f.status.find_condition("PodScheduled").filter(|c| c.status == TruthValue::False)
    {
        let reason = Reason::Unschedulable(match &*scheduled.reason {
            "" => BoundedText::new("no node"),
            // The message counts nodes, which tells more than the reason does, and contains no number that changes by
            // itself.
            "Unschedulable" if !scheduled.message.is_empty() => {
                BoundedText::new(first_sentence(&scheduled.message))
            }
            reason => BoundedText::new(reason),
        });
        return ReadinessRuling::progressing(reason, Branch::Condition(scheduled)).escalate_after(
            f.created,
            limits.pending,
            Level::Stuck,
        );
    }
    let waiting = f.status.containers.troubled.iter().find_map(|c| c.waiting.as_deref().map(|w| (w, c)));
    let (text, branch) = match waiting {
        Some((reason, container)) => (BoundedText::new(reason), Branch::Container(container)),
        None => (BoundedText::new("not started"), Branch::Text("status.phase", "Pending")),
    };
    ReadinessRuling::progressing(Reason::Pending(text), branch).escalate_after(
        f.created,
        limits.pending,
        Level::Stuck,
    )
}

/// Judges the first container, init containers first, that cannot start or exited with an error.
fn judge_containers(f: &Facts) -> Option<ReadinessRuling<'_>> {
    f.status.containers.troubled.iter().find_map(|container| {
        let branch = Branch::Container(container);
        match (&container.waiting, &container.ended) {
            (Some(reason), _) if is_lasting_wait(reason) => {
                Some(ReadinessRuling::failed(Reason::Waiting(BoundedText::new(reason)), branch))
            }
            // While the next attempt starts, the failure still stands.
            (_, Some(ended)) if ended.code != 0 => {
                Some(ReadinessRuling::failed(Reason::ContainerFailed(exit_text(container)), branch))
            }
            _ => None,
        }
    })
}

/// Returns `true` if a container that waits for this reason does not recover by itself.
fn is_lasting_wait(reason: &str) -> bool {
    reason.starts_with("Err")
        || reason.ends_with("Error")
        || reason.ends_with("BackOff")
        || matches!(
            reason,
            "InvalidImageName" | "RegistryUnavailable" | "ImageInspectError" | "ContainerCannotRun"
        )
}

fn exit_text(container: &UnreadyContainer) -> BoundedText {
    let name = &container.name;
    let (code, reason) = container.ended.as_ref().map_or((0, ""), |e| (e.code, &*e.reason));
    match reason {
        "" => BoundedText::new(&format!("container {name} exited with code {code}")),
        reason => BoundedText::new(&format!("container {name} exited with code {code} ({reason})")),
    }
}

/// Returns the first sentence: the scheduler repeats the message for preemption in a second one.
fn first_sentence(message: &str) -> &str {
    message.split_once(". ").map_or(message, |(first, _)| first)
}
