//! What policies are resolved by before they are planned: labels of namespaces, scripts in a ConfigMap, and ReadinessGroups.

use std::collections::BTreeMap;

use aggregator::Quorum;

use super::listed_watch::{ListedItems, ListedWatch};
use crate::scenario::{ChildRuleDef, Dice, DiceStream, PolicyDef, SIM_NAMESPACES, Sabotage, SeedStreams};
use crate::timeline::{ListStep, ListedSet, SimTimeline};

/// Namespaces with labels: those of all objects, and others.
const LABELLED_NAMESPACES: [&str; 6] = ["red", "blue", "green", "grey", "gold", "pink"];
/// The ConfigMap of scripts.
const SCRIPTS: &str = "scripts";
/// Number of kinds that have a script each.
const SCRIPTED_KINDS: usize = 4;

/// Scripts of all kinds that have one.
pub(crate) type KindScripts = [ChildRuleDef; SCRIPTED_KINDS];

/// ReadinessGroups.
const GROUPS: [&str; 3] = ["orders", "search", "mail"];

/// What a ReadinessGroup asks of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupShape {
    min: u32,
    quorum: Quorum,
}

/// Labels, scripts and groups that a plan rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedItems {
    /// Whether each namespace is chosen by its labels.
    pub(crate) namespaces: ListedItems<bool>,
    pub(crate) scripts: ListedItems<KindScripts>,
    /// None in the histories of seeds that are remembered from before there were any.
    pub(crate) groups: ListedItems<GroupShape>,
}

/// The lists and watches of all of them.
pub(crate) struct ResolvingWatches {
    namespaces: ListedWatch<bool>,
    scripts: ListedWatch<KindScripts>,
    groups: Option<ListedWatch<GroupShape>>,
    /// Positions of the states on which the last plan rested.
    last_planned: [usize; 3],
}

impl ResolvingWatches {
    pub(crate) fn new(streams: SeedStreams, sabotage: Option<Sabotage>) -> ResolvingWatches {
        use DiceStream as S;
        let seed = streams.seed;
        let namespaces = (ListedSet::Namespaces, S::NamespaceLabels, S::NamespaceWire);
        let scripts = (ListedSet::Scripts, S::ScriptAuthors, S::ScriptWire);
        let labelled = LABELLED_NAMESPACES.into_iter().map(|name| (name, true)).collect();
        let native = BTreeMap::from([(SCRIPTS, [ChildRuleDef::Native; SCRIPTED_KINDS])]);
        let asked = GROUPS.map(|name| (name, GroupShape { min: 0, quorum: Quorum::All }));
        let half = |fault| sabotage == Some(fault);
        ResolvingWatches {
            namespaces: ListedWatch::new(seed, namespaces, labelled, half(Sabotage::HalfLabelsUsed)),
            scripts: ListedWatch::new(seed, scripts, native, half(Sabotage::HalfScriptsUsed)),
            groups: streams.widened_by(S::GroupAuthors).map(|_| {
                let groups = (ListedSet::Groups, S::GroupAuthors, S::GroupWire);
                ListedWatch::new(seed, groups, asked.into(), half(Sabotage::HalfGroupsUsed))
            }),
            last_planned: [0; 3],
        }
    }

    /// Returns what somebody edits in this history.
    pub(crate) fn edited(&self) -> impl Iterator<Item = ListedSet> {
        let groups = self.groups.as_ref().map(|_| ListedSet::Groups);
        [ListedSet::Namespaces, ListedSet::Scripts].into_iter().chain(groups)
    }

    /// Forgets what the process knew.
    pub(crate) fn reset_for_restart(&mut self) {
        self.namespaces.reset_for_restart();
        self.scripts.reset_for_restart();
        self.groups.iter_mut().for_each(ListedWatch::reset_for_restart);
        self.last_planned = [0; 3];
    }

    /// Starts the service's lists.
    pub(crate) fn start_watch(&mut self, timeline: &mut SimTimeline) {
        self.namespaces.start_watch(timeline);
        self.scripts.start_watch(timeline);
        self.groups.iter_mut().for_each(|groups| groups.start_watch(timeline));
    }

