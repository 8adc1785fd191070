//! `rollcall doctor`: finds problems in a cluster that affect readiness. It reads and changes nothing.

mod checked_object;
mod checks;
mod finalizer_report;
mod finalizers;
mod finding;
mod inventory;
mod kopf_events;
mod refusal_text;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use controller::access_review::ReviewSubject;
use controller::args::ClusterArgs;
use policy::rbac::RoleSubject;
use policy::{FoundPolicy, PolicySettings};

use super::connect::connect_cluster;
use super::listed_policies::ListedPolicies;
use crate::eval::current_time;
use crate::limits::STUCK_AFTER;
use crate::rbac::object_name;
use crate::terminal::TerminalCapabilities;
use crate::text::{StyledLine, TextStyle, print_error_line, wrap_text, write_stdout};
use finalizer_report::render_finalizers;
use finalizers::{FinalizerEntry, read_finalizers};
use finding::{DoctorFinding, DoctorSeverity};
use inventory::{DoctorInventory, InventoryReader};

/// `rollcall doctor`.
#[derive(Args, Debug)]
#[command(
    after_help = "It reads with your own rights and changes nothing. Exit codes: 0 no errors; 1 at least one error; 2 the cluster or its policies could not be read."
)]
pub(crate) struct DoctorArgs {
    /// Only objects in this namespace and cluster-scoped ones [default: all].
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Read policies from these files instead of the cluster.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Check the rights of this service account, as NAMESPACE/NAME, instead of your own.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = parse_service_account)]
    service_account: Option<ServiceAccountName>,
    /// Namespace in which that service account keeps ReadinessRecords [default: its own].
    #[arg(long, value_name = "NAMESPACE", requires = "service_account", value_parser = object_name)]
    records_namespace: Option<String>,
    /// Print the commands that fix what a patch can fix. They are never run.
    #[arg(long)]
    fix: bool,
    /// Instead of the checks, list the finalizers of all objects: how many carry each, who sets it, whether its holder
    /// lives, and which objects in deletion wait for it, with the command that removes it. Exit code 1 if an object
    /// waits for a holder of which there is no sign.
    #[arg(long, conflicts_with_all = ["fix", "files", "service_account"])]
    finalizers: bool,
    /// Output format.
    #[arg(short = 'o', long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: DoctorFormat,
}

/// A service account: namespace and name.
#[derive(Clone, Debug)]
pub(super) struct ServiceAccountName(String, String);

impl ServiceAccountName {
    /// As whose rights are reviewed.
    pub(super) fn to_subject(&self) -> ReviewSubject {
        ReviewSubject::ServiceAccount(self.0.clone(), self.1.clone())
    }

    /// To whom rights are granted.
    pub(super) fn to_role_subject(&self) -> RoleSubject {
        RoleSubject { namespace: self.0.clone(), name: self.1.clone() }
    }
}

