//! The interest in a kind: the policies under which its objects are children or parents, and the fields read from
//! parents.

mod allowed_namespaces;
mod foreign_namespaces;
mod namespace_scope;
mod parent_rule;
mod proof;
mod read_budget;
mod references;
mod selector;
mod shape;
mod template;
mod told_field;

use std::fmt;
use std::sync::Arc;

use aggregator::{KindId, PolicyId};
use arcstr::ArcStr;
use readiness::{RuleKind, StuckLimits};
use rollcall_cel::FieldProjection;
use rules::CompiledRule;

pub use allowed_namespaces::AllowedNamespaces;
pub use foreign_namespaces::{ForeignNamespaces, NamespaceGrants, NotNamespaceGrants};
pub use namespace_scope::NamespaceScope;
pub use parent_rule::{
    CountRule, KopfMarkRule, LabelRule, ObservedGenerationRule, OwnStatusRule, ParentRule, ReferenceRule,
};
pub use proof::{ExcerptRule, MAX_EXCERPT_BYTES, ProofRule};
pub use read_budget::ReadBudget;
pub use references::{ChildReference, ReferencePath, ReferencePathError};
pub use selector::{LabelMatchTerm, LabelMatcher};
pub use shape::{ReadShape, ShapeMatcher, ShapeRefusal};
pub use template::{ParentTemplate, ParentTemplateError};
pub use told_field::ToldField;

use crate::status::{OwnTypes, written_types};
use crate::wire::{OwnerRef, WireMeta};

/// Parents for which a policy of another release speaks: what it writes there is written by the same field manager, and is not
/// ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElsewhereRule {
    /// Label selector of the parents.
    pub selector: LabelMatcher,
    /// Label selector of the parents' namespaces; one whose labels are not known matches.
    pub namespace_selector: Option<LabelMatcher>,
    /// Namespaces to whose parents that release is restricted; empty for all. Parents without a namespace may be its own in any case.
    pub namespaces: Vec<Box<str>>,
    /// Types of conditions that it writes.
    pub types: Vec<Box<str>>,
    /// The policy and its release, in words; empty where no policy gives way to it.
    pub policy: ArcStr,
    /// Policies of this release that give way to it where both select a parent: younger ones that write the same condition.
    pub outranks: Vec<PolicyId>,
}

impl ElsewhereRule {
    /// Returns `true` if its release may have the parents of this namespace; empty for those without one, which a release has that
    /// is restricted to namespaces, too.
    pub(crate) fn may_be_in(&self, namespace: &str) -> bool {
        let is_everywhere = self.namespaces.is_empty() || namespace.is_empty();
        is_everywhere || self.namespaces.iter().any(|own| **own == *namespace)
    }

    /// Returns `true` for a parent for which it speaks, as far as that is known: `may_be_in` says whether its namespace may have
    /// labels that a selector matches.
    pub(crate) fn may_choose(&self, meta: &WireMeta, may_be_in: impl Fn(&LabelMatcher) -> bool) -> bool {
        self.may_be_in(&meta.namespace)
            && self.selector.matches(&meta.labels)
            && self.namespace_selector.as_ref().is_none_or(may_be_in)
    }
}

/// Everything that the reflector needs to know about one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interest {
    /// The kind.
    pub id: KindId,
    /// Built-in rules that assess it.
    pub judge: RuleKind,
    /// Rules that assess its objects; at least one. The first is the built-in rule of the first policy.
    pub assessment_rules: Vec<AssessmentRule>,
    /// Policies under which its objects are children.
    pub child: Vec<ChildRule>,
    /// Policies under which its objects are parents.
    pub parent: Vec<ParentRule>,
    /// Policy and group in which the volume claims of its objects count for the objects' owners.
    pub claims: Vec<(PolicyId, u8)>,
    /// What is kept of its objects for proofs; `None` if no proof reads them.
    pub excerpt: Option<ExcerptRule>,
    /// Types of conditions that policies wrote which are gone or changed: such entries of ours are taken away.
    pub release: Vec<Box<str>>,
    /// Parents for which other releases speak.
    pub elsewhere: Vec<ElsewhereRule>,
    /// `metadata.generation` changes with the spec alone: the kind has a status subresource.
    pub counted: bool,
    /// Where its objects say whether they are ready, if not in a condition.
    pub told_in: Option<ToldField>,
}

