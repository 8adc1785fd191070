//! A rule of the user's own, whatever it is written in: compiled once, asked of each object.
//!
//! **Words.** What a peer, a script or an expression says becomes one of Rollcall's levels; the reason's token is the
//! word itself.
//!
//! | said | level |
//! |---|---|
//! | `Current`, `Healthy` | Ready |
//! | `InProgress`, `Progressing` | Progressing |
//! | `Failed`, `Degraded` | Failed |
//! | `Suspended` | Suspended |
//! | `Terminating` | Terminating |
//! | `Missing`, `NotFound` | Missing |
//! | `Unknown` | Unknown (`SaysUnknown`) |
//! | nothing: a script's `nil`, Argo CD on a kind that it has no rule for | Unknown (`NoSignal`) |
//!
//! A rule that cannot be evaluated is Unknown: `RuleFailed`, with what went wrong; `RuleLimit`, where a bound stopped it;
//! `RuleCrashed`, should the code behind it panic. A field that is not there is an error to Flux, and so here; to kro it is a
//! reason to wait, so that `readyWhen` is Progressing then.
//!
//! A rule judges what the object says. That it is being deleted is for the caller to see first.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use readiness::{Assessment, Level, Reason, Text, Time, Verdict};
use serde_json::Value;

use crate::branch::Branch;
use crate::cel::{self, CompileError, EvalError, Health, HealthCheck, ReadyWhen};
use crate::lua::{Library, Object, Outcome, Script};
use crate::{Gvk, PeerVerdict, Profile};

/// What a rule is compiled from.
#[derive(Clone, Debug)]
pub enum Spec<'s> {
    /// Expressions in the shape of Flux's `healthCheckExprs`.
    Cel {
        /// True where it is ready.
        current: &'s str,
        /// True where it is on its way.
        in_progress: Option<&'s str>,
        /// True where it failed.
        failed: Option<&'s str>,
    },
    /// Expressions in the shape of kro's `readyWhen`.
    ReadyWhen {
        /// All of which must be true.
        expressions: &'s [&'s str],
        /// The name of the object in them; without one its fields are known by their own names.
        id: Option<&'s str>,
    },
    /// A script in the shape of Argo CD's `health.lua`, with Lua's own libraries at hand.
    Lua {
        /// What it is called in messages.
        name: &'s str,
        /// The script.
        source: &'s str,
    },
    /// A peer's verdict.
    Profile(Profile),
    /// A library of scripts, such as `argocd-cm`: the one for the object's kind.
    Library {
        /// What it is called in messages.
        name: &'s str,
        /// The scripts.
        scripts: Arc<Library>,
    },
}

/// A rule that can be asked, on any thread. Bounded in time and memory, whatever it does.
#[derive(Debug)]
pub struct Rule(Compiled);

#[derive(Debug)]
enum Compiled {
    Cel(HealthCheck),
    ReadyWhen(ReadyWhen),
    Lua(Script),
    Profile(Profile),
    Library { name: Box<str>, scripts: Arc<Library> },
}

/// Why a rule is none, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// Which part of the rule: `current`, `inProgress`, `failed`, `readyWhen[1]`, or the name of the script.
    pub part: String,
    /// From 1.
    pub line: u32,
    /// From 1, in characters; 1 for a script, whose compiler knows lines only.
    pub column: u32,
    /// What is wrong there.
    pub message: String,
    /// Not wrong, but more than is taken.
    pub limit: bool,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.part, self.line, self.column, self.message)
    }
}

impl std::error::Error for RuleError {}

impl RuleError {
    fn cel(part: String, error: CompileError) -> RuleError {
        let CompileError { line, column, message, limit } = error;
        RuleError { part, line, column, message, limit }
    }

    /// What an object is whose rule this was to be.
    pub fn verdict(&self) -> Verdict {
        let text = Text::new(&self.to_string());
        let reason = if self.limit { Reason::RuleLimit(text) } else { Reason::RuleFailed(text) };
        Verdict { level: Level::Unknown, reason }
    }
}

