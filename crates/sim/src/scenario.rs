//! What a seed's world consists of: kinds, policies, and the ways of its operators.

use std::time::Duration;

use aggregator::{Group, KindId, Policy, PolicyId, Quorum, Role};
use controller::core::{GroupWords, PolicyWords};
use readiness::Limits;
use timer::Debounce;
use watcher::ApiKind;
use watcher::plan::{After, ChildRule, Find, Interest, LabelRule, Lens, Marks, ParentRule, Template};

use crate::dice::Dice;
use crate::sabotage::Sabotage;

/// The group of every custom kind of the simulation.
pub(crate) const GROUP: &str = "example.com";
/// The label by which children are found that nobody owns.
pub(crate) const LABEL: &str = "part-of";

/// How an operator says that it has handled a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// By `status.observedGeneration`.
    Status,
    /// By the `observedGeneration` of a condition of its own.
    Condition,
    /// As Kopf does, by the configuration that it handled last.
    Kopf,
    /// Not at all.
    Silent,
}

/// One kind of the world.
#[derive(Clone, Debug)]
pub(crate) struct KindDef {
    pub(crate) api: ApiKind,
    /// Its `status.conditions` is an atomic list, not a map.
    pub(crate) atomic: bool,
    /// How its operator works, where it has one.
    pub(crate) style: Style,
}

/// One of a policy's `children`.
#[derive(Clone, Debug)]
pub(crate) struct GroupDef {
    pub(crate) kind: usize,
    pub(crate) by_label: bool,
    pub(crate) critical: bool,
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
    pub(crate) quorum: Quorum,
    /// A child called so, after its parent, is expected.
    pub(crate) named: Option<&'static str>,
}

/// One policy.
#[derive(Clone, Debug)]
pub(crate) struct PolicyDef {
    pub(crate) id: PolicyId,
    pub(crate) parent: usize,
    pub(crate) condition: &'static str,
    pub(crate) fallback: Option<&'static str>,
    pub(crate) groups: Vec<GroupDef>,
    pub(crate) debounce: Debounce,
    pub(crate) settle: Duration,
    pub(crate) hold: Duration,
    pub(crate) limits: Limits,
    /// Longer than `limits.pending`.
    pub(crate) deadline: Option<Duration>,
}

/// Everything that is the same for the whole run of a seed.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) kinds: Vec<KindDef>,
    pub(crate) policies: Vec<PolicyDef>,
}

fn kind(group: &str, kind: &str, plural: &str, namespaced: bool) -> KindDef {
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
        style: Style::Silent,
    }
}

impl Scenario {
    /// The world of one seed.
    pub(crate) fn new(dice: &mut Dice) -> Scenario {
        let mut kinds = vec![
            kind("apps", "Deployment", "deployments", true),
            kind("apps", "StatefulSet", "statefulsets", true),
            kind("batch", "Job", "jobs", true),
            kind(GROUP, "Widget", "widgets", true),
            kind(GROUP, "Database", "databases", true),
        ];
        let depth = 1 + dice.below(3);
        if depth > 1 {
            kinds.push(kind(GROUP, "Platform", "platforms", true));
        }
        if depth > 2 {
            let namespaced = dice.chance(60);
            kinds.push(kind(GROUP, "Fleet", "fleets", namespaced));
        }
        for kind in kinds.iter_mut().skip(4) {
            let styles = [Style::Status, Style::Status, Style::Condition, Style::Kopf, Style::Silent];
            kind.style = *dice.pick(&styles).unwrap_or(&Style::Status);
            kind.atomic = dice.chance(30);
        }
        let mut scenario = Scenario { kinds, policies: Vec::new() };
        let groups = bottom(dice);
        scenario.add(dice, 4, "Ready", groups);
        if dice.chance(30) {
            let groups = vec![GroupDef { min: 1, ..group(1) }];
            scenario.add(dice, 4, "StorageReady", groups);
        }
        for parent in 5..scenario.kinds.len() {
            let mut groups = vec![GroupDef { min: 1, ..group(parent - 1) }];
            if dice.chance(50) {
                groups.push(GroupDef { critical: dice.chance(70), ..group(0) });
            }
            scenario.add(dice, parent, "Ready", groups);
        }
        scenario
    }

    fn add(&mut self, dice: &mut Dice, parent: usize, condition: &'static str, groups: Vec<GroupDef>) {
        let seconds = |n: i64| Duration::from_secs(n as u64);
        let mut policy = PolicyDef {
            id: PolicyId(self.policies.len() as u16 + 1),
            parent,
            condition,
            fallback: (condition == "Ready" && dice.chance(30)).then_some("RollcallReady"),
            groups,
            debounce: Debounce { quiet: Duration::from_millis(100), cap: Duration::from_secs(1) },
            settle: Duration::from_millis(dice.between(500, 5_000) as u64),
            hold: if dice.chance(25) { seconds(dice.between(1, 4)) } else { Duration::ZERO },
            limits: Limits {
                pending: seconds(dice.between(20, 70)),
                terminating: seconds(dice.between(15, 60)),
            },
            deadline: None,
        };
        let pending = policy.limits.pending;
        policy.deadline = pending.as_secs().is_multiple_of(3).then(|| pending + seconds(10));
        self.policies.push(policy);
    }