impl Interest {
    /// Creates the interest in a kind that no policy uses yet.
    pub fn for_kind(id: KindId, group: &str, kind: &str) -> Interest {
        Interest {
            id,
            judge: RuleKind::from_group_kind(group, kind),
            assessment_rules: Vec::new(),
            child: Vec::new(),
            parent: Vec::new(),
            claims: Vec::new(),
            excerpt: None,
            release: Vec::new(),
            elsewhere: Vec::new(),
            counted: true,
            told_in: ToldField::of_kind(group, kind),
        }
    }

    /// Returns `true` if a parent with these labels, of a kind whose parents say themselves what they ask for, is another
    /// release's: what stands on it is not for this one to take away.
    pub fn is_for_others(&self, labels: &[(Box<str>, Box<str>)]) -> bool {
        let is_elsewhere = |rule: &ParentRule| rule.shape.is_some() && !rule.selector.matches(labels);
        !self.parent.is_empty() && self.parent.iter().all(is_elsewhere)
    }

    /// Adds fields that a proof reads of its objects.
    pub fn add_excerpt_fields(&mut self, fields: &FieldProjection) {
        self.excerpt.get_or_insert_default().fields.merge_fields(fields);
    }

    /// Types of conditions that policies write on its objects, or did.
    pub fn own_types(&self) -> OwnTypes<'_> {
        let written = self.parent.iter().flat_map(|r| written_types(&r.condition, r.fallback.as_deref()));
        OwnTypes::of(written.chain(self.release.iter().map(|kind| &**kind)))
    }

    /// Adds a group whose children are also found as volume claims.
    pub fn add_claim_rule(&mut self, policy: PolicyId, group: u8) {
        let by_owner = self.child.iter().find(|rule| (rule.policy, rule.group) == (policy, group));
        let claimed = by_owner.map(|rule| ChildRule { find: FindChildrenBy::Claims, ..rule.clone() });
        self.child.extend(claimed);
    }

    /// Returns `true` if its objects are kept whole until they are assessed: some may be parents, or a custom rule
    /// reads all of them.
    pub fn reads_whole(&self) -> bool {
        !self.parent.is_empty()
            || !self.release.is_empty()
            || self.excerpt.is_some()
            || self.assessment_rules.iter().any(|judged_by| judged_by.rule.is_some())
    }

    /// Returns `true` if expressions of policies are evaluated on its objects while they are taken in.
    pub fn evaluates_on_ingest(&self) -> bool {
        self.parent.iter().any(|rule| !rule.counts.is_empty())
    }

    /// Returns `true` if the outcomes of some of its objects are remembered.
    pub fn remembers_outcomes(&self) -> bool {
        self.child.iter().any(|rule| rule.retention != OutcomeRetention::Forget)
    }
}

/// One way to assess an object: a rule with its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssessmentRule {
    /// Limits after which an object is stuck.
    pub limits: StuckLimits,
    /// Custom rule of the policy; `None` for the built-in rules.
    pub rule: Option<UserRule>,
    /// The outcome of an object counts even while it is being deleted, until the deletion is stuck.
    pub remembers_outcome: bool,
}

/// Whose objects share the limits of a custom rule: what it costs on one of them may keep it from being evaluated on all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleSharing {
    /// All objects of the kind: an administrator has written the rule.
    #[default]
    Kind,
    /// The objects of one namespace. Groups of several namespaces have brought the rule, whose authors know nothing of each other.
    Namespace,
}

