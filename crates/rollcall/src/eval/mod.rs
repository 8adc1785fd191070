//! `rollcall eval`: evaluates manifests offline.

mod anomalies;
mod input;
mod json;
mod judge;
mod progress;
mod report;
mod rollup;
mod scripts;

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use controller::args::ClusterArgs;
use readiness::{StuckLimits, Time};
use rules::{CompiledRule, PeerProfile, RuleDefinition};
use serde_json::value::RawValue;
use watcher::wire::ChildObject;

use crate::text::print_error_line;
use crate::tree_table;
use anomalies::find_anomalies;
use input::{ManifestItem, ManifestPosition};
pub(crate) use input::{object_title, read_objects};
pub(crate) use judge::decode_json;
use judge::{ManifestJudge, ReadyAnswer};
use progress::EvalProgress;
use report::EvalReport;
pub(crate) use report::OutputFormat;
use rollup::ManifestRollup;
pub(crate) use rollup::read_policies;

/// `rollcall eval`.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 every object is ready; 1 at least one is not; 2 none is known not to be ready, but something could not be read or evaluated, or there was no object."
)]
pub(crate) struct EvalArgs {
    /// Files or directories with objects, YAML or JSON; `-` is standard input.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Also read subdirectories.
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Rules to evaluate by: `native`, or additionally those of a peer, reproduced exactly: `kstatus`, `flux`,
    /// `argocd`.
    #[arg(long, default_value = "native", value_name = "NAME", value_parser = profile)]
    profile: ProfileChoice,
    /// Argo CD health scripts: a directory with <group>/<Kind>/health.lua, a file with the ConfigMap argocd-cm, or
    /// <namespace>/<name> of it in the cluster. The first source that has a script for a kind is used.
    #[arg(long, value_name = "DIR|FILE|CONFIGMAP")]
    rules: Vec<String>,
    /// CEL expression for every object, as in Flux's healthCheckExprs: true if it is ready. With `--profile flux` the
    /// verdict of Flux is by these expressions too, which replace all its other checks, that of a deletion included;
    /// Jobs keep Flux's own rule, as they do in Flux.
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "rules")]
    cel_current: Option<String>,
    /// CEL expression: true if the object is in progress; evaluated first.
    #[arg(long, value_name = "EXPRESSION", requires = "cel_current")]
    cel_in_progress: Option<String>,
    /// CEL expression: true if the object has failed; evaluated second.
    #[arg(long, value_name = "EXPRESSION", requires = "cel_current")]
    cel_failed: Option<String>,
    /// Aggregate the objects by the ReadinessPolicies in this file: prints each parent with its children; the exit code
    /// is that of the parents.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rules", "cel_current"])]
    policy: Vec<PathBuf>,
    /// Time after which something pending, without progress or terminating is stuck.
    #[arg(long, default_value = "10m", value_parser = humantime::parse_duration, value_name = "DURATION")]
    stuck_after: Duration,
    /// Time to evaluate at, such as 2026-08-14T09:12:33Z [default: now].
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<Time>,
    /// Output format.
    #[arg(short = 'o', long, value_enum, default_value_t, value_name = "FORMAT")]
    output: OutputFormat,
}

impl EvalArgs {
    fn compile_cel(&self) -> anyhow::Result<Option<CompiledRule>> {
        let Some(current) = &self.cel_current else { return Ok(None) };
        let (in_progress, failed) = (self.cel_in_progress.as_deref(), self.cel_failed.as_deref());
        Ok(Some(
            CompiledRule::compile(&RuleDefinition::Cel { current, in_progress, failed })
                .context("failed to compile CEL")?,
        ))
    }
}

/// A peer profile, or none for `native`.
#[derive(Clone, Copy, Debug)]
struct ProfileChoice(Option<PeerProfile>);

fn profile(word: &str) -> Result<ProfileChoice, String> {
    match word {
        "native" => Ok(ProfileChoice(None)),
        word => word
            .parse()
            .map(|p| ProfileChoice(Some(p)))
            .map_err(|_| "one of native, kstatus, flux, argocd".to_owned()),
    }
}

fn moment(text: &str) -> Result<Time, String> {
    Time::from_rfc3339(text).ok_or_else(|| "not a time as in 2026-08-14T09:12:33Z".to_owned())
}

