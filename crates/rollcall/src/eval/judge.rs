//! Evaluates one object: the native verdict, computed as in the service, and a peer's verdict beside it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use readiness::{BoundedText, Level, Reason, RuleKind, StuckLimits, Time};
use rollcall_cel::ObjectJson;
use rollcall_core::NodeReason;
use rules::lua::{ScriptLibrary, ScriptOutcome};
use rules::{CompiledRule, PeerProfile, PeerVerdict};
use serde::Serialize;
use serde_json::Value;
use watcher::wire::{ChildObject, WireMeta};

/// A peer's rules need the object fully decoded, which recurses.
const PEER_DEPTH: usize = 1_000;

/// The verdicts on one object, as `-o json` prints them.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ManifestVerdict {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) verdict: &'static str,
    pub(super) reason: NodeReason,
    pub(super) message: String,
    pub(super) rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) profile: Option<PeerReport>,
    #[serde(skip)]
    pub(super) answer: ReadyAnswer,
}

/// A peer's verdict.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PeerReport {
    pub(super) name: &'static str,
    pub(super) status: Option<&'static str>,
    pub(super) message: String,
    /// Peer rule that decided, for people.
    #[serde(skip)]
    pub(super) rule: String,
}

/// Readiness of an object, for the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadyAnswer {
    Yes,
    No,
    /// The object could not be evaluated.
    Unevaluated,
    /// Argo CD defines no health for the object.
    NoHealth,
}

/// Evaluates objects one by one.
#[derive(Debug)]
pub(super) struct ManifestJudge {
    pub(super) profile: Option<PeerProfile>,
    pub(super) scripts: Option<ScriptLibrary>,
    /// Expressions applied to every object.
    pub(super) cel: Option<CompiledRule>,
    pub(super) limits: StuckLimits,
    pub(super) now: Time,
}

/// The parts of a native verdict.
struct NativeRuling {
    level: Level,
    reason: Reason,
    rule: String,
}

impl ManifestJudge {
    /// Evaluates an object. `depth` is the nesting depth of `json`.
    pub(super) fn judge_object(&self, child: &ChildObject, json: &str, depth: usize) -> ManifestVerdict {
        let ruling = catch_crash(|| self.judge_natively(child, json)).unwrap_or_else(|| NativeRuling {
            level: Level::Unknown,
            reason: Reason::RuleCrashed,
            rule: String::new(),
        });
        let profile = self.profile.map(|profile| self.judge_by_peer(profile, json, depth));
        let answer = profile.as_ref().map_or_else(|| native_answer(&ruling), peer_answer);
        let WireMeta { api_version, kind, namespace, name, .. } = &child.meta;
        ManifestVerdict {
            api_version: api_version.to_string(),
            kind: kind.to_string(),
            namespace: namespace.to_string(),
            name: name.to_string(),
            verdict: ruling.level.as_str(),
            message: ruling.reason.to_string(),
            reason: NodeReason::Object(ruling.reason),
            rule: ruling.rule,
            profile,
            answer,
        }
    }

    fn judge_natively(&self, child: &ChildObject, json: &str) -> NativeRuling {
        let group = api_group(&child.meta.api_version);
        let (assessment, branch) = readiness::assess_with_branch(
            RuleKind::from_group_kind(group, &child.meta.kind),
            &child.facts,
            &self.limits,
        );
        let verdict = assessment.verdict_at(self.now).clone();
        let mut ruling =
            NativeRuling { level: verdict.level, reason: verdict.reason, rule: branch.to_string() };
        if assessment.verdict.level != ruling.level {
            ruling.rule.push_str(", and that for too long");
        }
        // Deletion and an unobserved generation take precedence over the user's own rules.
        let settled = child.meta.deleted.is_some() || ruling.reason == Reason::StaleGeneration;
        if let Some(rule) = self.cel.as_ref().filter(|_| !settled) {
            let judged = rule.judge_object(ObjectJson::Text(json), self.now);
            let rules::RuleEvaluation { assessment, branch, .. } = judged;
            let readiness::Verdict { level, reason, .. } = assessment.verdict_at(self.now).clone();
            return NativeRuling { level, reason, rule: branch.to_string() };
        }
        let script = self.scripts.as_ref().filter(|_| self.profile.is_none() && !settled);
        match script.and_then(|scripts| scripts.find_script(group, &child.meta.kind)) {
            None => ruling,
            Some(Ok(script)) => {
                let outcome = script.judge_object(ObjectJson::Text(json), self.now);
                NativeRuling { rule: script_line(script.name(), outcome.line), ..ruling_from_script(outcome) }
            }
            Some(Err(error)) => NativeRuling {
                level: Level::Unknown,
                reason: Reason::RuleFailed(BoundedText::new(&error.to_string())),
                rule: script_line(&error.name, Some(error.line)),
            },
        }
    }

