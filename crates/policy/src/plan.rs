//! Combines all accepted policies into one plan: for each kind, the policies its objects count for and the fields to
//! read.

use std::collections::{BTreeMap, BTreeSet};

use aggregator::{EnginePolicy, KindId, PolicyId};
use api::policy::KindRef;
use tracing::warn;
use watcher::plan::{
    CountRule, ElsewhereRule, Interest, KopfMarkRule, LabelRule, OutcomeRetention, ParentRule, ReferenceRule,
};

use super::compile::CompiledPolicy;
use super::groups::{CompiledGroup, GroupCount};
use super::kind_plan::{AwaitedInput, KindPlan};
use super::library_rules::LibraryRules;
use super::policy_in_use::{KindKey, PolicyInUse};
use rollcall_core::{GroupSummary, ParentOperator, PolicySummary};
use watcher::wire::{HELM_RELEASE_ANNOTATION, INVENTORY_ANNOTATION, TRACKING_ANNOTATION};

/// Kind of Rollcall's own records.
pub const RECORD_KIND: (&str, &str) = ("rollcall.dev", "ReadinessRecord");

/// Assigns small integers to kinds and policies, stable during the life of the process.
#[derive(Clone, Debug, Default)]
pub struct IdRegistry {
    kinds: BTreeMap<KindKey, KindId>,
    /// Number of the next kind.
    next_kind: u32,
    /// Kinds that records name, or named: what deleted policies left behind in them has to be cleaned up.
    recorded_kinds: BTreeMap<KindKey, KindId>,
    /// Numbers of policies that are in use: none of them is given again.
    held: BTreeSet<PolicyId>,
    /// The number that is looked at first for the next policy.
    next: u32,
}

/// Number of policy numbers before they repeat, or twice as many as are held: one that was given back rests for as long.
const POLICY_NUMBERS: u32 = 1 << 16;

impl IdRegistry {
    /// The id of a kind; `None` where there are more kinds than ids.
    pub fn kind(&mut self, group: &str, kind: &str) -> Option<KindId> {
        if let Some(known) = self.find_kind(group, kind) {
            return Some(known);
        }
        let id = KindId(self.next_kind);
        self.next_kind = self.next_kind.checked_add(1)?;
        self.kinds.insert((group.to_owned(), kind.to_owned()), id);
        Some(id)
    }

    /// Gives every kind that a policy names its id, or names the first for which there is none left.
    pub fn enroll(&mut self, policy: &CompiledPolicy) -> Result<(), KindRef> {
        let records =
            KindRef { group: RECORD_KIND.0.to_owned(), version: None, kind: RECORD_KIND.1.to_owned() };
        let kinds = policy.groups.iter().map(|group| &group.kind);
        let unnumbered =
            kinds.chain([&policy.parent, &records]).find(|kind| self.kind(&kind.group, &kind.kind).is_none());
        unnumbered.map_or(Ok(()), |kind| Err(kind.clone()))
    }

    /// Id of a kind, if it has one.
    pub fn find_kind(&self, group: &str, kind: &str) -> Option<KindId> {
        self.kinds.get(&(group.to_owned(), kind.to_owned())).copied()
    }

    /// New id for a generation of a policy. A changed policy gets a new one, so that verdicts under the old rules do
    /// not count for it. It is held until [`IdRegistry::retain_policies`] lets go of it.
    pub fn new_policy_id(&mut self) -> PolicyId {
        let held = u32::try_from(self.held.len()).unwrap_or(u32::MAX);
        let circle = held.saturating_mul(2).max(POLICY_NUMBERS);
        loop {
            let id = PolicyId(self.next % circle);
            self.next = (id.0 + 1) % circle;
            if self.held.insert(id) {
                return id;
            }
        }
    }

    /// Lets go of the ids of all other policies.
    pub fn retain_policies(&mut self, held: impl IntoIterator<Item = PolicyId>) {
        self.held = held.into_iter().collect();
    }
}

