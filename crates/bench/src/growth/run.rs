//! The workloads, one after the other.

use std::fs;
use std::path::Path;

use anyhow::Context;

use super::args::GrowthArgs;
use super::cascade::{measure_depth, measure_fan_out};
use super::catalog::GrowthWorkload;
use super::events::{measure_burst, measure_firehose};
use super::lifecycle::measure_lifecycle;
use super::point::{GrowthLine, GrowthPoint};
use super::running::{EmptyService, RunningFleet, measure_empty};
use super::unready::measure_unready;
use crate::compare::fleet::FleetShape;
use crate::compare::machine::RunConditions;
use crate::compare::measurement::append_line;
use crate::compare::progress::RunProgress;
use crate::compare::session::count;
use crate::edits::{EditArgs, EditPhases, measure_edits};
use crate::families::{Families, ParentSort};
use crate::flips::{FlipArgs, measure_flips};
use crate::subject::SubjectArgs;

/// Seconds that a service over nothing takes to come to rest.
const EMPTY_SECONDS: usize = 4;
/// Fields of a child of 0.8 kB, and of one of 7.8 kB.
const SMALL_CHILD: usize = 1;
const LARGE_CHILD: usize = 79;
/// Flips a second over many parents.
const FLIPS_PER_SECOND: u32 = 2;
/// Edits of a rule.
const EDITS: usize = 10;
/// Seconds after which the memory at rest is read.
const EDIT_PAUSE: u64 = 3;
/// Parents that policies share out among them, and their flips.
const POLICY_PARENTS: usize = 3_000;
const POLICY_FLIPS: u32 = 200;
const POLICY_FLIPS_PER_SECOND: u32 = 20;

/// Runs what is asked for. What could not be measured, for example because an answer was wrong, is named in `failures`.
pub(super) async fn measure_all(
    subject: &SubjectArgs,
    args: &GrowthArgs,
    failures: &mut Vec<String>,
) -> anyhow::Result<Vec<GrowthLine>> {
    if let Some(file) = &args.raw {
        fs::write(file, "").with_context(|| format!("writing {}", file.display()))?;
    }
    let plan = args.plan();
    let all: usize =
        plan.iter().flat_map(|(workload, sizes)| steps(*workload, sizes)).map(|step| step.1).sum();
    let mut progress = RunProgress::begin(all + EMPTY_SECONDS);
    progress.show(&format!("a service over nothing; all takes about {} min", all.div_ceil(60)));
    let conditions = RunConditions { options: args.options(), ..RunConditions::read()? };
    let mut lines = Vec::new();
    record(&mut lines, args.raw.as_deref(), GrowthLine::Run(conditions))?;
    let empty = measure_empty(subject).await?;
    progress.step_by(EMPTY_SECONDS);
    for (workload, sizes) in &plan {
        for (sizes, seconds) in steps(*workload, sizes) {
            let texts: Vec<String> = sizes.iter().map(ToString::to_string).collect();
            let what = format!("{} at {}", workload.view().name, texts.join(", "));
            progress.show(&what);
            match measure(subject, args, empty, *workload, &sizes).await {
                Ok(points) => {
                    for point in points {
                        let point = GrowthPoint { workload: workload.view().name.to_owned(), ..point };
                        record(&mut lines, args.raw.as_deref(), GrowthLine::Point(point))?;
                    }
                }
                Err(error) => {
                    eprintln!("{what}: {error:#}");
                    failures.push(format!("{what}: {error:#}"));
                }
            }
            progress.step_by(seconds);
        }
    }
    progress.end();
    Ok(lines)
}

fn record(lines: &mut Vec<GrowthLine>, raw: Option<&Path>, line: GrowthLine) -> anyhow::Result<()> {
    if let Some(raw) = raw {
        append_line(raw, &line)?;
    }
    lines.push(line);
    Ok(())
}

