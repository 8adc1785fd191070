//! What makes the objects of a kind parents under a policy, and what is read of them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aggregator::PolicyId;
use arcstr::ArcStr;
use rollcall_cel::CountExpression;

use super::allowed_namespaces::AllowedNamespaces;
use super::foreign_namespaces::ForeignNamespaces;
use super::namespace_scope::NamespaceScope;
use super::proof::ProofRule;
use super::references::ReferencePath;
use super::selector::LabelMatcher;
use super::shape::ShapeMatcher;
use super::template::ParentTemplate;
use crate::status::{OwnedCondition, ParentStatus, is_beside_ready, written_types};

/// Makes the objects of this kind parents under a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentRule {
    /// The policy.
    pub policy: PolicyId,
    /// Label selector of the parents.
    pub selector: LabelMatcher,
    /// Label selector of the parents' namespaces.
    pub namespace_selector: Option<LabelMatcher>,
    /// Namespaces of the parents.
    pub namespaces: NamespaceScope,
    /// Namespaces in which parents that say themselves what they ask for may have children.
    pub foreign: ForeignNamespaces,
    /// What the parents ask for in their spec; `None` if that is of no account.
    pub shape: Option<ShapeMatcher>,
    /// Condition type to write.
    pub condition: ArcStr,
    /// Condition type to use instead if another client owns `condition`.
    pub fallback: Option<ArcStr>,
    /// Types under which the policy spoke before it was edited: such an entry of ours stands for its answer until there is another.
    pub former: Vec<Box<str>>,
    /// Write the condition even if another client owns it.
    pub takeover: bool,
    /// Rule for `status.observedGeneration`.
    pub observed_generation: ObservedGenerationRule,
    /// Meaning of a missing Kopf mark.
    pub kopf_marks: KopfMarkRule,
    /// What the parent's own status counts for.
    pub own_status: OwnStatusRule,
    /// Longest time from the deletion request of a parent until it is gone; beyond, its deletion is stuck. `None`: never.
    pub deletion_limit: Option<Duration>,
    /// Groups found by labels: values, in the order of the child rule's keys, and namespaces.
    pub labels: Vec<LabelRule>,
    /// Groups that expect children by name.
    pub names: Vec<(u8, Vec<ParentTemplate>)>,
    /// Groups found by references.
    pub references: Vec<ReferenceRule>,
    /// Groups whose minimum number of children is computed from the parent.
    pub counts: Vec<CountRule>,
    /// Expression that must hold before a generation counts as handled.
    pub proof: Option<ProofRule>,
    /// Outcomes are remembered of children that the parent selects by labels or by name.
    pub remembers_selected: bool,
    /// The policy is in shadow mode: what stands on the parent is another one's, where there is such.
    pub is_shadow: bool,
}

/// What a parent's own status counts for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnStatusRule {
    /// Where it reports a failure, the parent has failed.
    #[default]
    Failures,
    /// Nothing.
    Ignored,
}

impl ParentRule {
    /// Returns `true` if the policy writes conditions of this type.
    pub(crate) fn writes(&self, kind: &str) -> bool {
        written_types(&self.condition, self.fallback.as_deref()).any(|written| written == kind)
    }

    /// What the policy has left there under another type than it writes now: one of before it was edited, or this fallback.
    pub(crate) fn former_entry<'s>(
        &self,
        status: &'s ParentStatus,
        fallback: Option<&str>,
    ) -> Option<&'s OwnedCondition> {
        let is_former = |held: &&OwnedCondition| {
            fallback == Some(held.kind()) || self.former.iter().any(|of| **of == *held.kind())
        };
        status.written().filter(|held| !is_beside_ready(held.kind())).find(is_former)
    }

    /// The fallback, where it is not the type that is written now, and none of these rules may have written it.
    pub(crate) fn unused_fallback(&self, chosen: &str, rules: &[&ParentRule]) -> Option<&str> {
        let is_own = |of: &&str| rules.iter().all(|rule| rule.policy == self.policy || !rule.writes(of));
        self.fallback.as_deref().filter(|of| *of != chosen).filter(is_own)
    }

    /// Returns `true` if it chooses among parents in this namespace.
    pub(crate) fn is_over(&self, namespace: &str) -> bool {
        self.namespaces.covers(namespace)
    }

    /// Says why a parent in `own` that names its children itself cannot have some in `other`.
    pub(crate) fn check_child_namespace(&self, own: &str, other: &str) -> Result<(), String> {
        self.foreign.check_child(own, other)?;
        if self.is_over(other) {
            return Ok(());
        }
        Err(format!("it cannot be judged: a rule of its is not in force in namespace {other:?} yet"))
    }

    /// Creates a rule for all objects of a kind, with children found by owner reference alone and the condition
    /// `Ready`.
    pub fn for_policy(policy: PolicyId) -> ParentRule {
        ParentRule {
            policy,
            selector: LabelMatcher::default(),
            namespace_selector: None,
            namespaces: NamespaceScope::default(),
            foreign: ForeignNamespaces::default(),
            shape: None,
            condition: "Ready".into(),
            fallback: None,
            former: Vec::new(),
            takeover: false,
            observed_generation: ObservedGenerationRule::Auto,
            kopf_marks: KopfMarkRule::Learned,
            own_status: OwnStatusRule::default(),
            deletion_limit: None,
            labels: Vec::new(),
            names: Vec::new(),
            references: Vec::new(),
            counts: Vec::new(),
            proof: None,
            remembers_selected: false,
            is_shadow: false,
        }
    }
}

/// References of a parent, for one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceRule {
    /// Index of the group in the policy's `children`.
    pub group: u8,
    /// Path to the references.
    pub path: ReferencePath,
    /// API group and kind of the referenced objects.
    pub of: (Box<str>, Box<str>),
    /// Namespaces to which the references of a cluster-scoped parent may lead.
    pub allowed: AllowedNamespaces,
}

/// Expression for the minimum number of children of a group.
#[derive(Clone)]
pub struct CountRule {
    /// Index of the group in the policy's `children`.
    pub group: u8,
    /// The expression.
    pub count: Arc<CountExpression>,
    /// Source text.
    pub source: Arc<str>,
}

impl PartialEq for CountRule {
    fn eq(&self, other: &Self) -> bool {
        self.group == other.group && self.source == other.source
    }
}

impl Eq for CountRule {}

impl fmt::Debug for CountRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CountRule({}, {:?})", self.group, self.source)
    }
}

/// Label selection of a parent, for one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelRule {
    /// Index of the group in the policy's `children`.
    pub group: u8,
    /// Templates of the label values.
    pub values: Vec<ParentTemplate>,
    /// Which of these values, by place, an annotation has: it may be longer than that of a label.
    pub annotation_values: Vec<usize>,
    /// Templates of the namespaces; empty for the parent's own.
    pub namespaces: Vec<ParentTemplate>,
    /// Namespaces to which a template may lead, besides the parent's own.
    pub allowed: AllowedNamespaces,
}

/// Meaning of a parent without the mark of a Kopf operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KopfMarkRule {
    /// Not handled yet, if another parent of the policy in the same namespace has a mark; otherwise no meaning.
    #[default]
    Learned,
    /// Not handled yet.
    Expected,
    /// No meaning.
    Optional,
}

/// Rule for writing `status.observedGeneration`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ObservedGenerationRule {
    /// Written if a default of the schema supplies it and no other client owns it.
    #[default]
    Auto,
    /// Always written.
    Write,
    /// Never written.
    Never,
}
