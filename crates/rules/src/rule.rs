//! A user's rule in any of its languages: compiled once, evaluated for each object.
//!
//! **Levels.** The status word of a peer, script or expression is mapped to one of Rollcall's levels; the reason's
//! token is the word itself.
//!
//! | status | level |
//! |---|---|
//! | `Current`, `Healthy` | Ready |
//! | `InProgress`, `Progressing` | Progressing |
//! | `Failed`, `Degraded` | Failed |
//! | `Suspended` | Suspended |
//! | `Terminating` | Terminating |
//! | `Missing`, `NotFound` | Missing |
//! | `Unknown` | Unknown (`SaysUnknown`) |
//! | none: a script's `nil`, Argo CD on a kind that it has no rule for | Unknown (`NoSignal`) |
//!
//! A rule that cannot be evaluated is Unknown: `RuleFailed`, with the error; `RuleLimit`, if a limit stopped it;
//! `RuleCrashed`, should the code behind it panic. An absent field is an error to Flux, and so here; to kro it is a
//! reason to wait, so that `readyWhen` is Progressing then.
//!
//! A rule evaluates the content of the object. The caller must check first if it is being deleted.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use readiness::{Assessment, BoundedText, Level, Reason, Time, Verdict};
use rollcall_cel::{CompileError, EvalError, HealthCheck, HealthCheckResult, ObjectJson, ReadyWhen};
use serde_json::Value;

use crate::branch::RuleBranch;
use crate::lua::{HealthScript, ScriptLibrary, ScriptOutcome};
use crate::{ObjectGvk, PeerProfile, PeerVerdict};

/// Source of a rule.
#[derive(Clone, Debug)]
pub enum RuleDefinition<'s> {
    /// Expressions in the shape of Flux's `healthCheckExprs`.
    Cel {
        /// True if the object is ready.
        current: &'s str,
        /// True if the object is in progress.
        in_progress: Option<&'s str>,
        /// True if the object has failed.
        failed: Option<&'s str>,
    },
    /// Expressions in the shape of kro's `readyWhen`.
    ReadyWhen {
        /// Expressions that must all be true.
        expressions: &'s [&'s str],
        /// Name of the object in them; without one its top-level fields are names of their own.
        id: Option<&'s str>,
    },
    /// A script in the shape of Argo CD's `health.lua`, with Lua's standard libraries.
    Lua {
        /// Name of the script in messages.
        name: &'s str,
        /// The script.
        source: &'s str,
    },
    /// A peer's verdict.
    Profile(PeerProfile),
    /// A library of scripts, such as `argocd-cm`: the script for the object's kind is used.
    Library {
        /// Name of the library in messages.
        name: &'s str,
        /// The scripts.
        scripts: Arc<ScriptLibrary>,
    },
}

/// A compiled rule, usable on any thread. Bounded in time and memory.
#[derive(Debug)]
pub struct CompiledRule(RuleProgram);

#[derive(Debug)]
enum RuleProgram {
    Cel(HealthCheck),
    ReadyWhen(ReadyWhen),
    Lua(HealthScript),
    Profile(PeerProfile),
    Library { name: Box<str>, scripts: Arc<ScriptLibrary> },
}

/// A rule that does not compile, with the position of the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// Part of the rule: `current`, `inProgress`, `failed`, `readyWhen[1]`, or the name of the script.
    pub part: String,
    /// 1-based line.
    pub line: u32,
    /// 1-based column, in characters; 1 for a script, whose compiler reports lines only.
    pub column: u32,
    /// Description of the error.
    pub message: String,
    /// `true` if the rule is valid but exceeds a limit.
    pub limit: bool,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.part, self.line, self.column, self.message)
    }
}

impl std::error::Error for RuleError {}

impl RuleError {
    fn from_cel(part: String, error: CompileError) -> RuleError {
        let CompileError { line, column, message, limit } = error;
        RuleError { part, line, column, message, limit }
    }

    /// Returns the verdict on an object whose rule did not compile.
    pub fn to_verdict(&self) -> Verdict {
        let text = BoundedText::new(&self.to_string());
        let reason = if self.limit { Reason::RuleLimit(text) } else { Reason::RuleFailed(text) };
        Verdict::new(Level::Unknown, reason)
    }
}

/// Result of a rule for one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleEvaluation<'r> {
    /// The verdict.
    pub assessment: Assessment,
    /// The branch that decided.
    pub branch: RuleBranch<'r>,
    /// `true` if the rule asked for the time: the same object may get another verdict later.
    pub reads_clock: bool,
}

