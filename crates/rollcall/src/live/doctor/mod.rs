//! `rollcall doctor`: what in a cluster would hurt whoever relies on readiness. It looks, and changes nothing.

mod checks;
mod finding;
mod logged;
mod seen;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use controller::args::ClusterArgs;
use controller::policies::read_file;

use super::connect;
use crate::eval::now;
use crate::look::Look;
use crate::text::{Line, Style, put, say, wrap};
use finding::{Finding, Severity};
use world::{Reader, Subject, World};

/// As `rollcall run` has it where nobody says otherwise.
pub(super) const STUCK_AFTER: std::time::Duration = std::time::Duration::from_mins(10);

/// `rollcall doctor`.
#[derive(Args, Debug)]
#[command(
    after_help = "It reads with your own rights and changes nothing. Exit codes: 0 nothing serious; 1 at least one error; 2 it could not look."
)]
pub(crate) struct DoctorArgs {
    /// Only objects in this namespace (and what lives in none); left out, in all.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Policies from these files instead of those in the cluster.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Ask about the rights of this service account, as NAMESPACE/NAME, instead of your own.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = account)]
    service_account: Option<Account>,
    /// Print the commands that would mend what can be mended by a patch. They are never run.
    #[arg(long)]
    fix: bool,
    /// What is printed.
    #[arg(short = 'o', long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

#[derive(Clone, Debug)]
struct Account(String, String);

fn account(text: &str) -> Result<Account, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok(Account(namespace.to_owned(), name.to_owned()))
        }
        _ => Err("write it as NAMESPACE/NAME".to_owned()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One array of findings.
    Json,
}

pub(crate) async fn doctor(cluster: &ClusterArgs, args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let (client, _) = connect(cluster).await?;
    let mut world = World { now: now(), ..World::default() };
    let found = if args.files.is_empty() {
        controller::release::in_cluster(&client).await.unwrap_or_else(|error| {
            world.unread.insert("ReadinessPolicy.rollcall.dev".to_owned(), format!("{error:#}"));
            Vec::new()
        })
    } else {
        args.files.iter().map(|file| read_file(file)).collect::<Result<Vec<_>, _>>()?.concat()
    };
    for policy in found {
        let about = policy.status.observed_generation.is_none_or(|seen| seen == policy.generation);
        let against = |condition: &&api::policy::PolicyCondition| {
            about && condition.status == "False" && matches!(&*condition.r#type, "Accepted" | "Watching")
        };
        for condition in policy.status.conditions.iter().filter(against) {
            let words = format!("{}=False, {}: {}", condition.r#type, condition.reason, condition.message);
            world.told.push((policy.name.clone(), words));
        }
        match policy.compile(STUCK_AFTER) {
            Ok(compiled) => world.policies.push((policy.name, compiled)),
            Err(why) => world.broken.push((policy.name, why)),
        }
    }
    let subject = match &args.service_account {
        Some(Account(namespace, name)) => Subject::Account(namespace.clone(), name.clone()),
        None => Subject::Own,
    };
    let reader = Reader { client, namespace: args.namespace.clone(), world };
    let world = reader.read(&subject).await;
    let findings = checks::all(&world);
    tell(&world, &findings, args)?;
    let blind = world.objects.is_empty() && world.crds.is_empty() && !world.unread.is_empty();
    let errors = findings.iter().any(|finding| finding.severity == Severity::Error);
    Ok(ExitCode::from(if blind { 2 } else { u8::from(errors) }))
}

fn tell(world: &World, findings: &[Finding], args: &DoctorArgs) -> anyhow::Result<()> {
    for (what, why) in &world.unread {
        say(&format!("not read: {what}: {why}"));
    }
    let text = match (args.fix, args.output) {
        (true, _) => patches(findings),
        (false, Format::Json) => serde_json::to_string_pretty(findings)? + "\n",
        (false, Format::Text) => {
            let colour = Look::of_this_process(true).colour;
            let width = Look::width().unwrap_or(ENDLESS);
            lines(findings, width).iter().map(|line| line.fit(width, colour) + "\n").collect()
        }
    };
    put(&text)?;
    if args.output == Format::Text {
        let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
        say(&format!(
            "{} errors, {} warnings, {} notes; {} objects and {} policies looked at",
            count(Severity::Error),
            count(Severity::Warning),
            count(Severity::Info),
            world.objects.len(),
            world.policies.len() + world.broken.len(),
        ));
    }
    Ok(())
}

/// Where the words begin.
const LABEL: usize = 9;
/// Where there is no terminal nothing is broken.
const ENDLESS: usize = usize::MAX / 2;
/// So many lines of one text.
const LINES: usize = 8;

fn lines(findings: &[Finding], width: usize) -> Vec<Line> {
    let mut out = Vec::new();
    let room = width.saturating_sub(LABEL).max(LABEL);
    let tell = |out: &mut Vec<Line>, style, text: &str| {
        let parts = wrap(text, room, LINES).into_iter();
        out.extend(parts.map(|part| Line::default().to(LABEL).then(style, part)));
    };
    for finding in findings {
        let style = match finding.severity {
            Severity::Error => Style::Bad,
            Severity::Warning => Style::Busy,
            Severity::Info => Style::Open,
        };
        let head = Line::new(style, finding.severity.word()).to(LABEL).then(Style::Bold, &*finding.object);
        out.push(head.then(Style::Dim, format!("  {}", finding.check)));
        tell(&mut out, Style::Plain, &finding.evidence);
        if !finding.fix.is_empty() {
            tell(&mut out, Style::Dim, &format!("fix: {}", finding.fix));
        }
    }
    out
}

/// A script of comments and commands; whoever runs it has read it.
fn patches(findings: &[Finding]) -> String {
    let plain = |text: &str| crate::text::plain(&text.replace('\n', " ")).into_owned();
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
