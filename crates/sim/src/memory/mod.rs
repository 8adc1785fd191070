//! Jobs come and go, and so does the process that is to remember them: seed → history → nobody is ever told wrong.
//!
//! It drives the service's own core, reflector and keeper of records over a world of its own: watches that lag, lose their
//! place and lose the race against live reads; outages in which Jobs are run again and vanish; Events that come late, or never,
//! or are not kept long enough; records that are written late, twice, or not at all before a crash, and that people delete and
//! spoil.

mod events;
mod judge;
mod objects;
mod server;
mod service;
mod world;

use std::ops::AddAssign;

use service::Service;
use world::World;

use crate::sabotage::Sabotage;

/// So many things happen in each.
const STEPS: usize = 400;

/// What became of what was remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// Restarts of the process.
    pub restarts: u64,
    /// Of those, after an outage in which things happened.
    pub outages: u64,
    /// Outcomes at the end that are as they were.
    pub right: u64,
    /// Outcomes at the end of which it is known that nobody knows them.
    pub unseen: u64,
    /// Of those, by Events of what was somebody else's.
    pub strangers: u64,
    /// Runs that nobody saw, that Events told of.
    pub told: u64,
}

impl AddAssign for Remembered {
    fn add_assign(&mut self, other: Remembered) {
        self.restarts += other.restarts;
        self.outages += other.outages;
        self.right += other.right;
        self.unseen += other.unseen;
        self.strangers += other.strangers;
        self.told += other.told;
    }
}

/// What became of a seed: its log, what did not hold, and how much was remembered.
pub(crate) fn play(seed: u64, sabotage: Option<Sabotage>) -> (Vec<String>, Option<String>, Remembered) {
    let mut world = World::new(seed, sabotage);
    let mut service = Service::new(&world);
    let mut tally = Remembered::default();
    for _ in 0..STEPS {
        world.step(&mut service);
        judge::check(&world, &service);
        if world.has_failed() {
            break;
        }
    }
    if !world.has_failed() {
        tally = rest(&mut world, &mut service);
    }
    let failure = world.failure();
    (world.log, failure, tally)
}

/// Everything gets through. After that a restart writes nothing, and knows the same. The first one may see an older run that is
/// still there, of which a newer one was deleted before its end, as the newest; and it may hear of what the process before it saw
/// to be somebody else's.
fn rest(world: &mut World, service: &mut Service) -> Remembered {
    world.calm(service);
    judge::check(world, service);
    let tally = judge::check_end(world, service);
    let mut written = 0;
    for _ in 0..2 {
        written = world.written;
        world.restart(service);
        world.calm(service);
        judge::check(world, service);
        let again = judge::check_end(world, service);
        world.demand(again.right + again.strangers >= tally.right, "a restart at rest forgets");
    }
    world.demand(written == world.written, "a restart at rest writes records");
    tally
}
