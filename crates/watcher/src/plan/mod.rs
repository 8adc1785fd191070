//! Why a kind is watched: which of its objects count for whom, and what is read from those that are parents.

mod references;
mod selector;
mod template;

use std::fmt;
use std::sync::Arc;

use aggregator::{KindId, PolicyId};
use readiness::{Kind, Limits};
use rules::Rule;
use rules::cel::Count;

pub use references::{Reference, References, ReferencesError};
pub use selector::{Requirement, Selector};
pub use template::{Template, TemplateError};

/// Everything the reflector needs to know about one kind.
#[derive(Clone, Debug)]
pub struct Interest {
    /// The kind.
    pub id: KindId,
    /// Which table of rules judges it.
    pub judge: Kind,
    /// Through what its objects are judged; at least one, the first is the native one of the first policy.
    pub lenses: Vec<Lens>,
    /// Under which policies its objects are children.
    pub child: Vec<ChildRule>,
    /// Under which policies its objects are parents.
    pub parent: Vec<ParentRule>,
    /// Where the volumes that its objects claim count for whoever owns these: policy and group.
    pub claims: Vec<(PolicyId, u8)>,
    /// A policy is gone: entries of ours that no policy calls for are taken away.
    pub release: bool,
    /// `metadata.generation` moves with the spec alone: the kind has a status subresource.
    pub counted: bool,
}

impl Interest {
    /// A kind that nobody has a use for yet.
    pub fn of(id: KindId, group: &str, kind: &str) -> Interest {
        Interest {
            id,
            judge: Kind::of(group, kind),
            lenses: Vec::new(),
            child: Vec::new(),
            parent: Vec::new(),
            claims: Vec::new(),
            release: false,
            counted: true,
        }
    }

    /// The children of this group are also found by being claimed.
    pub fn claim(&mut self, policy: PolicyId, group: u8) {
        let by_owner = self.child.iter().find(|rule| (rule.policy, rule.group) == (policy, group));
        let claimed = by_owner.map(|rule| ChildRule { find: Find::Claims, ..rule.clone() });
        self.child.extend(claimed);
    }

    /// Its objects are kept whole until they are judged: some may be parents, or a rule reads all of them.
    pub fn reads_whole(&self) -> bool {
        !self.parent.is_empty() || self.release || self.lenses.iter().any(|lens| lens.rule.is_some())
    }

    /// How some of its objects ended is remembered.
    pub fn remembers(&self) -> bool {
        self.child.iter().any(|rule| rule.after != After::Forget)
    }
}

/// One way of judging: a rule with its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lens {
    /// From when on pending or terminating is stuck.
    pub limits: Limits,
    /// A policy's own rule; without one, the native rules.
    pub rule: Option<UserRule>,
    /// How an object ended counts even while it is being deleted, until that takes too long.
    pub remembers: bool,
}

/// A rule that a policy brings. Two are equal where they were compiled from the same text.
#[derive(Clone)]
pub struct UserRule {
    /// The rule.
    pub rule: Arc<Rule>,
    /// What it was compiled from.
    pub source: Arc<str>,
    /// `apiVersion` and `kind` of the objects: in lists of built-in kinds they do not say it themselves.
    pub of: (Box<str>, Box<str>),
}

impl PartialEq for UserRule {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.of == other.of
    }
}

impl Eq for UserRule {}

impl fmt::Debug for UserRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserRule({:?}, {:?})", self.source, self.of)
    }
}

/// Objects of this kind are children under a policy.
#[derive(Clone, Debug)]
pub struct ChildRule {
    /// The policy.
    pub policy: PolicyId,
    /// Which of its `children`.
    pub group: u8,
    /// Which of [`Interest::lenses`] judges them.
    pub lens: u8,
    /// How they are found.
    pub find: Find,
    /// These do not count.
    pub ignore: Option<Selector>,
    /// What becomes of how one ended when it is gone.
    pub after: After,
}

/// What becomes of how a child ended when it is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum After {
    /// It does not count.
    #[default]
    Forget,
    /// It counts until another run of the same takes its place.
    Remember,
    /// It counts for the generation of the parent that it was first seen under.
    RememberGeneration,
}

