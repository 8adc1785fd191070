//! From all accepted policies to one plan: per kind, for whom its objects count and how they are read.

use std::collections::BTreeMap;
use std::sync::Arc;

use aggregator::{KindId, Policy, PolicyId};
use api::policy::KindRef;
use watcher::plan::{
    After, ChildRule, CountRule, Find, Interest, LabelRule, Lens, ParentRule, ReferenceRule, UserRule,
};

use super::compile::Compiled;
use super::groups::{CompiledGroup, GroupCount};
use super::libraries::Libraries;
use super::ready::GroupRule;
use crate::core::{GroupWords, PolicyWords};

/// Group and kind: what a kind is known by, in whatever version.
pub(crate) type KindKey = (String, String);

/// The kind of our own records.
pub(crate) const RECORDS: (&str, &str) = ("rollcall.dev", "ReadinessRecord");

/// Small integers for kinds and policies, stable while the process lives.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    kinds: BTreeMap<KindKey, KindId>,
    /// Kinds that records speak of, or did: what is left of a policy that is gone has to be swept.
    spoken_of: BTreeMap<KindKey, KindId>,
    policies: u16,
}

impl Registry {
    /// The id of a kind.
    pub(crate) fn kind(&mut self, group: &str, kind: &str) -> KindId {
        let next = KindId(self.kinds.len() as u16);
        *self.kinds.entry((group.to_owned(), kind.to_owned())).or_insert(next)
    }

    /// The id of a kind that has one.
    pub(crate) fn known(&self, group: &str, kind: &str) -> Option<KindId> {
        self.kinds.get(&(group.to_owned(), kind.to_owned())).copied()
    }

    /// An id for a policy in one of its generations: a changed policy is a new one, so that nothing which was judged
    /// by the old one counts for it.
    pub(crate) fn policy(&mut self) -> PolicyId {
        self.policies = self.policies.wrapping_add(1);
        PolicyId(self.policies)
    }
}

/// What one kind is followed for.
#[derive(Clone, Debug)]
pub(crate) struct KindPlan {
    /// Its id.
    pub(crate) id: KindId,
    /// Group and kind.
    pub(crate) key: KindKey,
    /// The version to follow; left out, the preferred one.
    pub(crate) version: Option<String>,
    /// A library of scripts that judges it was not read yet: it is not followed before.
    pub(crate) waits: bool,
    /// Everything else; `counted` is known once the server was asked.
    pub(crate) interest: Interest,
    /// It is the kind of our own records; these kinds are spoken of in them.
    pub(crate) records: Option<BTreeMap<KindKey, KindId>>,
}

/// A policy in use.
#[derive(Clone, Debug)]
pub(crate) struct InUse {
    /// Its id.
    pub(crate) id: PolicyId,
    /// Its name.
    pub(crate) name: String,
    /// Checked.
    pub(crate) compiled: Compiled,
}

/// Everything that is followed, and for whom.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// Kinds.
    pub(crate) kinds: BTreeMap<KindId, KindPlan>,
    /// Policies, as the engine and the renderer know them.
    pub(crate) policies: BTreeMap<PolicyId, (Policy, PolicyWords)>,
    /// A policy chooses parents by the labels of their namespaces.
    pub(crate) namespaces: bool,
}

