//! The scenario of a seed: kinds, policies, and the behaviour of the operators; the dice that draw it, and what is broken on
//! purpose.

mod child_rule;
mod dice;
mod sabotage;

use std::time::Duration;

use aggregator::{Acceptance, ChildGroup, EnginePolicy, GroupRole, KindId, PolicyId, Quorum};
use readiness::StuckLimits;
use rollcall_core::{GroupSummary, PolicySummary};
use timer::DebounceConfig;
use watcher::ApiKind;
use watcher::plan::{
    AllowedNamespaces, AssessmentRule, ChildRule, FindChildrenBy, Interest, KopfMarkRule, LabelRule,
    OutcomeRetention, ParentRule, ParentTemplate,
};

pub(crate) use child_rule::ChildRuleDef;
pub(crate) use dice::Dice;
pub use sabotage::{Sabotage, SabotagedPart};

/// API group of the simulation's custom kinds.
pub(crate) const CUSTOM_GROUP: &str = "example.com";
/// Label that selects children without an owner.
pub(crate) const PARENT_LABEL: &str = "part-of";
/// Namespaces of all simulated objects.
pub(crate) const NAMESPACES: [&str; 2] = ["red", "blue"];
/// Stream of the namespaces whose children count for cluster-scoped parents.
const NAMESPACE_DICE: u64 = 8;

/// Way in which an operator reports that it has handled a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperatorStyle {
    /// In `status.observedGeneration`.
    Status,
    /// In the `observedGeneration` of its own condition.
    Condition,
    /// As Kopf does, in an annotation with the last handled configuration.
    Kopf,
    /// Not at all.
    Silent,
}

/// One kind of the scenario.
#[derive(Clone, Debug)]
pub(crate) struct KindDef {
    pub(crate) api: ApiKind,
    /// `status.conditions` is an atomic list, not a map.
    pub(crate) atomic: bool,
    /// Reporting style of its operator, if it has one.
    pub(crate) style: OperatorStyle,
}

/// One entry of a policy's `children`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupDef {
    pub(crate) kind: usize,
    pub(crate) by_label: bool,
    pub(crate) critical: bool,
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
    pub(crate) quorum: Quorum,
    /// Suffix of the expected child's name, which starts with the parent's.
    pub(crate) named: Option<&'static str>,
    /// Rule by which its children are judged.
    pub(crate) rule: ChildRuleDef,
}

/// One policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyDef {
    pub(crate) id: PolicyId,
    /// Number in the policy's name: it stays when an edit gives the policy another id.
    pub(crate) number: usize,
    pub(crate) parent: usize,
    pub(crate) condition: &'static str,
    pub(crate) fallback: Option<&'static str>,
    pub(crate) groups: Vec<GroupDef>,
    /// Namespaces whose children count for a cluster-scoped parent.
    pub(crate) child_namespaces: &'static [&'static str],
    pub(crate) debounce: DebounceConfig,
    pub(crate) settle: Duration,
    pub(crate) hold: Duration,
    pub(crate) limits: StuckLimits,
    /// Deadline of the policy, longer than `limits.pending`.
    pub(crate) deadline: Option<Duration>,
    pub(crate) acceptance: Acceptance,
}

/// The fixed settings of a seed's run.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) kinds: Vec<KindDef>,
    /// Policies with which the history begins, and by which operators create children.
    pub(crate) first_policies: Vec<PolicyDef>,
}

fn kind_def(group: &str, kind: &str, plural: &str, namespaced: bool) -> KindDef {
    KindDef {
        api: ApiKind {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: plural.into(),
            namespaced,
            has_status: true,
        },
        atomic: false,
        style: OperatorStyle::Silent,
    }
}

