//! Answers that pass through levels of parents.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::cascade_cluster::{CascadeCluster, CascadeShape, ROOT_PATH};
use super::point::GrowthPoint;
use super::running::{ANSWER_TIMEOUT, CHECK_INTERVAL, REST_TIMEOUT, start_quietly};
use crate::compare::observer::AnswerObserver;
use crate::compare::process::SubjectProcess;
use crate::compare::session::{by_address, quantile_ms};
use crate::subject::SubjectArgs;

/// Flips of leaves, and how many a second.
const FLIPS: u32 = 40;
const FLIPS_PER_SECOND: u32 = 4;
/// Trees side by side, so that none is told twice within two seconds: what follows sooner waits to be coalesced.
const TREES: usize = 10;

/// Measures towers of this depth, two children wide.
pub(crate) async fn measure_depth(subject: &SubjectArgs, size: usize) -> anyhow::Result<GrowthPoint> {
    let shape = CascadeShape { roots: TREES, depth: size, fan_out: 2, is_full: false };
    measure_cascade(subject, shape, size).await
}

/// Measures roots with this number of children, each a parent of one leaf.
pub(crate) async fn measure_fan_out(subject: &SubjectArgs, size: usize) -> anyhow::Result<GrowthPoint> {
    let shape = CascadeShape { roots: TREES, depth: 2, fan_out: size, is_full: true };
    measure_cascade(subject, shape, size).await
}

async fn measure_cascade(
    subject: &SubjectArgs,
    shape: CascadeShape,
    size: usize,
) -> anyhow::Result<GrowthPoint> {
    let cluster = CascadeCluster::serve(shape).await?;
    let observer = AnswerObserver::follow(&cluster.server, ROOT_PATH, shape.roots)?;
    let mut process = start_quietly(subject, &cluster.kubeconfig)?;
    (0..shape.roots).for_each(|root| observer.expect(root, true, Instant::now()));
    settle_cascade(&cluster, &observer, &mut process)?;
    observer.take_latencies();
    cluster.server.forget_requests();
    let (before, begun) = (process.processor_seconds()?, Instant::now());
    for number in 0..FLIPS {
        let due = begun + Duration::from_secs(1) * number / FLIPS_PER_SECOND;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let number = usize::try_from(number)?;
        let (root, ready) = (number % shape.roots, (number / shape.roots) % 2 == 1);
        observer.expect(root, ready, due);
        cluster.turn(root, ready)?;
    }
    settle_cascade(&cluster, &observer, &mut process)?;
    let took = process.processor_seconds()? - before;
    let told = observer.take_latencies();
    let mut point = GrowthPoint { size, requests: by_address(&cluster.server), ..GrowthPoint::default() };
    point.add([
        ("writes_per_flip", cluster.writes() / f64::from(FLIPS)),
        ("processor_ms_per_flip", took * 1e3 / f64::from(FLIPS)),
        ("p50_ms", quantile_ms(&told.latencies, 50)),
        ("max_ms", quantile_ms(&told.latencies, 100)),
    ]);
    Ok(point)
}

fn settle_cascade(
    cluster: &CascadeCluster,
    observer: &AnswerObserver,
    process: &mut SubjectProcess,
) -> anyhow::Result<()> {
    observer.wait_until_shown(ANSWER_TIMEOUT);
    let begun = Instant::now();
    while cluster.wrong_answers() > 0 && begun.elapsed() < REST_TIMEOUT {
        process.check_alive()?;
        thread::sleep(CHECK_INTERVAL);
    }
    process.wait_until_at_rest(REST_TIMEOUT)?;
    let wrong = cluster.wrong_answers();
    ensure!(wrong == 0, "{wrong} answers of a cascade are wrong: there are no figures");
    Ok(())
}
