//! The histories that are played: drawn from a seed, or of a reference workload.

use std::rc::Rc;

use crate::actors::{
    ChurnActors, ClusterActors, DefinitionActors, DeletionActors, DrainActors, FailureActors, HistoryActors,
    OptionalActors, ScriptedActors,
};
use crate::perturbation::Perturbation;
use crate::scenario::{
    DiceStream, HistoryKind, ReferenceWorkload, Sabotage, Scenario, SeedStreams, StreamLayout,
};
use crate::sim::Sim;
use crate::world::SimWorld;

/// Seed of the delays in reference workloads.
const WORKLOAD_SEED: u64 = 1;

/// Creates the simulation of one history of a seed.
pub(crate) fn history_of_seed(streams: SeedStreams, sabotage: Option<Sabotage>, kind: HistoryKind) -> Sim {
    let seed = streams.seed;
    let mut dice = DiceStream::Scenario.dice(seed);
    let scenario = Rc::new(Scenario::new(streams, &mut dice));
    let optional = OptionalActors {
        churn: streams.widened_by(DiceStream::Churn).and_then(ChurnActors::draw),
        definitions: streams.widened_by(DiceStream::Definitions).and_then(DefinitionActors::draw),
        drains: streams.widened_by(DiceStream::Drains).and_then(DrainActors::draw),
        failures: streams.widened_by(DiceStream::Failures).and_then(FailureActors::draw),
        deletions: streams.widened_by(DiceStream::ForegroundDeletions).and_then(DeletionActors::draw),
    };
    let actors =
        ClusterActors::new(streams.split_from(&dice, DiceStream::Actors), scenario.clone(), optional);
    let world = SimWorld::new(streams, scenario);
    Sim::new(streams, (sabotage, kind), HistoryActors::Drawn(Box::new(actors)), world)
}

/// Creates the simulation of a reference workload, which is disturbed at these points.
pub(crate) fn history_of_workload(
    workload: ReferenceWorkload,
    sabotage: Option<Sabotage>,
    perturbations: &[Perturbation],
) -> Sim {
    let streams = SeedStreams { seed: WORKLOAD_SEED, layout: StreamLayout::ALL };
    let scenario = Rc::new(workload.scenario());
    let actors = ScriptedActors::new(workload, scenario.clone());
    let kind = if workload.changes_policies() { HistoryKind::ChangingPolicies } else { HistoryKind::Still };
    let world = SimWorld::calm(streams, scenario, perturbations);
    Sim::new(streams, (sabotage, kind), HistoryActors::Scripted(actors), world)
}