/// Everything that is followed, with the policies it is followed for.
#[derive(Clone, Debug, Default)]
pub struct WatchPlan {
    /// Kinds.
    pub kinds: BTreeMap<KindId, KindPlan>,
    /// Policies in the terms of the engine and of the renderer.
    pub policies: BTreeMap<PolicyId, (EnginePolicy, PolicySummary)>,
    /// A policy selects parents by the labels of their namespaces.
    pub namespaces: bool,
    /// A policy keeps parents True during disruptions that PodDisruptionBudgets allow.
    pub budgets: bool,
    /// A policy says that its operator is Kopf's, whose log is heeded.
    pub kopf_log: bool,
}

/// Types of conditions that policies wrote which do not do so any more, by parent kind.
pub type Released = BTreeMap<KindKey, BTreeSet<String>>;

/// Plans for these policies; what is `released` is taken off its parents.
pub fn build_plan(
    policies: &[PolicyInUse],
    released: &Released,
    registry: &mut IdRegistry,
    libraries: &dyn LibraryRules,
) -> WatchPlan {
    let mut plan = WatchPlan::default();
    for policy in policies {
        if let Err(KindRef { kind, .. }) = registry.enroll(&policy.compiled) {
            // It is refused before it comes here.
            warn!(policy = policy.name, kind, "policy left out: more kinds than can be numbered");
            continue;
        }
        plan.add_policy(policy, registry, libraries);
    }
    if !registry.recorded_kinds.is_empty()
        && let (group, kind) = RECORD_KIND
        && let Some(id) = registry.kind(group, kind)
    {
        plan.kind_entry(id, group, kind, None).records = Some(registry.recorded_kinds.clone());
    }
    for ((group, kind), types) in released {
        if let Some(id) = registry.kind(group, kind) {
            plan.kind_entry(id, group, kind, None).interest.release =
                types.iter().map(|kind| kind.as_str().into()).collect();
        }
    }
    plan
}

fn engine_policy(
    policy: &PolicyInUse,
    groups: Vec<aggregator::ChildGroup>,
    kinds: Vec<KindId>,
) -> EnginePolicy {
    let compiled = &policy.compiled;
    EnginePolicy {
        groups,
        min: compiled.min,
        joint: compiled.joint.iter().map(|joint| joint.count.clone()).collect(),
        kinds,
        debounce: compiled.debounce,
        settle: compiled.settle,
        hold: compiled.hold,
        availability: compiled.availability,
        grace: compiled.grace,
        pending: compiled.limits.pending,
        deadline: compiled.deadline,
        shadow: compiled.shadow,
        expects_names: compiled.groups.iter().any(|g| !g.names.is_empty() || g.references.is_some()),
        requires_proof: compiled.proof.is_some(),
        acceptance: policy.acceptance,
    }
}

fn policy_summary(policy: &PolicyInUse, kinds: &[KindId]) -> PolicySummary {
    let group = |g: &CompiledGroup| GroupSummary {
        kind: g.kind.kind.clone(),
        min: g.min,
        max: g.max,
        counts_dependents: g.counts_dependents(),
    };
    PolicySummary {
        name: policy.name.clone(),
        groups: policy.compiled.groups.iter().map(group).collect(),
        min: policy.compiled.min,
        joint: policy.compiled.joint.iter().map(|joint| (joint.of.clone(), joint.count.clone())).collect(),
        kinds: kinds.to_vec(),
        operator: parent_operator(&policy.compiled),
    }
}

fn parent_operator(compiled: &CompiledPolicy) -> ParentOperator {
    match compiled.marks {
        _ if compiled.shape.is_some() => ParentOperator::None,
        KopfMarkRule::Learned if compiled.proof.is_none() => ParentOperator::TakenByMark,
        _ => ParentOperator::Trusted,
    }
}

