//! The closed set of reasons that a verdict carries.

use std::fmt;

use crate::counted_unit::CountedUnit;
use crate::finalizer_holder::FinalizerHold;
use crate::reason_token::ReasonToken;
use crate::text::BoundedText;

/// Reason for the level of an object. [`Reason::as_token`] is for machines, `Display` for people.
///
/// **Invariant:** the displayed text is at most one line and does not change by itself: no ages, no restart counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The object is ready.
    Ready,
    /// The kind has no readiness; the object exists.
    Exists,
    /// The object completed successfully.
    Complete,
    /// No replicas are wanted and none are left.
    ScaledToZero,
    /// The ReplicaSet was superseded by a newer one of its Deployment.
    Superseded,
    /// The rollout reached the partition of the StatefulSet.
    PartitionReached,
    /// All pods are ready; they take the new revision when they are deleted (`OnDelete`).
    OnDelete,
    /// The schedule has not come due yet.
    NeverRan,
    /// The owner decides whether this failure matters, as a Job does for its pods.
    OwnerDecides,

    /// The object is expected and does not exist.
    Missing,
    /// The object has no field that a rule understands.
    NoSignal,
    /// The rule panicked while it evaluated the object; only this object is affected.
    RuleCrashed,
    /// The rule exceeded its limits.
    RuleLimit(BoundedText),
    /// The rule could not be evaluated.
    RuleFailed(BoundedText),
    /// The rule exceeded its limits several times in a row and is not evaluated for a while.
    RuleTooSlow,
    /// The newest version of the object awaits the rule, which is busy with others.
    RuleAwaited,
    /// The newest version of the object has awaited the rule for too long.
    RuleOverdue,
    /// The rule reads the clock, and the object was not evaluated again for too long.
    RuleOutOfDate,
    /// The rule changed and the object has not been evaluated since.
    RuleChanged,
    /// The object is gone and its outcome was not observed.
    OutcomeUnseen,
    /// The object is gone and is known from Events alone, which do not name its owner.
    OutcomeHeardOf,

    /// The status is about another generation.
    StaleGeneration,
    /// Fewer than wanted; the unit decides the token.
    Count(CountedUnit, u32, u32),
    /// The controller could not create replicas.
    ReplicaFailure(BoundedText),
    /// What keeps the object from being ready has not changed for longer than its limit.
    NoProgress(Box<Reason>),
    /// The rollout made no progress within `progressDeadlineSeconds`.
    ProgressDeadlineExceeded,
    /// The spec pauses the object.
    Paused,
    /// The spec suspends the object.
    Suspended,
    /// The node is cordoned.
    Cordoned,
    /// The controller has not started to process the object.
    NotStarted,
    /// The object has started and has not completed.
    Running,
    /// The result is decided; the controller is cleaning up.
    Finishing,
    /// The Job failed, with the reason from the API.
    JobFailed(BoundedText),
    /// The last run of a schedule did not succeed.
    LastRunFailed,

    /// No node can take the pod.
    Unschedulable(BoundedText),
    /// The pod waits to be scheduled or started.
    Pending(BoundedText),
    /// A container cannot start.
    Waiting(BoundedText),
    /// A container exited with an error, and the pod is not ready.
    ContainerFailed(BoundedText),
    /// The pod failed, with the reason from the API.
    PodFailed(BoundedText),

    /// No address has been assigned by the load balancer.
    PendingLoadBalancer,
    /// The PersistentVolumeClaim is not bound yet.
    VolumePending,
    /// The PersistentVolumeClaim waits for the first pod that uses it, or for a storage class that does not exist.
    WaitingForFirstConsumer,
    /// The volume behind the PersistentVolumeClaim is gone.
    VolumeLost,
    /// The claim of the volume is gone and the volume is not available again.
    VolumeReleased,

    /// The object is being deleted and has no finalizers.
    Terminating,
    /// The object is being deleted and blocked by finalizers.
    Finalizers(Box<FinalizerHold>),

    /// The object reports a permanent failure.
    SaysFailed(BoundedText),
    /// The object reports an error.
    SaysError(BoundedText),
    /// The object reports that it is progressing.
    SaysProgressing(BoundedText),
    /// The object reports that it is paused.
    SaysSuspended(BoundedText),
    /// The object reports that it is being removed.
    SaysTerminating(BoundedText),
    /// The object reports that it does not know its state.
    SaysUnknown(BoundedText),

    /// The reason of the object together with the cause found in an object that it owns.
    CausedBy(Box<ReasonWithCause>),

    /// A reason from a custom rule, with its own token and message.
    Custom(Box<CustomReason>),
}

