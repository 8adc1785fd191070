//! What must hold, by the truth.

use std::collections::{BTreeMap, BTreeSet};

use aggregator::Target;
use readiness::rollup::ParentReason;
use readiness::{Level, Time};
use watcher::plan::After;
use watcher::reflector::{End, Outcome};

use super::Remembered;
use super::service::{JOBS, PARENTS, POLICY, Service};
use super::world::{Job, World};

macro_rules! holds {
    ($world:expr, $claim:expr, $($words:tt)+) => {
        $world.demand($claim, format_args!($($words)+))
    };
}

fn job<'w>(world: &'w World, uid: &str) -> Option<&'w Job> {
    world.jobs.iter().find(|job| job.uid == uid)
}

/// After each step: nothing that is remembered is wrong, and the engine counts what is remembered, once.
pub(super) fn check(world: &World, service: &Service) {
    for parent in &world.parents {
        let memories = service.core.reflector.memories(&parent.uid).unwrap_or_default();
        let mut slots = BTreeSet::new();
        for outcome in &memories.outcomes {
            check_outcome(world, service, &parent.uid, outcome);
            let once = slots.insert(outcome.slot.clone());
            holds!(world, once, "{} is remembered twice for {}", outcome.slot, parent.uid);
        }
        check_counts(world, service, &parent.uid, &memories.outcomes);
    }
}

fn check_outcome(world: &World, service: &Service, parent: &str, outcome: &Outcome) {
    let Some(truth) = job(world, &outcome.uid) else {
        return world.demand(false, format_args!("{} never was", outcome.uid));
    };
    let own = !truth.stranger && world.parents[truth.parent].uid == parent;
    let right = match &outcome.end {
        End::Open => true,
        End::Complete => own && truth.end == Some(true),
        End::Failed(_) => own && truth.end == Some(false),
    };
    holds!(
        world,
        right,
        "{} ended {:?}, of {parent}: {own}, remembered: {:?}",
        outcome.uid,
        truth.end,
        outcome.end
    );
    if !service.is_listed(JOBS) || !outcome.gone {
        return;
    }
    holds!(world, truth.gone, "{} is there, remembered as gone", outcome.uid);
    let reflector = &service.core.reflector;
    let level = reflector.find(&outcome.uid).and_then(|id| {
        reflector.read(id, |row| row.is_remembered().then_some(row.assessment.verdict.level)).flatten()
    });
    let expected = match outcome.end {
        End::Open => Level::Unknown,
        End::Complete => Level::Ready,
        End::Failed(_) => Level::Failed,
    };
    holds!(world, level == Some(expected), "{} counts as {level:?}, not as {expected:?}", outcome.uid);
}

/// The engine's tally is what the rows say one by one; and what ended for an older generation does not count where the
/// policy says so.
fn check_counts(world: &World, service: &Service, parent: &str, outcomes: &[Outcome]) {
    let reflector = &service.core.reflector;
    let Some(id) = reflector.find(parent) else { return };
    // Nobody is told anything of a parent that is not there.
    let generation = reflector.read(id, |row| row.parent.as_ref().map(|p| p.view.generation)).flatten();
    let Some(generation) = generation else { return };
    let mut rows = Vec::new();
    reflector.each(|id, _| rows.push(id));
    let mut levels = BTreeMap::<Level, u32>::new();
    for row in rows {
        let level = reflector.view(row, Time(world.now), |view| {
            let view = view?;
            let counts = view.links.iter().any(|link| link.target() == Target::Object(id));
            counts.then_some(view.weights[0].level)
        });
        if let Some(level) = level {
            *levels.entry(level).or_default() += 1;
        }
    }
    let tally = service.core.engine.tally(id, POLICY, 0);
    for level in Level::ALL {
        let rows = levels.get(&level).copied().unwrap_or(0);
        holds!(world, tally.at(level) == rows, "{parent}: {} {level}, counted {}", rows, tally.at(level));
    }
    for outcome in outcomes.iter().filter(|o| o.gone) {
        let Some(row) = reflector.find(&outcome.uid) else { continue };
        let counts = reflector.view(row, Time(world.now), |view| view.is_some_and(|v| !v.links.is_empty()));
        let current = service.after == After::Remember || outcome.generation == Some(generation);
        holds!(
            world,
            counts == current,
            "{} of {:?} counts {counts} for {generation:?}",
            outcome.uid,
            outcome.generation
        );
    }
    let ready =
        service.core.engine.answer(id, POLICY).map(|a| a.reason) == Some(ParentReason::AllChildrenReady);
    let failed = outcomes.iter().any(|o| o.gone && o.end != End::Complete && o.end != End::Open);
    let counted = service.after == After::Remember;
    holds!(
        world,
        !(ready && failed && counted && tally.at(Level::Failed) == 0),
        "{parent} is ready over a failure"
    );
}