/// How children are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Find {
    /// By an ownerReference to this group and kind.
    Owner {
        /// API group of the parent.
        group: Box<str>,
        /// Kind of the parent.
        kind: Box<str>,
    },
    /// By the values of these labels, in the namespaces that the parent names. Operators copy labels from a parent to what
    /// it owns: one that is owned by some parent of this kind counts for that one alone.
    Labels {
        /// Keys, in the order in which parents render their values.
        keys: Vec<Box<str>>,
        /// API group and kind of the parent.
        of: (Box<str>, Box<str>),
    },
    /// By name, as the parent refers to it.
    References,
    /// By name, as a StatefulSet of the parent claims it: volume claims have no ownerReference.
    Claims,
}

/// Objects of this kind are parents under a policy.
#[derive(Clone, Debug)]
pub struct ParentRule {
    /// The policy.
    pub policy: PolicyId,
    /// Only parents with such labels.
    pub selector: Selector,
    /// Only parents in namespaces with such labels.
    pub namespace_selector: Option<Selector>,
    /// Only parents in these namespaces; empty for all.
    pub namespaces: Vec<Box<str>>,
    /// The condition that is written.
    pub condition: Box<str>,
    /// Where the condition is somebody else's: this one instead.
    pub fallback: Option<Box<str>>,
    /// Take the condition even where it is somebody else's.
    pub takeover: bool,
    /// What to do about `status.observedGeneration`.
    pub observed_generation: ObservedGeneration,
    /// What it means that an operator has left no mark of Kopf's.
    pub marks: Marks,
    /// Groups found by labels: values (in the order of the child rule's keys) and namespaces.
    pub labels: Vec<LabelRule>,
    /// Groups that expect children by name.
    pub names: Vec<(u8, Vec<Template>)>,
    /// Groups found by references.
    pub references: Vec<ReferenceRule>,
    /// Groups that expect as many children as a policy computes from the parent.
    pub counts: Vec<CountRule>,
}

impl ParentRule {
    /// All objects of a kind, which are told about children by their owner alone, in `Ready`.
    pub fn of(policy: PolicyId) -> ParentRule {
        ParentRule {
            policy,
            selector: Selector::default(),
            namespace_selector: None,
            namespaces: Vec::new(),
            condition: "Ready".into(),
            fallback: None,
            takeover: false,
            observed_generation: ObservedGeneration::Auto,
            marks: Marks::Learned,
            labels: Vec::new(),
            names: Vec::new(),
            references: Vec::new(),
            counts: Vec::new(),
        }
    }
}

/// What a parent refers to, for one group.
#[derive(Clone, Debug)]
pub struct ReferenceRule {
    /// Which of the policy's `children`.
    pub group: u8,
    /// Where the references are.
    pub path: References,
    /// API group and kind of those that are meant.
    pub of: (Box<str>, Box<str>),
}

/// How many children a group of this parent expects, at least.
#[derive(Clone)]
pub struct CountRule {
    /// Which of the policy's `children`.
    pub group: u8,
    /// The expression.
    pub count: Arc<Count>,
    /// What it was compiled from.
    pub source: Arc<str>,
}

impl fmt::Debug for CountRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CountRule({}, {:?})", self.group, self.source)
    }
}

/// What a parent selects by labels, for one group.
#[derive(Clone, Debug)]
pub struct LabelRule {
    /// Which of the policy's `children`.
    pub group: u8,
    /// The values.
    pub values: Vec<Template>,
    /// In these namespaces; empty for the parent's own.
    pub namespaces: Vec<Template>,
}

/// What it means that a parent carries no mark of a Kopf operator's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Marks {
    /// Where another parent of the policy in the same namespace has one, that this one was not handled yet; else nothing.
    #[default]
    Learned,
    /// That it was not handled yet.
    Expected,
    /// Nothing.
    Optional,
}

/// When `status.observedGeneration` is kept by us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ObservedGeneration {
    /// Where a default of the schema supplies it and nobody else owns it.
    #[default]
    Auto,
    /// Always.
    Write,
    /// Never.
    Never,
}
