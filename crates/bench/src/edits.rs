//! Memory: a first start, and edits of a rule.

use std::time::Duration;

use anyhow::ensure;
use clap::Args;

use crate::families::{Families, ParentSort};
use crate::phase::Phase;
use crate::service::MeasuredService;
use crate::subject::SubjectArgs;

/// Most memory that may be taken at any time, as a multiple of the memory at rest.
const MAX_PEAK: f64 = 1.5;
/// Most memory that may be kept a while after the edits, as a multiple of the memory at rest before them.
const MAX_REST: f64 = 1.1;

#[derive(Args)]
pub(crate) struct EditArgs {
    /// Number of parents.
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    pub(crate) parents: usize,
    /// Number of children of each.
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub(crate) children: usize,
    /// Number of edits, one after the other.
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub(crate) edits: usize,
    /// Seconds between the end of a phase and the look at the memory that it left.
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub(crate) pause: u64,
}

/// Prints the memory of each phase: parents are onboarded, then the rule is edited, and at last a new process starts over
/// what is there, which has the least that they take. Fails if more was taken than may be.
pub(crate) async fn run(subject: &SubjectArgs, args: &EditArgs) -> anyhow::Result<()> {
    let families = Families::serve(ParentSort::Owners, args.parents, args.children).await?;
    let pause = Duration::from_secs(args.pause);
    println!("{} parents with {} children each; megabytes resident", args.parents, args.children);
    let EditPhases { onboarded, edited } = measure_edits(subject, &families, args)?;
    onboarded.print("onboarded");
    edited.print(&format!("{} edits", args.edits));

    let mut service = MeasuredService::start(subject, &families.kubeconfig)?;
    service.wait_until("every kind is listed", MeasuredService::is_synced)?;
    let restarted = Phase::end(&service, pause, 0.0)?;
    restarted.print("restarted");
    let peak = onboarded.peak.max(edited.peak);
    for (name, rest) in [("rest once onboarded", onboarded.rest), ("rest of a new process", restarted.rest)] {
        println!("{name}: peak {:.2} of it, after the edits {:.2}", peak / rest, edited.rest / rest);
    }
    let (highest, lasting) = (peak / onboarded.rest, edited.rest / onboarded.rest);
    ensure!(
        highest <= MAX_PEAK && lasting <= MAX_REST,
        "the peak may be {MAX_PEAK} of the rest and is {highest:.2}; after the edits {MAX_REST}, and is {lasting:.2}"
    );
    Ok(())
}

/// What edits took.
pub(crate) struct EditPhases {
    pub(crate) onboarded: Phase,
    pub(crate) edited: Phase,
}

/// Onboards the parents, then edits the rule, no answer of which moves.
pub(crate) fn measure_edits(
    subject: &SubjectArgs,
    families: &Families,
    args: &EditArgs,
) -> anyhow::Result<EditPhases> {
    let pause = Duration::from_secs(args.pause);
    let mut service = MeasuredService::start(subject, &families.kubeconfig)?;
    service.wait_until("all parents are told True", |_| families.all_ready())?;
    let onboarded = Phase::end(&service, pause, 0.0)?;
    service.reset_peak()?;
    let before = service.processor_seconds()?;
    edit_rules(&mut service, families, args)?;
    ensure!(families.all_ready(), "an edit of a rule that changes no answer turned a parent");
    Ok(EditPhases { onboarded, edited: Phase::end(&service, pause, before)? })
}

/// Edits the rule, one time after the other, each when the one before was evaluated on every child.
fn edit_rules(service: &mut MeasuredService, families: &Families, args: &EditArgs) -> anyhow::Result<()> {
    let children = f64::from(u32::try_from(args.parents * args.children)?);
    for number in 1..=args.edits {
        let evaluated = service.rule_evaluations();
        let generation = families.edit_rule(number)?;
        service.wait_until("the edit is in force", |_| families.accepted_generation() == generation)?;
        service.wait_until("every child is judged by it", |service| {
            service.rule_evaluations() - evaluated >= children
        })?;
        service.wait_until_at_rest()?;
    }
    Ok(())
}