/// What a rule says of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged<'r> {
    /// The verdict.
    pub assessment: Assessment,
    /// The branch that decided.
    pub branch: Branch<'r>,
}

impl Rule {
    /// Compiles a rule. Everything that can be found without an object is found here.
    pub fn compile(spec: &Spec<'_>) -> Result<Rule, RuleError> {
        Ok(Rule(match spec {
            Spec::Cel { current, in_progress, failed } => {
                let check = HealthCheck::compile(current, *in_progress, *failed);
                Compiled::Cel(check.map_err(|(name, error)| RuleError::cel(name.to_owned(), error))?)
            }
            Spec::ReadyWhen { expressions, id } => {
                let ready = ReadyWhen::compile(expressions, *id);
                Compiled::ReadyWhen(
                    ready.map_err(|(at, error)| RuleError::cel(format!("readyWhen[{at}]"), error))?,
                )
            }
            Spec::Lua { name, source } => {
                let script = Script::compile(name, source, true).map_err(|error| RuleError {
                    part: error.name,
                    line: error.line,
                    column: 1,
                    limit: error.message.starts_with("longer than"),
                    message: error.message,
                })?;
                Compiled::Lua(script)
            }
            Spec::Profile(profile) => Compiled::Profile(*profile),
            Spec::Library { name, scripts } => {
                Compiled::Library { name: (*name).into(), scripts: Arc::clone(scripts) }
            }
        }))
    }

    /// The top-level fields that it reads of an object; `None` for all of them, or for what is known only when it runs.
    pub fn fields(&self) -> Option<Vec<&str>> {
        match &self.0 {
            Compiled::Cel(check) => check.fields(),
            Compiled::ReadyWhen(ready) => ready.fields(),
            Compiled::Lua(_) | Compiled::Profile(_) | Compiled::Library { .. } => None,
        }
    }

