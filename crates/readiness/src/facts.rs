//! The few fields that rules read. An absent field stays absent: no field has a default that could be mistaken for a
//! value.

use std::borrow::Cow;

use crate::Time;

/// A name that is usually one of a few well-known ones and then costs no allocation.
pub type WellKnownName = Cow<'static, str>;

/// Everything that a rule may know about one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// `metadata.generation`
    pub generation: Option<i64>,
    /// `metadata.creationTimestamp`
    pub created: Option<Time>,
    /// `metadata.deletionTimestamp`
    pub deleted: Option<Time>,
    /// Time at which a manager other than Rollcall last changed `spec` or `status`, from `metadata.managedFields`.
    pub changed: Option<Time>,
    /// `metadata.finalizers`, kept only while the object is being deleted.
    pub finalizers: Vec<Box<str>>,
    /// Managers that set the finalizers, as far as `metadata.managedFields` records them: finalizer and manager.
    pub setters: Vec<(Box<str>, Box<str>)>,
    /// Kind of the controller, from `metadata.ownerReferences`.
    pub owner: OwnerKind,
    /// Annotation that pauses the controller of a custom resource.
    pub paused_by: Option<Box<str>>,
    /// Annotations say that a volume is being provisioned, or name the node that will use it.
    pub provisioning: bool,
    /// Desired state.
    pub spec: SpecFacts,
    /// Observed state.
    pub status: StatusFacts,
    /// Ready endpoints and all endpoints of an EndpointSlice, from `endpoints`.
    pub endpoints: Option<(u32, u32)>,
}

/// Kinds of controllers that change the verdict of an object that they control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnerKind {
    /// A Deployment of the API group `apps`.
    Deployment,
    /// A Job of the API group `batch`.
    Job,
    /// A ReplicaSet of the API group `apps`, or a ReplicationController.
    ReplicaSet,
    /// No controller, or one that makes no difference.
    #[default]
    Other,
}

/// Number of replicas, as the API writes it: of those that an update or a disruption may take away, or has to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaAmount {
    /// This number of replicas.
    Count(i64),
    /// This percentage of the wanted replicas.
    Percent(i64),
}

impl ReplicaAmount {
    /// Parses a percentage such as `25%`.
    pub fn from_text(text: &str) -> Option<ReplicaAmount> {
        text.strip_suffix('%')?.parse().ok().map(ReplicaAmount::Percent)
    }

    /// The number that it is of so many; a part of one counts as one. Whoever writes it chooses the percentage: wide enough for
    /// any product.
    pub fn rounded_up(self, of: i64) -> i64 {
        match self {
            ReplicaAmount::Count(count) => count,
            ReplicaAmount::Percent(percent) => {
                let number = (i128::from(of) * i128::from(percent) + 99).div_euclid(100);
                i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
            }
        }
    }
}

/// `spec`, as far as rules read it.
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts as they were read, each of its own; no state of ours"
)]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpecFacts {
    /// `replicas`
    pub replicas: Option<i64>,
    /// `paused`
    pub paused: Option<bool>,
    /// `suspend`, `suspended`
    pub suspended: Option<bool>,
    /// The object is switched off in other words: `disabled`, `hibernated`, `stopped`, `enabled: false`, …
    pub off: bool,
    /// By Crossplane's convention the object stands for one elsewhere, which `Ready` is about: `forProvider`,
    /// `compositionRef`, `crossplane`.
    pub external: bool,
    /// `unschedulable`
    pub unschedulable: Option<bool>,
    /// `updateStrategy.type` is `OnDelete`.
    pub on_delete: bool,
    /// `updateStrategy.rollingUpdate.partition`
    pub partition: Option<i64>,
    /// `updateStrategy.rollingUpdate.maxUnavailable`
    pub max_unavailable: Option<ReplicaAmount>,
    /// `template.metadata.labels`: labels that every pod of a workload has once its template is rolled out. Budgets may select by
    /// others of them than the workload itself.
    pub pod_labels: Vec<(Box<str>, Box<str>)>,
    /// `completions`
    pub completions: Option<i64>,
    /// `parallelism`
    pub parallelism: Option<i64>,
    /// `type` is `LoadBalancer`.
    pub load_balancer: bool,
    /// `storageClassName` is present and not empty.
    pub storage_class: bool,
    /// `volumeName` is present and not empty.
    pub volume: bool,
    /// Other numbers at the top level, by name.
    pub counts: Vec<CountField>,
}

/// `status`, as far as rules read it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusFacts {
    /// `status` is present and an object.
    pub present: bool,
    /// `observedGeneration`
    pub observed: Option<i64>,
    /// `conditions`, the conditions of objects one level down, and booleans at the top or one level down.
    pub conditions: Vec<ConditionFacts>,
    /// Texts in fields that describe a state by their name; without a text it is a part that says nothing of itself.
    pub state_fields: Vec<StateField>,
    /// Numbers at the top level by name, except those that have a field of their own.
    pub counts: Vec<CountField>,
    /// `reason`
    pub reason: Option<Box<str>>,
    /// `message`, truncated.
    pub message: Option<Box<str>>,

    /// `replicas`; of a DaemonSet `currentNumberScheduled`.
    pub replicas: Option<i64>,
    /// `updatedReplicas`, `updatedNumberScheduled`
    pub updated: Option<i64>,
    /// `readyReplicas`, `numberReady`
    pub ready: Option<i64>,
    /// `availableReplicas`, `numberAvailable`
    pub available: Option<i64>,
    /// `fullyLabeledReplicas`
    pub labeled: Option<i64>,
    /// `desiredNumberScheduled`
    pub desired: Option<i64>,
    /// `currentRevision` equals `updateRevision`.
    pub revisions_match: Option<bool>,

    /// `active`: a number of pods, or the number of objects that it lists.
    pub active: Option<i64>,
    /// `succeeded`
    pub succeeded: Option<i64>,
    /// A text that is not yet what another text of the status says it is to be.
    pub lag: Option<Box<LaggingField>>,

    /// `startTime`, `startedAt`, …
    pub started: Option<Time>,
    /// `completionTime`, `finishedAt`, …
    pub finished: Option<Time>,
    /// `lastScheduleTime`
    pub last_schedule: Option<Time>,
    /// `lastSuccessfulTime`
    pub last_success: Option<Time>,

    /// Number of entries in `loadBalancer.ingress`.
    pub addresses: Option<u32>,
    /// `containerStatuses` and `initContainerStatuses`.
    pub containers: PodContainers,
    /// `currentHealthy`, `desiredHealthy`
    pub healthy: Option<(i64, i64)>,
}

