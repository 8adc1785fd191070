//! A part of an object's time, and what it was spent on.

use readiness::Time;
use serde::Serialize;

/// What time was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WaitCause {
    /// No node had accepted a pod.
    Scheduling,
    /// An image was pulled.
    ImagePull,
    /// An init container ran.
    InitContainer,
    /// Containers ran, and their probes did not succeed yet.
    Starting,
    /// A Job ran.
    Job,
    /// A custom resource did not have its next child yet, or said of itself that it was not ready: the time of its operator.
    Operator,
    /// A group did not have its next member yet: the time of whoever applies its members.
    Applying,
    /// A built-in object did not have its next pod yet, or was not ready though its pods were: the time of its controller.
    Controller,
    /// A pod was on its node, and its volumes, its network or its containers were being made.
    Kubelet,
    /// All children were ready, and the parent was not told yet: `settle`, `hold` and the debounce of its policy.
    Settling,
}

impl WaitCause {
    /// All of them.
    pub const ALL: [WaitCause; 10] = [
        WaitCause::Scheduling,
        WaitCause::ImagePull,
        WaitCause::InitContainer,
        WaitCause::Starting,
        WaitCause::Job,
        WaitCause::Operator,
        WaitCause::Applying,
        WaitCause::Controller,
        WaitCause::Kubelet,
        WaitCause::Settling,
    ];

    /// Its name as the value of a metric's label.
    pub fn label(self) -> &'static str {
        match self {
            WaitCause::Scheduling => "scheduling",
            WaitCause::ImagePull => "image_pull",
            WaitCause::InitContainer => "init_container",
            WaitCause::Starting => "starting",
            WaitCause::Job => "job",
            WaitCause::Operator => "operator",
            WaitCause::Applying => "applying",
            WaitCause::Controller => "controller",
            WaitCause::Kubelet => "kubelet",
            WaitCause::Settling => "settling",
        }
    }

    /// What the time was spent on, in words.
    pub fn text(self) -> &'static str {
        match self {
            WaitCause::Scheduling => "waited for a node",
            WaitCause::ImagePull => "image pull",
            WaitCause::InitContainer => "init container",
            WaitCause::Starting => "started, until its probes succeeded",
            WaitCause::Job => "ran",
            WaitCause::Operator => "its operator",
            WaitCause::Applying => "whoever applies its members",
            WaitCause::Controller => "its controller",
            WaitCause::Kubelet => "volumes, network, containers",
            WaitCause::Settling => "its policy: settle, hold, debounce",
        }
    }
}

/// A part of an object's time that its fields or its Events tell apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutStep {
    /// What it was spent on.
    pub cause: WaitCause,
    /// More of it, such as the image; may be empty.
    pub detail: String,
    /// Its beginning.
    pub from: Time,
    /// Its end.
    pub to: Time,
}
