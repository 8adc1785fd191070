//! Who disturbs a history, and counts its points.

use std::collections::BTreeMap;

use super::disturbance::{Disturbance, PointKind};
use super::perturbed_point::Perturbation;

/// What the watches of a new process show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewProcessView {
    /// The state of the server.
    Current,
    /// An older state for a while, as a server that is behind has it.
    Behind,
}

/// Counts the points of a history, and disturbs it at some of them.
#[derive(Debug, Default)]
pub(crate) struct Perturber {
    plans: Vec<Perturbation>,
    /// Number of points so far.
    points: BTreeMap<PointKind, u32>,
    /// The process ends as soon as the current event is over.
    due_end: Option<NewProcessView>,
}

impl Perturber {
    pub(crate) fn new(plans: &[Perturbation]) -> Perturber {
        Perturber { plans: plans.to_vec(), ..Perturber::default() }
    }

    /// Counts a point; returns what happens there.
    pub(crate) fn pass_point(&mut self, point: PointKind) -> Option<Disturbance> {
        let count = self.points.entry(point).or_default();
        let number = std::mem::replace(count, *count + 1);
        let plan = self.plans.iter().find(|plan| (plan.point, plan.number) == (point, number))?;
        match plan.disturbance {
            Disturbance::KilledBefore | Disturbance::KilledAfter => {
                self.due_end = Some(NewProcessView::Current);
            }
            Disturbance::KilledThenBehind => self.due_end = Some(NewProcessView::Behind),
            _ => {}
        }
        Some(plan.disturbance)
    }

    /// Ends the process: a step of a script.
    pub(crate) fn end_process(&mut self) {
        self.due_end = Some(NewProcessView::Current);
    }

    /// Returns whether, and how, the process ends now.
    pub(crate) fn take_due_end(&mut self) -> Option<NewProcessView> {
        self.due_end.take()
    }

    /// Returns the number of points so far, of each kind.
    pub(crate) fn points(&self) -> &BTreeMap<PointKind, u32> {
        &self.points
    }
}
