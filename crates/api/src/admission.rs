//! Validation rules for the fields of a policy that a schema cannot express; those of a ReadinessGroup are beside them
//! (`group_admission`). The API server receives them with the CRD and
//! refuses what breaks one; `rollcall check` evaluates the same expressions without a server and prints the same messages.

/// A validation rule of the CRD.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionRule {
    /// Path of the field below `spec`, such as `children[*].quorum`; the rule's `self` is its value.
    pub at: &'static str,
    /// CEL expression that must be true.
    pub rule: &'static str,
    /// What is wrong where it is not, and what to write instead.
    pub message: &'static str,
    /// The field to blame, below `at`.
    pub field: Option<&'static str>,
}

pub(crate) const fn rule(at: &'static str, rule: &'static str, message: &'static str) -> AdmissionRule {
    AdmissionRule { at, rule, message, field: None }
}

pub(crate) const fn field_rule(
    at: &'static str,
    field: &'static str,
    rule: &'static str,
    message: &'static str,
) -> AdmissionRule {
    AdmissionRule { at, rule, message, field: Some(field) }
}

pub(crate) const fn group(at: &'static str) -> AdmissionRule {
    let subdomain = "self == '' || \
        self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')";
    rule(at, subdomain, "must be empty or a DNS subdomain, such as example.com")
}

pub(crate) const fn version(at: &'static str) -> AdmissionRule {
    rule(at, "self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')", "must be a DNS label, such as v1")
}

pub(crate) const fn kind(at: &'static str) -> AdmissionRule {
    rule(
        at,
        "self.matches('^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$')",
        "must be the name of a kind, such as Database",
    )
}

/// The bounds on the digits keep `duration` from an overflow, which would be an error and have other words.
pub(crate) const fn duration(at: &'static str) -> AdmissionRule {
    let within = "self.matches('^([0-9]+(ms|s|m|h))+$') && !self.matches('[0-9]{7}[hm]') && \
        !self.matches('[0-9]{10}') && duration(self) <= duration('87600h')";
    rule(at, within, "must be a duration such as 100ms, 5s, 10m or 1h30m, of at most 87600h")
}

const fn condition_type(at: &'static str) -> AdmissionRule {
    let named =
        "self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')";
    rule(at, named, "must be a condition type, such as Ready or example.com/ChildrenReady")
}

const fn free_condition_type(at: &'static str) -> AdmissionRule {
    rule(
        at,
        "!(self in ['Reconciling', 'Stalled'])",
        "Reconciling and Stalled are already written along with Ready; choose another type",
    )
}

pub(crate) const fn label_key(at: &'static str) -> AdmissionRule {
    rule(
        at,
        "self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",
        "must be the key of a label, such as app.kubernetes.io/name",
    )
}

pub(crate) const fn requirement_values(at: &'static str) -> AdmissionRule {
    field_rule(
        at,
        ".values",
        "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
        "values are for In and NotIn, and only for them",
    )
}

pub(crate) const fn one_language(at: &'static str) -> AdmissionRule {
    rule(
        at,
        "[has(self.cel), has(self.lua), has(self.profile), has(self.rules)].filter(x, x).size() == 1",
        "exactly one of cel, lua, profile, rules",
    )
}

pub(crate) const fn remembers_own_outcome(at: &'static str) -> AdmissionRule {
    field_rule(
        at,
        ".afterDeletion",
        "!has(self.afterDeletion) || self.afterDeletion == 'forget' || !has(self.ready)",
        "remembers the Job's own outcome and cannot be combined with ready; remove ready",
    )
}

/// One that is no duration at all is refused by the rule of its own field.
pub(crate) const fn cap_of_debounce() -> AdmissionRule {
    field_rule(
        "debounce",
        ".cap",
        "[self.quiet, self.cap].exists(d, !d.matches('^([0-9]+(ms|s|m|h))+$') || d.matches('[0-9]{7}[hm]') || \
         d.matches('[0-9]{10}')) || duration(self.quiet) <= duration(self.cap)",
        "must not be shorter than debounce.quiet",
    )
}

/// An outcome that is to be remembered is that of a Job which its parent owns.
const fn after_deletion(only: &'static str, message: &'static str) -> AdmissionRule {
    field_rule("children[*]", ".afterDeletion", only, message)
}

/// All rules of a policy.
pub const ADMISSION_RULES: &[AdmissionRule] = &[
    group("parent.group"),
    version("parent.version"),
    kind("parent.kind"),
    field_rule(
        "parent",
        ".group",
        "!has(self.group) || self.group != 'rollcall.dev'",
        "objects of rollcall.dev cannot be parents",
    ),
    label_key("parent.selector.matchExpressions[*].key"),
    requirement_values("parent.selector.matchExpressions[*]"),
    label_key("parent.namespaceSelector.matchExpressions[*].key"),
    requirement_values("parent.namespaceSelector.matchExpressions[*]"),
    group("children[*].kind.group"),
    version("children[*].kind.version"),
    kind("children[*].kind.kind"),
    field_rule(
        "children[*].find",
        ".refs",
        "!has(self.refs) || !has(self.labels) || size(self.labels) == 0",
        "labels or refs, not both",
    ),
    field_rule(
        "children[*].find",
        ".namespaces",
        "!has(self.namespaces) || size(self.namespaces) == 0 || (has(self.labels) && size(self.labels) > 0)",
        "goes with labels",
    ),
    rule(
        "children[*].find.namespaces[*]",
        "self.contains('{') || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "must be the name of a namespace, or a template such as {parent.metadata.namespace}",
    ),
    field_rule(
        "children[*].find",
        ".allowedNamespaces",
        "!has(self.namespaces) || !self.namespaces.exists(n, n.contains('{') && n != '{parent.metadata.namespace}') || \
         (has(self.allowedNamespaces) && size(self.allowedNamespaces) > 0)",
        "a template in namespaces lets the parent's author choose the namespace: list those that may be chosen",
    ),
    rule(
        "children[*].find.allowedNamespaces[*]",
        "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') || self.matches('^[a-z0-9][-a-z0-9]*[*]$')",
        "must be the name of a namespace, or the beginning of names and *, such as team-*",
    ),
    rule(
        "children[*].expect",
        "!has(self.min) || !has(self.max) || self.min <= self.max",
        "min must not be above max",
    ),
    after_deletion(
        "!has(self.afterDeletion) || self.afterDeletion == 'forget' || \
         (self.kind.kind == 'Job' && has(self.kind.group) && self.kind.group == 'batch')",
        "only supported for Jobs (group batch); remove it",
    ),
    after_deletion(
        "!has(self.afterDeletion) || self.afterDeletion == 'forget' || !has(self.find) || \
         ((!has(self.find.labels) || size(self.find.labels) == 0) && !has(self.find.refs))",
        "only supported for Jobs found by ownerReference; remove find",
    ),
    remembers_own_outcome("children[*]"),
    label_key("children[*].ignore.selector.matchExpressions[*].key"),
    requirement_values("children[*].ignore.selector.matchExpressions[*]"),
    one_language("children[*].ready"),
    rule(
        "children[*].ready.rules",
        "self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
        "must be the name of a ConfigMap, or NAMESPACE/NAME",
    ),
    condition_type("condition.type"),
    free_condition_type("condition.type"),
    condition_type("condition.fallback"),
    free_condition_type("condition.fallback"),
    duration("debounce.quiet"),
    duration("debounce.cap"),
    cap_of_debounce(),
    duration("settle"),
    duration("hold"),
    duration("grace"),
    duration("limits.pending"),
    duration("limits.progress"),
    duration("limits.terminating"),
    duration("limits.deadline"),
];