    /// Why a kind is followed.
    pub(crate) fn interest(&self, kind: usize) -> Interest {
        let def = &self.kinds[kind];
        let mut interest = Interest::of(KindId(kind as u16), &def.api.group, &def.api.kind);
        for policy in &self.policies {
            for (at, group) in policy.groups.iter().enumerate().filter(|(_, g)| g.kind == kind) {
                let lens = Lens { limits: policy.limits, rule: None, remembers: false };
                let known = interest.lenses.iter().position(|l| *l == lens);
                let lens = known.unwrap_or_else(|| {
                    interest.lenses.push(lens);
                    interest.lenses.len() - 1
                });
                let parent = &self.kinds[policy.parent].api;
                let find = if group.by_label {
                    let of = (parent.group.as_str().into(), parent.kind.as_str().into());
                    Find::Labels { keys: vec![LABEL.into()], of }
                } else {
                    Find::Owner { group: parent.group.as_str().into(), kind: parent.kind.as_str().into() }
                };
                let rule = ChildRule {
                    policy: policy.id,
                    group: at as u8,
                    lens: lens as u8,
                    find,
                    ignore: None,
                    after: After::Forget,
                };
                interest.child.push(rule);
            }
            if policy.parent == kind {
                interest.parent.push(policy.parent_rule());
            }
        }
        interest
    }

    /// The kind's name as a parent's message has it.
    pub(crate) fn name(&self, kind: usize) -> &str {
        &self.kinds[kind].api.kind
    }
}

/// Children of the lowest level, by owner and by label.
fn bottom(dice: &mut Dice) -> Vec<GroupDef> {
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
                min: dice.below(3).min(1) as u32,
                max: dice.chance(10).then_some(3),
                quorum,
                named: dice.chance(10).then_some("x0"),
                ..group(kind)
            });
        }
    }
    if groups.is_empty() {
        groups.push(group(0));
    }
    groups
}

fn group(kind: usize) -> GroupDef {
    GroupDef { kind, by_label: false, critical: true, min: 0, max: None, quorum: Quorum::All, named: None }
}

/// What is expected by name is called after its parent.
pub(crate) fn named(parent: &str, suffix: &str) -> String {
    format!("{parent}-{suffix}")
}

fn template(text: &str) -> Template {
    Template::parse(text).expect("invariant: the simulation's own templates are well-formed")
}

impl PolicyDef {
    fn parent_rule(&self) -> ParentRule {
        let labelled = |(at, group): (usize, &GroupDef)| {
            let rule = LabelRule {
                group: at as u8,
                values: vec![template("{parent.metadata.name}")],
                namespaces: Vec::new(),
            };
            group.by_label.then_some(rule)
        };
        let names = |(at, group): (usize, &GroupDef)| {
            let suffix = group.named?;
            Some((at as u8, vec![template(&named("{parent.metadata.name}", suffix))]))
        };
        ParentRule {
            condition: self.condition.into(),
            fallback: self.fallback.map(Into::into),
            // Some parents of one policy are marked and others not, as chance will have it.
            marks: Marks::Optional,
            labels: self.groups.iter().enumerate().filter_map(labelled).collect(),
            names: self.groups.iter().enumerate().filter_map(names).collect(),
            ..ParentRule::of(self.id)
        }
    }

    /// Every kind that its answers rest on.
    pub(crate) fn kinds(&self) -> Vec<usize> {
        let mut kinds: Vec<usize> =
            self.groups.iter().map(|g| g.kind).chain(std::iter::once(self.parent)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// As the engine and the renderer know it.
    pub(crate) fn compiled(&self, scenario: &Scenario, sabotage: Option<Sabotage>) -> (Policy, PolicyWords) {
        let group = |g: &GroupDef| Group {
            kind: KindId(g.kind as u16),
            role: if g.critical { Role::Critical } else { Role::Optional },
            min: g.min,
            max: g.max,
            quorum: g.quorum,
        };
        let words =
            |g: &GroupDef| GroupWords { kind: scenario.name(g.kind).to_owned(), min: g.min, max: g.max };
        let kinds: Vec<KindId> = self.kinds().into_iter().map(|k| KindId(k as u16)).collect();
        let policy = Policy {
            groups: self.groups.iter().map(group).collect(),
            min: 0,
            kinds: kinds.clone(),
            debounce: self.debounce,
            settle: if sabotage == Some(Sabotage::NoSettle) { Duration::ZERO } else { self.settle },
            hold: self.hold,
            pending: self.limits.pending,
            deadline: self.deadline,
            shadow: false,
            names: self.groups.iter().any(|g| g.named.is_some()),
        };
        let words = PolicyWords {
            name: format!("policy-{}", self.id.0),
            groups: self.groups.iter().map(words).collect(),
            min: 0,
            kinds,
        };
        (policy, words)
    }
}
