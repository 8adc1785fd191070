//! The service's list and watch of PodDisruptionBudgets, over a faulty wire.

use rollcall_core::ListedBudgets;
use watcher::reflector::NamespaceBudgets;
use watcher::{FollowEvent, ParentObject};

use super::listed_watch::{ListedReceiver, ListedWatch};
use super::sim_stage::SimStage;
use crate::scenario::{Dice, DiceStream, Sabotage, SeedStreams};
use crate::timeline::{ListStep, ListedSet, SimEvent, SimTimeline};
use crate::world::SimBudget;

/// Namespace and name of each budget that there is now and then.
const BUDGETS: [&str; 4] = ["red/first", "red/second", "blue/first", "blue/second"];
/// Chance of one not to be there at first, in per cent.
const ABSENT_PERCENT: usize = 30;
/// Chance of an edit of one to delete it, in per cent.
const DELETED_PERCENT: usize = 30;

/// The list and watch of budgets, in a history that has any.
pub(crate) struct BudgetWatch {
    watch: ListedWatch<SimBudget, BudgetReceiver>,
}

/// What the service knows of budgets.
#[derive(Default)]
struct BudgetReceiver(ListedBudgets);

/// The budget as a list or a watch brings it.
fn budget_object(name: &str, budget: SimBudget) -> ParentObject {
    let (namespace, name) = name.split_once('/').unwrap_or_default();
    let object = budget.manifest(namespace, name).to_string();
    serde_json::from_str(&object).expect("invariant: a budget is an object")
}

impl ListedReceiver<SimBudget> for BudgetReceiver {
    fn begin_list(&mut self) {
        self.0.apply_event(&FollowEvent::Init);
    }

    fn stage_item(&mut self, name: &'static str, budget: SimBudget) {
        self.0.apply_event(&FollowEvent::InitApply(budget_object(name, budget)));
    }

    fn finish_list(&mut self) {
        self.0.apply_event(&FollowEvent::InitDone);
    }

    fn apply_item(&mut self, name: &'static str, budget: SimBudget) {
        self.0.apply_event(&FollowEvent::Apply(budget_object(name, budget)));
    }

    fn remove_item(&mut self, name: &'static str, budget: SimBudget) {
        self.0.apply_event(&FollowEvent::Delete(budget_object(name, budget)));
    }
}

fn draw_edit(dice: &mut Dice, before: Option<SimBudget>) -> Option<SimBudget> {
    let is_deleted = before.is_some() && dice.chance(DELETED_PERCENT);
    (!is_deleted).then(|| SimBudget::draw(dice))
}

impl BudgetWatch {
    /// Draws the budgets of a seed; `None` in the histories of seeds that are remembered from before there were any.
    pub(crate) fn draw(streams: SeedStreams, sabotage: Option<Sabotage>) -> Option<BudgetWatch> {
        let mut dice = streams.widened_by(DiceStream::BudgetAuthors)?;
        let first = BUDGETS.map(|name| (name, SimBudget::draw(&mut dice))).into();
        let of = (ListedSet::Budgets, DiceStream::BudgetAuthors, DiceStream::BudgetWire);
        let takes_half = sabotage == Some(Sabotage::HalfBudgetsUsed);
        let watch = ListedWatch::new(streams.seed, of, first, takes_half);
        Some(BudgetWatch { watch: watch.draw_absent(ABSENT_PERCENT) })
    }

    /// Forgets what the process knew.
    pub(crate) fn reset_for_restart(&mut self) {
        self.watch.reset_for_restart();
    }

    /// Starts the service's list.
    pub(crate) fn start_watch(&mut self, timeline: &mut SimTimeline) {
        self.watch.start_watch(timeline);
    }

    /// Schedules the first edit of a budget.
    pub(crate) fn schedule_edits(&self, timeline: &mut SimTimeline) {
        timeline.log_event(format_args!("Budgets: {:?}", self.watch.stored()));
        timeline.schedule_event(2_000, SimEvent::of_list(ListedSet::Budgets, ListStep::Edit));
    }

    /// Runs a step; objects are judged by what is known then, from the next time on that they are read.
    pub(crate) fn run_step(&mut self, stage: &mut SimStage, step: ListStep) {
        let (timeline, is_calm) = (&mut stage.world.timeline, stage.world.faults.is_off());
        if step == ListStep::Edit {
            return self.watch.edit_item(timeline, draw_edit);
        }
        if self.watch.run_step(timeline, step, is_calm) {
            let mut known = NamespaceBudgets::new();
            self.watch.receiver().0.add_known(&mut known);
            stage.feed.set_budgets(known, self.watch.told());
        }
    }
}