/// A custom rule of a policy. Two are equal if they were compiled from the same text.
#[derive(Clone)]
pub struct UserRule {
    /// The compiled rule.
    pub rule: Arc<CompiledRule>,
    /// Source text.
    pub source: Arc<str>,
    /// Whose objects share its limits.
    pub shared_by: RuleSharing,
    /// `apiVersion` and `kind` of the objects, which items in lists of built-in kinds lack.
    pub of: (Box<str>, Box<str>),
}

impl PartialEq for UserRule {
    fn eq(&self, other: &Self) -> bool {
        (&self.source, self.shared_by, &self.of) == (&other.source, other.shared_by, &other.of)
    }
}

impl Eq for UserRule {}

impl fmt::Debug for UserRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserRule({:?}, {:?})", self.source, self.of)
    }
}

/// Makes the objects of this kind children under a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildRule {
    /// The policy.
    pub policy: PolicyId,
    /// Index of the group in the policy's `children`.
    pub group: u8,
    /// Index into [`Interest::assessment_rules`].
    pub rule_index: u16,
    /// Relation by which the children are found.
    pub find: FindChildrenBy,
    /// Namespaces whose objects count for a cluster-scoped owner.
    pub allowed: AllowedNamespaces,
    /// Selector of objects that do not count.
    pub ignore: Option<LabelMatcher>,
    /// Group and kind of controllers whose objects do not count.
    pub made_by_none_of: Arc<[(Box<str>, Box<str>)]>,
    /// Namespaces whose objects count.
    pub scope: NamespaceScope,
    /// Retention of the outcome of a deleted child.
    pub retention: OutcomeRetention,
}

impl ChildRule {
    /// Returns `true` if the object does not count, whatever it belongs to.
    pub(crate) fn passes_over(&self, meta: &WireMeta) -> bool {
        let is_of_kind = |owner: &OwnerRef| {
            let of = (owner.api_group(), &*owner.kind);
            self.made_by_none_of.iter().any(|(group, kind)| (&**group, &**kind) == of)
        };
        !self.scope.covers(&meta.namespace)
            || self.ignore.as_ref().is_some_and(|selector| selector.matches(&meta.labels))
            || meta.owners.iter().any(|owner| owner.controller && is_of_kind(owner))
    }
}

/// Retention of the outcome of a deleted child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutcomeRetention {
    /// The outcome is not retained.
    #[default]
    Forget,
    /// The outcome counts until another run of the same name replaces it.
    Remember,
    /// The outcome counts for the generation of the parent under which the child was first observed.
    RememberGeneration,
}

/// Relation by which children are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindChildrenBy {
    /// Owner reference to this group and kind.
    Owner {
        /// API group of the parent.
        group: Box<str>,
        /// Kind of the parent.
        kind: Box<str>,
    },
    /// Values of these labels, in the namespaces that the parent names. Operators copy labels from a parent to the
    /// objects it owns: an object that is owned by a parent of this kind counts for that parent alone.
    Labels {
        /// Keys, in the order in which parents render their values.
        keys: Vec<Box<str>>,
        /// API group and kind of the parent.
        of: (Box<str>, Box<str>),
    },
    /// Name in a reference of the parent.
    References {
        /// API group and kind of the parent.
        of: (Box<str>, Box<str>),
    },
    /// Name of a volume claim of the parent's StatefulSet: volume claims have no owner reference.
    Claims,
}

impl FindChildrenBy {
    /// API group and kind of the parents, where they select their children by labels or by name.
    pub fn selecting_kind(&self) -> Option<(&str, &str)> {
        match self {
            FindChildrenBy::Labels { of, .. } | FindChildrenBy::References { of } => Some((&of.0, &of.1)),
            FindChildrenBy::Owner { .. } | FindChildrenBy::Claims => None,
        }
    }

    /// API group and kind of the parents; `None` for volume claims.
    pub fn parent_kind(&self) -> Option<(&str, &str)> {
        match self {
            FindChildrenBy::Owner { group, kind } => Some((group, kind)),
            _ => self.selecting_kind(),
        }
    }
}
