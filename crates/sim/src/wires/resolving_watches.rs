//! What policies are resolved by before they are planned: labels of namespaces, and scripts in a ConfigMap.

use std::collections::BTreeMap;

use super::listed_watch::{ListedItems, ListedWatch};
use crate::scenario::{ChildRuleDef, Dice, DiceStream, PolicyDef, SIM_NAMESPACES, Sabotage};
use crate::timeline::{ListStep, ResolvedBy, SimTimeline};

/// Namespaces with labels: those of all objects, and others.
const LABELLED_NAMESPACES: [&str; 6] = ["red", "blue", "green", "grey", "gold", "pink"];
/// The ConfigMap of scripts.
const SCRIPTS: &str = "scripts";
/// Number of kinds that have a script each.
const SCRIPTED_KINDS: usize = 4;

/// Scripts of all kinds that have one.
pub(crate) type KindScripts = [ChildRuleDef; SCRIPTED_KINDS];

/// Labels and scripts that a plan rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedItems {
    /// Whether each namespace is chosen by its labels.
    pub(crate) namespaces: ListedItems<bool>,
    pub(crate) scripts: ListedItems<KindScripts>,
}

/// The lists and watches of both.
pub(crate) struct ResolvingWatches {
    namespaces: ListedWatch<bool>,
    scripts: ListedWatch<KindScripts>,
    /// Positions of the states on which the last plan rested.
    last_planned: (usize, usize),
}

impl ResolvingWatches {
    pub(crate) fn new(seed: u64, sabotage: Option<Sabotage>) -> ResolvingWatches {
        use DiceStream as S;
        let namespaces = (ResolvedBy::Namespaces, S::NamespaceLabels, S::NamespaceWire);
        let scripts = (ResolvedBy::Scripts, S::ScriptAuthors, S::ScriptWire);
        let labelled = LABELLED_NAMESPACES.into_iter().map(|name| (name, true)).collect();
        let native = BTreeMap::from([(SCRIPTS, [ChildRuleDef::Native; SCRIPTED_KINDS])]);
        let half = |fault| sabotage == Some(fault);
        ResolvingWatches {
            namespaces: ListedWatch::new(seed, namespaces, labelled, half(Sabotage::HalfLabelsUsed)),
            scripts: ListedWatch::new(seed, scripts, native, half(Sabotage::HalfScriptsUsed)),
            last_planned: (0, 0),
        }
    }

    /// Forgets what the process knew.
    pub(crate) fn reset_for_restart(&mut self) {
        self.namespaces.reset_for_restart();
        self.scripts.reset_for_restart();
        self.last_planned = (0, 0);
    }

    /// Starts the service's lists.
    pub(crate) fn start_watch(&mut self, timeline: &mut SimTimeline) {
        self.namespaces.start_watch(timeline);
        self.scripts.start_watch(timeline);
    }

    /// Runs a step; returns `true` if something else is known than before.
    pub(crate) fn run_step(
        &mut self,
        timeline: &mut SimTimeline,
        (of, step): (ResolvedBy, ListStep),
        is_calm: bool,
    ) -> bool {
        match (of, step) {
            (ResolvedBy::Namespaces, ListStep::Edit) => {
                self.namespaces.edit_item(timeline, |_, is_chosen| !is_chosen);
                false
            }
            (ResolvedBy::Scripts, ListStep::Edit) => {
                self.scripts.edit_item(timeline, draw_scripts);
                false
            }
            (ResolvedBy::Namespaces, step) => self.namespaces.run_step(timeline, step, is_calm),
            (ResolvedBy::Scripts, step) => self.scripts.run_step(timeline, step, is_calm),
        }
    }

    /// Returns what the process knows; `None` before all of it was listed.
    pub(crate) fn known(&self) -> Option<ResolvedItems> {
        let (namespaces, scripts) = self.namespaces.known().zip(self.scripts.known())?;
        Some(ResolvedItems { namespaces: namespaces.clone(), scripts: scripts.clone() })
    }

    /// Returns what the server has.
    pub(crate) fn stored(&self) -> ResolvedItems {
        ResolvedItems { namespaces: self.namespaces.stored().clone(), scripts: self.scripts.stored().clone() }
    }

    /// Notes what the next plan of the loop rests on; `false` if the server never had it, or not since the plan before.
    pub(crate) fn note_planned(&mut self, items: &ResolvedItems) -> bool {
        let namespaces = self.namespaces.find_state(&items.namespaces, self.last_planned.0);
        let scripts = self.scripts.find_state(&items.scripts, self.last_planned.1);
        let states = namespaces.zip(scripts);
        self.last_planned = states.unwrap_or(self.last_planned);
        states.is_some()
    }
}

fn draw_scripts(dice: &mut Dice, mut scripts: KindScripts) -> KindScripts {
    let at = dice.below(SCRIPTED_KINDS);
    scripts[at] = *dice.pick(&ChildRuleDef::ALL).unwrap_or(&ChildRuleDef::Native);
    scripts
}

impl ResolvedItems {
    /// Returns a policy as it is judged by: with the namespaces that its labels choose, and with scripts for some kinds.
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
        resolved
    }
}
