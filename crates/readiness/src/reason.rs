//! Why: the closed set of reasons a verdict carries.

use std::fmt;

use crate::holder::Held;
use crate::text::Text;

/// Why an object has its level. [`Reason::token`] is for machines, `Display` for people.
///
/// **Invariant:** what it displays is at most a line, and nothing in it ticks by itself: no ages, no restart counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// It is ready, and there is nothing more to say.
    Ready,
    /// Its kind has nothing that could be ready or not; it exists.
    Exists,
    /// It ran to its end, and well.
    Complete,
    /// Nothing is asked for, and nothing is left.
    ScaledToZero,
    /// A ReplicaSet that its Deployment has left behind.
    Superseded,
    /// Rolled out as far as its partition allows.
    PartitionReached,
    /// Its pods take the new revision when somebody deletes them, and all are ready.
    OnDelete,
    /// A schedule that has not come due yet.
    NeverRan,
    /// Not for us to count: whoever owns it decides.
    OwnerDecides,

    /// Expected, but there is no such object.
    Missing,
    /// It says nothing that any rule understands.
    NoSignal,
    /// The code that judges it crashed; only this object is affected.
    RuleCrashed,
    /// The rule that judges it exceeded its bounds.
    RuleLimit(Text),
    /// The rule that judges it could not be evaluated.
    RuleFailed(Text),
    /// The rule that judges it changed, and it has not been judged anew.
    RuleChanged,
    /// It is gone, and nobody saw how it ended.
    OutcomeUnseen,
    /// It is gone, and others tell of it, but not whose it was.
    OutcomeHeardOf,

    /// What it says is about another generation of it.
    StaleGeneration,
    /// Fewer than wanted; the token depends on of what.
    Count(Counted, u32, u32),
    /// Its controller could not create replicas.
    ReplicaFailure(Text),
    /// Its rollout made no progress within its own deadline.
    ProgressDeadlineExceeded,
    /// Paused by its spec.
    Paused,
    /// Suspended by its spec.
    Suspended,
    /// No new work is placed on it.
    Cordoned,
    /// Nobody has taken it up yet.
    NotStarted,
    /// It has started and is not through.
    Running,
    /// Its end is decided; its controller is tidying up.
    Finishing,
    /// The Job failed; with the reason that the API gives.
    JobFailed(Text),
    /// The last run of a schedule did not succeed.
    LastRunFailed,

    /// No node takes the pod.
    Unschedulable(Text),
    /// It waits to be scheduled or started.
    Pending(Text),
    /// A container cannot start.
    Waiting(Text),
    /// A container ended badly, and the pod is not ready.
    ContainerFailed(Text),
    /// The pod failed; with the reason that the API gives.
    PodFailed(Text),

    /// No address has been assigned by the load balancer.
    PendingLoadBalancer,
    /// The volume claim is not bound yet.
    VolumePending,
    /// The volume claim waits for the first pod that uses it, or for a storage class that does not exist.
    WaitingForFirstConsumer,
    /// The volume behind the claim is gone.
    VolumeLost,
    /// The volume's claim is gone, and it is not available again.
    VolumeReleased,

    /// It is being deleted and holds no finalizers.
    Terminating,
    /// It is being deleted and held by finalizers.
    Finalizers(Box<Held>),

    /// It says of itself that it failed for good.
    SaysFailed(Text),
    /// It says of itself that something is wrong.
    SaysError(Text),
    /// It says of itself that it is on its way.
    SaysProgressing(Text),
    /// It says of itself that it is paused.
    SaysSuspended(Text),
    /// It says of itself that it is being taken down.
    SaysTerminating(Text),
    /// It says of itself that it does not know.
    SaysUnknown(Text),

    /// What it says, and what was found below it that explains it.
    Below(Box<Below>),

    /// A rule of the user's own, with its own token and message.
    Custom(Box<Custom>),
}

/// Of what there are too few or too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    /// Replicas that exist.
    Created,
    /// Replicas of the wanted revision.
    Updated,
    /// Replicas that are ready.
    Ready,
    /// Replicas that have been ready for long enough.
    Available,
    /// Replicas that carry all labels of the template.
    Labeled,
    /// Replicas of an old revision or beyond the wanted number: the first number is how many are left over.
    Surplus,
    /// Containers of a pod that are ready.
    Containers,
    /// Completions of a Job.
    Completions,
    /// Endpoints that are ready.
    Endpoints,
    /// Pods that a disruption budget counts as healthy.
    Healthy,
}