impl Scenario {
    /// Draws the scenario of a seed; its main stream is `dice`.
    pub(crate) fn new(seed: u64, dice: &mut Dice) -> Scenario {
        let mut kinds = vec![
            kind_def("apps", "Deployment", "deployments", true),
            kind_def("apps", "StatefulSet", "statefulsets", true),
            kind_def("batch", "Job", "jobs", true),
            kind_def(CUSTOM_GROUP, "Widget", "widgets", true),
            kind_def(CUSTOM_GROUP, "Database", "databases", true),
        ];
        let depth = 1 + dice.below(3);
        if depth > 1 {
            kinds.push(kind_def(CUSTOM_GROUP, "Platform", "platforms", true));
        }
        if depth > 2 {
            let namespaced = dice.chance(60);
            kinds.push(kind_def(CUSTOM_GROUP, "Fleet", "fleets", namespaced));
        }
        for kind in kinds.iter_mut().skip(4) {
            let styles = [
                OperatorStyle::Status,
                OperatorStyle::Status,
                OperatorStyle::Condition,
                OperatorStyle::Kopf,
                OperatorStyle::Silent,
            ];
            kind.style = *dice.pick(&styles).unwrap_or(&OperatorStyle::Status);
            kind.atomic = dice.chance(30);
        }
        let mut scenario = Scenario { kinds, first_policies: Vec::new() };
        let groups = leaf_groups(dice);
        scenario.add_policy(dice, 4, "Ready", groups);
        if dice.chance(30) {
            let groups = vec![GroupDef { min: 1, ..group_def(1) }];
            scenario.add_policy(dice, 4, "StorageReady", groups);
        }
        for parent in 5..scenario.kinds.len() {
            let mut groups = vec![GroupDef { min: 1, ..group_def(parent - 1) }];
            if dice.chance(50) {
                groups.push(GroupDef { critical: dice.chance(70), ..group_def(0) });
            }
            scenario.add_policy(dice, parent, "Ready", groups);
        }
        let mut namespace_dice = Dice::new(seed, NAMESPACE_DICE);
        for policy in &mut scenario.first_policies {
            policy.child_namespaces = draw_child_namespaces(&mut namespace_dice);
        }
        scenario
    }

    fn add_policy(&mut self, dice: &mut Dice, parent: usize, condition: &'static str, groups: Vec<GroupDef>) {
        let seconds = |n: i64| Duration::from_secs(n.unsigned_abs());
        let mut policy = PolicyDef {
            id: PolicyId(small_number(self.first_policies.len() + 1)),
            number: self.first_policies.len() + 1,
            parent,
            condition,
            fallback: (condition == "Ready" && dice.chance(30)).then_some("RollcallReady"),
            groups,
            child_namespaces: &NAMESPACES,
            debounce: DebounceConfig { quiet: Duration::from_millis(100), cap: Duration::from_secs(1) },
            settle: Duration::from_millis(dice.between(500, 5_000).unsigned_abs()),
            hold: if dice.chance(25) { seconds(dice.between(1, 4)) } else { Duration::ZERO },
            limits: StuckLimits {
                pending: seconds(dice.between(20, 70)),
                terminating: seconds(dice.between(15, 60)),
                // The naive judge knows of no progress; the tables of `readiness` do.
                progress: seconds(86_400),
            },
            deadline: None,
            acceptance: Acceptance::Accepted,
        };
        let pending = policy.limits.pending;
        policy.deadline = pending.as_secs().is_multiple_of(3).then(|| pending + seconds(10));
        self.first_policies.push(policy);
    }

    /// Returns the reflector's interest in a kind under these policies.
    pub(crate) fn kind_interest(&self, kind: usize, policies: &[PolicyDef]) -> Interest {
        let def = &self.kinds[kind];
        let mut interest = Interest::for_kind(kind_id(kind), &def.api.group, &def.api.kind);
        for policy in policies {
            for (at, group) in (0..=u8::MAX).zip(&policy.groups).filter(|(_, g)| g.kind == kind) {
                let judged_by = AssessmentRule {
                    limits: policy.limits,
                    rule: group.rule.to_user_rule(&def.api),
                    remembers_outcome: false,
                };
                let known = interest.assessment_rules.iter().position(|l| *l == judged_by);
                let judged_by = known.unwrap_or_else(|| {
                    interest.assessment_rules.push(judged_by);
                    interest.assessment_rules.len() - 1
                });
                let parent = &self.kinds[policy.parent].api;
                let find = if group.by_label {
                    let of = (parent.group.as_str().into(), parent.kind.as_str().into());
                    FindChildrenBy::Labels { keys: vec![PARENT_LABEL.into()], of }
                } else {
                    FindChildrenBy::Owner {
                        group: parent.group.as_str().into(),
                        kind: parent.kind.as_str().into(),
                    }
                };
                let rule = ChildRule {
                    policy: policy.id,
                    group: at,
                    rule_index: small_number(judged_by),
                    find,
                    allowed: AllowedNamespaces::listed(policy.child_namespaces.iter().copied()),
                    ignore: None,
                    retention: OutcomeRetention::Forget,
                };
                interest.child.push(rule);
            }
            if policy.parent == kind {
                interest.parent.push(policy.parent_rule());
            }
        }
        interest
    }