    /// Judges an object at `now`. Never panics, never runs for long.
    pub fn judge(&self, object: Object<'_>, now: Time) -> Judged<'_> {
        catch_unwind(AssertUnwindSafe(|| self.ask(object, now)))
            .unwrap_or_else(|_| Judged::new(Level::Unknown, Reason::RuleCrashed, Branch::Trouble))
    }

    fn ask(&self, object: Object<'_>, now: Time) -> Judged<'_> {
        match &self.0 {
            Compiled::Cel(check) => health(check, object),
            Compiled::ReadyWhen(ready) => ready_when(ready, object),
            Compiled::Lua(script) => said(script.name(), &script.judge(object, now)),
            Compiled::Profile(profile) => match whole(object) {
                Ok(value) => Judged {
                    assessment: verdict(&profile.judge(value.as_ref(), None, now)).into(),
                    branch: Branch::Peer(*profile),
                },
                Err(error) => Judged::failed(&error),
            },
            Compiled::Library { name, scripts } => library(name, scripts, object, now),
        }
    }
}

impl Judged<'_> {
    fn new(level: Level, reason: Reason, branch: Branch<'_>) -> Judged<'_> {
        Judged { assessment: Verdict { level, reason }.into(), branch }
    }

    fn failed(words: &str) -> Self {
        Judged::new(Level::Unknown, Reason::RuleFailed(Text::new(words)), Branch::Trouble)
    }

    fn trouble(part: &str, error: &EvalError) -> Self {
        let words = if part.is_empty() { error.to_string() } else { format!("{part}: {error}") };
        let text = Text::new(&words);
        let reason = if error.limit.is_some() { Reason::RuleLimit(text) } else { Reason::RuleFailed(text) };
        Judged::new(Level::Unknown, reason, Branch::Trouble)
    }
}

fn health(check: &HealthCheck, object: Object<'_>) -> Judged<'static> {
    match check.judge(object) {
        Ok(Health::Current) => Judged::new(Level::Ready, Reason::Ready, Branch::True("current")),
        Ok(Health::Stale { observed, generation }) => Judged::new(
            Level::Progressing,
            Reason::StaleGeneration,
            Branch::Generation { observed, generation },
        ),
        Ok(Health::InProgress) => Judged::new(
            Level::Progressing,
            Reason::custom("InProgress", "in progress by its rule"),
            Branch::True("inProgress"),
        ),
        Ok(Health::Failed) => {
            Judged::new(Level::Failed, Reason::custom("Failed", "failed by its rule"), Branch::True("failed"))
        }
        Ok(Health::None) => Judged::new(
            Level::Progressing,
            Reason::custom("InProgress", "not ready by its rule"),
            Branch::NoneTrue,
        ),
        Err((part, error)) => Judged::trouble(part, &error),
    }
}

fn ready_when(ready: &ReadyWhen, object: Object<'_>) -> Judged<'static> {
    match ready.judge(object) {
        Ok(None) => Judged::new(Level::Ready, Reason::Ready, Branch::AllTrue),
        Ok(Some(at)) => {
            let reason = Reason::custom("InProgress", "not ready by its rule");
            Judged::new(Level::Progressing, reason, Branch::NotTrue(at))
        }
        Err((at, error)) if error.absent => {
            let reason = Reason::custom("InProgress", &format!("waiting for what its rule asks: {error}"));
            Judged::new(Level::Progressing, reason, Branch::NotTrue(at))
        }
        Err((at, error)) => Judged::trouble(&format!("readyWhen[{at}]"), &error),
    }
}

/// What a script's call came to.
fn said<'r>(name: &'r str, outcome: &Outcome) -> Judged<'r> {
    let branch = Branch::Script(name, outcome.line);
    let reason = match (outcome.limit, outcome.failed) {
        (Some(_), _) => Reason::RuleLimit(Text::new(&outcome.verdict.message)),
        (None, true) => Reason::RuleFailed(Text::new(&outcome.verdict.message)),
        (None, false) => return Judged { assessment: verdict(&outcome.verdict).into(), branch },
    };
    Judged::new(Level::Unknown, reason, branch)
}

fn library<'r>(name: &str, scripts: &'r Library, object: Object<'_>, now: Time) -> Judged<'r> {
    let (api_version, kind) = match cel::type_of(object) {
        Ok(of) => of,
        Err(error) => return Judged::trouble("", &error),
    };
    let gvk = Gvk::new(&api_version, &kind);
    match scripts.script(gvk.group, gvk.kind) {
        Some(Ok(script)) => said(script.name(), &script.judge(object, now)),
        Some(Err(error)) => Judged::failed(&error.to_string()),
        None => {
            let place = scripts.place(gvk.group, gvk.kind);
            Judged::failed(&format!(
                "{name} has no script for {kind} of {api_version}: no {place}, no wildcard"
            ))
        }
    }
}

/// The object as the peers' rules read it.
fn whole(object: Object<'_>) -> Result<std::borrow::Cow<'_, Value>, String> {
    match object {
        Object::Tree(tree) => Ok(std::borrow::Cow::Borrowed(tree)),
        Object::Text(text) => serde_json::from_str(text)
            .map(std::borrow::Cow::Owned)
            .map_err(|error| format!("the object cannot be read: {error}")),
    }
}

/// A peer's word as a verdict.
fn verdict(peer: &PeerVerdict) -> Verdict {
    let Some(word) = peer.status else { return Verdict { level: Level::Unknown, reason: Reason::NoSignal } };
    let level = level(word);
    let reason = match level {
        Level::Unknown => Reason::SaysUnknown(Text::foreign(&peer.message)),
        Level::Ready if peer.message.is_empty() => Reason::Ready,
        _ => Reason::custom(word, &peer.message),
    };
    Verdict { level, reason }
}

/// The level that a peer's word stands for. A word that no peer has is Unknown.
pub fn level(word: &str) -> Level {
    match word {
        "Current" | "Healthy" => Level::Ready,
        "InProgress" | "Progressing" => Level::Progressing,
        "Failed" | "Degraded" => Level::Failed,
        "Suspended" => Level::Suspended,
        "Terminating" => Level::Terminating,
        "Missing" | "NotFound" => Level::Missing,
        _ => Level::Unknown,
    }
}

#[cfg(test)]
mod tests;