/// The steps of a workload: the sizes that run together, and for about how many seconds on two slow processors.
fn steps(workload: GrowthWorkload, sizes: &[usize]) -> Vec<(Vec<usize>, usize)> {
    let seconds = |size: usize| match workload {
        GrowthWorkload::Children => 15 + size / 5_000,
        GrowthWorkload::LargeChildren => 15 + size / 2_500,
        GrowthWorkload::Firehose => 10 + size / 10_000,
        GrowthWorkload::Burst => 10 + size / 500,
        GrowthWorkload::Unready => 70 + size / 500,
        GrowthWorkload::Depth => 12,
        GrowthWorkload::FanOut => 12 + size / 500,
        GrowthWorkload::Parents => 50 + size / 1_000,
        GrowthWorkload::Edits => 50 + size / 500,
        GrowthWorkload::Policies => 20 + size / 20,
    };
    if workload == GrowthWorkload::Unready {
        return vec![(sizes.to_vec(), seconds(sizes.iter().sum()))];
    }
    sizes.iter().map(|size| (vec![*size], seconds(*size))).collect()
}

async fn measure(
    subject: &SubjectArgs,
    args: &GrowthArgs,
    empty: EmptyService,
    workload: GrowthWorkload,
    sizes: &[usize],
) -> anyhow::Result<Vec<GrowthPoint>> {
    let size = *sizes.first().context("a workload without sizes")?;
    let point = match workload {
        GrowthWorkload::Children => measure_lifecycle(subject, empty, size, SMALL_CHILD).await?,
        GrowthWorkload::LargeChildren => measure_lifecycle(subject, empty, size, LARGE_CHILD).await?,
        GrowthWorkload::Firehose => measure_firehose(subject, size).await?,
        GrowthWorkload::Burst => measure_burst(subject, size).await?,
        GrowthWorkload::Unready => return measure_unready(subject, sizes, args.rest_seconds).await,
        GrowthWorkload::Depth => measure_depth(subject, size).await?,
        GrowthWorkload::FanOut => measure_fan_out(subject, size).await?,
        GrowthWorkload::Parents => measure_parents(subject, args.flip_seconds, size).await?,
        GrowthWorkload::Edits => measure_rule_edits(subject, size).await?,
        GrowthWorkload::Policies => measure_policies(subject, empty, size).await?,
    };
    Ok(vec![point])
}

async fn measure_parents(subject: &SubjectArgs, seconds: u32, size: usize) -> anyhow::Result<GrowthPoint> {
    let args = FlipArgs::unread(FLIPS_PER_SECOND, seconds);
    let cost = measure_flips(subject, &args, size).await?;
    let mut point = GrowthPoint { size, ..GrowthPoint::default() };
    point.add([("processor_ms_per_flip", cost.net), ("idle_s_per_minute", cost.idle * 60.0 / 1e3)]);
    Ok(point)
}

async fn measure_rule_edits(subject: &SubjectArgs, size: usize) -> anyhow::Result<GrowthPoint> {
    let args = EditArgs { parents: size, children: 2, edits: EDITS, pause: EDIT_PAUSE };
    let families = Families::serve(ParentSort::Owners, args.parents, args.children).await?;
    let EditPhases { onboarded, edited } = measure_edits(subject, &families, &args)?;
    let mut point = GrowthPoint { size, ..GrowthPoint::default() };
    point.add([
        ("peak_over_rest", edited.peak / onboarded.rest),
        ("lasting_over_rest", edited.rest / onboarded.rest),
        ("rest_mb", onboarded.rest),
        ("processor_s", edited.processor_seconds),
        ("us_per_child", edited.processor_seconds * 1e6 / count(EDITS * size * args.children)),
    ]);
    Ok(point)
}

async fn measure_policies(
    subject: &SubjectArgs,
    empty: EmptyService,
    size: usize,
) -> anyhow::Result<GrowthPoint> {
    let shape = FleetShape::of(POLICY_PARENTS, 2).under_policies(size);
    let mut fleet = RunningFleet::start(subject, &shape, |_| false).await?;
    let mut point = GrowthPoint { size, ..GrowthPoint::default() };
    point.add([
        ("start_processor_s", fleet.process.processor_seconds()?),
        ("rest_mb", fleet.process.memory()? - empty.rest_mb),
    ]);
    point.add([("processor_ms_per_flip", fleet.flip(POLICY_FLIPS, POLICY_FLIPS_PER_SECOND)?)]);
    Ok(point)
}