fn parent_rule(policy: &PolicyInUse) -> ParentRule {
    let compiled = &policy.compiled;
    let by_labels = |g: &CompiledGroup| LabelRule {
        group: g.at,
        values: g.labels.iter().map(|(_, value)| value.clone()).collect(),
        annotation_values: (0..)
            .zip(&g.labels)
            .filter(|(_, (key, _))| is_in_annotation(key))
            .map(|(at, _)| at)
            .collect(),
        namespaces: g.namespaces.clone(),
        allowed: g.allowed.clone(),
    };
    let groups = || compiled.groups.iter();
    ParentRule {
        policy: policy.id,
        selector: compiled.selector.clone(),
        namespace_selector: compiled.namespace_selector.clone(),
        namespaces: compiled.scope.clone(),
        foreign: compiled.foreign.clone(),
        shape: compiled.shape.clone(),
        condition: compiled.condition.as_str().into(),
        fallback: compiled.fallback.as_deref().map(Into::into),
        former: Vec::new(),
        takeover: compiled.takeover,
        observed_generation: compiled.observed_generation,
        kopf_marks: compiled.marks,
        own_status: compiled.own_status,
        deletion_limit: Some(compiled.limits.terminating),
        labels: groups().filter(|g| !g.labels.is_empty()).map(by_labels).collect(),
        names: groups().filter(|g| !g.names.is_empty()).map(|g| (g.at, g.names.clone())).collect(),
        references: groups().filter_map(reference_rule).collect(),
        counts: groups().filter_map(count_rule).collect(),
        proof: compiled.proof.clone(),
        remembers_selected: groups().any(CompiledGroup::remembers_selected),
        is_shadow: compiled.shadow,
    }
}

/// Returns `true` for a key that objects are found by as by that of a label, and that stands in their annotations.
fn is_in_annotation(key: &str) -> bool {
    [TRACKING_ANNOTATION, INVENTORY_ANNOTATION, HELM_RELEASE_ANNOTATION].contains(&key)
}

fn reference_rule(of: &CompiledGroup) -> Option<ReferenceRule> {
    let KindRef { group: api, kind, .. } = &of.kind;
    let path = of.references.clone()?;
    let allowed = of.allowed.clone();
    Some(ReferenceRule { group: of.at, path, of: (api.as_str().into(), kind.as_str().into()), allowed })
}

fn count_rule(of: &CompiledGroup) -> Option<CountRule> {
    let GroupCount { count, source } = of.count.clone()?;
    Some(CountRule { group: of.at, count, source })
}

impl WatchPlan {
    /// Parents that are chosen by the labels of their namespaces are not looked at before those are known: one that
    /// nothing chooses yet must not be taken for one that nothing chooses any more.
    pub fn await_namespaces(&mut self) {
        let chooses =
            |kind: &&mut KindPlan| kind.interest.parent.iter().any(|r| r.namespace_selector.is_some());
        self.kinds
            .values_mut()
            .filter(chooses)
            .for_each(|kind| kind.awaits = Some(AwaitedInput::NamespaceLabels));
    }

    /// Leaves what policies of other releases say on their parents to those, by the kinds of these. Nothing waits for labels of
    /// namespaces by which they choose: this release may have no right to read them.
    pub fn leave_to(
        &mut self,
        others: impl IntoIterator<Item = (KindKey, ElsewhereRule)>,
        registry: &IdRegistry,
    ) {
        for ((group, kind), rule) in others {
            let kind = registry.find_kind(&group, &kind);
            let Some(plan) = kind.and_then(|kind| self.kinds.get_mut(&kind)) else { continue };
            if plan.interest.parent.is_empty() && plan.interest.release.is_empty() {
                continue;
            }
            self.namespaces |= rule.namespace_selector.is_some();
            plan.interest.elsewhere.push(rule);
        }
    }

