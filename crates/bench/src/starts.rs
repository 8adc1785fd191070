//! A first start and a later one, over parents that own their children, and over groups that select them.

use std::time::Duration;

use clap::Args;

use crate::families::{Families, ParentSort};
use crate::phase::Phase;
use crate::service::MeasuredService;
use crate::subject::SubjectArgs;

#[derive(Args)]
pub(crate) struct StartArgs {
    /// Number of parents.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    parents: usize,
    /// Number of children of each.
    #[arg(long, default_value_t = 20, value_name = "N")]
    children: usize,
    /// Seconds between the end of a phase and the look at the memory that it left.
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    pause: u64,
}

/// Prints what a start costs for each sort of parents, one after the other.
pub(crate) async fn run(subject: &SubjectArgs, args: &StartArgs) -> anyhow::Result<()> {
    println!("{} parents with {} children each; megabytes resident", args.parents, args.children);
    let pause = Duration::from_secs(args.pause);
    for sort in [ParentSort::Owners, ParentSort::Groups] {
        let families = Families::serve(sort, args.parents, args.children).await?;
        println!("{sort:?}");
        let mut service = MeasuredService::start(subject, &families.kubeconfig)?;
        service.wait_until("all parents are told True", |_| families.all_ready())?;
        Phase::end(&service, pause, 0.0)?.print("first");
        drop(service);
        let mut service = MeasuredService::start(subject, &families.kubeconfig)?;
        service.wait_until("every kind is listed", MeasuredService::is_synced)?;
        Phase::end(&service, pause, 0.0)?.print("later");
    }
    Ok(())
}
