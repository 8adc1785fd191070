//! The scenario of a seed: kinds, policies, and the behaviour of the operators; the dice that draw it, and what is broken on
//! purpose.

mod child_rule;
mod dice;
mod dice_stream;
mod group_def;
mod history_kind;
mod kind_def;
mod policy_def;
mod reference_workload;
mod sabotage;

use std::time::Duration;

use aggregator::{Acceptance, Availability, PolicyId};
use policy_def::other_type_of;
use readiness::StuckLimits;
use timer::DebounceConfig;
use watcher::plan::{
    AllowedNamespaces, AssessmentRule, ChildRule, FindChildrenBy, Interest, NamespaceScope, OutcomeRetention,
};

use group_def::draw_leaf_groups;
use kind_def::base_kinds;

pub(crate) use child_rule::ChildRuleDef;
pub(crate) use dice::Dice;
pub use dice_stream::StreamLayout;
pub(crate) use dice_stream::{DiceStream, SeedStreams};
pub(crate) use group_def::GroupDef;
pub(crate) use history_kind::HistoryKind;
pub(crate) use kind_def::{CUSTOM_GROUP, KindDef, OperatorStyle, kind_id, small_number};
pub(crate) use policy_def::{PolicyDef, expected_child_name};
pub use reference_workload::ReferenceWorkload;
pub(crate) use reference_workload::{DATABASE, DEPLOYMENT, FLEET, JOB, PLATFORM, STATEFUL_SET, WIDGET};
pub use sabotage::{Sabotage, SabotagedPart};

/// Label that selects children without an owner.
pub(crate) const PARENT_LABEL: &str = "part-of";
/// Chance of a policy to begin in shadow mode, in per cent.
const SHADOW_PERCENT: usize = 12;
/// Chance of a policy to keep True for a while, in per cent.
const GRACE_PERCENT: usize = 30;
/// Chance of a policy to keep True while workloads are scaled or disrupted, in per cent.
const TOLERANT_PERCENT: usize = 70;
/// Namespaces of all simulated objects.
pub(crate) const SIM_NAMESPACES: [&str; 2] = ["red", "blue"];

/// The fixed settings of a seed's run.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) kinds: Vec<KindDef>,
    /// Policies with which the history begins, and by which operators create children.
    pub(crate) first_policies: Vec<PolicyDef>,
}

impl Scenario {
    /// Draws the scenario of a seed; its main stream is `dice`.
    pub(crate) fn new(streams: SeedStreams, dice: &mut Dice) -> Scenario {
        let mut kinds = base_kinds();
        let depth = 1 + dice.below(3);
        if depth > 1 {
            kinds.push(KindDef::new(CUSTOM_GROUP, "Platform", "platforms", true));
        }
        if depth > 2 {
            let namespaced = dice.chance(60);
            kinds.push(KindDef::new(CUSTOM_GROUP, "Fleet", "fleets", namespaced));
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
        let groups = draw_leaf_groups(dice);
        scenario.add_policy(dice, 4, "Ready", groups);
        if dice.chance(30) {
            let groups = vec![GroupDef { min: 1, ..GroupDef::of_kind(1) }];
            scenario.add_policy(dice, 4, "StorageReady", groups);
        }
        for parent in 5..scenario.kinds.len() {
            let mut groups = vec![GroupDef { min: 1, ..GroupDef::of_kind(parent - 1) }];
            if dice.chance(50) {
                groups.push(GroupDef { critical: dice.chance(70), ..GroupDef::of_kind(0) });
            }
            scenario.add_policy(dice, parent, "Ready", groups);
        }
        let mut namespace_dice = DiceStream::Namespaces.dice(streams.seed);
        let mut grace_dice = streams.widened_by(DiceStream::Grace);
        let mut availability_dice = streams.widened_by(DiceStream::Availability);
        let mut shadow_dice = streams.widened_by(DiceStream::ShadowPolicies);
        for policy in &mut scenario.first_policies {
            policy.child_namespaces = draw_child_namespaces(&mut namespace_dice);
            if availability_dice.as_mut().is_some_and(|dice| dice.chance(TOLERANT_PERCENT)) {
                policy.availability = Availability::Tolerant;
            }
            policy.grace = grace_dice.as_mut().map_or(Duration::ZERO, draw_grace);
            policy.shadow = shadow_dice.as_mut().is_some_and(|dice| dice.chance(SHADOW_PERCENT));
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
            other_condition: other_type_of(condition),
            fallback: (condition == "Ready" && dice.chance(30)).then_some("RollcallReady"),
            groups,
            child_namespaces: &SIM_NAMESPACES,
            debounce: DebounceConfig { quiet: Duration::from_millis(100), cap: Duration::from_secs(1) },
            settle: Duration::from_millis(dice.between(500, 5_000).unsigned_abs()),
            hold: if dice.chance(25) { seconds(dice.between(1, 4)) } else { Duration::ZERO },
            availability: Availability::Strict,
            grace: Duration::ZERO,
            limits: StuckLimits {
                pending: seconds(dice.between(20, 70)),
                terminating: seconds(dice.between(15, 60)),
                // The naive judge knows of no progress; the tables of `readiness` do.
                progress: Duration::from_hours(1_000),
            },
            deadline: None,
            acceptance: Acceptance::Accepted,
            shadow: false,
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
                    made_by_none_of: [].into(),
                    scope: NamespaceScope::default(),
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

/// Draws for how long a policy keeps True: mostly not at all.
fn draw_grace(dice: &mut Dice) -> Duration {
    let keeps = dice.chance(GRACE_PERCENT);
    if keeps { Duration::from_millis(dice.between(1_000, 15_000).unsigned_abs()) } else { Duration::ZERO }
}

/// Draws namespaces whose children count for a cluster-scoped parent: mostly all of them.
pub(crate) fn draw_child_namespaces(dice: &mut Dice) -> &'static [&'static str] {
    if dice.chance(80) { &SIM_NAMESPACES } else { &SIM_NAMESPACES[..1] }
}
