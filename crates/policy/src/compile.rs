//! Compiles a policy's spec into the types of the engine, the reflector and the renderer. Pure; reports all problems at
//! once.

use std::sync::Arc;
use std::time::Duration;

use aggregator::{Availability, JointCount};
use api::policy::{
    AvailabilityMode, EvidenceMode, KindRef, ObservedGenerationMode, OwnStatusMode, ReadinessPolicySpec,
    WriteMode,
};
use readiness::{RuleKind, StuckLimits};
use rollcall_cel::ProofExpression;
use watcher::plan::{
    ForeignNamespaces, KopfMarkRule, LabelMatcher, NamespaceScope, ObservedGenerationRule, OutcomeRetention,
    OwnStatusRule, ProofRule, RuleSharing, ShapeMatcher,
};

use super::groups::{CompiledGroup, compile_groups, default_groups};
use super::policy_checker::{PolicyChecker, compile_selector};
use super::problem::PolicyProblem;
use super::protected_kinds::PolicySettings;

/// Number of children that several groups have together.
#[derive(Clone, Debug)]
pub struct JointExpectation {
    /// What they are, in the singular.
    pub of: String,
    /// The groups, and the number.
    pub count: JointCount,
}

/// Policy that was validated and translated into the types of other crates; kinds are still names.
#[derive(Clone, Debug)]
pub struct CompiledPolicy {
    /// Kind of the parents.
    pub parent: KindRef,
    /// Label selector of the parents.
    pub selector: LabelMatcher,
    /// Label selector of the parents' namespaces.
    pub namespace_selector: Option<LabelMatcher>,
    /// Namespaces of the parents.
    pub scope: NamespaceScope,
    /// Namespaces in which ReadinessGroups may have members.
    pub foreign: ForeignNamespaces,
    /// Selects ReadinessGroups by what they ask for.
    pub shape: Option<ShapeMatcher>,
    /// Groups of children.
    pub groups: Vec<CompiledGroup>,
    /// Minimum number of critical children in all groups together.
    pub min: u32,
    /// Numbers of children that some groups have together.
    pub joint: Vec<JointExpectation>,
    /// Condition type that is written.
    pub condition: String,
    /// Condition type to fall back to.
    pub fallback: Option<String>,
    /// The condition is written even if another field manager owns it.
    pub takeover: bool,
    /// Maintenance of `status.observedGeneration`.
    pub observed_generation: ObservedGenerationRule,
    /// Meaning of a parent without a mark of its operator.
    pub marks: KopfMarkRule,
    /// `spec.ownStatus`.
    pub own_status: OwnStatusRule,
    /// `spec.proof`.
    pub proof: Option<ProofRule>,
    /// Debounce of writes.
    pub debounce: timer::DebounceConfig,
    /// `spec.settle`.
    pub settle: Duration,
    /// `spec.hold`.
    pub hold: Duration,
    /// `spec.availability`.
    pub availability: Availability,
    /// `spec.grace`.
    pub grace: Duration,
    /// `spec.limits.pending`, `spec.limits.progress` and `spec.limits.terminating`.
    pub limits: StuckLimits,
    /// `spec.limits.deadline`.
    pub deadline: Option<Duration>,
    /// Shadow mode: nothing is written.
    pub shadow: bool,
}

const fn observed_generation_rule(mode: ObservedGenerationMode) -> ObservedGenerationRule {
    match mode {
        ObservedGenerationMode::Auto => ObservedGenerationRule::Auto,
        ObservedGenerationMode::Write => ObservedGenerationRule::Write,
        ObservedGenerationMode::Never => ObservedGenerationRule::Never,
    }
}

const fn own_status_rule(mode: Option<OwnStatusMode>) -> OwnStatusRule {
    match mode {
        None | Some(OwnStatusMode::Failures) => OwnStatusRule::Failures,
        Some(OwnStatusMode::Ignore) => OwnStatusRule::Ignored,
    }
}

const fn availability_of(mode: AvailabilityMode) -> Availability {
    match mode {
        AvailabilityMode::Tolerant => Availability::Tolerant,
        AvailabilityMode::Strict => Availability::Strict,
    }
}

const fn kopf_mark_rule(mode: EvidenceMode) -> KopfMarkRule {
    match mode {
        EvidenceMode::Auto => KopfMarkRule::Learned,
        EvidenceMode::Kopf => KopfMarkRule::Expected,
        EvidenceMode::Own => KopfMarkRule::Optional,
    }
}

/// Compiles a policy where the administrator set nothing. `stuck_after` is the default of limits that it leaves out.
pub fn compile(
    spec: &ReadinessPolicySpec,
    stuck_after: Duration,
) -> Result<CompiledPolicy, Vec<PolicyProblem>> {
    compile_with(spec, &PolicySettings::with_stuck_after(stuck_after))
}

