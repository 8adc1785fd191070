//! Jobs come and go, and so does the process that is to remember them: seed → history → nobody is ever told wrong.
//!
//! It drives the service's own core, reflector and keeper of records over a world of its own: watches that lag, lose their
//! place and lose the race against live reads; records that are written late, twice, or not at all before a crash, and
//! that people delete and spoil. `ROLLCALL_SIM_SEED=S` plays one seed and prints its log; `ROLLCALL_SIM_SEEDS=N` plays N.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

mod judge;
mod service;
mod world;

use std::ops::AddAssign;

use service::Service;
use world::World;

/// So many seeds, where nothing else is asked for.
const SEEDS: u64 = 50;
/// So many things happen in each.
const STEPS: usize = 400;

/// What became of what was remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    restarts: usize,
    right: usize,
    unseen: usize,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.restarts += other.restarts;
        self.right += other.right;
        self.unseen += other.unseen;
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// Plays one seed to its end; panics with its log where something does not hold.
fn play(seed: u64) -> Tally {
    let mut world = World::new(seed);
    let mut service = Service::new(&world);
    for _ in 0..STEPS {
        world.step(&mut service);
        judge::check(&world, &service);
    }
    world.calm(&mut service);
    judge::check(&world, &service);
    let tally = judge::check_end(&world, &service);
    // A restart at rest writes nothing, and knows the same. The first one may see an older run that is still there, of which
    // a newer one was deleted before its end, as the newest.
    let mut written = 0;
    for _ in 0..2 {
        written = world.written;
        world.restart(&mut service);
        world.calm(&mut service);
        judge::check(&world, &service);
        let again = judge::check_end(&world, &service);
        assert!(again.right >= tally.right, "{}", world.story());
    }
    assert_eq!(written, world.written, "{}", world.story());
    tally
}

#[test]
fn no_history_makes_a_wrong_outcome() {
    if let Some(seed) = number("ROLLCALL_SIM_SEED") {
        println!("{:?}", play(seed));
        return;
    }
    let mut sum = Tally::default();
    let full = std::env::var("ROLLCALL_FULL").is_ok_and(|full| full == "1");
    let seeds = number("ROLLCALL_SIM_SEEDS").unwrap_or(if full { 10 * SEEDS } else { SEEDS });
    for seed in 0..seeds {
        sum += play(seed);
    }
    println!("{sum:?}");
    assert!(sum.restarts as u64 > 4 * seeds && sum.unseen > 0 && sum.right > 4 * sum.unseen, "{sum:?}");
}
