//! A policy as it was found in the cluster or in a file, before anything of it is in force.

use api::ReadinessPolicySpec;
use api::policy::PolicyCondition;
use watcher::ParentObject;

use super::compile::{CompiledPolicy, compile_with};
use super::group_compile::compile_for_groups;
use super::group_selection::GroupSelection;
use super::policy_reason::PolicyReason;
use super::problem::PolicyProblem;
use super::protected_kinds::PolicySettings;

/// Reason for not using a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedPolicy {
    /// [`PolicyReason::Invalid`], [`PolicyReason::Conflict`] or [`PolicyReason::RulesUnavailable`].
    pub reason: PolicyReason,
    /// Human-readable explanation.
    pub why: String,
}

/// Policy as read.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundPolicy {
    /// Its name.
    pub name: String,
    /// Uid; empty for a policy from a file.
    pub uid: String,
    /// Its resourceVersion; 0 for a policy from a file.
    pub version: u64,
    /// Its generation.
    pub generation: i64,
    /// Creation time: of two conflicting policies the later one is refused.
    pub created: Option<readiness::Time>,
    /// Its labels.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Spec, or the error of parsing it.
    pub spec: Result<ReadinessPolicySpec, String>,
    /// The object as it came, where its spec is none.
    pub text: Option<Box<str>>,
    /// The ReadinessGroups that it stands for, where it is not an object of the cluster.
    pub groups: Option<GroupSelection>,
    /// Status as last read.
    pub status: api::ReadinessPolicyStatus,
}

impl FoundPolicy {
    /// Compiles the policy. The error lists all problems in one line.
    pub fn compile_spec(&self, settings: &PolicySettings) -> Result<CompiledPolicy, String> {
        let told = |problems: Vec<PolicyProblem>| PolicyProblem::join_all(&problems);
        self.compile_as_own(self.spec.as_ref().map_err(Clone::clone)?, settings).map_err(told)
    }

    /// The spec that was accepted last, as the policy's own status keeps it.
    pub(super) fn accepted_spec(&self) -> Option<ReadinessPolicySpec> {
        serde_json::from_str(self.status.accepted.as_ref()?.spec.as_deref()?).ok()
    }

    /// Returns `true` if its status has any trace of a spec that was accepted.
    pub(super) fn was_accepted(&self) -> bool {
        let is_accepted = |said: &PolicyCondition| said.r#type == "Accepted" && said.status == "True";
        self.accepted_generation().is_some() || self.status.conditions.iter().any(is_accepted)
    }

    /// The generation whose spec was accepted last, where its status has it.
    pub(super) fn accepted_generation(&self) -> Option<i64> {
        let kept = self.status.accepted.as_ref().map(|kept| kept.generation);
        kept.or(self.status.accepted_generation)
    }

    /// Compiles this spec of the policy.
    pub(super) fn compile_as_own(
        &self,
        spec: &ReadinessPolicySpec,
        settings: &PolicySettings,
    ) -> Result<CompiledPolicy, Vec<PolicyProblem>> {
        match &self.groups {
            Some(groups) => compile_for_groups(spec, settings, groups),
            None => compile_with(spec, settings),
        }
    }
}

/// Parses a policy as read from the cluster.
pub fn read_policy(policy: &ParentObject) -> FoundPolicy {
    #[derive(serde::Deserialize)]
    struct StatusField {
        #[serde(default)]
        status: Option<api::ReadinessPolicyStatus>,
    }
    #[derive(serde::Deserialize)]
    struct SpecField {
        spec: api::ReadinessPolicySpec,
    }
    let (meta, text) = (&policy.child.meta, policy.text.get());
    let spec = serde_json::from_str::<SpecField>(text).map(|s| s.spec).map_err(|error| error.to_string());
    FoundPolicy {
        name: meta.name.to_string(),
        uid: meta.uid.to_string(),
        version: meta.resource_version,
        generation: meta.generation,
        created: meta.created,
        labels: meta.labels.clone(),
        text: spec.is_err().then(|| text.into()),
        spec,
        groups: None,
        status: serde_json::from_str::<StatusField>(text).ok().and_then(|s| s.status).unwrap_or_default(),
    }
}
