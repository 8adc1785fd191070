//! Validation rules for the fields of a ReadinessGroup.

use crate::admission::{
    AdmissionRule, cap_of_debounce, duration, field_rule, group, kind, label_key, one_language,
    remembers_own_outcome, requirement_values, rule,
};

/// All rules of a group.
pub const GROUP_ADMISSION_RULES: &[AdmissionRule] = &[
    rule("members", "size(self) > 0", "at least one member"),
    rule(
        "members[*]",
        "[has(self.labels) && size(self.labels) > 0, has(self.helmRelease), has(self.application), has(self.kustomization), \
         has(self.applySet), has(self.inventory), has(self.objects) && size(self.objects) > 0].filter(x, x).size() == 1",
        "exactly one of labels, helmRelease, application, kustomization, applySet, inventory, objects",
    ),
    label_keys("members[*].labels"),
    label_keys("members[*].ignore.selector.matchLabels"),
    field_rule(
        "members[*]",
        ".kinds",
        "(has(self.objects) && size(self.objects) > 0) != (has(self.category) || (has(self.kinds) && size(self.kinds) > 0))",
        "goes with whatever selects objects, unless category does, and not with objects, each of which has its kind",
    ),
    field_rule(
        "members[*]",
        ".category",
        "!has(self.category) || !has(self.kinds) || size(self.kinds) == 0",
        "goes in place of kinds and not beside them; make it another member",
    ),
    field_rule(
        "members[*]",
        ".namespaces",
        "!has(self.namespaces) || size(self.namespaces) == 0 || !has(self.objects) || size(self.objects) == 0",
        "does not go with objects, each of which may name its namespace",
    ),
    rule(
        "members[*].namespaces[*]",
        "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "must be the name of a namespace",
    ),
    field_rule(
        "members[*]",
        ".quorum",
        "!has(self.category) || !has(self.quorum)",
        "does not go with category: it is a number of objects of each kind",
    ),
    field_rule(
        "members[*]",
        ".expect",
        "!has(self.expect) || !has(self.objects) || size(self.objects) == 0",
        "does not go with objects, all of which are expected",
    ),
    rule(
        "members[*].expect",
        "!has(self.min) || !has(self.max) || self.min <= self.max",
        "min must not be above max",
    ),
    field_rule(
        "members[*]",
        ".expect",
        "!has(self.category) || !has(self.expect) || !has(self.expect.cel)",
        "cel does not go with category: it yields a number of objects of each kind; use min",
    ),
    field_rule(
        "members[*]",
        ".afterDeletion",
        "!has(self.afterDeletion) || self.afterDeletion == 'forget' || \
         (!has(self.category) && (!has(self.kinds) || self.kinds.all(k, k.kind == 'Job' && has(k.group) && k.group == 'batch')) && \
         (!has(self.objects) || self.objects.all(o, o.kind == 'Job' && o.apiVersion.startsWith('batch/'))))",
        "only supported for Jobs (group batch); make other kinds another member",
    ),
    field_rule(
        "members[*]",
        ".afterDeletion",
        "!has(self.afterDeletion) || self.afterDeletion == 'forget' || ((!has(self.namespaces) || size(self.namespaces) == 0) && \
         (!has(self.objects) || self.objects.all(o, !has(o.namespace))))",
        "only supported for Jobs in the namespace of the group; remove it, or the namespaces",
    ),
    remembers_own_outcome("members[*]"),
    one_language("members[*].ready"),
    field_rule(
        "members[*].ready",
        ".rules",
        "!has(self.rules)",
        "only a ReadinessPolicy, which an administrator writes, judges by the scripts of a ConfigMap; copy the script to lua",
    ),
    category("members[*].category"),
    label_value("members[*].helmRelease"),
    label_value("members[*].application"),
    label_value("members[*].applySet"),
    label_value("members[*].inventory"),
    group("members[*].kinds[*].group"),
    kind("members[*].kinds[*].kind"),
    label_key("members[*].ignore.selector.matchExpressions[*].key"),
    requirement_values("members[*].ignore.selector.matchExpressions[*]"),
    duration("debounce.quiet"),
    duration("debounce.cap"),
    cap_of_debounce(),
    at_least_by_default(
        ".quiet",
        "!self.quiet.matches('^([0-9]+(ms|s|m|h))+$') || self.quiet.matches('[0-9]{7}[hm]') || self.quiet.matches('[0-9]{10}') || \
         duration(self.quiet) >= duration('100ms')",
        "must not be shorter than the default, 100ms",
    ),
    at_least_by_default(
        ".cap",
        "!self.cap.matches('^([0-9]+(ms|s|m|h))+$') || self.cap.matches('[0-9]{7}[hm]') || self.cap.matches('[0-9]{10}') || \
         duration(self.cap) >= duration('1s')",
        "must not be shorter than the default, 1s",
    ),
    duration("settle"),
    duration("hold"),
    duration("grace"),
    duration("limits.pending"),
    duration("limits.progress"),
    duration("limits.terminating"),
    duration("limits.deadline"),
];

/// What a CRD may call a category (`k8s.io/apiextensions-apiserver`, `ValidateCustomResourceDefinitionNames`).
const fn category(at: &'static str) -> AdmissionRule {
    rule(at, "self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')", "must be the name of a category, such as all")
}

/// Whoever may create groups takes no more of the writes, which all parents share, than by default.
const fn at_least_by_default(
    field: &'static str,
    long: &'static str,
    message: &'static str,
) -> AdmissionRule {
    field_rule("debounce", field, long, message)
}

/// No label has a longer key.
const fn label_keys(at: &'static str) -> AdmissionRule {
    rule(at, "self.all(key, size(key) <= 317)", "no label has a key of more than 317 characters")
}

/// What selects objects as the value of a label does, or as the part of an annotation that is made of the same characters: no
/// object can have another.
const fn label_value(at: &'static str) -> AdmissionRule {
    rule(
        at,
        "self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",
        "must be letters, digits, '-', '_' and '.', with a letter or digit at both ends",
    )
}