/// A reason, and the reason behind it: a Deployment lacks replicas because a pod of it cannot pull its image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Below {
    /// What the object itself says.
    pub base: Reason,
    /// What was found below it, as `Pod web-0`.
    pub name: Box<str>,
    /// What that one says.
    pub cause: Reason,
}

/// What a rule of the user's own says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Custom {
    /// CamelCase token.
    pub token: Box<str>,
    /// For people.
    pub message: Text,
}

impl Reason {
    /// A reason of a user's rule. The message is bounded like foreign text.
    pub fn custom(token: &str, message: &str) -> Reason {
        Reason::Custom(Box::new(Custom { token: token.into(), message: Text::foreign(message) }))
    }

    /// This reason with the one that was found behind it.
    pub fn because(self, name: &str, cause: Reason) -> Reason {
        Reason::Below(Box::new(Below { base: self, name: name.into(), cause }))
    }

    /// Does the API itself say that this will not get better without somebody's help?
    pub const fn terminal(&self) -> bool {
        match self {
            Reason::Below(below) => below.base.terminal(),
            _ => matches!(
                self,
                Reason::ProgressDeadlineExceeded
                    | Reason::JobFailed(_)
                    | Reason::PodFailed(_)
                    | Reason::VolumeLost
                    | Reason::SaysFailed(_)
            ),
        }
    }

    /// The CamelCase token of JSON output and logs: from a closed set, except for [`Reason::Custom`].
    pub fn token(&self) -> &str {
        match self {
            Reason::Custom(custom) => &custom.token,
            Reason::Below(below) => below.cause.token(),
            closed => closed.label(),
        }
    }

    /// The same for metrics, where the set has to be closed: whatever a user's own rule says is `Custom`.
    pub fn label(&self) -> &'static str {
        match self {
            Reason::Count(counted, ..) => counted.token(),
            Reason::Custom(_) => "Custom",
            Reason::Below(below) => below.cause.label(),
            Reason::RuleLimit(_) => "RuleLimit",
            Reason::RuleFailed(_) => "RuleFailed",
            Reason::ReplicaFailure(_) => "ReplicaFailure",
            Reason::JobFailed(_) => "JobFailed",
            Reason::Unschedulable(_) => "Unschedulable",
            Reason::Pending(_) => "Pending",
            Reason::Waiting(_) => "ContainerWaiting",
            Reason::ContainerFailed(_) => "ContainerFailed",
            Reason::PodFailed(_) => "PodFailed",
            Reason::Finalizers(_) => "Finalizers",
            Reason::SaysFailed(_) => "SaysFailed",
            Reason::SaysError(_) => "SaysError",
            Reason::SaysProgressing(_) => "SaysProgressing",
            Reason::SaysSuspended(_) => "SaysSuspended",
            Reason::SaysTerminating(_) => "SaysTerminating",
            Reason::SaysUnknown(_) => "SaysUnknown",
            plain => plain.plain().0,
        }
    }

    /// So many bytes hang on it elsewhere in memory, about: what it says in words.
    pub fn weight(&self) -> usize {
        match self {
            Reason::Custom(custom) => size_of::<Custom>() + custom.token.len() + custom.message.len(),
            Reason::Below(below) => {
                size_of::<Below>() + below.name.len() + below.base.weight() + below.cause.weight()
            }
            Reason::Finalizers(held) => held.to_string().len(),
            Reason::RuleLimit(text)
            | Reason::RuleFailed(text)
            | Reason::ReplicaFailure(text)
            | Reason::JobFailed(text)
            | Reason::Unschedulable(text)
            | Reason::Pending(text)
            | Reason::Waiting(text)
            | Reason::ContainerFailed(text)
            | Reason::PodFailed(text)
            | Reason::SaysFailed(text)
            | Reason::SaysError(text)
            | Reason::SaysProgressing(text)
            | Reason::SaysSuspended(text)
            | Reason::SaysTerminating(text)
            | Reason::SaysUnknown(text) => size_of::<Box<str>>() + text.len(),
            _ => 0,
        }
    }

    /// Token and words of the reasons that carry nothing.
    const fn plain(&self) -> (&'static str, &'static str) {
        match self {
            Reason::Ready => ("Ready", "ready"),
            Reason::Exists => ("Exists", "exists; nothing more is asked of its kind"),
            Reason::Complete => ("Complete", "complete"),
            Reason::ScaledToZero => ("ScaledToZero", "scaled to zero"),
            Reason::Superseded => ("Superseded", "superseded by a newer ReplicaSet"),
            Reason::PartitionReached => ("PartitionReached", "rolled out as far as its partition allows"),
            Reason::OnDelete => ("OnDelete", "ready; pods take the new revision when they are deleted"),
            Reason::NeverRan => ("NeverRan", "has not come due yet"),
            Reason::OwnerDecides => ("OwnerDecides", "failed, but its Job decides what that means"),
            Reason::Missing => ("Missing", "does not exist"),
            Reason::NoSignal => ("NoSignal", "says nothing about its readiness"),
            Reason::RuleCrashed => ("RuleCrashed", "the rule that judges it crashed"),
            Reason::RuleChanged => ("RuleChanged", "its rule changed; not judged anew yet"),
            Reason::OutcomeUnseen => ("OutcomeUnseen", "gone, and nobody saw how it ended"),
            Reason::OutcomeHeardOf => {
                ("OutcomeUnseen", "gone; Events tell of it, but not whose it was: nobody saw how it ended")
            }
            Reason::StaleGeneration => {
                ("StaleGeneration", "its controller has not seen its newest generation")
            }
            Reason::ProgressDeadlineExceeded => ("ProgressDeadlineExceeded", "progress deadline exceeded"),
            Reason::Paused => ("Paused", "paused"),
            Reason::Suspended => ("Suspended", "suspended"),
            Reason::Cordoned => ("Cordoned", "cordoned"),
            Reason::NotStarted => ("NotStarted", "not started yet"),
            Reason::Running => ("Running", "running"),
            Reason::Finishing => ("Finishing", "about to finish"),
            Reason::LastRunFailed => ("LastRunFailed", "its last run did not succeed"),
            Reason::PendingLoadBalancer => ("PendingLoadBalancer", "waiting for a load balancer address"),
            Reason::VolumePending => ("VolumePending", "volume pending"),
            Reason::WaitingForFirstConsumer => (
                "WaitingForFirstConsumer",
                "waiting for its first consumer, or its storage class does not exist",
            ),
            Reason::VolumeLost => ("VolumeLost", "volume lost"),
            Reason::VolumeReleased => ("VolumeReleased", "released by its claim"),
            Reason::Terminating => ("Terminating", "being deleted"),
            _ => ("", ""),
        }
    }
}