impl CompiledRule {
    /// Compiles a rule. Every error that can be found without an object is found here.
    pub fn compile(spec: &RuleDefinition<'_>) -> Result<CompiledRule, RuleError> {
        Ok(CompiledRule(match spec {
            RuleDefinition::Cel { current, in_progress, failed } => {
                let check = HealthCheck::compile(current, *in_progress, *failed);
                RuleProgram::Cel(check.map_err(|(name, error)| RuleError::from_cel(name.to_owned(), error))?)
            }
            RuleDefinition::ReadyWhen { expressions, id } => {
                let ready = ReadyWhen::compile(expressions, *id);
                RuleProgram::ReadyWhen(
                    ready.map_err(|(at, error)| RuleError::from_cel(format!("readyWhen[{at}]"), error))?,
                )
            }
            RuleDefinition::Lua { name, source } => {
                let script = HealthScript::compile(name, source, true).map_err(|error| RuleError {
                    part: error.name,
                    line: error.line,
                    column: 1,
                    limit: error.message.starts_with("longer than"),
                    message: error.message,
                })?;
                RuleProgram::Lua(script)
            }
            RuleDefinition::Profile(profile) => RuleProgram::Profile(*profile),
            RuleDefinition::Library { name, scripts } => {
                RuleProgram::Library { name: (*name).into(), scripts: Arc::clone(scripts) }
            }
        }))
    }

    /// Returns the top-level fields that the rule reads; `None` for all of them, or if they are known only at run time.
    pub fn referenced_fields(&self) -> Option<Vec<&str>> {
        match &self.0 {
            RuleProgram::Cel(check) => check.referenced_fields(),
            RuleProgram::ReadyWhen(ready) => ready.referenced_fields(),
            RuleProgram::Lua(_) | RuleProgram::Profile(_) | RuleProgram::Library { .. } => None,
        }
    }

    /// Returns the compiled `healthCheckExprs`, if the rule is in their shape.
    pub fn health_check(&self) -> Option<&HealthCheck> {
        match &self.0 {
            RuleProgram::Cel(check) => Some(check),
            _ => None,
        }
    }

