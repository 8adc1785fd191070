//! Processor time per flip of a child.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;

use crate::families::{Families, ParentSort};
use crate::service::{MeasuredService, StreamClient};
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
    /// Readers of the page's stream of changes.
    #[arg(long, default_value_t = 0, value_name = "N")]
    streams: usize,
    /// Scrapes the metrics every 15 seconds, as Prometheus does.
    #[arg(long)]
    scrape: bool,
}

impl FlipArgs {
    /// Flips that nobody reads the page or the metrics of.
    pub(crate) fn unread(rate: u32, seconds: u32) -> FlipArgs {
        FlipArgs { parents: Vec::new(), rate, seconds, streams: 0, scrape: false }
    }
}

/// What flips cost at one number of parents.
pub(crate) struct FlipCost {
    /// Processor time of the start, in seconds.
    start: f64,
    /// Processor time of a second in which nothing happens, in milliseconds.
    pub(crate) idle: f64,
    /// Processor time of a flip in milliseconds, with what the service takes meanwhile for nothing.
    gross: f64,
    /// The same, without it.
    pub(crate) net: f64,
    /// Bytes that each stream brought at least.
    heard: usize,
}

/// Prints the processor time per flip at each number of parents.
pub(crate) async fn run(subject: &SubjectArgs, args: &FlipArgs) -> anyhow::Result<()> {
    for parents in &args.parents {
        let FlipCost { start, idle, gross, heard, .. } = measure_flips(subject, args, *parents).await?;
        println!(
            "{parents:7} parents, {} streams ({heard} bytes each), {}: start {start:6.2} s, idle {idle:.2} ms a second, {gross:.2} ms a flip",
            args.streams,
            if args.scrape { "scraped" } else { "not scraped" },
        );
    }
    Ok(())
}

/// Turns children of this number of parents, and checks the answers.
pub(crate) async fn measure_flips(
    subject: &SubjectArgs,
    args: &FlipArgs,
    parents: usize,
) -> anyhow::Result<FlipCost> {
    let families = Families::serve(ParentSort::Owners, parents, 2).await?;
    let mut service = MeasuredService::start(subject, &families.kubeconfig)?;
    service.wait_until("all parents are told True", |_| families.all_ready())?;
    service.wait_until_at_rest()?;
    let readers = Readers::connect(&service, args)?;
    service.wait_until_at_rest()?;
    let (start, rested) = (service.processor_seconds()?, rest(&service, args.seconds)?);
    let idle = rested / f64::from(args.seconds);
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
    let meanwhile = begun.elapsed().as_secs_f64() * idle;
    service.wait_until("all parents are told True again", |_| families.all_ready())?;
    ensure!(families.answer(0) == "True");
    let heard = readers.end()?;
    let per_flip = |seconds: f64| seconds * 1e3 / f64::from(flips);
    Ok(FlipCost { start, idle: idle * 1e3, gross: per_flip(took), net: per_flip(took - meanwhile), heard })
}

/// Clients of the service while it is measured.
struct Readers {
    streams: Vec<StreamClient>,
    scraper: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
}

impl Readers {
    fn connect(service: &MeasuredService, args: &FlipArgs) -> anyhow::Result<Readers> {
        let streams = (0..args.streams).map(|_| service.open_stream()).collect::<anyhow::Result<_>>()?;
        let scraper = args.scrape.then(|| {
            let (ends, client) = (Arc::new(AtomicBool::new(false)), service.client());
            let stop = ends.clone();
            let scrapes = thread::spawn(move || {
                for second in 0_u32.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    if second.is_multiple_of(15) {
                        client.get("/metrics");
                    }
                    thread::sleep(Duration::from_secs(1));
                }
            });
            (ends, scrapes)
        });
        Ok(Readers { streams, scraper })
    }

    /// Ends all, and returns how many bytes each stream brought at least.
    fn end(self) -> anyhow::Result<usize> {
        if let Some((ends, scrapes)) = self.scraper {
            ends.store(true, Ordering::Relaxed);
            scrapes.join().ok().context("the scraper failed")?;
        }
        let heard = self.streams.into_iter().map(StreamClient::end).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(heard.into_iter().min().unwrap_or(0))
    }
}

/// Processor time of a service to which nothing happens.
fn rest(service: &MeasuredService, seconds: u32) -> anyhow::Result<f64> {
    let before = service.processor_seconds()?;
    thread::sleep(Duration::from_secs(u64::from(seconds)));
    Ok(service.processor_seconds()? - before)
}
