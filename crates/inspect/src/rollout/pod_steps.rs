//! What the time of a pod was spent on.

use readiness::Time;
use serde_json::Value;

use super::object_moments::moment;
use super::rollout_step::{RolloutStep, WaitCause};

/// Steps of a pod: by its conditions and the states of its containers, and by the kubelet's Events about images. One that has
/// begun and not ended is taken to end at `unfinished`.
pub(super) fn pod_steps(pod: &Value, events: &[Value], unfinished: Option<Time>) -> Vec<RolloutStep> {
    let status = &pod["status"];
    let created = moment(&pod["metadata"]["creationTimestamp"]);
    let condition = |name: &str| {
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        let found = conditions.find(|c| c["type"] == name && c["status"] == "True");
        found.and_then(|condition| moment(&condition["lastTransitionTime"]))
    };
    let mut steps = Vec::new();
    let mut add = |cause, detail: &str, from: Option<Time>, to: Option<Time>| {
        if let Some((from, to)) = from.zip(to).filter(|(from, to)| from < to) {
            steps.push(RolloutStep { cause, detail: detail.to_owned(), from, to });
        }
    };
    add(WaitCause::Scheduling, "", created, condition("PodScheduled").or(unfinished));
    for container in list(&status["initContainerStatuses"]) {
        let (ended, running) = (&container["state"]["terminated"], &container["state"]["running"]);
        let name = container["name"].as_str().unwrap_or_default();
        add(WaitCause::InitContainer, name, moment(&ended["startedAt"]), moment(&ended["finishedAt"]));
        add(WaitCause::InitContainer, name, moment(&running["startedAt"]), unfinished);
    }
    for (image, from, to) in image_pulls(events) {
        add(WaitCause::ImagePull, image, Some(from), to.or(unfinished));
    }
    let started = list(&status["containerStatuses"])
        .filter_map(|container| moment(&container["state"]["running"]["startedAt"]));
    add(WaitCause::Starting, "", started.max(), condition("Ready").or(unfinished));
    steps
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Pulls of images: image, beginning and end. The kubelet says `Pulling`, and then `Pulled`, of the same container.
fn image_pulls(events: &[Value]) -> impl Iterator<Item = (&str, Time, Option<Time>)> {
    let of = |reason: &'static str| events.iter().filter(move |event| event["reason"] == reason);
    of("Pulling").filter_map(move |event| {
        let begin = event_time(event)?;
        let container = &event["involvedObject"]["fieldPath"];
        let pulled = of("Pulled").filter(|other| other["involvedObject"]["fieldPath"] == *container);
        let end = pulled.filter_map(event_time).filter(|at| *at >= begin).min();
        Some((quoted(event["message"].as_str().unwrap_or_default()), begin, end))
    })
}

/// Time at which an Event was first seen.
fn event_time(event: &Value) -> Option<Time> {
    moment(&event["firstTimestamp"]).or_else(|| moment(&event["eventTime"]))
}

/// The first text in quotes: the kubelet quotes the image.
fn quoted(message: &str) -> &str {
    message.split('"').nth(1).unwrap_or_default()
}
