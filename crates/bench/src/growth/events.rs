//! Many changes at once: a firehose, and a burst.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::lifecycle::FAMILY_SIZE;
use super::point::GrowthPoint;
use super::running::{ANSWER_TIMEOUT, RunningFleet};
use crate::compare::fleet::FleetShape;
use crate::compare::session::{by_address, count, status_writes};
use crate::subject::SubjectArgs;

/// Parents of the firehose.
const FIREHOSE_PARENTS: usize = 1_000;
/// Changes that the server commits at once. It keeps the last 50,000 of a kind, so no watch falls behind its history.
const FIREHOSE_CHUNK: usize = 20_000;
/// One change of this many turns a child.
const TURN_INTERVAL: usize = 10;
/// Coprime to the number of children, so that all are visited before one is again.
const STRIDE: usize = 7_919;
/// How often each child of a burst turns, and in which time.
const BURST_TURNS: usize = 3;
const BURST_SPAN: Duration = Duration::from_secs(1);
/// Children of a burst that turn at once.
const BURST_CHUNK: usize = 50;

/// Measures this number of changes.
pub(crate) async fn measure_firehose(subject: &SubjectArgs, size: usize) -> anyhow::Result<GrowthPoint> {
    let shape = FleetShape::of(FIREHOSE_PARENTS + 1, FAMILY_SIZE);
    let mut fleet = RunningFleet::start(subject, &shape, |_| false).await?;
    let (before, rest) = (fleet.process.processor_seconds()?, fleet.process.memory()?);
    fleet.process.reset_peak()?;
    fleet.cluster.server.forget_requests();
    let mut ready = vec![true; FIREHOSE_PARENTS * FAMILY_SIZE];
    let begun = Instant::now();
    for chunk in 0..size.div_ceil(FIREHOSE_CHUNK) {
        let numbers = chunk * FIREHOSE_CHUNK..size.min((chunk + 1) * FIREHOSE_CHUNK);
        let changes: Vec<_> = numbers
            .map(|number| {
                let child = number * STRIDE % ready.len();
                ready[child] ^= number.is_multiple_of(TURN_INTERVAL);
                (child / FAMILY_SIZE, child % FAMILY_SIZE, ready[child], number)
            })
            .collect();
        fleet.cluster.commit_changes(changes)?;
        await_marker(&fleet, chunk % 2 == 1)?;
    }
    let took = begun.elapsed().as_secs_f64();
    fleet.settle("the firehose")?;
    let processor_s = fleet.process.processor_seconds()? - before;
    let peak = fleet.process.peak()?;
    let mut point = GrowthPoint { size, ..GrowthPoint::default() };
    point.add([
        ("processor_s", processor_s),
        ("us_per_event", processor_s * 1e6 / count(size)),
        ("peak_mb", peak),
        ("peak_over_rest", peak / rest),
        ("writes", status_writes(&fleet.cluster.server)),
        ("events_per_second", count(size) / took),
    ]);
    point.requests = by_address(&fleet.cluster.server);
    Ok(point)
}

/// Turns a child of the last parent, and waits for that parent's answer: whatever was sent before has been read then.
fn await_marker(fleet: &RunningFleet, ready: bool) -> anyhow::Result<()> {
    fleet.observer.expect(FIREHOSE_PARENTS, ready, Instant::now());
    fleet.cluster.turn(FIREHOSE_PARENTS, 0, ready)?;
    ensure!(
        fleet.observer.wait_until_shown(ANSWER_TIMEOUT),
        "the service does not keep up: there are no figures"
    );
    Ok(())
}

/// Measures a burst of this number of children.
pub(crate) async fn measure_burst(subject: &SubjectArgs, size: usize) -> anyhow::Result<GrowthPoint> {
    let families = size.div_ceil(FAMILY_SIZE);
    let shape = FleetShape::of(families.max(FIREHOSE_PARENTS), FAMILY_SIZE);
    let mut fleet = RunningFleet::start(subject, &shape, |_| false).await?;
    let before = fleet.process.processor_seconds()?;
    fleet.cluster.server.forget_requests();
    let children: Vec<usize> = (0..size).collect();
    let chunks: Vec<&[usize]> = children.chunks(BURST_CHUNK).collect();
    let pause = BURST_SPAN / u32::try_from(BURST_TURNS * chunks.len())?;
    let begun = Instant::now();
    for (step, (turn, chunk)) in
        (0..BURST_TURNS).flat_map(|turn| chunks.iter().map(move |chunk| (turn, chunk))).enumerate()
    {
        let due = begun + pause * u32::try_from(step)?;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let turned = |child: &usize| (child / FAMILY_SIZE, child % FAMILY_SIZE, turn % 2 == 1, step);
        fleet.cluster.commit_changes(chunk.iter().map(turned))?;
    }
    let ended = Instant::now();
    (0..families).for_each(|parent| fleet.observer.expect(parent, false, ended));
    fleet.observer.wait_until_shown(ANSWER_TIMEOUT);
    let settled_s = ended.elapsed().as_secs_f64();
    fleet.settle("the burst")?;
    let processor_s = fleet.process.processor_seconds()? - before;
    let writes = status_writes(&fleet.cluster.server);
    let mut point = GrowthPoint { size, ..GrowthPoint::default() };
    point.add([
        ("writes", writes),
        ("writes_per_parent", writes / count(families)),
        ("processor_s", processor_s),
        ("us_per_turn", processor_s * 1e6 / count(BURST_TURNS * size)),
        ("settled_s", settled_s),
        ("span_s", (ended - begun).as_secs_f64()),
    ]);
    point.requests = by_address(&fleet.cluster.server);
    Ok(point)
}
