//! Memory: a first start, and edits of a rule.

use std::thread;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;

use crate::families::Families;
use crate::service::MeasuredService;
use crate::subject::SubjectArgs;

#[derive(Args)]
pub(crate) struct EditArgs {
    /// Number of parents.
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    parents: usize,
    /// Number of children of each.
    #[arg(long, default_value_t = 2, value_name = "N")]
    children: usize,
    /// Number of edits, one after the other.
    #[arg(long, default_value_t = 8, value_name = "N")]
    edits: usize,
    /// Seconds between the end of a phase and the look at the memory that it left.
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pause: u64,
}

/// Prints the memory of each phase.
pub(crate) async fn run(subject: &SubjectArgs, args: &EditArgs) -> anyhow::Result<()> {
    let families = Families::serve(args.parents, args.children).await?;
    let pause = Duration::from_secs(args.pause);
    println!("{} parents with {} children each; megabytes resident", args.parents, args.children);
    let mut service = MeasuredService::start(subject, &families.kubeconfig)?;
    service.wait_until("all parents are told True", |_| families.all_ready())?;
    service.wait_until_at_rest()?;
    let peak = service.peak()?;
    thread::sleep(pause);
    println!(
        "first start      peak {peak:6.1}  rest {:6.1}  processor {:.2} s",
        service.memory()?,
        service.processor_seconds()?
    );
    drop(service);

    let mut service = MeasuredService::start(subject, &families.kubeconfig)?;
    service.wait_until("every kind is listed", MeasuredService::is_synced)?;
    service.wait_until_at_rest()?;
    let peak = service.peak()?;
    thread::sleep(pause);
    let rest = service.memory()?;
    println!(
        "restart at rest  peak {peak:6.1}  rest {rest:6.1}  processor {:.2} s",
        service.processor_seconds()?
    );

    service.reset_peak()?;
    let before = service.processor_seconds()?;
    for number in 1..=args.edits {
        let generation = families.edit_rule(number)?;
        service.wait_until("the edit is in force", |_| families.accepted_generation() == generation)?;
        service.wait_until_at_rest()?;
        ensure!(families.all_ready(), "an edit of a rule that changes no answer turned a parent");
    }
    let (peak, took) = (service.peak()?, service.processor_seconds()? - before);
    thread::sleep(pause);
    let after = service.memory()?;
    println!("{} edits          peak {peak:6.1}  rest {after:6.1}  processor {took:.2} s", args.edits);
    println!("peak ÷ rest {:.2}, rest after ÷ rest before {:.2}", peak / rest, after / rest);
    Ok(())
}