    /// Returns the names of all kinds.
    pub(crate) fn kind_names(&self) -> Vec<String> {
        self.kinds.iter().map(|kind| kind.api.kind.clone()).collect()
    }

    /// Returns the kind's name in a parent's message.
    pub(crate) fn kind_name(&self, kind: usize) -> &str {
        &self.kinds[kind].api.kind
    }
}

/// Draws namespaces whose children count for a cluster-scoped parent: mostly all of them.
pub(crate) fn draw_child_namespaces(dice: &mut Dice) -> &'static [&'static str] {
    if dice.chance(80) { &NAMESPACES } else { &NAMESPACES[..1] }
}

/// Draws the groups of leaf children, by owner and by label.
fn leaf_groups(dice: &mut Dice) -> Vec<GroupDef> {
    let mut groups = Vec::new();
    for kind in 0..4 {
        if dice.chance(65) {
            let quorum = match dice.below(8) {
                0 => Quorum::Count(1),
                1 => Quorum::Percent(50),
                _ => Quorum::All,
            };
            groups.push(GroupDef {
                by_label: kind == 3,
                critical: groups.is_empty() || dice.chance(80),
                min: small_number(dice.below(3).min(1)),
                max: dice.chance(10).then_some(3),
                quorum,
                named: dice.chance(10).then_some("x0"),
                ..group_def(kind)
            });
        }
    }
    if groups.is_empty() {
        groups.push(group_def(0));
    }
    groups
}

/// Converts a number that the simulation itself keeps small.
pub(crate) fn small_number<T: TryFrom<usize>>(number: usize) -> T {
    T::try_from(number).ok().expect("invariant: the simulation is small")
}

/// Returns the id of a kind.
pub(crate) fn kind_id(kind: usize) -> KindId {
    KindId(small_number(kind))
}

fn group_def(kind: usize) -> GroupDef {
    GroupDef {
        kind,
        by_label: false,
        critical: true,
        min: 0,
        max: None,
        quorum: Quorum::All,
        named: None,
        rule: ChildRuleDef::Native,
    }
}

/// Returns the name of an expected child: the parent's name with a suffix.
pub(crate) fn expected_child_name(parent: &str, suffix: &str) -> String {
    format!("{parent}-{suffix}")
}

fn parse_template(text: &str) -> ParentTemplate {
    ParentTemplate::parse(text).expect("invariant: the simulation's own templates are well-formed")
}

impl PolicyDef {
    fn parent_rule(&self) -> ParentRule {
        let labelled = |(at, group): (u8, &GroupDef)| {
            let rule = LabelRule {
                group: at,
                values: vec![parse_template("{parent.metadata.name}")],
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
            // Some parents of one policy carry marks and others do not, at random.
            kopf_marks: KopfMarkRule::Optional,
            labels: (0..=u8::MAX).zip(&self.groups).filter_map(labelled).collect(),
            names: (0..=u8::MAX).zip(&self.groups).filter_map(names).collect(),
            ..ParentRule::for_policy(self.id)
        }
    }

    /// Returns the policy's name.
    pub(crate) fn name(&self) -> String {
        format!("policy-{}", self.number)
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
        scenario: &Scenario,
        sabotage: Option<Sabotage>,
    ) -> (EnginePolicy, PolicySummary) {
        let group = |g: &GroupDef| ChildGroup {
            kind: kind_id(g.kind),
            role: if g.critical { GroupRole::Critical } else { GroupRole::Optional },
            min: g.min,
            max: g.max,
            quorum: g.quorum,
        };
        let words = |g: &GroupDef| GroupSummary {
            kind: scenario.kind_name(g.kind).to_owned(),
            min: g.min,
            max: g.max,
        };
        let kinds: Vec<KindId> = self.involved_kinds().into_iter().map(kind_id).collect();
        let policy = EnginePolicy {
            groups: self.groups.iter().map(group).collect(),
            min: 0,
            kinds: kinds.clone(),
            debounce: self.debounce,
            settle: if sabotage == Some(Sabotage::NoSettle) { Duration::ZERO } else { self.settle },
            hold: self.hold,
            availability: aggregator::Availability::Strict,
            grace: Duration::ZERO,
            pending: self.limits.pending,
            deadline: self.deadline,
            shadow: false,
            expects_names: self.groups.iter().any(|g| g.named.is_some()),
            acceptance: self.acceptance,
        };
        let words = PolicySummary {
            name: self.name(),
            groups: self.groups.iter().map(words).collect(),
            min: 0,
            kinds,
        };
        (policy, words)
    }
}