/// Compiles a policy under these settings.
pub fn compile_with(
    spec: &ReadinessPolicySpec,
    settings: &PolicySettings,
) -> Result<CompiledPolicy, Vec<PolicyProblem>> {
    compile_checked(spec, settings, crate::admission::check_spec(spec))
}

/// Compiles a spec for which the API server's own checks found these problems.
pub(super) fn compile_checked(
    spec: &ReadinessPolicySpec,
    settings: &PolicySettings,
    problems: Vec<PolicyProblem>,
) -> Result<CompiledPolicy, Vec<PolicyProblem>> {
    let parent = KindRef { group: spec.parent.group.clone(), version: None, kind: spec.parent.kind.clone() };
    let mut check = PolicyChecker {
        problems,
        rules: Vec::new(),
        settings,
        protected_parent: settings.is_protected(&parent).then_some(parent.kind),
    };
    let stuck_after = settings.stuck_after;
    let limits = StuckLimits {
        pending: check.parse_limit("spec.limits.pending", spec.limits.pending.as_deref(), stuck_after),
        progress: check.parse_limit("spec.limits.progress", spec.limits.progress.as_deref(), stuck_after),
        terminating: check.parse_limit(
            "spec.limits.terminating",
            spec.limits.terminating.as_deref(),
            stuck_after,
        ),
    };
    let deadline =
        spec.limits.deadline.as_deref().map(|text| check.parse_duration("spec.limits.deadline", text));
    let quiet = check.parse_duration("spec.debounce.quiet", &spec.debounce.quiet);
    let cap = check.parse_duration("spec.debounce.cap", &spec.debounce.cap);
    let (groups, min) = if spec.children.is_empty() {
        (default_groups(), 1)
    } else {
        (compile_groups(&mut check, &spec.children), 0)
    };
    let proof = spec.proof.as_deref().and_then(|source| compile_proof(&mut check, source, &groups));
    let compiled = CompiledPolicy {
        parent: KindRef {
            group: spec.parent.group.clone(),
            version: spec.parent.version.clone(),
            kind: spec.parent.kind.clone(),
        },
        selector: compile_selector(spec.parent.selector.as_ref()).unwrap_or_default(),
        namespace_selector: compile_selector(spec.parent.namespace_selector.as_ref()),
        scope: NamespaceScope::default(),
        foreign: ForeignNamespaces::default(),
        shape: None,
        groups,
        min,
        joint: Vec::new(),
        condition: spec.condition.r#type.clone(),
        fallback: spec.condition.fallback.clone(),
        takeover: spec.condition.takeover,
        observed_generation: observed_generation_rule(spec.observed_generation),
        marks: kopf_mark_rule(spec.evidence),
        own_status: own_status_rule(spec.own_status),
        proof,
        debounce: timer::DebounceConfig { quiet, cap },
        settle: check.parse_duration("spec.settle", &spec.settle),
        hold: check.parse_duration("spec.hold", &spec.hold),
        availability: availability_of(spec.availability),
        grace: check.parse_duration("spec.grace", &spec.grace),
        limits,
        deadline,
        shadow: spec.mode == WriteMode::Shadow || is_status_owned_by_others(&spec.parent.group),
    };
    if check.problems.is_empty() { Ok(compiled) } else { Err(check.problems) }
}

fn compile_proof(check: &mut PolicyChecker<'_>, source: &str, groups: &[CompiledGroup]) -> Option<ProofRule> {
    let mut kinds = groups.iter().map(|group| &group.kind);
    let child = kinds.find(|kind| check.settings.is_protected(kind)).map(|kind| kind.kind.clone());
    if let Some(kind) = check.protected_parent.clone().or(child) {
        let what = format!(
            "rules never read a {kind} beyond its metadata: remove proof, or {kind} from this policy"
        );
        check.add_problem("spec.proof", what);
        return None;
    }
    match ProofExpression::compile(source) {
        // The rules of the schema refuse it already.
        _ if check.problems.iter().any(|problem| problem.field == "spec.proof") => None,
        Ok(expression) => Some(ProofRule { expression: Arc::new(expression), source: source.into() }),
        Err(error) => {
            let (at, what) = (Some((error.line, error.column)), error.message);
            check.problems.push(PolicyProblem { field: "spec.proof".to_owned(), what, at });
            None
        }
    }
}

impl CompiledPolicy {
    /// True if the policy remembers outcomes of deleted children.
    pub fn remembers_outcomes(&self) -> bool {
        self.groups.iter().any(|group| group.after != OutcomeRetention::Forget)
    }

