//! One object: the native verdict, by the same way as in the service, and a peer's beside it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use readiness::{Kind, Level, Limits, Reason, Text, Time};
use rules::lua::{Library, Object, Outcome};
use rules::{PeerVerdict, Profile, Rule};
use serde::Serialize;
use serde_json::Value;
use watcher::wire::{Child, Meta};

/// What a peer is given is decoded whole, and that recurses.
const PEER_DEPTH: usize = 1_000;

/// The verdicts on one object, as `-o json` prints them.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Judged {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) verdict: &'static str,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) profile: Option<Peer>,
    #[serde(skip)]
    pub(super) answer: Answer,
}

/// A peer's word.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Peer {
    pub(super) name: &'static str,
    pub(super) status: Option<&'static str>,
    pub(super) message: String,
    /// Which rule of the peer's decided, for people.
    #[serde(skip)]
    pub(super) rule: String,
}

/// Is it ready?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    /// It could not be evaluated.
    Open,
    /// Argo CD has no health for it.
    None,
}

/// Judges objects one after the other.
#[derive(Debug)]
pub(super) struct Judge {
    pub(super) profile: Option<Profile>,
    pub(super) scripts: Option<Library>,
    /// Expressions for every object.
    pub(super) cel: Option<Rule>,
    pub(super) limits: Limits,
    pub(super) now: Time,
}

/// A verdict in its parts.
struct Ruling {
    level: Level,
    reason: Reason,
    rule: String,
}

impl Judge {
    /// `depth` is how deep `json` is nested.
    pub(super) fn judge(&self, child: &Child, json: &str, depth: usize) -> Judged {
        let ruling = guarded(|| self.native(child, json)).unwrap_or_else(|| Ruling {
            level: Level::Unknown,
            reason: Reason::RuleCrashed,
            rule: String::new(),
        });
        let profile = self.profile.map(|profile| self.peer(profile, json, depth));
        let answer = profile.as_ref().map_or_else(|| native_answer(&ruling), peer_answer);
        let Meta { api_version, kind, namespace, name, .. } = &child.meta;
        Judged {
            api_version: api_version.to_string(),
            kind: kind.to_string(),
            namespace: namespace.to_string(),
            name: name.to_string(),
            verdict: ruling.level.word(),
            reason: ruling.reason.token().to_owned(),
            message: ruling.reason.to_string(),
            rule: ruling.rule,
            profile,
            answer,
        }
    }

    fn native(&self, child: &Child, json: &str) -> Ruling {
        let group = group(&child.meta.api_version);
        let (assessment, branch) =
            readiness::why(Kind::of(group, &child.meta.kind), &child.facts, &self.limits);
        let verdict = assessment.at(self.now).clone();
        let mut ruling = Ruling { level: verdict.level, reason: verdict.reason, rule: branch.to_string() };
        if assessment.verdict.level != ruling.level {
            ruling.rule.push_str(", and that for too long");
        }
        // Deletion and a generation that was not seen go before any rule of the user's own.
        let settled = child.meta.deleted.is_some() || ruling.reason == Reason::StaleGeneration;
        if let Some(rule) = self.cel.as_ref().filter(|_| !settled) {
            let judged = rule.judge(Object::Text(json), self.now);
            let rules::Judged { assessment, branch } = judged;
            let readiness::Verdict { level, reason } = assessment.at(self.now).clone();
            return Ruling { level, reason, rule: branch.to_string() };
        }
        let script = self.scripts.as_ref().filter(|_| self.profile.is_none() && !settled);
        match script.and_then(|scripts| scripts.script(group, &child.meta.kind)) {
            None => ruling,
            Some(Ok(script)) => {
                let outcome = script.judge(Object::Text(json), self.now);
                Ruling { rule: place(script.name(), outcome.line), ..said(outcome) }
            }
            Some(Err(error)) => Ruling {
                level: Level::Unknown,
                reason: Reason::RuleFailed(Text::new(&error.to_string())),
                rule: place(&error.name, Some(error.line)),
            },
        }
    }

    fn peer(&self, profile: Profile, json: &str, depth: usize) -> Peer {
        let unable = |message: String| Peer {
            name: profile.word(),
            status: Some("Unknown"),
            message,
            rule: String::new(),
        };
        if depth > PEER_DEPTH {
            return unable(format!("nested deeper than {PEER_DEPTH} levels"));
        }
        let Some(object) = decode(json) else { return unable("failed to decode it whole".to_owned()) };
        let (verdict, rule) = guarded(|| self.ask(profile, &object)).unwrap_or_else(|| {
            let message = "the rule crashed".to_owned();
            (PeerVerdict { status: Some("Unknown"), message }, String::new())
        });
        Peer { name: profile.word(), status: verdict.status, message: verdict.message, rule }
    }

    fn ask(&self, profile: Profile, object: &Value) -> (PeerVerdict, String) {
        let scripts = self.scripts.as_ref().filter(|_| profile == Profile::Argocd);
        if let Some(scripts) = scripts
            && let Some(outcome) = scripts.judge(object, self.now)
        {
            let text = |key: &str| object[key].as_str().unwrap_or_default();
            let mut rule = match scripts.script(group(text("apiVersion")), text("kind")) {
                Some(Ok(script)) => place(script.name(), outcome.line),
                Some(Err(error)) => place(&error.name, Some(error.line)),
                None => String::new(),
            };
            if !object["metadata"]["deletionTimestamp"].is_null() {
                rule.push_str("; a live Argo CD says \"Pending deletion\"");
            }
            return (outcome.verdict, rule);
        }
        (profile.judge(object, None, self.now), "built in".to_owned())
    }
}

/// The group of an `apiVersion`.
fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

fn place(script: &str, line: Option<u32>) -> String {
    line.map_or_else(|| script.to_owned(), |line| format!("{script} line {line}"))
}

/// `None` where judging crashed: that concerns this object only.
fn guarded<T>(judging: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(judging)).ok()
}

/// Objects are nested deeper than serde_json's own limit, and legally so.
pub(crate) fn decode(json: &str) -> Option<Value> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    deserializer.disable_recursion_limit();
    serde::Deserialize::deserialize(&mut deserializer).ok()
}

/// The verdict that a health script stands for where it is the user's own rule.
fn said(outcome: Outcome) -> Ruling {
    let PeerVerdict { status, message } = outcome.verdict;
    let reason = match (outcome.limit, outcome.failed, status) {
        (Some(_), ..) => Reason::RuleLimit(Text::new(&message)),
        (None, true, _) => Reason::RuleFailed(Text::new(&message)),
        (None, false, Some(status)) => Reason::custom(status, &message),
        (None, false, None) => Reason::NoSignal,
    };
    let level = status.map_or(Level::Unknown, rules::level);
    Ruling { level, reason, rule: String::new() }
}

fn native_answer(ruling: &Ruling) -> Answer {
    match (ruling.level, &ruling.reason) {
        (Level::Ready, _) => Answer::Yes,
        (_, Reason::RuleCrashed | Reason::RuleFailed(_) | Reason::RuleLimit(_)) => Answer::Open,
        _ => Answer::No,
    }
}

fn peer_answer(peer: &Peer) -> Answer {
    match peer.status {
        Some("Current" | "Healthy") => Answer::Yes,
        Some("Unknown") => Answer::Open,
        Some(_) => Answer::No,
        None => Answer::None,
    }
}