/// Plans for these policies. `released` are parent kinds of policies that are gone.
pub(crate) fn plan(
    policies: &[InUse],
    released: &[KindKey],
    registry: &mut Registry,
    libraries: &Libraries,
) -> Plan {
    let mut plan = Plan::default();
    for policy in policies {
        let compiled = &policy.compiled;
        let parent = registry.kind(&compiled.parent.group, &compiled.parent.kind);
        let entry = plan.kind(
            parent,
            &compiled.parent.group,
            &compiled.parent.kind,
            compiled.parent.version.as_deref(),
        );
        entry.interest.parent.push(parent_rule(policy));
        plan.namespaces |= compiled.namespace_selector.is_some();
        let mut kinds = vec![parent];
        let mut groups = Vec::new();
        for (at, group) in compiled.groups.iter().enumerate() {
            let kind = registry.kind(&group.kind.group, &group.kind.kind);
            kinds.push(kind);
            groups.push(group.group(kind));
            let entry = plan.kind(kind, &group.kind.group, &group.kind.kind, group.kind.version.as_deref());
            entry.add_child(policy, at as u8, group, libraries);
        }
        plan.claim(policy, registry);
        if compiled.remembers() {
            kinds.push(Plan::records(registry, compiled));
        }
        kinds.sort_unstable();
        kinds.dedup();
        let words = words(policy, &kinds);
        plan.policies.insert(policy.id, (engine_policy(compiled, groups, kinds), words));
    }
    if !registry.spoken_of.is_empty() {
        let (group, kind) = RECORDS;
        let id = registry.kind(group, kind);
        plan.kind(id, group, kind, None).records = Some(registry.spoken_of.clone());
    }
    for (group, kind) in released {
        let id = registry.kind(group, kind);
        plan.kind(id, group, kind, None).interest.release = true;
    }
    plan
}

fn engine_policy(compiled: &Compiled, groups: Vec<aggregator::Group>, kinds: Vec<KindId>) -> Policy {
    Policy {
        groups,
        min: compiled.min,
        kinds,
        debounce: compiled.debounce,
        settle: compiled.settle,
        hold: compiled.hold,
        pending: compiled.limits.pending,
        deadline: compiled.deadline,
        shadow: compiled.shadow,
        names: compiled.groups.iter().any(|g| !g.names.is_empty() || g.references.is_some()),
    }
}

fn words(policy: &InUse, kinds: &[KindId]) -> PolicyWords {
    let group = |g: &CompiledGroup| GroupWords { kind: g.kind.kind.clone(), min: g.min, max: g.max };
    PolicyWords {
        name: policy.name.clone(),
        groups: policy.compiled.groups.iter().map(group).collect(),
        min: policy.compiled.min,
        kinds: kinds.to_vec(),
    }
}

fn parent_rule(policy: &InUse) -> ParentRule {
    let compiled = &policy.compiled;
    let by_labels = |(at, g): (usize, &CompiledGroup)| LabelRule {
        group: at as u8,
        values: g.labels.iter().map(|(_, value)| value.clone()).collect(),
        namespaces: g.namespaces.clone(),
    };
    let groups = || compiled.groups.iter().enumerate();
    ParentRule {
        policy: policy.id,
        selector: compiled.selector.clone(),
        namespace_selector: compiled.namespace_selector.clone(),
        namespaces: Vec::new(),
        condition: compiled.condition.as_str().into(),
        fallback: compiled.fallback.as_deref().map(Into::into),
        takeover: compiled.takeover,
        observed_generation: compiled.observed_generation,
        marks: compiled.marks,
        labels: groups().filter(|(_, g)| !g.labels.is_empty()).map(by_labels).collect(),
        names: groups()
            .filter(|(_, g)| !g.names.is_empty())
            .map(|(at, g)| (at as u8, g.names.clone()))
            .collect(),
        references: groups().filter_map(|(at, g)| references(at as u8, g)).collect(),
        counts: groups().filter_map(|(at, g)| count(at as u8, g)).collect(),
    }
}

fn references(group: u8, of: &CompiledGroup) -> Option<ReferenceRule> {
    let KindRef { group: api, kind, .. } = &of.kind;
    let path = of.references.clone()?;
    Some(ReferenceRule { group, path, of: (api.as_str().into(), kind.as_str().into()) })
}

fn count(group: u8, of: &CompiledGroup) -> Option<CountRule> {
    let GroupCount { count, source } = of.count.clone()?;
    Some(CountRule { group, count, source })
}

