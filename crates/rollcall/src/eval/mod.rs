//! `rollcall eval`: judges manifests offline.

mod input;
mod inspect;
mod json;
mod judge;
mod progress;
mod report;
mod rollup;
mod scripts;
mod yaml;

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use controller::args::ClusterArgs;
use readiness::{Limits, Time};
use rules::{Profile, Rule, Spec};
use serde_json::value::RawValue;
use watcher::wire::Child;

use crate::forest;
use crate::text::say;
use input::{Found, Place};
pub(crate) use input::{objects, title};
use inspect::inspect;
pub(crate) use judge::decode;
use judge::{Answer, Judge};
use progress::Progress;
pub(crate) use report::Output;
use report::Report;
use rollup::World;
pub(crate) use rollup::policies;

/// `rollcall eval`.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 every object is ready; 1 at least one is not; 2 none is known not to be ready, but something could not be read or evaluated, or there was nothing to judge."
)]
pub(crate) struct EvalArgs {
    /// Files or directories with objects, YAML or JSON; `-` is standard input.
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Also the directories within directories.
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Whose rules judge: `native`, or also those of a peer, exactly as it has them: `kstatus`, `flux`, `argocd`.
    #[arg(long, default_value = "native", value_name = "NAME", value_parser = profile)]
    profile: Choice,
    /// Argo CD's health scripts: a directory with <group>/<Kind>/health.lua, a file with the ConfigMap argocd-cm, or
    /// <namespace>/<name> of it in the cluster. Of several that know a kind the first is asked.
    #[arg(long, value_name = "DIR|FILE|CONFIGMAP")]
    rules: Vec<String>,
    /// A rule in CEL for every object, as in Flux's healthCheckExprs: when it is ready.
    #[arg(long, value_name = "EXPRESSION", conflicts_with = "rules")]
    cel_current: Option<String>,
    /// When it is on its way; asked first.
    #[arg(long, value_name = "EXPRESSION", requires = "cel_current")]
    cel_in_progress: Option<String>,
    /// When it has failed; asked second.
    #[arg(long, value_name = "EXPRESSION", requires = "cel_current")]
    cel_failed: Option<String>,
    /// Roll the objects up by the ReadinessPolicies in this file: prints each parent with what belongs to it, and exits
    /// by the parents.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rules", "cel_current"])]
    policy: Vec<PathBuf>,
    /// From when on something pending or terminating is stuck.
    #[arg(long, default_value = "10m", value_parser = humantime::parse_duration, value_name = "DURATION")]
    stuck_after: Duration,
    /// The moment to judge at, as in 2026-08-14T09:12:33Z; left out, now.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<Time>,
    /// What is printed.
    #[arg(short = 'o', long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Output,
}

impl EvalArgs {
    fn cel(&self) -> anyhow::Result<Option<Rule>> {
        let Some(current) = &self.cel_current else { return Ok(None) };
        let (in_progress, failed) = (self.cel_in_progress.as_deref(), self.cel_failed.as_deref());
        Ok(Some(Rule::compile(&Spec::Cel { current, in_progress, failed }).context("failed to compile CEL")?))
    }
}

/// A profile, or none.
#[derive(Clone, Copy, Debug)]
struct Choice(Option<Profile>);

fn profile(word: &str) -> Result<Choice, String> {
    match word {
        "native" => Ok(Choice(None)),
        word => word
            .parse()
            .map(|p| Choice(Some(p)))
            .map_err(|_| "one of native, kstatus, flux, argocd".to_owned()),
    }
}

fn moment(text: &str) -> Result<Time, String> {
    let at: jiff::Timestamp = text.parse().map_err(|error| format!("{error}"))?;
    Ok(Time(at.as_millisecond()))
}

