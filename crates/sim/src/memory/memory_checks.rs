//! Checks of the remembered outcomes against the true history.

use std::collections::{BTreeMap, BTreeSet};

use aggregator::LinkTarget;
use readiness::rollup::ParentReason;
use readiness::{Level, Time};
use watcher::plan::OutcomeRetention;
use watcher::reflector::{RememberedOutcome, RunEnd};

use super::job_cluster::JobCluster;
use super::memory_counts::MemoryCounts;
use super::service_process::{MEMORY_POLICY, ServiceProcess};
use super::simulated_job::{JOB_KIND, PARENT_KIND, SimulatedJob};

macro_rules! holds {
    ($world:expr, $claim:expr, $($words:tt)+) => {
        $world.demand($claim, format_args!($($words)+))
    };
}

fn find_job<'w>(world: &'w JobCluster, uid: &str) -> Option<&'w SimulatedJob> {
    world.jobs.iter().find(|job| job.uid == uid)
}

/// Checks, after each step, that no remembered outcome is wrong, and that the engine counts each remembered outcome
/// once.
pub(super) fn check_memory(world: &JobCluster, service: &ServiceProcess) {
    for parent in &world.parents {
        let memories = service.core.reflector.outcomes().parent_outcomes(&parent.uid).unwrap_or_default();
        let counting: BTreeSet<_> = memories.counting().map(|outcome| outcome.uid.clone()).collect();
        let mut slots = BTreeSet::new();
        for outcome in &memories.outcomes {
            let counts = counting.contains(&outcome.uid);
            check_outcome(world, service, &parent.uid, outcome, counts);
            let once = !counts || slots.insert(outcome.slot.clone());
            holds!(world, once, "{} counts twice for {}", outcome.slot, parent.uid);
            // An older run may still exist beside the last one.
            let observed =
                |o: &&RememberedOutcome| o.slot == outcome.slot && !o.known_from_events && !o.may_exist();
            let runs = memories.outcomes.iter().filter(observed).count();
            holds!(world, runs <= 1, "{} is remembered twice for {}", outcome.slot, parent.uid);
        }
        let counting: Vec<_> = memories.counting().cloned().collect();
        check_counts(world, service, &parent.uid, &counting);
    }
}

fn check_outcome(
    world: &JobCluster,
    service: &ServiceProcess,
    parent: &str,
    outcome: &RememberedOutcome,
    counts: bool,
) {
    let Some(truth) = find_job(world, &outcome.uid) else {
        return world.demand(false, format_args!("{} never was", outcome.uid));
    };
    let own = !truth.stranger && world.parents[truth.parent].uid == parent;
    let right = match &outcome.end {
        RunEnd::Open => true,
        RunEnd::Complete => own && truth.end == Some(true),
        RunEnd::Failed(_) => own && truth.end == Some(false),
    };
    holds!(
        world,
        right,
        "{} ended {:?}, of {parent}: {own}, remembered: {:?}",
        outcome.uid,
        truth.end,
        outcome.end
    );
    if !service.is_listed(JOB_KIND) || !outcome.deleted {
        return;
    }
    let is_told = service.has_watched(world, truth.born);
    holds!(world, truth.gone || !is_told, "{} is there, remembered as gone", outcome.uid);
    let reflector = &service.core.reflector;
    let level = reflector.find_object(&outcome.uid).and_then(|id| {
        reflector.read_row(id, |row| row.is_remembered().then_some(row.assessment.verdict.level)).flatten()
    });
    let expected = match outcome.end {
        _ if !counts => None,
        RunEnd::Open => Some(Level::Unknown),
        RunEnd::Complete => Some(Level::Ready),
        RunEnd::Failed(_) => Some(Level::Failed),
    };
    holds!(world, level == expected, "{} counts as {level:?}, not as {expected:?}", outcome.uid);
}

/// Checks that the engine's tally equals a recount of the rows, and that an outcome of an older generation does not
/// count if the policy says so.
fn check_counts(world: &JobCluster, service: &ServiceProcess, parent: &str, outcomes: &[RememberedOutcome]) {
    let reflector = &service.core.reflector;
    let Some(id) = reflector.find_object(parent) else { return };
    // A deleted parent has no counts to check.
    let generation = reflector.read_row(id, |row| row.parent.as_ref().map(|p| p.view.generation)).flatten();
    let Some(generation) = generation else { return };
    let mut rows = Vec::new();
    reflector.for_each_row(|id, _| rows.push(id));
    let mut levels = BTreeMap::<Level, u32>::new();
    for row in rows {
        let level = reflector.with_view(row, Time(world.now), |view| {
            let view = view?;
            let counts = view.links.iter().any(|link| link.target() == LinkTarget::Object(id));
            counts.then_some(view.weights[0].level())
        });
        if let Some(level) = level {
            *levels.entry(level).or_default() += 1;
        }
    }
    let tally = service.core.engine.group_tally(id, MEMORY_POLICY, 0);
    for level in Level::ALL {
        let rows = levels.get(&level).copied().unwrap_or(0);
        holds!(
            world,
            tally.count_at(level) == rows,
            "{parent}: {} {level}, counted {}",
            rows,
            tally.count_at(level)
        );
    }
    for outcome in outcomes.iter().filter(|o| o.deleted) {
        let Some(row) = reflector.find_object(&outcome.uid) else { continue };
        let counts =
            reflector.with_view(row, Time(world.now), |view| view.is_some_and(|v| !v.links.is_empty()));
        let current =
            service.after_deletion == OutcomeRetention::Remember || outcome.generation == Some(generation);
        holds!(
            world,
            counts == current,
            "{} of {:?} counts {counts} for {generation:?}",
            outcome.uid,
            outcome.generation
        );
    }
    let ready = service.core.engine.answer_of(id, MEMORY_POLICY).map(|a| a.reason)
        == Some(ParentReason::AllChildrenReady);
    let failed = outcomes.iter().any(|o| o.deleted && o.end != RunEnd::Complete && o.end != RunEnd::Open);
    let counted = service.after_deletion == OutcomeRetention::Remember;
    holds!(
        world,
        !(ready && failed && counted && tally.count_at(Level::Failed) == 0),
        "{parent} is ready over a failure"
    );
}

