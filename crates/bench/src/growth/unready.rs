//! What parents that are not ready cost while nothing happens.

use std::thread;
use std::time::Duration;

use anyhow::ensure;

use super::point::GrowthPoint;
use super::running::RunningFleet;
use crate::compare::fleet::FleetShape;
use crate::compare::session::{all_requests, by_address, lease_requests, status_writes, writes_to};
use crate::subject::SubjectArgs;

/// Parents that are ready, beside those that are not.
const READY_PARENTS: usize = 100;

/// Measures all sizes for so many seconds, side by side.
pub(crate) async fn measure_unready(
    subject: &SubjectArgs,
    sizes: &[usize],
    seconds: u32,
) -> anyhow::Result<Vec<GrowthPoint>> {
    let mut fleets = Vec::new();
    for size in sizes {
        let shape = FleetShape::of(READY_PARENTS + size, 2);
        let told = RunningFleet::start(subject, &shape, |parent| parent < *size).await?;
        // A first start goes on to create Events of all that it has told, some every second.
        fleets.push(told.restart(subject)?);
    }
    let mut before = Vec::new();
    for fleet in &fleets {
        fleet.cluster.server.forget_requests();
        before.push(fleet.process.processor_seconds()?);
    }
    thread::sleep(Duration::from_secs(u64::from(seconds)));
    let minute = 60.0 / f64::from(seconds);
    let mut points = Vec::new();
    for ((fleet, size), before) in fleets.iter().zip(sizes).zip(before) {
        let took = fleet.process.processor_seconds()? - before;
        let server = &fleet.cluster.server;
        let mut point = GrowthPoint { size: *size, requests: by_address(server), ..GrowthPoint::default() };
        point.add([
            ("requests_per_minute", (all_requests(server) - lease_requests(server)) * minute),
            ("event_requests_per_minute", writes_to(server, "events") * minute),
            ("processor_s_per_minute", took * minute),
            ("writes_per_minute", status_writes(server) * minute),
        ]);
        let wrong = fleet.cluster.wrong_answers();
        ensure!(wrong == 0, "{wrong} answers are wrong after a minute of rest: there are no figures");
        points.push(point);
    }
    Ok(points)
}
