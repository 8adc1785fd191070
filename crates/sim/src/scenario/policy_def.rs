//! The policies of a scenario, and what the product is given for them.

use std::time::Duration;

use aggregator::{Acceptance, Availability, ChildGroup, EnginePolicy, GroupRole, KindId, PolicyId};
use readiness::StuckLimits;
use readiness::rollup::ParentReason;
use rollcall_core::{GroupSummary, ParentOperator, PolicySummary};
use timer::DebounceConfig;
use watcher::plan::{AllowedNamespaces, KopfMarkRule, LabelRule, ParentRule, ParentTemplate};

use super::group_def::GroupDef;
use super::kind_def::{KindDef, kind_id};
use super::sabotage::Sabotage;
use crate::world::ModelSteadiness;

/// One policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyDef {
    pub(crate) id: PolicyId,
    /// Number in the policy's name: it stays when an edit gives the policy another id.
    pub(crate) number: usize,
    pub(crate) parent: usize,
    pub(crate) condition: &'static str,
    /// The type that its condition has after an edit, or had before it.
    pub(crate) other_condition: &'static str,
    pub(crate) fallback: Option<&'static str>,
    pub(crate) groups: Vec<GroupDef>,
    /// Namespaces whose children count for a cluster-scoped parent.
    pub(crate) child_namespaces: &'static [&'static str],
    pub(crate) debounce: DebounceConfig,
    pub(crate) settle: Duration,
    pub(crate) hold: Duration,
    /// Whether True is kept while workloads are scaled, or disrupted within their budget.
    pub(crate) availability: Availability,
    /// Span for which True is kept when children are not ready, and have not failed.
    pub(crate) grace: Duration,
    pub(crate) limits: StuckLimits,
    /// Deadline of the policy, longer than `limits.pending`.
    pub(crate) deadline: Option<Duration>,
    pub(crate) acceptance: Acceptance,
    /// It is in shadow mode: nothing is written for it.
    pub(crate) shadow: bool,
}

/// Returns the type that a condition of this one has after an edit.
pub(super) fn other_type_of(condition: &str) -> &'static str {
    if condition == "Ready" { "Whole" } else { "StorageWhole" }
}

/// Returns the name of an expected child: the parent's name with a suffix.
pub(crate) fn expected_child_name(parent: &str, suffix: &str) -> String {
    format!("{parent}-{suffix}")
}

fn parse_template(text: &str) -> ParentTemplate {
    ParentTemplate::parse(text).expect("invariant: the simulation's own templates are well-formed")
}

impl PolicyDef {
    /// Returns what the reflector reads of a parent under the policy.
    pub(super) fn parent_rule(&self) -> ParentRule {
        let labelled = |(at, group): (u8, &GroupDef)| {
            let rule = LabelRule {
                group: at,
                values: vec![parse_template("{parent.metadata.name}")],
                annotation_values: Vec::new(),
                namespaces: Vec::new(),
                allowed: AllowedNamespaces::default(),
            };
            group.by_label.then_some(rule)
        };
        let names = |(at, group): (u8, &GroupDef)| {
            let suffix = group.named?;
            Some((at, vec![parse_template(&expected_child_name("{parent.metadata.name}", suffix))]))
        };
        ParentRule {
            condition: self.condition.into(),
            fallback: self.fallback.map(Into::into),
            former: self.former_condition().into_iter().map(Into::into).collect(),
            // Some parents of one policy carry marks and others do not, at random.
            kopf_marks: KopfMarkRule::Optional,
            is_shadow: self.shadow,
            labels: (0..=u8::MAX).zip(&self.groups).filter_map(labelled).collect(),
            names: (0..=u8::MAX).zip(&self.groups).filter_map(names).collect(),
            ..ParentRule::for_policy(self.id)
        }
    }

    /// Gives the condition another type, or the one back that it had before.
    pub(crate) fn rename_condition(&mut self) {
        std::mem::swap(&mut self.condition, &mut self.other_condition);
    }

    /// Returns the type under which it may have spoken before; of one that was never accepted none is known.
    pub(crate) fn former_condition(&self) -> Option<&'static str> {
        (!self.groups.is_empty()).then_some(self.other_condition)
    }

    /// Returns the policy's name.
    pub(crate) fn name(&self) -> String {
        format!("policy-{}", self.number)
    }

    /// Returns `true` if the policy keeps True for a while though children are not ready for this reason, which can be counted on
    /// this far.
    pub(crate) fn keeps(&self, reason: Option<ParentReason>, steadiness: ModelSteadiness) -> bool {
        let fails = matches!(
            reason,
            Some(ParentReason::ChildrenFailed | ParentReason::ChildrenStuck | ParentReason::OperatorFailed)
        );
        let is_steady = self.is_tolerant() && steadiness != ModelSteadiness::Unsteady;
        reason.is_some() && !fails && (is_steady || !self.grace.is_zero())
    }

    /// Returns `true` if the policy keeps True while workloads are scaled or disrupted.
    pub(crate) fn is_tolerant(&self) -> bool {
        self.availability == Availability::Tolerant
    }

    /// Returns the longest span for which True is kept.
    pub(crate) fn longest_kept(&self) -> Duration {
        if self.is_tolerant() { self.limits.pending.max(self.grace) } else { self.grace }
    }

    /// Returns the kinds that the policy's answers depend on.
    pub(crate) fn involved_kinds(&self) -> Vec<usize> {
        let mut kinds: Vec<usize> =
            self.groups.iter().map(|g| g.kind).chain(std::iter::once(self.parent)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Compiles the policy for the engine and the renderer.
    pub(crate) fn compile_policy(
        &self,
        kinds: &[KindDef],
        sabotage: Option<Sabotage>,
    ) -> (EnginePolicy, PolicySummary) {
        let group = |g: &GroupDef| ChildGroup {
            kind: kind_id(g.kind),
            role: if g.critical { GroupRole::Critical } else { GroupRole::Optional },
            min: g.min,
            max: g.max,
            quorum: g.quorum,
            is_prerequisite: false,
        };
        let words = |g: &GroupDef| GroupSummary {
            kind: kinds[g.kind].api.kind.clone(),
            min: g.min,
            max: g.max,
            counts_dependents: !g.by_label,
        };
        let involved: Vec<KindId> = self.involved_kinds().into_iter().map(kind_id).collect();
        let policy = EnginePolicy {
            groups: self.groups.iter().map(group).collect(),
            min: 0,
            joint: Vec::new(),
            kinds: involved.clone(),
            debounce: self.debounce,
            settle: if sabotage == Some(Sabotage::NoSettle) { Duration::ZERO } else { self.settle },
            hold: self.hold,
            availability: self.availability,
            grace: self.grace,
            pending: self.limits.pending,
            deadline: self.deadline,
            shadow: self.shadow && sabotage != Some(Sabotage::ShadowWrites),
            expects_names: self.groups.iter().any(|g| g.named.is_some()),
            requires_proof: false,
            acceptance: self.acceptance,
        };
        let words = PolicySummary {
            name: self.name(),
            groups: self.groups.iter().map(words).collect(),
            min: 0,
            joint: Vec::new(),
            kinds: involved,
            operator: ParentOperator::Trusted,
        };
        (policy, words)
    }
}
