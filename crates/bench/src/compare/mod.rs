//! Rollcall beside what one would write instead.

mod build;
mod catalog;
pub(crate) mod chart;
pub(crate) mod cluster;
mod exposition;
pub(crate) mod figure;
pub(crate) mod fleet;
pub(crate) mod machine;
pub(crate) mod measurement;
pub(crate) mod observer;
mod page;
pub(crate) mod process;
pub(crate) mod progress;
mod rest;
mod scrape;
mod scrape_client;
pub(crate) mod session;
pub(crate) mod summary;
pub(crate) mod table;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;

use self::build::{BuiltSubject, build_subject, cache_folder};
use self::catalog::SUBJECTS;
use self::cluster::WidgetCluster;
use self::machine::RunConditions;
use self::measurement::{RawLine, append_line, read_lines};
use self::progress::RunProgress;
use self::session::SessionPlan;
use self::summary::RunSummary;
use crate::subject::SubjectArgs;

/// Options of `compare`.
#[derive(Args)]
pub(crate) struct CompareArgs {
    /// Subjects, of those that `--help` lists. All by default.
    #[arg(long, value_delimiter = ',', value_name = "NAME", value_parser = SUBJECTS.map(|subject| subject.name))]
    subjects: Vec<String>,
    /// Number of parents at the size 1.
    #[arg(long, default_value_t = 100, value_name = "N")]
    parents: usize,
    /// Number of children of each.
    #[arg(long, default_value_t = 10, value_name = "N")]
    children: usize,
    /// Multiples of the number of parents.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10], value_name = "N")]
    sizes: Vec<usize>,
    /// Rounds; in each every subject runs once at every size, and another one is the first.
    #[arg(long, default_value_t = 3, value_name = "N")]
    rounds: u32,
    /// Flips a second.
    #[arg(long, default_value_t = 40, value_name = "N")]
    rate: u32,
    /// Seconds of flips.
    #[arg(long, default_value_t = 6, value_name = "SECONDS")]
    seconds: u32,
    /// Seconds of each rest. Both are measured once.
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    rest_seconds: u32,
    /// Scrapes of each subject that exports answers, at every size.
    #[arg(long, default_value_t = 100, value_name = "N")]
    scrapes: usize,
    /// Measures scrapes alone.
    #[arg(long)]
    scrapes_only: bool,
    /// Longest time that an answer is waited for.
    #[arg(long, default_value_t = 45, value_name = "SECONDS")]
    patience: u64,
    /// File of the raw data, which is replaced.
    #[arg(long, value_name = "FILE")]
    raw: Option<PathBuf>,
    /// Measures nothing, and shows what is in a file of raw data.
    #[arg(long, value_name = "FILE", conflicts_with = "raw")]
    from: Option<PathBuf>,
    /// Folder into which a page, its charts and the raw data are written.
    #[arg(long, value_name = "DIR")]
    page: Option<PathBuf>,
}

/// Measures, prints a table, and writes the page.
pub(crate) async fn run(own: &SubjectArgs, args: &CompareArgs) -> anyhow::Result<()> {
    let file = match &args.from {
        Some(file) => file.clone(),
        None => measure(own, args).await?,
    };
    let lines: Vec<RawLine> = read_lines(&file)?;
    let summary = RunSummary::of(&lines);
    let conditions = lines.iter().find_map(|line| match line {
        RawLine::Run(conditions) => Some(conditions),
        _ => None,
    });
    let conditions = conditions.with_context(|| format!("{} has no line of the run", file.display()))?;
    print!("{}", table::render_text(&summary, conditions));
    if let Some(folder) = &args.page {
        page::write_page(folder, &file, &summary, conditions)?;
        println!("\nwritten: {}", folder.display());
    }
    Ok(())
}