/// Checks that a process which takes over remembers what the records have: each outcome, unless there was a later run, which it may
/// have seen to be deleted unfinished.
pub(super) fn check_takeover(world: &JobCluster, service: &ServiceProcess) {
    for parent in world.parents.iter().filter(|parent| !parent.gone) {
        let Some(record) = world.records.get(&parent.uid) else { continue };
        let memories = service.core.reflector.outcomes().parent_outcomes(&parent.uid).unwrap_or_default();
        for recorded in record["spec"]["outcomes"].as_array().into_iter().flatten() {
            let word = |field: &str| recorded[field].as_str().unwrap_or_default();
            let is_known = memories.outcomes.iter().any(|outcome| *outcome.uid == *word("uid"));
            let is_later = |job: &SimulatedJob| {
                job.slot == word("slot")
                    && world.parents[job.parent].uid == parent.uid
                    && *job.uid > *word("uid")
            };
            let is_last =
                ["Complete", "Failed"].contains(&word("outcome")) && !world.jobs.iter().any(is_later);
            holds!(world, is_known || !is_last, "{recorded} is not known to who takes over");
        }
    }
}

/// Checks the quiet end state: every recorded outcome is remembered, and every remembered one is recorded.
pub(super) fn check_memory_at_end(world: &JobCluster, service: &ServiceProcess) -> MemoryCounts {
    holds!(world, service.records.is_at_rest() && service.is_listed(PARENT_KIND), "it does not come to rest");
    let (restarts, outages, superseded) = (world.restarts, world.outages, world.superseded);
    let (takeovers, half_lists) = (world.takeovers, world.half_lists);
    let mut tally =
        MemoryCounts { restarts, outages, takeovers, half_lists, superseded, ..MemoryCounts::default() };
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
        let memories = service.core.reflector.outcomes().parent_outcomes(&parent.uid).unwrap_or_default();
        let counting: BTreeSet<_> = memories.counting().map(|outcome| outcome.uid.clone()).collect();
        for outcome in &memories.outcomes {
            let said = match (&outcome.end, outcome.deleted) {
                (RunEnd::Complete, _) => "Complete",
                (RunEnd::Failed(_), _) => "Failed",
                (RunEnd::Open, true) => "Unseen",
                (RunEnd::Open, false) => "Running",
            };
            let written = recorded.get(&*outcome.uid).and_then(|word| word.as_str());
            holds!(world, written == Some(said), "{} is {said}, recorded {written:?}", outcome.uid);
            known.insert(outcome.uid.to_string());
            if !counting.contains(&outcome.uid) {
                continue;
            }
            tally.right += u64::from(outcome.deleted && outcome.end != RunEnd::Open);
            tally.unseen += u64::from(outcome.deleted && outcome.end == RunEnd::Open);
            let somebodys = find_job(world, &outcome.uid).is_some_and(|job| job.stranger);
            tally.strangers += u64::from(outcome.known_from_events && somebodys);
            check_newest(world, outcome);
        }
    }
    let forgotten: Vec<_> = recorded.keys().filter(|uid| !known.contains(*uid)).collect();
    holds!(world, forgotten.is_empty(), "recorded and not remembered: {forgotten:?}");
    // Every existing Job is known: a stub was recorded when it was first observed.
    for job in world.jobs.iter().filter(|job| !job.gone && !job.stranger) {
        let newer = |other: &&SimulatedJob| {
            (other.parent, &other.slot) == (job.parent, &job.slot) && other.uid > job.uid
        };
        let superseded = world.jobs.iter().any(|other| newer(&other));
        holds!(world, superseded || known.contains(&job.uid), "{} is not known", job.uid);
    }
    tally
}

/// Checks that the last run counts of which any evidence is left. With generated names, a later run may be hidden
/// behind one that was first observed after it began.
fn check_newest(world: &JobCluster, outcome: &RememberedOutcome) {
    let Some(known) = world.jobs.iter().find(|job| job.uid == *outcome.uid) else { return };
    let generated = known.slot != known.name;
    let later = world.jobs.iter().filter(|job| {
        (job.parent, &job.slot) == (known.parent, &known.slot)
            && job.uid > known.uid
            && job.gone
            && !job.stranger
            && !known.stranger
            && outcome.deleted
            && world.events.has_creation_event(&job.uid)
            && !(generated && job.born <= outcome.first_version)
            && !(generated && outcome.discarded.iter().any(|uid| **uid == *job.uid))
    });
    for job in later {
        holds!(world, false, "{} counts, and {} was run after it", known.uid, job.uid);
    }
}