#[expect(clippy::disallowed_methods, reason = "the moment enters here")]
pub(crate) fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Judges every object in every file.
pub(crate) fn run(cluster: &ClusterArgs, args: &EvalArgs) -> anyhow::Result<ExitCode> {
    let limits = Limits { pending: args.stuck_after, terminating: args.stuck_after };
    let judge = Judge {
        profile: args.profile.0,
        scripts: scripts::load(&args.rules, cluster)?,
        cel: args.cel()?,
        limits,
        now: args.at.unwrap_or_else(now),
    };
    let policies = match args.policy.as_slice() {
        [] => None,
        files => Some(rollup::policies(files, args.stuck_after)?),
    };
    let mut session = Session {
        judge,
        world: policies.as_ref().map(|_| World::default()),
        report: Report::new(args.output),
        progress: Progress::default(),
        tally: Tally::default(),
        broken_pipe: false,
    };
    let mut files = Vec::new();
    for path in &args.files {
        match input::files(path, args.recursive) {
            Ok(found) => files.extend(found),
            Err(error) => session.failed(path, &error),
        }
    }
    session.progress.expect(&files);
    for file in &files {
        session.file(file);
    }
    session.progress.clear();
    if let (Some(world), Some(policies)) = (session.world.take(), policies) {
        let trees = world.roll_up(&policies, session.judge.now);
        let code = forest::print(&trees, args.output, &|_| None)?;
        // What could not be read might have belonged to somebody.
        let unread = session.tally.open > 0 && code == ExitCode::SUCCESS;
        return Ok(if unread { ExitCode::from(2) } else { code });
    }
    if matches!(session.tally, Tally { ready: 0, not_ready: 0, open: 0 }) {
        say("nothing was found that could be judged");
    }
    match session.report.end() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
        _ => {}
    }
    Ok(session.tally.code())
}

struct Session {
    judge: Judge,
    /// Where policies roll everything up.
    world: Option<World>,
    report: Report,
    progress: Progress,
    tally: Tally,
    broken_pipe: bool,
}

/// What became of all that was looked at.
#[derive(Debug, Default)]
struct Tally {
    ready: usize,
    not_ready: usize,
    open: usize,
}

impl Tally {
    fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Tally { not_ready: 1.., .. } => 1,
            Tally { open: 0, ready: 1.., .. } => 0,
            _ => 2,
        })
    }
}

impl Session {
    fn file(&mut self, path: &std::path::Path) {
        let count = self.progress.read.clone();
        if let Err(error) = input::read(path, &count, &mut |found| self.take(found)) {
            self.failed(path, &error);
        }
    }

    fn failed(&mut self, path: &std::path::Path, error: &io::Error) {
        self.tally.open += 1;
        self.say(&format!("failed to read {}: {error}", path.display()));
    }

    fn take(&mut self, found: Found<'_>) {
        match found {
            Found::Object { place, child, json } => self.object(place, *child, json),
            Found::Odd { place, object, what } => self.complain(place, object.as_deref(), &what),
            Found::Wrong { place, object, what } => {
                self.tally.open += 1;
                self.complain(place, object.as_deref(), &what);
            }
        }
    }

    fn object(&mut self, place: Place<'_>, child: Child, json: &RawValue) {
        let findings = inspect(json.get());
        let (mut child, mut text) = (child, Cow::Borrowed(json.get()));
        let name = title(&child.meta.kind, &child.meta.namespace, &child.meta.name);
        for path in &findings.twice {
            self.complain(place, Some(&name), &format!("the key {path} is there twice; the last one counts"));
        }
        for (path, digits) in &findings.long {
            let what = format!(
                "{path}: {digits} is beyond 2^53; scripts, and peers that use floating point, see another number"
            );
            self.complain(place, Some(&name), &what);
        }
        if !findings.twice.is_empty()
            && let Some(value) = judge::decode(&text)
            && let Ok(once) = RawValue::from_string(value.to_string())
        {
            child = Child::read(&once);
            text = Cow::Owned(once.get().to_owned());
        }
        if let Some(world) = &mut self.world {
            return world.add(child, &text);
        }
        let judged = self.judge.judge(&child, &text, findings.depth);
        match judged.answer {
            Answer::Yes => self.tally.ready += 1,
            Answer::No => self.tally.not_ready += 1,
            Answer::Open => self.tally.open += 1,
            Answer::None => {}
        }
        if !self.broken_pipe {
            self.broken_pipe = self.report.add(judged).is_err();
        }
        self.progress.step();
    }

    fn complain(&mut self, place: Place<'_>, object: Option<&str>, what: &str) {
        let object = object.map(|object| format!("{object}: ")).unwrap_or_default();
        self.say(&format!("{place}: {object}{what}"));
    }

    fn say(&mut self, line: &str) {
        self.progress.clear();
        say(line);
    }
}