    /// Adds a policy all of whose kinds have their numbers.
    fn add_policy(&mut self, policy: &PolicyInUse, registry: &mut IdRegistry, libraries: &dyn LibraryRules) {
        let compiled = &policy.compiled;
        let KindRef { group, kind, version } = &compiled.parent;
        let Some(parent) = registry.kind(group, kind) else { return };
        let entry = self.kind_entry(parent, group, kind, version.as_deref());
        entry.interest.parent.push(parent_rule(policy));
        if let Some(proof) = &compiled.proof {
            entry.interest.add_excerpt_fields(proof.expression.parent_fields());
        }
        self.namespaces |= compiled.namespace_selector.is_some();
        self.budgets |= compiled.counts_on_budgets();
        self.kopf_log |= compiled.heeds_kopf_log();
        let mut kinds = vec![parent];
        let mut groups = Vec::new();
        for group in &compiled.groups {
            let KindRef { group: api, kind, version } = &group.kind;
            let Some(id) = registry.kind(api, kind) else { return };
            kinds.push(id);
            groups.push(group.to_engine_group(id));
            let entry = self.kind_entry(id, api, kind, version.as_deref());
            entry.add_child(policy, group, libraries);
            if let Some(proof) = &compiled.proof {
                entry.interest.add_excerpt_fields(proof.expression.child_fields());
            }
        }
        self.count_claims(policy, registry);
        if compiled.remembers_outcomes() {
            kinds.extend(WatchPlan::register_records(registry, compiled));
        }
        kinds.sort_unstable();
        kinds.dedup();
        let words = policy_summary(policy, &kinds);
        self.policies.insert(policy.id, (engine_policy(policy, groups, kinds), words));
    }

    /// Remembered outcomes are stored in records: no condition is written before they were read.
    fn register_records(registry: &mut IdRegistry, of: &CompiledPolicy) -> Option<KindId> {
        let remembered = of.groups.iter().filter(|g| g.after != OutcomeRetention::Forget).map(|g| &g.kind);
        for kind in remembered.chain([&of.parent]) {
            if let Some(id) = registry.kind(&kind.group, &kind.kind) {
                registry.recorded_kinds.insert((kind.group.clone(), kind.kind.clone()), id);
            }
        }
        let (group, kind) = RECORD_KIND;
        registry.kind(group, kind)
    }

    fn kind_entry(&mut self, id: KindId, group: &str, kind: &str, version: Option<&str>) -> &mut KindPlan {
        let plan = self.kinds.entry(id).or_insert_with(|| KindPlan {
            id,
            key: (group.to_owned(), kind.to_owned()),
            version: None,
            awaits: None,
            interest: Interest::for_kind(id, group, kind),
            records: None,
        });
        if plan.version.is_none() {
            plan.version = version.map(str::to_owned);
        }
        plan
    }
}

impl WatchPlan {
    /// Volume claims of the parent's StatefulSets count too if a policy names both kinds: claims have no
    /// ownerReference.
    fn count_claims(&mut self, policy: &PolicyInUse, registry: &IdRegistry) {
        let is =
            |group: &CompiledGroup, of: &str, kind: &str| group.kind.group == of && group.kind.kind == kind;
        let groups = &policy.compiled.groups;
        if !groups.iter().any(|g| is(g, "apps", "StatefulSet")) {
            return;
        }
        let by_owner = |g: &CompiledGroup| g.labels.is_empty() && g.references.is_none();
        let sets = registry.find_kind("apps", "StatefulSet");
        let volumes = registry.find_kind("", "PersistentVolumeClaim");
        for group in groups.iter().filter(|g| is(g, "", "PersistentVolumeClaim") && by_owner(g)) {
            if let Some(sets) = sets.and_then(|id| self.kinds.get_mut(&id)) {
                sets.interest.claims.push((policy.id, group.at));
            }
            if let Some(volumes) = volumes.and_then(|id| self.kinds.get_mut(&id)) {
                volumes.interest.add_claim_rule(policy.id, group.at);
            }
        }
    }
}

#[cfg(test)]
mod tests;
