//! The few fields that rules read. What is absent stays absent: no field has a default that could look like an answer.

use std::borrow::Cow;

use crate::Time;

/// A name that is mostly one of a few well-known ones.
pub type Name = Cow<'static, str>;

/// What any rule may know of one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// `metadata.generation`
    pub generation: Option<i64>,
    /// `metadata.creationTimestamp`
    pub created: Option<Time>,
    /// `metadata.deletionTimestamp`
    pub deleted: Option<Time>,
    /// `metadata.finalizers`, kept only while the object is being deleted.
    pub finalizers: Vec<Box<str>>,
    /// Who has set which of them, as far as `metadata.managedFields` tell: finalizer and manager.
    pub setters: Vec<(Box<str>, Box<str>)>,
    /// What controls it, from `metadata.ownerReferences`.
    pub owner: Owner,
    /// Its annotations say that a volume is being provisioned, or on which node it will be used.
    pub provisioning: bool,
    /// What is asked for.
    pub spec: Spec,
    /// What is.
    pub status: Status,
    /// Ready and all of an EndpointSlice's `endpoints`.
    pub endpoints: Option<(u32, u32)>,
}

/// Kinds of controllers that change what a rule says about what they control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    /// A Deployment of Kubernetes.
    Deployment,
    /// A Job of Kubernetes.
    Job,
    /// Nobody, or somebody who makes no difference.
    #[default]
    Other,
}

/// `spec`, as far as rules read it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// `replicas`
    pub replicas: Option<i64>,
    /// `paused`
    pub paused: Option<bool>,
    /// `suspend`, `suspended`
    pub suspended: Option<bool>,
    /// `unschedulable`
    pub unschedulable: Option<bool>,
    /// `updateStrategy.type` is `OnDelete`.
    pub on_delete: bool,
    /// `updateStrategy.rollingUpdate.partition`
    pub partition: Option<i64>,
    /// `completions`
    pub completions: Option<i64>,
    /// `parallelism`
    pub parallelism: Option<i64>,
    /// `type` is `LoadBalancer`.
    pub load_balancer: bool,
    /// `storageClassName` is there and not empty.
    pub storage_class: bool,
    /// `volumeName` is there and not empty.
    pub volume: bool,
    /// Other numbers at the top, by name.
    pub counts: Vec<Count>,
}

/// `status`, as far as rules read it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// There is a status, and it is an object.
    pub present: bool,
    /// `observedGeneration`
    pub observed: Option<i64>,
    /// `conditions`, those of objects one level down, and booleans at the top or one level down.
    pub conditions: Vec<Condition>,
    /// Texts in fields that by their name tell how things are.
    pub words: Vec<Word>,
    /// Numbers at the top by name, but for those that have a field of their own.
    pub counts: Vec<Count>,
    /// `reason`
    pub reason: Option<Box<str>>,
    /// `message`, its beginning.
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

    /// `active`: a number of pods, or how many objects it lists.
    pub active: Option<i64>,
    /// `succeeded`
    pub succeeded: Option<i64>,
    /// `startTime`, `startedAt`, …
    pub started: Option<Time>,
    /// `completionTime`, `finishedAt`, …
    pub finished: Option<Time>,
    /// `lastScheduleTime`
    pub last_schedule: Option<Time>,
    /// `lastSuccessfulTime`
    pub last_success: Option<Time>,

    /// How many entries `loadBalancer.ingress` has.
    pub addresses: Option<u32>,
    /// `containerStatuses` and `initContainerStatuses`.
    pub containers: Containers,
    /// `currentHealthy`, `desiredHealthy`
    pub healthy: Option<(i64, i64)>,
}

/// `True`, `False`, `Unknown`, in any spelling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It says that it does not know.
    Unknown,
    /// It says nothing that can be understood.
    #[default]
    Absent,
}

/// One condition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    /// `type`, or the name of a boolean field.
    pub name: Name,
    /// Where it was found.
    pub place: Place,
    /// `status`
    pub status: Truth,
    /// `severity` is `Info`: the API says that it does not count.
    pub info: bool,
    /// `reason`
    pub reason: Box<str>,
    /// `message`, its beginning.
    pub message: Box<str>,
    /// `observedGeneration`
    pub observed: Option<i64>,
    /// `lastTransitionTime`
    pub since: Option<Time>,
}

/// Where in `status` a condition was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// `status.conditions`
    #[default]
    Conditions,
    /// `status.<here>.conditions`, as in `parents[0]`.
    Below(Box<str>),
    /// A boolean field `status.<name>`, or `status.<here>.<name>`.
    Field(Option<Box<str>>),
}

/// A text in a field that by its name tells how things are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Path below `status`, as in `phase`, `health.status`; empty where `status` itself is the text.
    pub path: Name,
    /// What it says, its beginning.
    pub word: Box<str>,
}

/// A number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Name of its field.
    pub name: Box<str>,
    /// The number.
    pub value: i64,
}

/// The containers of a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Containers {
    /// Main containers that are ready.
    pub ready: u32,
    /// Main containers.
    pub all: u32,
    /// Those that are not ready and say why, init containers first.
    pub troubled: Vec<Container>,
}

/// A container that is not ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// `name`
    pub name: Box<str>,
    /// It is an init container.
    pub init: bool,
    /// `state.waiting.reason`
    pub waiting: Option<Box<str>>,
    /// `state.terminated`, or else `lastState.terminated`.
    pub ended: Option<Exit>,
}

/// How a container ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// `exitCode`
    pub code: i64,
    /// `reason`
    pub reason: Box<str>,
}

impl Status {
    /// The condition of this type in `status.conditions`.
    pub(crate) fn condition(&self, name: &str) -> Option<&Condition> {
        self.conditions.iter().find(|c| c.place == Place::Conditions && c.name == name)
    }

    /// The same, if it is true.
    pub(crate) fn holds(&self, name: &str) -> Option<&Condition> {
        self.condition(name).filter(|c| c.status == Truth::True)
    }

    /// The text at this path.
    pub(crate) fn word(&self, path: &str) -> Option<&str> {
        self.words.iter().find(|w| w.path == path).map(|w| &*w.word)
    }
}

impl Truth {
    /// Reads a text: `True`, `true`, `Yes`, … are the same.
    pub fn of(text: &str) -> Truth {
        let is = |word: &str| text.eq_ignore_ascii_case(word);
        if is("true") || is("yes") {
            Truth::True
        } else if is("false") || is("no") {
            Truth::False
        } else if is("unknown") {
            Truth::Unknown
        } else {
            Truth::Absent
        }
    }

    /// As the API spells it.
    pub const fn word(self) -> &'static str {
        match self {
            Truth::True => "True",
            Truth::False => "False",
            Truth::Unknown => "Unknown",
            Truth::Absent => "absent",
        }
    }
}

impl From<bool> for Truth {
    fn from(value: bool) -> Truth {
        if value { Truth::True } else { Truth::False }
    }
}
