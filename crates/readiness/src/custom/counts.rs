//! Signals of numbers: how many of its parts an object has, and how many it wants.

use super::field_names::is_count_field;
use super::lexicon::WordSense;
use super::signal::{SignalBasis, SignalForce, SignalSource, StatusSignal};
use super::tokens::with_words;
use crate::facts::{CountField, Facts, StateField};

/// Returns the signal of ready and wanted counts, if the status has both.
pub(super) fn counts_signal(facts: &Facts) -> Option<StatusSignal<'_>> {
    let replicas = replicas_signal(facts);
    if replicas.is_some_and(|signal| signal.sense != WordSense::Good) {
        return replicas;
    }
    lacking_signal(facts).or(replicas)
}

/// Returns the signal of a number of parts that are not well: `unavailableReplicas: 2`.
fn lacking_signal(facts: &Facts) -> Option<StatusSignal<'_>> {
    let counted = |counts: fn(&[&str]) -> bool| {
        facts.status.counts.iter().find(|count| {
            let name = count.name.rsplit_once('.').map_or(&*count.name, |(_, name)| name);
            count.value > 0 && with_words(name, counts)
        })
    };
    let (sense, count) = match counted(counts_failed_parts) {
        Some(failed) => (WordSense::Bad, failed),
        None => (WordSense::Busy, counted(counts_unready_parts)?),
    };
    let (force, source) = (SignalForce::Core, SignalSource::Lacking(count));
    Some(StatusSignal { sense, force, basis: SignalBasis::Stated, source })
}

/// Returns `true` if a number of this name, of one respect of the object, should be 0: `summary.notReady`. Others may be within
/// what the object allows: `unavailable`.
pub fn counts_lacking_parts(name: &str) -> bool {
    with_words(name, |name| matches!(name, ["not" | "non", "ready", ..] | ["unready", ..]))
}

fn counts_unready_parts(name: &[&str]) -> bool {
    matches!(
        name,
        ["unavailable" | "unhealthy" | "unready", ..]
            | ["not" | "non", "ready", ..]
            | ["number", "unavailable" | "unhealthy" | "unready"]
    )
}

/// Returns `true` for numbers of parts that failed and are still there: `failedTasksCount`. Those of runs and attempts are
/// kept of the past.
fn counts_failed_parts(name: &[&str]) -> bool {
    let part = |word: &str| {
        matches!(
            word,
            "brokers"
                | "instances"
                | "members"
                | "nodes"
                | "pods"
                | "replicas"
                | "shards"
                | "tasks"
                | "workers"
        )
    };
    matches!(name, ["failed" | "errant" | "degraded" | "faulty", noun] | ["failed", noun, "count"] if part(noun))
}

/// Returns the signal of a text that is not yet what another one says it is to be: `currentVersion`, `targetVersion`.
pub(super) fn lag_signal(facts: &Facts) -> Option<StatusSignal<'_>> {
    let (sense, force) = (WordSense::Busy, SignalForce::Core);
    let source = SignalSource::Lag(facts.status.lag.as_deref()?);
    Some(StatusSignal { sense, force, basis: SignalBasis::Stated, source })
}

/// Returns the signal of the numbers that workloads of Kubernetes have too.
fn replicas_signal(facts: &Facts) -> Option<StatusSignal<'_>> {
    let status = &facts.status;
    let signal = |field, have: i64, of, want: i64| {
        let (sense, force) = weigh_counts(have, want);
        let source = SignalSource::Counts(field, have, of, want);
        StatusSignal { sense, force, basis: SignalBasis::Stated, source }
    };
    let (field, have) = match (status.ready, status.available) {
        // The worse of the two.
        (Some(ready), Some(available)) if available < ready => ("status.availableReplicas", available),
        (Some(ready), _) => ("status.readyReplicas", ready),
        (None, Some(available)) => ("status.availableReplicas", available),
        (None, None) => {
            let lag = facts.spec.replicas.zip(status.replicas).filter(|(want, have)| have < want);
            let lag = lag.map(|(want, have)| signal("status.replicas", have, "spec.replicas", want));
            return lag.or_else(|| named_counts_signal(facts));
        }
    };
    let size = || facts.spec.counts.iter().find(|count| is_size_name(&count.name));
    let (of, want) = match (facts.spec.replicas, status.desired, status.replicas) {
        (Some(wanted), ..) => ("spec.replicas", wanted),
        (None, Some(desired), _) => ("status.desiredNumberScheduled", desired),
        (None, None, replicas) => match size() {
            Some(size) => (&*size.name, size.value),
            None => ("status.replicas", replicas?),
        },
    };
    let behind = status.updated.filter(|updated| *updated < want);
    // Those of the old template are still there.
    let left_over = status.replicas.filter(|all| *all > want && status.updated.is_some_and(|new| new < *all));
    if let (Some(all), None) = (left_over, behind) {
        let source = SignalSource::Counts(of, want, "status.replicas", all);
        let (sense, force) = (WordSense::Busy, SignalForce::Core);
        return Some(StatusSignal { sense, force, basis: SignalBasis::Stated, source });
    }
    Some(
        behind.map_or(signal(field, have, of, want), |updated| {
            signal("status.updatedReplicas", updated, of, want)
        }),
    )
}

