//! The closed set of words that reasons have for machines.

/// Word of a [`Reason`](crate::Reason) in JSON output, logs and metrics: the name of its variant.
///
/// Code that tells reasons apart matches this enum without a wildcard: a reason that is added does not compile until it
/// was thought of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is explained at the variant of `Reason` that has it")]
pub enum ReasonToken {
    Ready,
    Exists,
    Complete,
    ScaledToZero,
    Superseded,
    PartitionReached,
    OnDelete,
    NeverRan,
    OwnerDecides,
    Missing,
    NoSignal,
    RuleCrashed,
    RuleLimit,
    RuleFailed,
    RuleTooSlow,
    RuleAwaited,
    RuleChanged,
    OutcomeUnseen,
    StaleGeneration,
    ReplicasNotCreated,
    ReplicasNotUpdated,
    ReplicasNotReady,
    ReplicasNotAvailable,
    ReplicasNotLabeled,
    ReplicasLeftOver,
    ContainersNotReady,
    CompletionsMissing,
    EndpointsNotReady,
    BudgetNotMet,
    ReplicaFailure,
    NoProgress,
    ProgressDeadlineExceeded,
    Paused,
    Suspended,
    Cordoned,
    NotStarted,
    Running,
    Finishing,
    JobFailed,
    LastRunFailed,
    Unschedulable,
    Pending,
    ContainerWaiting,
    ContainerFailed,
    PodFailed,
    PendingLoadBalancer,
    VolumePending,
    WaitingForFirstConsumer,
    VolumeLost,
    VolumeReleased,
    Terminating,
    Finalizers,
    SaysFailed,
    SaysError,
    SaysProgressing,
    SaysSuspended,
    SaysTerminating,
    SaysUnknown,
    Custom,
}

/// Spells each token as its variant is named.
macro_rules! spell_tokens {
    ($($token:ident)*) => {
        impl ReasonToken {
            /// All tokens.
            pub const ALL: &'static [ReasonToken] = &[$(ReasonToken::$token),*];

            /// Returns the token as written.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(ReasonToken::$token => stringify!($token),)*
                }
            }
        }
    };
}

spell_tokens! {
    Ready Exists Complete ScaledToZero Superseded PartitionReached OnDelete NeverRan OwnerDecides Missing
    NoSignal RuleCrashed RuleLimit RuleFailed RuleTooSlow RuleAwaited RuleChanged OutcomeUnseen StaleGeneration
    ReplicasNotCreated ReplicasNotUpdated ReplicasNotReady ReplicasNotAvailable ReplicasNotLabeled
    ReplicasLeftOver ContainersNotReady CompletionsMissing EndpointsNotReady BudgetNotMet ReplicaFailure
    NoProgress ProgressDeadlineExceeded Paused Suspended Cordoned NotStarted Running Finishing JobFailed
    LastRunFailed Unschedulable Pending ContainerWaiting ContainerFailed PodFailed PendingLoadBalancer
    VolumePending WaitingForFirstConsumer VolumeLost VolumeReleased Terminating Finalizers SaysFailed
    SaysError SaysProgressing SaysSuspended SaysTerminating SaysUnknown Custom
}