pub(super) fn parse_service_account(text: &str) -> Result<ServiceAccountName, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok(ServiceAccountName(namespace.to_owned(), name.to_owned()))
        }
        _ => Err("write it as NAMESPACE/NAME".to_owned()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DoctorFormat {
    /// Text for people.
    Text,
    /// One JSON array of findings.
    Json,
}

pub(crate) async fn diagnose_cluster(cluster: &ClusterArgs, args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let (client, default_namespace) = connect_cluster(cluster).await?;
    if args.finalizers {
        return report_finalizers(&client, args).await;
    }
    let mut world = DoctorInventory { now: current_time(), ..DoctorInventory::default() };
    let listed = if args.files.is_empty() {
        ListedPolicies::read(&client, args.namespace.as_ref().unwrap_or(&default_namespace)).await
    } else {
        ListedPolicies::from_files_for(&client, &args.files).await?
    };
    world.unread.extend(listed.unread());
    let unknown = listed.unknown_text(true, args.namespace.is_none());
    add_policies(&mut world, listed.found());
    let subject = match &args.service_account {
        Some(ServiceAccountName(namespace, name)) => {
            ReviewSubject::ServiceAccount(namespace.clone(), name.clone())
        }
        None => ReviewSubject::Own,
    };
    let reader = InventoryReader { client, namespace: args.namespace.clone(), inventory: world };
    let world = reader.read_inventory(&subject, args.records_namespace.as_deref()).await;
    let findings = checks::run_all_checks(&world);
    print_findings(&world, &findings, args)?;
    let blind = world.objects.is_empty() && world.crds.is_empty() && !world.unread.is_empty();
    let errors = findings.iter().any(|finding| finding.severity == DoctorSeverity::Error);
    // Policies that nobody could read were not checked.
    let unsure = blind || (unknown.is_some() && !errors);
    Ok(ExitCode::from(if unsure { 2 } else { u8::from(errors) }))
}

/// Adds the policies that are to be checked, and what the service says of them.
fn add_policies(world: &mut DoctorInventory, found: Vec<FoundPolicy>) {
    for policy in found {
        let about = policy.status.observed_generation.is_none_or(|seen| seen == policy.generation);
        let against = |condition: &&api::policy::PolicyCondition| {
            about && condition.status == "False" && matches!(&*condition.r#type, "Accepted" | "Watching")
        };
        for condition in policy.status.conditions.iter().filter(against) {
            let words = format!("{}=False, {}: {}", condition.r#type, condition.reason, condition.message);
            world.service_conditions.push((policy.name.clone(), words));
        }
        match policy.compile_spec(&PolicySettings::with_stuck_after(STUCK_AFTER)) {
            Ok(compiled) => world.policies.push((policy.name, compiled)),
            Err(why) => world.invalid_policies.push((policy.name, why)),
        }
    }
}

async fn report_finalizers(client: &kube::Client, args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let now = current_time();
    let inventory = read_finalizers(client, args.namespace.as_deref(), now).await?;
    for (what, why) in &inventory.unread {
        print_error_line(&format!("not read: {what}: {why}"));
    }
    let text = match args.output {
        DoctorFormat::Json => crate::text::json_text(&inventory.entries)?,
        DoctorFormat::Text => {
            let colour = TerminalCapabilities::detect_stdout(true).colour;
            let width = TerminalCapabilities::stdout_width().unwrap_or(UNLIMITED_WIDTH);
            render_finalizers(&inventory.entries, now, width, colour)
        }
    };
    write_stdout(&text)?;
    let waiting: usize = inventory.entries.iter().map(|entry| entry.waiting).sum();
    if args.output == DoctorFormat::Text {
        print_error_line(&format!(
            "finalizers found: {}; kinds read: {}; objects in deletion that wait for a finalizer: {waiting}",
            inventory.entries.len(),
            inventory.kinds,
        ));
    }
    let lost = inventory.entries.iter().any(FinalizerEntry::is_ownerless_wait);
    let blind = inventory.kinds == 0;
    Ok(ExitCode::from(if blind { 2 } else { u8::from(lost) }))
}

fn print_findings(
    world: &DoctorInventory,
    findings: &[DoctorFinding],
    args: &DoctorArgs,
) -> anyhow::Result<()> {
    for (what, why) in &world.unread {
        print_error_line(&format!("not read: {what}: {why}"));
    }
    let text = match (args.fix, args.output) {
        (true, _) => patch_script(findings),
        (false, DoctorFormat::Json) => crate::text::json_text(findings)?,
        (false, DoctorFormat::Text) => {
            let colour = TerminalCapabilities::detect_stdout(true).colour;
            let width = TerminalCapabilities::stdout_width().unwrap_or(UNLIMITED_WIDTH);
            finding_lines(findings, width).iter().map(|line| line.fit_width(width, colour) + "\n").collect()
        }
    };
    write_stdout(&text)?;
    if args.output == DoctorFormat::Text {
        let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
        print_error_line(&format!(
            "{} errors, {} warnings, {} notes; {} objects and {} policies checked",
            count(DoctorSeverity::Error),
            count(DoctorSeverity::Warning),
            count(DoctorSeverity::Info),
            world.objects.len(),
            world.policies.len() + world.invalid_policies.len(),
        ));
    }
    Ok(())
}

/// Column at which texts begin.
const LABEL_WIDTH: usize = 9;
/// Width without a terminal: nothing is wrapped.
const UNLIMITED_WIDTH: usize = usize::MAX / 2;
/// Maximum number of lines of one text.
const MAX_TEXT_LINES: usize = 8;

fn finding_lines(findings: &[DoctorFinding], width: usize) -> Vec<StyledLine> {
    let mut out = Vec::new();
    let room = width.saturating_sub(LABEL_WIDTH).max(LABEL_WIDTH);
    let tell = |out: &mut Vec<StyledLine>, style, text: &str| {
        let parts = wrap_text(text, room, MAX_TEXT_LINES).into_iter();
        out.extend(parts.map(|part| StyledLine::default().pad_to(LABEL_WIDTH).append_text(style, part)));
    };
    for finding in findings {
        let style = match finding.severity {
            DoctorSeverity::Error => TextStyle::Bad,
            DoctorSeverity::Warning => TextStyle::Busy,
            DoctorSeverity::Info => TextStyle::Open,
        };
        let head = StyledLine::new(style, finding.severity.word())
            .pad_to(LABEL_WIDTH)
            .append_text(TextStyle::Bold, &*finding.object);
        out.push(head.append_text(TextStyle::Dim, format!("  {}", finding.check)));
        tell(&mut out, TextStyle::Plain, &finding.evidence);
        if !finding.fix.is_empty() {
            tell(&mut out, TextStyle::Dim, &format!("fix: {}", finding.fix));
        }
    }
    out
}

/// Returns a script of comments and commands, for a person to read before running it.
fn patch_script(findings: &[DoctorFinding]) -> String {
    let plain = |text: &str| crate::text::sanitize_text(&text.replace('\n', " ")).into_owned();
    let script = findings.iter().filter_map(|finding| {
        let patch = finding.patch.as_ref()?;
        Some(format!(
            "# {}: {}\n# {}\n{}\n\n",
            finding.check,
            plain(&finding.object),
            plain(&finding.fix),
            plain(patch)
        ))
    });
    script.collect()
}
