//! Argo CD's health of one object: a matching script, then deletion, then the rule for its kind, else no health.
//!
//! Status and message are Argo CD's own words, except where its message is a Go error: there the words are ours. The
//! kinds are those of its built-in Go rules and the three core kinds whose rule is a script that ships with it; a
//! script library that is given goes before these.

mod kinds;
mod types;
mod workloads;

use readiness::Time;
use serde_json::{Number, Value};

use crate::json::{self, Gvk};
use crate::{PeerVerdict, rfc3339};

const HEALTHY: &str = "Healthy";
const PROGRESSING: &str = "Progressing";
const DEGRADED: &str = "Degraded";
const SUSPENDED: &str = "Suspended";
const UNKNOWN: &str = "Unknown";

const HOOK_FINALIZER: &str = "argocd.argoproj.io/hook-finalizer";

/// What is said of an object no script matches.
pub(crate) fn built_in(object: &Value) -> PeerVerdict {
    if deleting(object) && !is_hook_kept(object) {
        return health(PROGRESSING, "Pending deletion");
    }
    by_kind(object).unwrap_or_else(|| PeerVerdict { status: None, message: String::new() })
}

fn health(status: &'static str, message: impl Into<String>) -> PeerVerdict {
    PeerVerdict { status: Some(status), message: message.into() }
}

/// A timestamp that does not parse, or is Go's zero time, is none.
fn deleting(object: &Value) -> bool {
    const ZERO: Time = Time(-62_135_596_800_000);
    rfc3339::parse(text(object, &["metadata", "deletionTimestamp"])).is_some_and(|at| at != ZERO)
}

/// Whether Argo CD itself holds the object: it then judges its end rather than its deletion.
fn is_hook_kept(object: &Value) -> bool {
    let finalizers = list(object, &["metadata", "finalizers"]);
    finalizers.iter().all(Value::is_string) && finalizers.iter().any(|f| f == HOOK_FINALIZER)
}

/// A rule for the objects of one kind, called once the object is known to convert to its type.
type Rule = fn(&Value) -> PeerVerdict;

fn by_kind(object: &Value) -> Option<PeerVerdict> {
    let gvk = Gvk::of(object);
    let (versions, rule): (&[(&str, &str)], Rule) = match (gvk.group, gvk.kind) {
        ("apps", "Deployment") => (&[("v1", "apps/v1.Deployment")], workloads::deployment),
        ("apps", "StatefulSet") => (&[("v1", "apps/v1.StatefulSet")], workloads::stateful_set),
        ("apps", "ReplicaSet") => (&[("v1", "apps/v1.ReplicaSet")], workloads::replica_set),
        ("apps", "DaemonSet") => (&[("v1", "apps/v1.DaemonSet")], workloads::daemon_set),
        ("batch", "Job") => (&[("v1", "batch/v1.Job")], workloads::job),
        ("", "Pod") => (&[("v1", "core/v1.Pod")], workloads::pod),
        ("", "Service") => (&[("v1", "core/v1.Service")], kinds::service),
        ("", "PersistentVolumeClaim") => (&[("v1", "core/v1.PersistentVolumeClaim")], kinds::claim),
        ("apiregistration.k8s.io", "APIService") => (
            &[("v1", "apiregistration/v1.APIService"), ("v1beta1", "apiregistration/v1beta1.APIService")],
            kinds::api_service,
        ),
        ("autoscaling", "HorizontalPodAutoscaler") => (
            &[
                ("v1", "autoscaling/v1.HorizontalPodAutoscaler"),
                ("v2", "autoscaling/v2.HorizontalPodAutoscaler"),
            ],
            kinds::autoscaler,
        ),
        ("extensions" | "networking.k8s.io", "Ingress") => return Some(kinds::ingress(object)),
        ("argoproj.io", "Workflow") => return Some(kinds::workflow(object)),
        ("batch", "CronJob") => return Some(kinds::cron_job(object)),
        ("policy", "PodDisruptionBudget") => return Some(kinds::disruption_budget(object)),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => return Some(kinds::definition(object)),
        _ => return None,
    };
    let Some((_, name)) = versions.iter().find(|(version, _)| *version == gvk.version) else {
        return Some(health(UNKNOWN, format!("version {} of {} is not supported", gvk.version, gvk.kind)));
    };
    Some(match types::check(object, name) {
        Ok(()) => rule(object),
        Err(mismatch) => health(UNKNOWN, format!("failed to convert the {}: {mismatch}", gvk.kind)),
    })
}

/// The string at `path`, empty where there is none.
fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    json::string_or(object, path, "")
}

/// The list at `path`, empty where there is none.
fn list<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    match json::field(object, path) {
        Ok(Some(Value::Array(items))) => items,
        _ => &[],
    }
}

/// The number at `path` as Go's conversion to int64 makes it.
fn long(object: &Value, path: &[&str]) -> Option<i64> {
    match json::field(object, path) {
        Ok(Some(Value::Number(number))) => Some(go_integer(number)),
        _ => None,
    }
}

/// The number at `path` as Go's conversion to int32 makes it: higher bits are dropped without a word.
fn int(object: &Value, path: &[&str]) -> Option<i32> {
    long(object, path).map(|number| number as i32)
}

fn go_integer(number: &Number) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => whole,
        (None, Some(float)) if (-LIMIT..LIMIT).contains(&float) => float as i64,
        _ => i64::MIN,
    }
}

/// A string in Go's `%q`.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_ascii_control() => out.extend(['\\', 'x'].into_iter().chain(hex(c as u32, 2))),
            c if c.is_control() => out.extend(['\\', 'u'].into_iter().chain(hex(c as u32, 4))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn hex(code: u32, digits: u32) -> impl Iterator<Item = char> {
    (0..digits).rev().filter_map(move |at| char::from_digit(code >> (4 * at) & 0xf, 16))
}