impl Plan {
    /// What is remembered outlives a restart in records: nothing is said before they were read.
    fn records(registry: &mut Registry, of: &Compiled) -> KindId {
        let (group, kind) = RECORDS;
        let id = registry.kind(group, kind);
        let remembered = of.groups.iter().filter(|g| g.after != After::Forget).map(|g| &g.kind);
        let spoken_of = remembered
            .chain([&of.parent])
            .map(|kind| ((kind.group.clone(), kind.kind.clone()), registry.kind(&kind.group, &kind.kind)));
        let spoken_of: Vec<_> = spoken_of.collect();
        registry.spoken_of.extend(spoken_of);
        id
    }

    fn kind(&mut self, id: KindId, group: &str, kind: &str, version: Option<&str>) -> &mut KindPlan {
        let plan = self.kinds.entry(id).or_insert_with(|| KindPlan {
            id,
            key: (group.to_owned(), kind.to_owned()),
            version: None,
            waits: false,
            interest: Interest::of(id, group, kind),
            records: None,
        });
        if plan.version.is_none() {
            plan.version = version.map(str::to_owned);
        }
        plan
    }
}

impl Plan {
    /// What a StatefulSet of the parent claims counts too, where a policy names both: claims have no ownerReference.
    fn claim(&mut self, policy: &InUse, registry: &mut Registry) {
        let is =
            |group: &CompiledGroup, of: &str, kind: &str| group.kind.group == of && group.kind.kind == kind;
        let groups = &policy.compiled.groups;
        if !groups.iter().any(|g| is(g, "apps", "StatefulSet")) {
            return;
        }
        let by_owner = |g: &CompiledGroup| g.labels.is_empty() && g.references.is_none();
        let (sets, volumes) =
            (registry.kind("apps", "StatefulSet"), registry.kind("", "PersistentVolumeClaim"));
        for (at, _) in
            groups.iter().enumerate().filter(|(_, g)| is(g, "", "PersistentVolumeClaim") && by_owner(g))
        {
            if let Some(sets) = self.kinds.get_mut(&sets) {
                sets.interest.claims.push((policy.id, at as u8));
            }
            if let Some(volumes) = self.kinds.get_mut(&volumes) {
                volumes.interest.claim(policy.id, at as u8);
            }
        }
    }
}

impl KindPlan {
    fn add_child(&mut self, policy: &InUse, at: u8, group: &CompiledGroup, libraries: &Libraries) {
        if let Some(GroupRule::Library(name)) = &group.rule {
            self.waits |= !libraries.is_read(name);
        }
        let rule = group.rule.as_ref().map(|rule| {
            let (rule, source) = match rule {
                GroupRule::Own { rule, source } => (Arc::clone(rule), Arc::clone(source)),
                GroupRule::Library(name) => libraries.rule(name),
            };
            let version = group.kind.version.as_deref().unwrap_or_default();
            UserRule { rule, source, of: (version.into(), group.kind.kind.as_str().into()) }
        });
        let lens = Lens { limits: policy.compiled.limits, rule, remembers: group.after != After::Forget };
        let known = self.interest.lenses.iter().position(|l| *l == lens);
        let lens = known.unwrap_or_else(|| {
            self.interest.lenses.push(lens);
            self.interest.lenses.len() - 1
        });
        let parent = &policy.compiled.parent;
        let find = if group.references.is_some() {
            Find::References
        } else if group.labels.is_empty() {
            Find::Owner { group: parent.group.as_str().into(), kind: parent.kind.as_str().into() }
        } else {
            Find::Labels {
                keys: group.labels.iter().map(|(key, _)| key.as_str().into()).collect(),
                of: (parent.group.as_str().into(), parent.kind.as_str().into()),
            }
        };
        let ignore = group.ignore.clone();
        let (lens, after) = (lens as u8, group.after);
        let rule = ChildRule { policy: policy.id, group: at, lens, find, ignore, after };
        self.interest.child.push(rule);
    }
}
