//! Pod: does it run, and if not, what holds it?

use super::count;
use crate::assess::{Limits, Ruling};
use crate::branch::Branch;
use crate::facts::{Container, Facts, Owner, Truth};
use crate::reason::Counted;
use crate::text::Text;
use crate::{Level, Reason};

pub(crate) fn pod<'a>(f: &'a Facts, limits: &Limits) -> Ruling<'a> {
    let phase = f.status.word("phase");
    let branch = Branch::Text("status.phase", phase.unwrap_or_default());
    match phase {
        Some("Succeeded") => Ruling::ready(Reason::Complete, branch),
        Some("Failed") => failed(f, branch),
        Some("Running") => running(f),
        Some("Pending") => pending(f, limits),
        None => Ruling::progressing(Reason::NotStarted, Branch::Fact("status.phase is absent")).until(
            f.created,
            limits.pending,
            Level::Stuck,
        ),
        Some(other) => Ruling::unknown(Reason::SaysUnknown(Text::new(&format!("phase {other}"))), branch),
    }
}

fn failed<'a>(f: &'a Facts, branch: Branch<'a>) -> Ruling<'a> {
    if f.owner == Owner::Job {
        return Ruling::suspended(Reason::OwnerDecides, branch);
    }
    let ended = f.status.containers.troubled.iter().find(|c| c.ended.is_some()).map(exit);
    let text = match (&f.status.reason, ended) {
        (Some(reason), _) if !reason.is_empty() => Text::new(reason),
        (_, Some(exit)) => exit,
        _ => Text::new("pod failed"),
    };
    Ruling::failed(Reason::PodFailed(text), branch)
}

fn running(f: &Facts) -> Ruling<'_> {
    let ready = f.status.condition("Ready");
    if let Some(ready) = ready.filter(|c| c.status == Truth::True) {
        return Ruling::ready(Reason::Ready, Branch::Condition(ready));
    }
    if let Some(trouble) = trouble(f) {
        return trouble;
    }
    let containers = &f.status.containers;
    let branch = ready.map_or(Branch::Fact("conditions[Ready] is absent"), Branch::Condition);
    Ruling::progressing(
        Reason::Count(Counted::Containers, containers.ready.min(containers.all), containers.all),
        branch,
    )
}

fn pending<'a>(f: &'a Facts, limits: &Limits) -> Ruling<'a> {
    if let Some(trouble) = trouble(f) {
        return trouble.until(f.created, limits.pending, Level::Stuck);
    }
    if let Some(scheduled) = f.status.condition("PodScheduled").filter(|c| c.status == Truth::False) {
        let reason = Reason::Unschedulable(match &*scheduled.reason {
            "" => Text::new("no node"),
            // The message lists nodes by number, which tells more than the reason does and counts nothing that ticks.
            "Unschedulable" if !scheduled.message.is_empty() => Text::new(first_sentence(&scheduled.message)),
            reason => Text::new(reason),
        });
        return Ruling::progressing(reason, Branch::Condition(scheduled)).until(
            f.created,
            limits.pending,
            Level::Stuck,
        );
    }
    let waiting = f.status.containers.troubled.iter().find_map(|c| c.waiting.as_deref().map(|w| (w, c)));
    let (text, branch) = match waiting {
        Some((reason, container)) => (Text::new(reason), Branch::Container(container)),
        None => (Text::new("not started"), Branch::Text("status.phase", "Pending")),
    };
    Ruling::progressing(Reason::Pending(text), branch).until(f.created, limits.pending, Level::Stuck)
}

/// The first container, init containers before the others, that cannot start or has ended badly.
fn trouble(f: &Facts) -> Option<Ruling<'_>> {
    f.status.containers.troubled.iter().find_map(|container| {
        let branch = Branch::Container(container);
        match (&container.waiting, &container.ended) {
            (Some(reason), _) if hopeless(reason) => {
                Some(Ruling::failed(Reason::Waiting(Text::new(reason)), branch))
            }
            // While the next attempt starts it is still the same trouble.
            (_, Some(ended)) if ended.code != 0 => {
                Some(Ruling::failed(Reason::ContainerFailed(exit(container)), branch))
            }
            _ => None,
        }
    })
}

/// Is this a reason to wait that does not pass by itself?
fn hopeless(reason: &str) -> bool {
    reason.starts_with("Err")
        || reason.ends_with("Error")
        || reason.ends_with("BackOff")
        || matches!(
            reason,
            "InvalidImageName" | "RegistryUnavailable" | "ImageInspectError" | "ContainerCannotRun"
        )
}

fn exit(container: &Container) -> Text {
    let name = &container.name;
    let (code, reason) = container.ended.as_ref().map_or((0, ""), |e| (count(e.code), &*e.reason));
    match reason {
        "" => Text::new(&format!("container {name} exited with code {code}")),
        reason => Text::new(&format!("container {name} exited with code {code} ({reason})")),
    }
}

/// The scheduler says everything in its first sentence and repeats it for preemption in a second one.
fn first_sentence(message: &str) -> &str {
    message.split_once(". ").map_or(message, |(first, _)| first)
}
