//! An object of a rollout: when it began, since when it has been ready, and what of its time its fields tell apart.

use readiness::Time;
use serde_json::Value;

use super::object_moments::{moment, told_since};
use super::pod_steps::pod_steps;
use super::rollout_step::{RolloutStep, WaitCause};

/// Kinds on which Kubernetes itself works, by group.
const BUILT_IN_GROUPS: [&str; 6] = ["", "apps", "batch", "autoscaling", "policy", "networking.k8s.io"];

/// An object of a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutObject {
    /// Kind and name, as in `Pod web-0`.
    pub object: String,
    /// What its time is spent on where neither a step nor a child says more.
    pub own_cause: WaitCause,
    /// Time since which it exists, or runs.
    pub began: Option<Time>,
    /// Time since which it has been ready; `None` if it is not, or nothing says.
    pub ended: Option<Time>,
    /// Steps of its own.
    pub steps: Vec<RolloutStep>,
    /// What it owns.
    pub children: Vec<RolloutObject>,
}

impl RolloutObject {
    /// Reads an object and the Events about it. `is_ready` is its verdict now; what of it has not ended is taken to end at
    /// `unfinished`, if that is given.
    pub fn from_object(
        object: &Value,
        events: &[Value],
        is_ready: bool,
        unfinished: Option<Time>,
    ) -> RolloutObject {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, version) = (text(&object["kind"]), text(&object["apiVersion"]));
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let is_pod = group.is_empty() && kind == "Pod";
        let began = moment(&object["status"]["startTime"]).filter(|_| kind == "Job");
        RolloutObject {
            object: format!("{kind} {}", text(&object["metadata"]["name"])),
            own_cause: match (group, &*kind) {
                ("", "Pod") => WaitCause::Kubelet,
                ("batch", "Job") => WaitCause::Job,
                // Nobody but those who apply its members makes anything of it.
                ("rollcall.dev", _) => WaitCause::Applying,
                _ if BUILT_IN_GROUPS.contains(&group) => WaitCause::Controller,
                _ => WaitCause::Operator,
            },
            began: began.or_else(|| moment(&object["metadata"]["creationTimestamp"])),
            ended: if is_ready { told_since(object) } else { unfinished },
            steps: if is_pod { pod_steps(object, events, unfinished) } else { Vec::new() },
            children: Vec::new(),
        }
    }

    /// Time since which it has been ready: its own word, or, where it has none, the last of its children's.
    pub fn ready_since(&self) -> Option<Time> {
        let of_children = || self.children.iter().map(RolloutObject::ready_since).collect::<Option<Vec<_>>>();
        self.ended.or_else(|| of_children()?.into_iter().max())
    }
}