impl Counted {
    const fn token(self) -> &'static str {
        match self {
            Counted::Created => "ReplicasNotCreated",
            Counted::Updated => "ReplicasNotUpdated",
            Counted::Ready => "ReplicasNotReady",
            Counted::Available => "ReplicasNotAvailable",
            Counted::Labeled => "ReplicasNotLabeled",
            Counted::Surplus => "ReplicasLeftOver",
            Counted::Containers => "ContainersNotReady",
            Counted::Completions => "CompletionsMissing",
            Counted::Endpoints => "EndpointsNotReady",
            Counted::Healthy => "BudgetNotMet",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Counted::Created => "replicas created",
            Counted::Updated => "replicas updated",
            Counted::Ready => "replicas ready",
            Counted::Available => "replicas available",
            Counted::Labeled => "replicas labeled",
            Counted::Surplus => "replicas left over",
            Counted::Containers => "containers ready",
            Counted::Completions => "completions",
            Counted::Endpoints => "endpoints ready",
            Counted::Healthy => "pods healthy",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Count(counted, have, want) => write!(f, "{have} of {want} {}", counted.words()),
            Reason::Custom(custom) if custom.message.is_empty() => f.write_str(&custom.token),
            Reason::Custom(custom) => f.write_str(&custom.message),
            Reason::Below(below) => write!(f, "{}; {} {}", below.base, below.name, below.cause),
            Reason::Unschedulable(text) => write!(f, "unschedulable: {text}"),
            Reason::Pending(text) => write!(f, "pending: {text}"),
            Reason::Waiting(text) => write!(f, "waiting: {text}"),
            Reason::Finalizers(held) => held.fmt(f),
            Reason::RuleLimit(text)
            | Reason::RuleFailed(text)
            | Reason::ReplicaFailure(text)
            | Reason::JobFailed(text)
            | Reason::ContainerFailed(text)
            | Reason::PodFailed(text)
            | Reason::SaysFailed(text)
            | Reason::SaysError(text)
            | Reason::SaysProgressing(text)
            | Reason::SaysSuspended(text)
            | Reason::SaysTerminating(text)
            | Reason::SaysUnknown(text) => f.write_str(text),
            plain => f.write_str(plain.plain().1),
        }
    }
}