/// Everything is quiet: what was written down is remembered, what is remembered is written down.
pub(super) fn check_end(world: &World, service: &Service) -> Remembered {
    holds!(world, service.rests() && service.is_listed(PARENTS), "it does not come to rest");
    let (restarts, outages, told) = (world.restarts, world.outages, world.superseded);
    let mut tally = Remembered { restarts, outages, told, ..Remembered::default() };
    let mut recorded = BTreeMap::new();
    for (name, record) in &world.records {
        for outcome in record["spec"]["outcomes"].as_array().into_iter().flatten() {
            let uid = outcome["uid"].as_str().unwrap_or_default();
            recorded.insert(uid.to_owned(), outcome["outcome"].clone());
        }
        let lives = world.parents.iter().any(|parent| parent.uid == *name && !parent.gone);
        holds!(world, lives, "a record of {name}, which is gone");
    }
    let mut known = BTreeSet::new();
    for parent in world.parents.iter().filter(|parent| !parent.gone) {
        for outcome in service.core.reflector.memories(&parent.uid).unwrap_or_default().outcomes {
            let said = match (&outcome.end, outcome.gone) {
                (End::Complete, _) => "Complete",
                (End::Failed(_), _) => "Failed",
                (End::Open, true) => "Unseen",
                (End::Open, false) => "Running",
            };
            let written = recorded.get(&*outcome.uid).and_then(|word| word.as_str());
            holds!(world, written == Some(said), "{} is {said}, recorded {written:?}", outcome.uid);
            tally.right += u64::from(outcome.gone && outcome.end != End::Open);
            tally.unseen += u64::from(outcome.gone && outcome.end == End::Open);
            let somebodys = job(world, &outcome.uid).is_some_and(|job| job.stranger);
            tally.strangers += u64::from(outcome.heard && somebodys);
            check_newest(world, &outcome);
            known.insert(outcome.uid.to_string());
        }
    }
    let forgotten: Vec<_> = recorded.keys().filter(|uid| !known.contains(*uid)).collect();
    holds!(world, forgotten.is_empty(), "recorded and not remembered: {forgotten:?}");
    // Of what lives, all is known: a stub was written at its first sight.
    for job in world.jobs.iter().filter(|job| !job.gone && !job.stranger) {
        let newer =
            |other: &&Job| (other.parent, &other.slot) == (job.parent, &job.slot) && other.uid > job.uid;
        let superseded = world.jobs.iter().any(|other| newer(&other));
        holds!(world, superseded || known.contains(&job.uid), "{} is not known", job.uid);
    }
    tally
}

/// What counts is the last run, if anything is left that tells of it. Of generated names a later one may hide behind one that
/// was first seen after it began.
fn check_newest(world: &World, outcome: &Outcome) {
    let Some(known) = world.jobs.iter().find(|job| job.uid == *outcome.uid) else { return };
    let generated = known.slot != known.name;
    let later = world.jobs.iter().filter(|job| {
        (job.parent, &job.slot) == (known.parent, &known.slot)
            && job.uid > known.uid
            && job.gone
            && !job.stranger
            && !known.stranger
            && outcome.gone
            && world.is_told_of(&job.uid)
            && !(generated && job.born <= outcome.first)
    });
    for job in later {
        holds!(world, false, "{} counts, and {} was run after it", known.uid, job.uid);
    }
}
