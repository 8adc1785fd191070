//! Simulation of remembered Jobs: they come and go, and so does the process that remembers them; no answer is ever
//! wrong.
//!
//! It drives the service's own core, reflector and record store over a cluster of its own: watches that lag, lose their
//! position and lose the race against live reads; outages in which Jobs run again and vanish; Events that come late,
//! never, or expire too early; records that are written late, twice, or not at all before a crash, and that people
//! delete and corrupt.

mod history_steps;
mod job_cluster;
mod job_event;
mod job_events;
mod job_manifests;
mod memory_checks;
mod memory_counts;
mod record_server;
mod service_process;

pub use memory_counts::MemoryCounts;

use job_cluster::JobCluster;
use service_process::ServiceProcess;

use crate::sabotage::Sabotage;

/// Number of steps in each history.
const HISTORY_STEPS: usize = 400;

/// Result of a seed: its log, the first violated check, and the counts.
pub(crate) fn play_history(
    seed: u64,
    sabotage: Option<Sabotage>,
) -> (Vec<String>, Option<String>, MemoryCounts) {
    let mut world = JobCluster::new(seed, sabotage);
    let mut service = ServiceProcess::new(&world);
    let mut tally = MemoryCounts::default();
    for _ in 0..HISTORY_STEPS {
        world.run_step(&mut service);
        memory_checks::check_memory(&world, &service);
        if world.has_failed() {
            break;
        }
    }
    if !world.has_failed() {
        tally = rest_and_restart(&mut world, &mut service);
    }
    let failure = world.first_failure();
    (world.log, failure, tally)
}

/// Lets everything settle, then checks that a restart writes nothing and remembers the same. The first restart may
/// differ: it may take an older run that still exists for the newest, if a newer one was deleted before its end; and
/// Events may tell it of a Job that the earlier process saw to have another owner.
fn rest_and_restart(world: &mut JobCluster, service: &mut ServiceProcess) -> MemoryCounts {
    world.run_calm(service);
    memory_checks::check_memory(world, service);
    let tally = memory_checks::check_memory_at_end(world, service);
    let mut written = 0;
    for _ in 0..2 {
        written = world.written;
        world.restart_service(service);
        world.run_calm(service);
        memory_checks::check_memory(world, service);
        let again = memory_checks::check_memory_at_end(world, service);
        world.demand(again.right + again.strangers >= tally.right, "a restart at rest forgets");
    }
    world.demand(written == world.written, "a restart at rest writes records");
    tally
}