    /// Evaluates an object at `now`. Never panics and is bounded in time.
    pub fn judge_object(&self, object: ObjectJson<'_>, now: Time) -> RuleEvaluation<'_> {
        catch_unwind(AssertUnwindSafe(|| self.judge_unguarded(object, now))).unwrap_or_else(|_| {
            RuleEvaluation::new(Level::Unknown, Reason::RuleCrashed, RuleBranch::RuleFailed)
        })
    }

    fn judge_unguarded(&self, object: ObjectJson<'_>, now: Time) -> RuleEvaluation<'_> {
        match &self.0 {
            RuleProgram::Cel(check) => judge_health_check(check, object),
            RuleProgram::ReadyWhen(ready) => judge_ready_when(ready, object),
            RuleProgram::Lua(script) => evaluate_outcome(script.name(), &script.judge_object(object, now)),
            RuleProgram::Profile(profile) => match decode_whole(object) {
                Ok(value) => RuleEvaluation {
                    assessment: verdict_from_peer(&profile.judge_object(value.as_ref(), None, now)).into(),
                    branch: RuleBranch::Peer(*profile),
                    // The one verdict that a profile changes with time is that of a pod which cannot be scheduled, and
                    // which is not ready before either.
                    reads_clock: false,
                },
                Err(error) => RuleEvaluation::from_failure(&error),
            },
            RuleProgram::Library { name, scripts } => judge_by_library(name, scripts, object, now),
        }
    }
}

impl RuleEvaluation<'_> {
    fn new(level: Level, reason: Reason, branch: RuleBranch<'_>) -> RuleEvaluation<'_> {
        RuleEvaluation { assessment: Verdict::new(level, reason).into(), branch, reads_clock: false }
    }

    fn from_failure(words: &str) -> Self {
        RuleEvaluation::new(
            Level::Unknown,
            Reason::RuleFailed(BoundedText::new(words)),
            RuleBranch::RuleFailed,
        )
    }

    fn from_eval_error(part: &str, error: &EvalError) -> Self {
        let words = if part.is_empty() { error.to_string() } else { format!("{part}: {error}") };
        let text = BoundedText::new(&words);
        let reason = if error.limit.is_some() { Reason::RuleLimit(text) } else { Reason::RuleFailed(text) };
        RuleEvaluation::new(Level::Unknown, reason, RuleBranch::RuleFailed)
    }
}

fn judge_health_check(check: &HealthCheck, object: ObjectJson<'_>) -> RuleEvaluation<'static> {
    match check.evaluate_health(object) {
        Ok(HealthCheckResult::Current) => {
            RuleEvaluation::new(Level::Ready, Reason::Ready, RuleBranch::True("current"))
        }
        Ok(HealthCheckResult::Stale { observed, generation }) => RuleEvaluation::new(
            Level::Progressing,
            Reason::StaleGeneration,
            RuleBranch::Generation { observed, generation },
        ),
        Ok(HealthCheckResult::InProgress) => RuleEvaluation::new(
            Level::Progressing,
            Reason::from_custom_rule("InProgress", "in progress by its rule"),
            RuleBranch::True("inProgress"),
        ),
        Ok(HealthCheckResult::Failed) => RuleEvaluation::new(
            Level::Failed,
            Reason::from_custom_rule("Failed", "failed by its rule"),
            RuleBranch::True("failed"),
        ),
        Ok(HealthCheckResult::None) => RuleEvaluation::new(
            Level::Progressing,
            Reason::from_custom_rule("InProgress", "not ready by its rule"),
            RuleBranch::NoneTrue,
        ),
        Err((part, error)) => RuleEvaluation::from_eval_error(part, &error),
    }
}

fn judge_ready_when(ready: &ReadyWhen, object: ObjectJson<'_>) -> RuleEvaluation<'static> {
    match ready.find_unmet(object) {
        Ok(None) => RuleEvaluation::new(Level::Ready, Reason::Ready, RuleBranch::AllTrue),
        Ok(Some(at)) => {
            let reason = Reason::from_custom_rule("InProgress", "not ready by its rule");
            RuleEvaluation::new(Level::Progressing, reason, RuleBranch::NotTrue(at))
        }
        Err((at, error)) if error.absent => {
            let reason =
                Reason::from_custom_rule("InProgress", &format!("waiting for what its rule asks: {error}"));
            RuleEvaluation::new(Level::Progressing, reason, RuleBranch::NotTrue(at))
        }
        Err((at, error)) => RuleEvaluation::from_eval_error(&format!("readyWhen[{at}]"), &error),
    }
}

/// Converts the outcome of a script call.
fn evaluate_outcome<'r>(name: &'r str, outcome: &ScriptOutcome) -> RuleEvaluation<'r> {
    let branch = RuleBranch::Script(name, outcome.line);
    let text = || BoundedText::new(&outcome.verdict.message);
    let verdict = match (outcome.limit, outcome.failed) {
        (Some(_), _) => Verdict::new(Level::Unknown, Reason::RuleLimit(text())),
        (None, true) => Verdict::new(Level::Unknown, Reason::RuleFailed(text())),
        (None, false) => verdict_from_peer(&outcome.verdict),
    };
    RuleEvaluation { assessment: verdict.into(), branch, reads_clock: outcome.reads_clock }
}

fn judge_by_library<'r>(
    name: &str,
    scripts: &'r ScriptLibrary,
    object: ObjectJson<'_>,
    now: Time,
) -> RuleEvaluation<'r> {
    let (api_version, kind) = match rollcall_cel::read_type_meta(object) {
        Ok(of) => of,
        Err(error) => return RuleEvaluation::from_eval_error("", &error),
    };
    let gvk = ObjectGvk::new(&api_version, &kind);
    match scripts.find_script(gvk.group, gvk.kind) {
        Some(Ok(script)) => evaluate_outcome(script.name(), &script.judge_object(object, now)),
        Some(Err(error)) => RuleEvaluation::from_failure(&error.to_string()),
        None => {
            let place = scripts.script_location(gvk.group, gvk.kind);
            RuleEvaluation::from_failure(&format!(
                "{name} has no script for {kind} of {api_version}: no {place}, no wildcard"
            ))
        }
    }
}

/// Decodes the object in full, as the peers' rules need it.
fn decode_whole(object: ObjectJson<'_>) -> Result<std::borrow::Cow<'_, Value>, String> {
    match object {
        ObjectJson::Tree(tree) => Ok(std::borrow::Cow::Borrowed(tree)),
        ObjectJson::Text(text) => serde_json::from_str(text)
            .map(std::borrow::Cow::Owned)
            .map_err(|error| format!("the object cannot be read: {error}")),
    }
}

/// Converts a peer's verdict.
fn verdict_from_peer(peer: &PeerVerdict) -> Verdict {
    let Some(word) = peer.status else { return Verdict::new(Level::Unknown, Reason::NoSignal) };
    let level = level_from_word(word);
    let reason = match level {
        Level::Unknown => Reason::SaysUnknown(BoundedText::from_foreign(&peer.message)),
        Level::Ready if peer.message.is_empty() => Reason::Ready,
        _ => Reason::from_custom_rule(word, &peer.message),
    };
    Verdict::new(level, reason)
}

/// Returns the level of a peer's status word. An unknown word is Unknown.
pub fn level_from_word(word: &str) -> Level {
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