    /// Runs a step; returns `true` if something else is known than before.
    pub(crate) fn run_step(
        &mut self,
        timeline: &mut SimTimeline,
        (of, step): (ListedSet, ListStep),
        is_calm: bool,
    ) -> bool {
        match (of, step) {
            (ListedSet::Namespaces, ListStep::Edit) => {
                self.namespaces.edit_item(timeline, |_, is_chosen| is_chosen.map(|is_chosen| !is_chosen));
                false
            }
            (ListedSet::Scripts, ListStep::Edit) => {
                self.scripts
                    .edit_item(timeline, |dice, scripts| scripts.map(|scripts| draw_scripts(dice, scripts)));
                false
            }
            (ListedSet::Groups, step) => {
                self.groups.as_mut().is_some_and(|groups| step_groups(groups, timeline, step, is_calm))
            }
            (ListedSet::Namespaces, step) => self.namespaces.run_step(timeline, step, is_calm),
            (ListedSet::Scripts, step) => self.scripts.run_step(timeline, step, is_calm),
            (ListedSet::Budgets, _) => false,
        }
    }

    /// Returns what the process knows; `None` before all of it was listed.
    pub(crate) fn known(&self) -> Option<ResolvedItems> {
        let groups =
            self.groups.as_ref().map_or_else(|| Some(ListedItems::new()), |of| of.known().cloned())?;
        let (namespaces, scripts) = self.namespaces.known().zip(self.scripts.known())?;
        Some(ResolvedItems { namespaces: namespaces.clone(), scripts: scripts.clone(), groups })
    }

    /// Returns what the server has.
    pub(crate) fn stored(&self) -> ResolvedItems {
        ResolvedItems {
            namespaces: self.namespaces.stored().clone(),
            scripts: self.scripts.stored().clone(),
            groups: self.groups.as_ref().map_or_else(ListedItems::new, |of| of.stored().clone()),
        }
    }

    /// Notes what the next plan of the loop rests on; `false` if the server never had it, or not since the plan before.
    pub(crate) fn note_planned(&mut self, items: &ResolvedItems) -> bool {
        let [labelled, scripted, grouped] = self.last_planned;
        let groups = self.groups.as_ref().map_or(Some(0), |of| of.find_state(&items.groups, grouped));
        let states = (
            self.namespaces.find_state(&items.namespaces, labelled),
            self.scripts.find_state(&items.scripts, scripted),
            groups,
        );
        let (Some(labelled), Some(scripted), Some(grouped)) = states else { return false };
        self.last_planned = [labelled, scripted, grouped];
        true
    }
}

fn step_groups(
    groups: &mut ListedWatch<GroupShape>,
    timeline: &mut SimTimeline,
    step: ListStep,
    is_calm: bool,
) -> bool {
    if step == ListStep::Edit {
        groups.edit_item(timeline, |dice, shape| shape.map(|shape| draw_shape(dice, shape)));
        return false;
    }
    groups.run_step(timeline, step, is_calm)
}

fn draw_shape(dice: &mut Dice, shape: GroupShape) -> GroupShape {
    let quorums = [Quorum::All, Quorum::Count(1), Quorum::Percent(50)];
    let quorum = *dice.pick(&quorums).unwrap_or(&Quorum::All);
    GroupShape { min: if dice.chance(50) { 1 - shape.min } else { shape.min }, quorum }
}

fn draw_scripts(dice: &mut Dice, mut scripts: KindScripts) -> KindScripts {
    let at = dice.below(SCRIPTED_KINDS);
    scripts[at] = *dice.pick(&ChildRuleDef::ALL).unwrap_or(&ChildRuleDef::Native);
    scripts
}

impl ResolvedItems {
    /// Returns a policy as it is judged by: with the namespaces that its labels choose, with scripts for some kinds, and, of one that
    /// stands for a group, with what that asks for.
    pub(crate) fn resolve(&self, spec: &PolicyDef) -> PolicyDef {
        let is_chosen = |name: &str| self.namespaces.get(name).copied().unwrap_or(false);
        let mut resolved = spec.clone();
        resolved.child_namespaces = match SIM_NAMESPACES.map(is_chosen) {
            [true, true] => &SIM_NAMESPACES,
            [true, false] => &SIM_NAMESPACES[..1],
            [false, true] => &SIM_NAMESPACES[1..],
            [false, false] => &[],
        };
        let scripts = self.scripts.get(SCRIPTS).copied().unwrap_or([ChildRuleDef::Native; SCRIPTED_KINDS]);
        // The other groups keep a rule of the policy's own.
        for group in resolved.groups.iter_mut().filter(|group| (group.kind + spec.number).is_multiple_of(2)) {
            group.rule = scripts.get(group.kind).copied().unwrap_or(group.rule);
        }
        // The last of four stands for none.
        let shape = GROUPS.get(spec.number % 4).and_then(|name| self.groups.get(name));
        if let Some((group, shape)) = resolved.groups.first_mut().zip(shape) {
            (group.min, group.quorum) = (shape.min, shape.quorum);
        }
        resolved
    }
}