#[expect(clippy::disallowed_methods, reason = "the moment enters here")]
pub(crate) fn current_time() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Evaluates every object in every file.
pub(crate) fn run_eval(cluster: &ClusterArgs, args: &EvalArgs) -> anyhow::Result<ExitCode> {
    let limits =
        StuckLimits { pending: args.stuck_after, progress: args.stuck_after, terminating: args.stuck_after };
    let judge = ManifestJudge {
        profile: args.profile.0,
        scripts: scripts::load_libraries(&args.rules, cluster)?,
        cel: args.compile_cel()?,
        limits,
        now: args.at.unwrap_or_else(current_time),
    };
    let policies = match args.policy.as_slice() {
        [] => None,
        files => {
            let read = rollup::read_policies(files, args.stuck_after)?;
            Some(read.into_iter().map(|(found, compiled)| (found.name, compiled)).collect::<Vec<_>>())
        }
    };
    let mut session = EvalSession {
        judge,
        rollup: policies.as_ref().map(|_| ManifestRollup::default()),
        report: EvalReport::new(args.output),
        progress: EvalProgress::default(),
        tally: EvalTally::default(),
        broken_pipe: false,
    };
    let mut files = Vec::new();
    for path in &args.files {
        match input::list_files(path, args.recursive) {
            Ok(found) => files.extend(found),
            Err(error) => session.report_read_failure(path, &error),
        }
    }
    session.progress.expect_files(&files);
    for file in &files {
        session.judge_file(file);
    }
    session.progress.clear_line();
    if let (Some(world), Some(policies)) = (session.rollup.take(), policies) {
        let trees = world.roll_up(&policies, session.judge.now);
        let code = tree_table::print_trees(&trees, args.output, &|_| None)?;
        tree_table::report_no_parents(&trees);
        // An unreadable object might have been the child of a parent.
        let unread = session.tally.unevaluated > 0 && code == 0;
        return Ok(ExitCode::from(if unread { 2 } else { code }));
    }
    if matches!(session.tally, EvalTally { ready: 0, not_ready: 0, unevaluated: 0 }) {
        print_error_line("found no object to evaluate");
    }
    match session.report.finish_report() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
        _ => {}
    }
    Ok(session.tally.exit_code())
}

struct EvalSession {
    judge: ManifestJudge,
    /// Aggregation state, with policies only.
    rollup: Option<ManifestRollup>,
    report: EvalReport,
    progress: EvalProgress,
    tally: EvalTally,
    broken_pipe: bool,
}

/// Counts of the evaluated objects by result.
#[derive(Debug, Default)]
struct EvalTally {
    ready: usize,
    not_ready: usize,
    unevaluated: usize,
}

impl EvalTally {
    fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            EvalTally { not_ready: 1.., .. } => 1,
            EvalTally { unevaluated: 0, ready: 1.., .. } => 0,
            _ => 2,
        })
    }
}

impl EvalSession {
    fn judge_file(&mut self, path: &std::path::Path) {
        let count = self.progress.bytes_read.clone();
        if let Err(error) = input::scan_file(path, &count, &mut |found| self.take_item(found)) {
            self.report_read_failure(path, &error);
        }
    }

    fn report_read_failure(&mut self, path: &std::path::Path, error: &io::Error) {
        self.tally.unevaluated += 1;
        self.print_line(&format!("failed to read {}: {error}", path.display()));
    }

    fn take_item(&mut self, found: ManifestItem<'_>) {
        match found {
            ManifestItem::Object { place, child, json } => self.judge_object(place, *child, json),
            ManifestItem::Suspicious { place, object, what } => {
                self.report_problem(place, object.as_deref(), &what);
            }
            ManifestItem::Unreadable { place, object, what } => {
                self.tally.unevaluated += 1;
                self.report_problem(place, object.as_deref(), &what);
            }
        }
    }

    fn judge_object(&mut self, place: ManifestPosition<'_>, child: ChildObject, json: &RawValue) {
        let findings = find_anomalies(json.get());
        let (mut child, mut text) = (child, Cow::Borrowed(json.get()));
        let name = object_title(&child.meta.kind, &child.meta.namespace, &child.meta.name);
        for path in &findings.duplicate_keys {
            self.report_problem(place, Some(&name), &format!("duplicate key {path}; the last one counts"));
        }
        for (path, digits) in &findings.long_integers {
            let what = format!(
                "{path}: {digits} is beyond 2^53; scripts, and peers that use floating point, read a rounded number"
            );
            self.report_problem(place, Some(&name), &what);
        }
        if !findings.duplicate_keys.is_empty()
            && let Some(value) = judge::decode_json(&text)
            && let Ok(once) = RawValue::from_string(value.to_string())
        {
            child = ChildObject::from_raw(&once);
            text = Cow::Owned(once.get().to_owned());
        }
        if let Some(world) = &mut self.rollup {
            return world.add_object(child, &text);
        }
        let judged = self.judge.judge_object(&child, &text, findings.depth);
        match judged.answer {
            ReadyAnswer::Yes => self.tally.ready += 1,
            ReadyAnswer::No => self.tally.not_ready += 1,
            ReadyAnswer::Unevaluated => self.tally.unevaluated += 1,
            ReadyAnswer::NoHealth => {}
        }
        if !self.broken_pipe {
            self.broken_pipe = self.report.add_verdict(judged).is_err();
        }
        self.progress.count_object();
    }

    fn report_problem(&mut self, place: ManifestPosition<'_>, object: Option<&str>, what: &str) {
        let object = object.map(|object| format!("{object}: ")).unwrap_or_default();
        self.print_line(&format!("{place}: {object}{what}"));
    }

    fn print_line(&mut self, line: &str) {
        self.progress.clear_line();
        print_error_line(line);
    }
}
