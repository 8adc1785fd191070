//! A first start, a rest, a restart of the API server, and a later start.

use std::time::{Duration, Instant};

use super::point::GrowthPoint;
use super::running::{EmptyService, RunningFleet};
use crate::compare::fleet::FleetShape;
use crate::compare::session::{all_requests, by_address, count, lease_requests, status_writes};
use crate::subject::SubjectArgs;

/// Children of each parent.
pub(crate) const FAMILY_SIZE: usize = 10;
/// Time for which the API server is away.
const OUTAGE: Duration = Duration::from_secs(1);

/// Measures this number of children, each with so many fields.
pub(crate) async fn measure_lifecycle(
    subject: &SubjectArgs,
    empty: EmptyService,
    size: usize,
    settings: usize,
) -> anyhow::Result<GrowthPoint> {
    let shape = FleetShape { settings, ..FleetShape::of(size.div_ceil(FAMILY_SIZE), FAMILY_SIZE) };
    // What is not ready has Events and is read again every 30 s, which is measured elsewhere.
    let mut fleet = RunningFleet::start(subject, &shape, |parent| parent == 0).await?;
    let started = fleet.process.processor_seconds()?;
    let (peak, rest) = (fleet.process.peak()?, fleet.process.memory()?);
    let start_s = (started - empty.start_s).max(0.0);
    let children = count(size);
    let mut point = GrowthPoint { size, ..GrowthPoint::default() };
    point.add([
        ("rest_mb", rest - empty.rest_mb),
        ("rest_bytes_per_child", (rest - empty.rest_mb) * 1e6 / children),
        ("child_bytes", count(fleet.cluster.child_bytes()?)),
        ("start_processor_s", start_s),
        ("start_us_per_child", start_s * 1e6 / children),
        ("start_peak_over_rest", peak / rest),
        ("start_writes", status_writes(&fleet.cluster.server)),
    ]);
    restart_server(&mut fleet, rest, started, &mut point)?;
    let fleet = fleet.restart(subject)?;
    let again_s = (fleet.process.processor_seconds()? - empty.start_s).max(0.0);
    point.add([
        ("restart_processor_s", again_s),
        ("restart_us_per_child", again_s * 1e6 / children),
        ("restart_peak_over_rest", fleet.process.peak()? / fleet.process.memory()?),
        ("restart_writes", status_writes(&fleet.cluster.server)),
    ]);
    let requests = by_address(&fleet.cluster.server);
    point
        .requests
        .extend(requests.into_iter().map(|(address, number)| (format!("later start: {address}"), number)));
    Ok(point)
}

fn restart_server(
    fleet: &mut RunningFleet,
    rest: f64,
    before: f64,
    point: &mut GrowthPoint,
) -> anyhow::Result<()> {
    fleet.process.reset_peak()?;
    fleet.cluster.server.forget_requests();
    fleet.cluster.restart_server(OUTAGE)?;
    let back = Instant::now();
    fleet.wait_until_listed()?;
    point.add([("outage_listed_s", back.elapsed().as_secs_f64())]);
    fleet.settle("a restart of the API server")?;
    let server = &fleet.cluster.server;
    point.add([
        ("outage_processor_s", fleet.process.processor_seconds()? - before),
        ("outage_peak_over_rest", fleet.process.peak()? / rest),
        ("outage_requests", all_requests(server) - lease_requests(server)),
        ("outage_writes", status_writes(server)),
    ]);
    point.requests = by_address(server);
    Ok(())
}