/// Returns `true` for the names under which a spec says how many replicas it wants.
fn is_size_name(name: &str) -> bool {
    matches!(name, "size" | "instances" | "members")
}

/// A number that lags is a fact and outweighs an opinion about the whole; one that does not is about the parts only.
fn weigh_counts(have: i64, want: i64) -> (WordSense, SignalForce) {
    if have < want { (WordSense::Busy, SignalForce::Core) } else { (WordSense::Good, SignalForce::Part) }
}

/// `readyNodes` against `nodes`, `desiredNodes`, `totalNodes`, … in status or spec; the first that lags, or else the first.
fn named_counts_signal(facts: &Facts) -> Option<StatusSignal<'_>> {
    let mut found = None;
    for signal in named_counts(facts) {
        if signal.sense != WordSense::Good {
            return Some(signal);
        }
        found = found.or(Some(signal));
    }
    found
}

fn named_counts(facts: &Facts) -> impl Iterator<Item = StatusSignal<'_>> {
    count_pairs(&facts.status.counts, &facts.spec.counts).map(|(have, want)| {
        let (sense, force) = weigh_counts(have.value, want.value);
        let source = SignalSource::Counts(&have.name, have.value, &want.name, want.value);
        StatusSignal { sense, force, basis: SignalBasis::Stated, source }
    })
}

/// What the names of numbers begin with that count what is as it should be.
const HAVE_PREFIXES: [&str; 11] = [
    "ready",
    "available",
    "healthy",
    "running",
    "updated",
    "upToDate",
    "synced",
    "online",
    "joined",
    "installed",
    "deployed",
];

/// What they end with: `nodesReady`.
const HAVE_SUFFIXES: [&str; 5] = ["Ready", "Available", "Healthy", "Running", "Updated"];

/// What the names of numbers begin or end with that count what is to be.
const WANT_PREFIXES: [&str; 4] = ["desired", "total", "expected", "matched"];
const WANT_SUFFIXES: [&str; 3] = ["Desired", "Total", "Expected"];

fn is_want_name(name: &str) -> bool {
    WANT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Pairs each number of what is ready with the number of what is wanted.
fn count_pairs<'a>(
    status: &'a [CountField],
    spec: &'a [CountField],
) -> impl Iterator<Item = (&'a CountField, &'a CountField)> {
    status.iter().filter_map(move |have| {
        let noun = HAVE_PREFIXES.iter().find_map(|p| have.name.strip_prefix(p));
        let noun = noun.or_else(|| {
            HAVE_SUFFIXES
                .iter()
                .filter(|_| !is_want_name(&have.name))
                .find_map(|suffix| have.name.strip_suffix(suffix))
        });
        // Of all that there are: `ready: 1, size: 2`, `currentHealthy: 1, expectedMachines: 3`.
        let of_all = &*have.name == "currentHealthy";
        let noun = noun.or(of_all.then_some(""))?;
        let wanted = |name: &str| {
            let rest = WANT_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
            let rest = rest.or_else(|| WANT_SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)));
            // Also of those that are ready already: `ready: 2, desiredReady: 3`.
            let same = rest.unwrap_or(name).eq_ignore_ascii_case(noun)
                || rest.is_some_and(|rest| rest.eq_ignore_ascii_case(&have.name));
            let whole = noun.is_empty() && matches!(name, "size" | "replicas" | "members");
            name != &*have.name && (same || whole || of_all && rest.is_some())
        };
        let want = spec.iter().chain(status).find(|count| wanted(&count.name))?;
        // Such a number tells what lacks; that nothing does is for the object to say.
        (!noun.is_empty() || have.value < want.value).then_some((have, want))
    })
}

/// Returns how many of its parts a part has: the number that lags most, or else the first, with the number that is wanted.
pub fn part_share(counts: &[CountField]) -> Option<(&CountField, i64)> {
    let pairs = count_pairs(counts, &[]).map(|(have, want)| (have, want.value));
    pairs.min_by_key(|(have, want)| have.value.saturating_sub(*want))
}

/// Returns `true` if the text is a share, such as `tasksReady: 2/3`, of the parts of the object or of one of its parts.
/// `ready: 2/3` is about the whole.
pub(super) fn is_share_of_parts(word: &StateField, above: &str, field: &str) -> bool {
    let inverse = |name: &[&str]| name.iter().any(|word| matches!(*word, "unavailable" | "unready"));
    parse_share(&word.value).is_some()
        && is_count_field(field)
        && with_words(field, |name| (name.len() > 1 || !above.is_empty()) && !inverse(name))
}

/// Returns the signal of a share; of none it says nothing.
pub(super) fn share_signal(word: &StateField) -> Option<StatusSignal<'_>> {
    let (have, want) = parse_share(&word.value).filter(|(_, want)| *want > 0)?;
    let (sense, force) = weigh_counts(have.into(), want.into());
    Some(StatusSignal { sense, force, basis: SignalBasis::Stated, source: SignalSource::StateField(word) })
}

fn parse_share(text: &str) -> Option<(u32, u32)> {
    let (have, want) = text.split_once('/')?;
    Some((have.trim().parse().ok()?, want.trim().parse().ok()?))
}