/// `True`, `False`, `Unknown`, in any spelling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TruthValue {
    /// The condition is true.
    True,
    /// The condition is false.
    False,
    /// The status is `Unknown`.
    Unknown,
    /// The status is absent or cannot be understood.
    #[default]
    Absent,
}

/// One condition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConditionFacts {
    /// `type`, or the name of a boolean field.
    pub name: WellKnownName,
    /// Location of the condition in `status`.
    pub location: ConditionLocation,
    /// `status`
    pub status: TruthValue,
    /// `severity` is `Info`: by the API's convention the condition does not affect readiness.
    pub info: bool,
    /// The name begins with the kind of the object and so is about the whole: `ConnectorReady` of a Connector. Of a boolean field one
    /// word of the kind is enough: `bucketReady` of a BucketClaim.
    pub names_kind: bool,
    /// `reason`
    pub reason: Box<str>,
    /// `message`, truncated.
    pub message: Box<str>,
    /// `observedGeneration`
    pub observed: Option<i64>,
    /// `lastTransitionTime`
    pub since: Option<Time>,
}

/// Location of a condition in `status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ConditionLocation {
    /// `status.conditions`
    #[default]
    Conditions,
    /// `status.<here>.conditions`, as in `parents[0]`.
    Below(Box<str>),
    /// A boolean field `status.<name>`, or `status.<here>.<name>`.
    Field(Option<Box<str>>),
}

/// A text in a field that describes a state by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateField {
    /// Path below `status`, such as `phase` or `health.status`; empty if `status` itself is the text.
    pub path: WellKnownName,
    /// Value of the field, truncated; empty for a part that says nothing of itself where others speak.
    pub value: Box<str>,
}

/// A number and the name of its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountField {
    /// Name of its field.
    pub name: Box<str>,
    /// The number.
    pub value: i64,
}

/// A text of the status that differs from the one it is to become: `currentVersion` and `targetVersion`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaggingField {
    /// Name of the field that says what is.
    pub name: Box<str>,
    /// What is.
    pub value: Box<str>,
    /// Name of the field that says what is to be.
    pub wanted_name: Box<str>,
    /// What is to be.
    pub wanted: Box<str>,
}

/// The containers of a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodContainers {
    /// Main containers that are ready.
    pub ready: u32,
    /// Main containers.
    pub all: u32,
    /// Main and init containers that are not ready and report why, init containers first.
    pub troubled: Vec<UnreadyContainer>,
}

/// A container that is not ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadyContainer {
    /// `name`
    pub name: Box<str>,
    /// It is an init container.
    pub init: bool,
    /// `state.waiting.reason`
    pub waiting: Option<Box<str>>,
    /// `state.terminated`, or else `lastState.terminated`.
    pub ended: Option<ContainerExit>,
    /// `restartCount`
    pub restarts: u32,
}

/// Exit of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerExit {
    /// `exitCode`
    pub code: i64,
    /// `reason`
    pub reason: Box<str>,
    /// `startedAt`
    pub started: Option<Time>,
    /// `finishedAt`
    pub finished: Option<Time>,
}

impl StatusFacts {
    /// Returns the condition of this type in `status.conditions`.
    pub(crate) fn find_condition(&self, name: &str) -> Option<&ConditionFacts> {
        self.conditions.iter().find(|c| c.location == ConditionLocation::Conditions && c.name == name)
    }

    /// Returns the condition of this type if it is true.
    pub(crate) fn find_true_condition(&self, name: &str) -> Option<&ConditionFacts> {
        self.find_condition(name).filter(|c| c.status == TruthValue::True)
    }

    /// Returns the text at this path.
    pub(crate) fn state_text(&self, path: &str) -> Option<&str> {
        self.state_fields.iter().find(|w| w.path == path).map(|w| &*w.value)
    }
}

impl TruthValue {
    /// Parses a text; `True`, `true`, `Yes` and similar spellings are equal.
    pub fn from_text(text: &str) -> TruthValue {
        let is = |word: &str| text.eq_ignore_ascii_case(word);
        if is("true") || is("yes") {
            TruthValue::True
        } else if is("false") || is("no") {
            TruthValue::False
        } else if is("unknown") {
            TruthValue::Unknown
        } else {
            TruthValue::Absent
        }
    }

    /// Returns the spelling of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            TruthValue::True => "True",
            TruthValue::False => "False",
            TruthValue::Unknown => "Unknown",
            TruthValue::Absent => "absent",
        }
    }
}

impl From<bool> for TruthValue {
    fn from(value: bool) -> TruthValue {
        if value { TruthValue::True } else { TruthValue::False }
    }
}