async fn measure(own: &SubjectArgs, args: &CompareArgs) -> anyhow::Result<PathBuf> {
    ensure!(args.children > 1 && args.parents > 10, "at least 11 parents with 2 children each");
    ensure!(args.rate > 0 && args.seconds > 0 && args.rounds > 0, "nothing is to be measured");
    let file = args.raw.clone().unwrap_or_else(|| cache_folder().join("compare.jsonl"));
    std::fs::create_dir_all(cache_folder())?;
    std::fs::write(&file, "").with_context(|| format!("writing {}", file.display()))?;
    append_line(&file, &RawLine::Run(args.conditions().await?))?;
    let subjects = build_all(own, args, &file)?;
    let controllers: Vec<BuiltSubject> =
        subjects.iter().filter(|subject| args.is_measured_whole(subject)).cloned().collect();
    let mut progress = RunProgress::begin(steps(args, controllers.len()));
    for round in 0..args.rounds {
        for size in &args.sizes {
            for turn in 0..controllers.len() {
                let subject = &controllers[(turn + usize::try_from(round)?) % controllers.len()];
                progress.show(&format!("round {}, {} at {size}×", round + 1, subject.name));
                for measurement in session::run_session(subject, args.plan(round, *size)).await? {
                    append_line(&file, &RawLine::Measurement(measurement))?;
                }
                progress.step();
            }
            progress.show(&format!("round {}, scrapes at {size}×", round + 1));
            for measurement in scrape::run_scrapes(&subjects, args.plan(round, *size), args.scrapes).await? {
                append_line(&file, &RawLine::Measurement(measurement))?;
            }
            progress.step();
        }
    }
    for workload in rest::RESTS.into_iter().filter(|_| !controllers.is_empty()) {
        progress.show("all subjects at rest, side by side");
        for measurement in rest::run_rest(&controllers, args.plan(0, 1), workload, args.rest_seconds).await? {
            append_line(&file, &RawLine::Measurement(measurement))?;
        }
        progress.step();
    }
    progress.end();
    Ok(file)
}

fn steps(args: &CompareArgs, controllers: usize) -> usize {
    let rests = if controllers == 0 { 0 } else { rest::RESTS.len() };
    let rounds = usize::try_from(args.rounds).unwrap_or(usize::MAX);
    rounds.saturating_mul(args.sizes.len() * (controllers + 1)) + rests
}

/// Builds every subject that was asked for. One that cannot be built is named, in the raw data too.
fn build_all(own: &SubjectArgs, args: &CompareArgs, file: &Path) -> anyhow::Result<Vec<BuiltSubject>> {
    let is_asked = |name: &str| args.subjects.is_empty() || args.subjects.iter().any(|asked| asked == name);
    let mut built = Vec::new();
    for subject in SUBJECTS.iter().filter(|subject| is_asked(subject.name)) {
        eprintln!("building {}", subject.name);
        match build_subject(subject, own) {
            Ok(subject) => {
                let (name, about) = (subject.name.to_owned(), subject.about.to_owned());
                append_line(file, &RawLine::Subject { name, version: subject.version.clone(), about })?;
                built.push(subject);
            }
            Err(error) => {
                let (name, reason) = (subject.name.to_owned(), format!("{error:#}"));
                eprintln!("{name} is left out: {reason}");
                append_line(file, &RawLine::Missing { name, reason })?;
            }
        }
    }
    ensure!(!built.is_empty(), "no subject could be built");
    Ok(built)
}

impl CompareArgs {
    /// Whether a subject is measured with every workload, not with scrapes alone.
    fn is_measured_whole(&self, subject: &BuiltSubject) -> bool {
        !self.scrapes_only && subject.role.writes_answers()
    }

    fn plan(&self, round: u32, size: usize) -> SessionPlan {
        SessionPlan {
            round,
            parents: self.parents * size,
            children: self.children,
            rate: self.rate,
            flip_seconds: self.seconds,
            patience: Duration::from_secs(self.patience),
        }
    }

    async fn conditions(&self) -> anyhow::Result<RunConditions> {
        let sizes: Vec<String> = self.sizes.iter().map(ToString::to_string).collect();
        let mut options = format!(
            "--parents {} --children {} --sizes {} --rounds {} --rate {} --seconds {} --rest-seconds {} --scrapes {} --patience {}",
            self.parents,
            self.children,
            sizes.join(","),
            self.rounds,
            self.rate,
            self.seconds,
            self.rest_seconds,
            self.scrapes,
            self.patience
        );
        if self.scrapes_only {
            options += " --scrapes-only";
        }
        let one = WidgetCluster::serve(1, self.children, |_| false).await?;
        Ok(RunConditions {
            child_bytes: one.child_bytes()?,
            options,
            rounds: self.rounds,
            rate: self.rate,
            flip_seconds: self.seconds,
            rest_seconds: self.rest_seconds,
            scrapes: u32::try_from(self.scrapes)?,
            ..RunConditions::read()?
        })
    }
}