    fn judge_by_peer(&self, profile: PeerProfile, json: &str, depth: usize) -> PeerReport {
        let unable = |message: String| PeerReport {
            name: profile.word(),
            status: Some("Unknown"),
            message,
            rule: String::new(),
        };
        if depth > PEER_DEPTH {
            return unable(format!("nested deeper than {PEER_DEPTH} levels"));
        }
        let Some(object) = decode_json(json) else { return unable("failed to decode the object".to_owned()) };
        let (verdict, rule) = catch_crash(|| self.ask_peer(profile, &object)).unwrap_or_else(|| {
            let message = "the rule crashed".to_owned();
            (PeerVerdict { status: Some("Unknown"), message }, String::new())
        });
        PeerReport { name: profile.word(), status: verdict.status, message: verdict.message, rule }
    }

    fn ask_peer(&self, profile: PeerProfile, object: &Value) -> (PeerVerdict, String) {
        let scripts = self.scripts.as_ref().filter(|_| profile == PeerProfile::Argocd);
        if let Some(scripts) = scripts
            && let Some(outcome) = scripts.judge_object(object, self.now)
        {
            let text = |key: &str| object[key].as_str().unwrap_or_default();
            let mut rule = match scripts.find_script(api_group(text("apiVersion")), text("kind")) {
                Some(Ok(script)) => script_line(script.name(), outcome.line),
                Some(Err(error)) => script_line(&error.name, Some(error.line)),
                None => String::new(),
            };
            if !object["metadata"]["deletionTimestamp"].is_null() {
                rule.push_str("; a live Argo CD says \"Pending deletion\"");
            }
            return (outcome.verdict, rule);
        }
        let health_check = self.cel.as_ref().and_then(CompiledRule::health_check);
        // No other peer knows expressions.
        let health_check = health_check.filter(|_| profile == PeerProfile::Flux);
        if let Some((verdict, branch)) =
            health_check.and_then(|check| rules::judge_by_flux_expressions(object, check))
        {
            return (verdict, branch.to_string());
        }
        (profile.judge_object(object, None, self.now), "built in".to_owned())
    }
}

/// Returns the group of an `apiVersion`.
fn api_group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

fn script_line(script: &str, line: Option<u32>) -> String {
    line.map_or_else(|| script.to_owned(), |line| format!("{script} line {line}"))
}

/// Returns `None` if evaluation panics: that affects this object only.
fn catch_crash<T>(judging: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(judging)).ok()
}

/// Decodes JSON. Objects may legally be nested deeper than serde_json's default limit.
pub(crate) fn decode_json(json: &str) -> Option<Value> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    deserializer.disable_recursion_limit();
    serde::Deserialize::deserialize(&mut deserializer).ok()
}

/// Converts the outcome of a health script that serves as the user's own rule.
fn ruling_from_script(outcome: ScriptOutcome) -> NativeRuling {
    let PeerVerdict { status, message } = outcome.verdict;
    let reason = match (outcome.limit, outcome.failed, status) {
        (Some(_), ..) => Reason::RuleLimit(BoundedText::new(&message)),
        (None, true, _) => Reason::RuleFailed(BoundedText::new(&message)),
        (None, false, Some(status)) => Reason::from_custom_rule(status, &message),
        (None, false, None) => Reason::NoSignal,
    };
    let level = status.map_or(Level::Unknown, rules::level_from_word);
    NativeRuling { level, reason, rule: String::new() }
}

fn native_answer(ruling: &NativeRuling) -> ReadyAnswer {
    match (ruling.level, &ruling.reason) {
        (Level::Ready, _) => ReadyAnswer::Yes,
        (_, Reason::RuleCrashed | Reason::RuleFailed(_) | Reason::RuleLimit(_)) => ReadyAnswer::Unevaluated,
        _ => ReadyAnswer::No,
    }
}

fn peer_answer(peer: &PeerReport) -> ReadyAnswer {
    match peer.status {
        Some("Current" | "Healthy") => ReadyAnswer::Yes,
        Some("Unknown") => ReadyAnswer::Unevaluated,
        Some(_) => ReadyAnswer::No,
        None => ReadyAnswer::NoHealth,
    }
}
