//! Processor time per flip of a child.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;

use crate::families::Families;
use crate::service::MeasuredService;
use crate::subject::SubjectArgs;

#[derive(Args)]
pub(crate) struct FlipArgs {
    /// Numbers of parents, each with two children.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 4_000, 10_000, 40_000], value_name = "N")]
    parents: Vec<usize>,
    /// Flips a second.
    #[arg(long, default_value_t = 2, value_name = "N")]
    rate: u32,
    /// Seconds that are measured.
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    seconds: u32,
}

/// Prints the processor time per flip at each number of parents.
pub(crate) async fn run(subject: &SubjectArgs, args: &FlipArgs) -> anyhow::Result<()> {
    for parents in &args.parents {
        let families = Families::serve(*parents, 2).await?;
        let mut service = MeasuredService::start(subject, &families.kubeconfig)?;
        service.wait_until("all parents are told True", |_| families.all_ready())?;
        service.wait_until_at_rest()?;
        let (start, idle) = (service.processor_seconds()?, rest(&service, args.seconds)?);
        let before = service.processor_seconds()?;
        let flips = args.rate * args.seconds;
        let begun = Instant::now();
        for number in 0..flips {
            let due = Duration::from_secs(1) * number / args.rate;
            thread::sleep(due.saturating_sub(begun.elapsed()));
            families.turn(usize::try_from(number / 2)? % parents, number % 2 == 1)?;
        }
        service.wait_until_at_rest()?;
        let took = service.processor_seconds()? - before;
        service.wait_until("all parents are told True again", |_| families.all_ready())?;
        ensure!(families.answer(0) == "True");
        println!(
            "{parents:7} parents: start {start:6.2} s, idle {:.2} ms a second, {:.2} ms a flip",
            idle * 1e3 / f64::from(args.seconds),
            took * 1e3 / f64::from(flips),
        );
    }
    Ok(())
}

/// Processor time of a service to which nothing happens.
fn rest(service: &MeasuredService, seconds: u32) -> anyhow::Result<f64> {
    let before = service.processor_seconds()?;
    thread::sleep(Duration::from_secs(u64::from(seconds)));
    Ok(service.processor_seconds()? - before)
}