    /// Whose objects share the limits of its rules.
    pub(super) fn rule_sharing(&self) -> RuleSharing {
        if self.shape.is_some() { RuleSharing::Namespace } else { RuleSharing::Kind }
    }

    /// True if the policy heeds what a Kopf operator logs as Events.
    pub fn heeds_kopf_log(&self) -> bool {
        self.marks == KopfMarkRule::Expected
    }

    /// True if the policy bears with disruptions that PodDisruptionBudgets allow, of workloads that it judges by the built-in rules.
    pub fn counts_on_budgets(&self) -> bool {
        let has_budget = |group: &CompiledGroup| {
            let kind = RuleKind::from_group_kind(&group.kind.group, &group.kind.kind);
            group.rule.is_none() && kind.counts_on_disruption_budget()
        };
        self.availability == Availability::Tolerant && self.groups.iter().any(has_budget)
    }
}

/// API groups of Argo CD, Flux, Cluster API, OLM, kro and Crossplane. What these tools manage for their users has groups that the
/// users choose, and is recognized object by object.
const GROUPS_OF_OTHER_CONTROLLERS: [&str; 11] = [
    "argoproj.io",
    "fluxcd.controlplane.io",
    "cluster.x-k8s.io",
    "operators.coreos.com",
    "olm.operatorframework.io",
    "kro.run",
    "internal.kro.run",
    "apiextensions.crossplane.io",
    "ops.crossplane.io",
    "pkg.crossplane.io",
    "protection.crossplane.io",
];

/// Ends of such groups.
const GROUP_SUFFIXES_OF_OTHER_CONTROLLERS: [&str; 3] =
    [".toolkit.fluxcd.io", ".extensions.fluxcd.io", ".cluster.x-k8s.io"];

/// API groups whose objects' status is owned by other controllers: evaluated, never written.
pub fn is_status_owned_by_others(group: &str) -> bool {
    let built_in = group.is_empty() || !group.contains('.') || group.ends_with(".k8s.io");
    built_in
        || GROUPS_OF_OTHER_CONTROLLERS.contains(&group)
        || GROUP_SUFFIXES_OF_OTHER_CONTROLLERS.iter().any(|suffix| group.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn problems(proof: &str, kind: &str) -> Vec<String> {
        let spec = json!({ "parent": { "group": "example.com", "kind": "Shop" }, "proof": proof,
            "children": [{ "kind": { "group": "apps", "kind": "Deployment" } }, { "kind": { "kind": kind } }] });
        let spec = serde_json::from_value(spec).expect("a spec");
        compile(&spec, Duration::from_mins(10))
            .err()
            .unwrap_or_default()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn groups_of_other_controllers_are_known_and_those_that_sound_like_them_are_not() {
        for group in [
            "",
            "apps",
            "networking.k8s.io",
            "argoproj.io",
            "kustomize.toolkit.fluxcd.io",
            "source.extensions.fluxcd.io",
            "cluster.x-k8s.io",
            "infrastructure.cluster.x-k8s.io",
            "operators.coreos.com",
            "olm.operatorframework.io",
            "kro.run",
            "internal.kro.run",
            "ops.crossplane.io",
            "protection.crossplane.io",
        ] {
            assert!(is_status_owned_by_others(group), "{group}");
        }
        for group in [
            "example.com",
            "argoproj.io.example.com",
            "toolkit.fluxcd.io.example.com",
            "multicluster.x-k8s.io",
            "kueue.x-k8s.io",
            "apps.kro.run",
            "database.aws.crossplane.io",
            "monitoring.coreos.com",
        ] {
            assert!(!is_status_owned_by_others(group), "{group}");
        }
    }

    #[test]
    fn a_proof_is_compiled_with_the_policy_and_refused_with_its_position() {
        let holds = "children.all(c, c.spec.replicas == parent.spec.replicas)";
        assert_eq!(problems(holds, "Pod"), Vec::<String>::new());
        for (proof, said) in [
            ("children.all(c,\n  d.spec == 1)", "spec.proof: line 2, column 3: undeclared reference to 'd'"),
            ("children.size()", "the expression yields 'int', not 'bool'"),
            ("", "spec.proof"),
        ] {
            let found = problems(proof, "Pod");
            assert!(found.len() == 1 && found[0].contains(said), "{proof}: {found:?}");
        }
    }

    #[test]
    fn a_proof_reads_no_secrets() {
        let found = problems("children.all(c, c.data.token == 'x')", "Secret");
        let said = "spec.proof: rules never read a Secret beyond its metadata: remove proof, or Secret from this policy";
        assert_eq!(found, [said]);
    }
}