/// A reason with its cause: a Deployment lacks replicas because one of its pods cannot pull its image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReasonWithCause {
    /// Reason of the object itself.
    pub base: Reason,
    /// Name of the owned object that explains it, such as `Pod web-0`.
    pub name: Box<str>,
    /// Reason of that object.
    pub cause: Reason,
}

/// Reason of a custom rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CustomReason {
    /// CamelCase token.
    pub token: Box<str>,
    /// Message for people.
    pub message: BoundedText,
}

impl Reason {
    /// Creates the reason of a custom rule. The message is truncated like text from other components.
    pub fn from_custom_rule(token: &str, message: &str) -> Reason {
        Reason::Custom(Box::new(CustomReason {
            token: token.into(),
            message: BoundedText::from_foreign(message),
        }))
    }

    /// Returns this reason together with its cause.
    pub fn with_cause(self, name: &str, cause: Reason) -> Reason {
        Reason::CausedBy(Box::new(ReasonWithCause { base: self, name: name.into(), cause }))
    }

    /// Returns `true` if the API states that the object will not recover without intervention.
    pub const fn is_terminal(&self) -> bool {
        match self {
            Reason::CausedBy(below) => below.base.is_terminal(),
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

    /// Returns the CamelCase token for JSON output and logs, from a closed set except for [`Reason::Custom`].
    pub fn as_token(&self) -> &str {
        match self {
            Reason::Custom(custom) => &custom.token,
            Reason::CausedBy(below) => below.cause.as_token(),
            closed => closed.token().as_str(),
        }
    }

    /// Returns the token, of the cause where one is known. It is from a closed set, as metrics need it: every custom rule's
    /// reason is [`ReasonToken::Custom`].
    pub const fn token(&self) -> ReasonToken {
        match self {
            Reason::Ready => ReasonToken::Ready,
            Reason::Exists => ReasonToken::Exists,
            Reason::Complete => ReasonToken::Complete,
            Reason::ScaledToZero => ReasonToken::ScaledToZero,
            Reason::Superseded => ReasonToken::Superseded,
            Reason::PartitionReached => ReasonToken::PartitionReached,
            Reason::OnDelete => ReasonToken::OnDelete,
            Reason::NeverRan => ReasonToken::NeverRan,
            Reason::OwnerDecides => ReasonToken::OwnerDecides,
            Reason::Missing => ReasonToken::Missing,
            Reason::NoSignal => ReasonToken::NoSignal,
            Reason::RuleCrashed => ReasonToken::RuleCrashed,
            Reason::RuleLimit(_) => ReasonToken::RuleLimit,
            Reason::RuleFailed(_) => ReasonToken::RuleFailed,
            Reason::RuleTooSlow | Reason::RuleOverdue => ReasonToken::RuleTooSlow,
            Reason::RuleAwaited | Reason::RuleOutOfDate => ReasonToken::RuleAwaited,
            Reason::RuleChanged => ReasonToken::RuleChanged,
            Reason::OutcomeUnseen | Reason::OutcomeHeardOf => ReasonToken::OutcomeUnseen,
            Reason::StaleGeneration => ReasonToken::StaleGeneration,
            Reason::Count(counted, ..) => counted.token(),
            Reason::ReplicaFailure(_) => ReasonToken::ReplicaFailure,
            Reason::NoProgress(_) => ReasonToken::NoProgress,
            Reason::ProgressDeadlineExceeded => ReasonToken::ProgressDeadlineExceeded,
            Reason::Paused => ReasonToken::Paused,
            Reason::Suspended => ReasonToken::Suspended,
            Reason::Cordoned => ReasonToken::Cordoned,
            Reason::NotStarted => ReasonToken::NotStarted,
            Reason::Running => ReasonToken::Running,
            Reason::Finishing => ReasonToken::Finishing,
            Reason::JobFailed(_) => ReasonToken::JobFailed,
            Reason::LastRunFailed => ReasonToken::LastRunFailed,
            Reason::Unschedulable(_) => ReasonToken::Unschedulable,
            Reason::Pending(_) => ReasonToken::Pending,
            Reason::Waiting(_) => ReasonToken::ContainerWaiting,
            Reason::ContainerFailed(_) => ReasonToken::ContainerFailed,
            Reason::PodFailed(_) => ReasonToken::PodFailed,
            Reason::PendingLoadBalancer => ReasonToken::PendingLoadBalancer,
            Reason::VolumePending => ReasonToken::VolumePending,
            Reason::WaitingForFirstConsumer => ReasonToken::WaitingForFirstConsumer,
            Reason::VolumeLost => ReasonToken::VolumeLost,
            Reason::VolumeReleased => ReasonToken::VolumeReleased,
            Reason::Terminating => ReasonToken::Terminating,
            Reason::Finalizers(_) => ReasonToken::Finalizers,
            Reason::SaysFailed(_) => ReasonToken::SaysFailed,
            Reason::SaysError(_) => ReasonToken::SaysError,
            Reason::SaysProgressing(_) => ReasonToken::SaysProgressing,
            Reason::SaysSuspended(_) => ReasonToken::SaysSuspended,
            Reason::SaysTerminating(_) => ReasonToken::SaysTerminating,
            Reason::SaysUnknown(_) => ReasonToken::SaysUnknown,
            Reason::CausedBy(below) => below.cause.token(),
            Reason::Custom(_) => ReasonToken::Custom,
        }
    }

    /// Approximate heap memory of the reason, in bytes.
    pub fn heap_size(&self) -> usize {
        match self {
            Reason::Custom(custom) => size_of::<CustomReason>() + custom.token.len() + custom.message.len(),
            Reason::CausedBy(below) => {
                size_of::<ReasonWithCause>()
                    + below.name.len()
                    + below.base.heap_size()
                    + below.cause.heap_size()
            }
            Reason::Finalizers(held) => held.to_string().len(),
            Reason::NoProgress(base) => size_of::<Reason>() + base.heap_size(),
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

    /// Returns the text of a reason without payload.
    const fn plain_text(&self) -> &'static str {
        match self {
            Reason::Ready => "ready",
            Reason::Exists => "exists; its kind has no readiness",
            Reason::Complete => "complete",
            Reason::ScaledToZero => "scaled to zero",
            Reason::Superseded => "superseded by a newer ReplicaSet",
            Reason::PartitionReached => "rolled out as far as its partition allows",
            Reason::OnDelete => "ready; pods take the new revision when they are deleted",
            Reason::NeverRan => "has not come due yet",
            Reason::OwnerDecides => "failed; its owner decides whether that counts",
            Reason::Missing => "does not exist",
            Reason::NoSignal => "reports nothing about its readiness",
            Reason::RuleCrashed => "the rule that evaluates it crashed",
            Reason::RuleTooSlow => {
                "its rule exceeded its limits several times in a row and is not evaluated for a while"
            }
            Reason::RuleAwaited => "its rule has not evaluated it yet",
            Reason::RuleOverdue => "its rule is busy with other objects and has not evaluated it in time",
            Reason::RuleOutOfDate => "its rule reads the clock; not evaluated again yet",
            Reason::RuleChanged => "its rule changed; not evaluated again yet",
            Reason::OutcomeUnseen => "gone, and its outcome was not observed",
            Reason::OutcomeHeardOf => {
                "gone; Events about it do not name its owner: its outcome was not observed"
            }
            Reason::StaleGeneration => "its controller has not observed its current generation",
            Reason::ProgressDeadlineExceeded => "progress deadline exceeded",
            Reason::Paused => "paused",
            Reason::Suspended => "suspended",
            Reason::Cordoned => "cordoned",
            Reason::NotStarted => "not started yet",
            Reason::Running => "running",
            Reason::Finishing => "about to finish",
            Reason::LastRunFailed => "its last run did not succeed",
            Reason::PendingLoadBalancer => "waiting for a load balancer address",
            Reason::VolumePending => "volume pending",
            Reason::WaitingForFirstConsumer => {
                "waiting for its first consumer, or its storage class does not exist"
            }
            Reason::VolumeLost => "volume lost",
            Reason::VolumeReleased => "released by its claim",
            Reason::Terminating => "being deleted",
            _ => "",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Count(counted, have, want) => write!(f, "{have} of {want} {}", counted.unit_text()),
            Reason::Custom(custom) if custom.message.is_empty() => f.write_str(&custom.token),
            Reason::Custom(custom) => f.write_str(&custom.message),
            Reason::CausedBy(below) => write!(f, "{}; {} {}", below.base, below.name, below.cause),
            Reason::NoProgress(base) => write!(f, "{base}, without progress"),
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
            plain => f.write_str(plain.plain_text()),
        }
    }
}
