//! Options of DELETE requests.

use serde_json::{Value, json};

use super::decode::{self, UnreadBody};
use super::kind::SandboxKind;
use super::message::StoreRequest;
use super::meta;
use super::refusal::{StatusCause, StoreRefusal};

/// Treatment of the dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeletionPropagation {
    Background,
    Foreground,
    Orphan,
}

/// Options of a deletion.
#[derive(Clone, Debug, Default)]
pub(super) struct DeletionOptions {
    pub(super) propagation: Option<DeletionPropagation>,
    pub(super) grace: Option<i64>,
    uid: Option<String>,
    revision: Option<String>,
    pub(super) dry_run: bool,
}

impl DeletionOptions {
    pub(super) fn with_propagation(propagation: DeletionPropagation) -> DeletionOptions {
        DeletionOptions { propagation: Some(propagation), ..DeletionOptions::default() }
    }

    /// Options for a deletion without a grace period, whose dependents are collected.
    pub(super) fn without_grace() -> DeletionOptions {
        DeletionOptions {
            grace: Some(0),
            ..DeletionOptions::with_propagation(DeletionPropagation::Background)
        }
    }

    pub(super) fn from_request(request: &StoreRequest) -> Result<DeletionOptions, StoreRefusal> {
        let body = match decode::decode_body(request) {
            Ok(body) => body,
            Err(_) if request.body.is_empty() => json!({}),
            Err(UnreadBody::TooLarge(refusal)) => return Err(refusal),
            Err(UnreadBody::NoJson(why)) => {
                return Err(StoreRefusal::bad_request(format!(
                    "couldn't get version/kind; json parse error: {why}"
                )));
            }
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let policy = text(&body["propagationPolicy"])
            .or_else(|| request.query_param("propagationPolicy").map(Into::into));
        let orphan = body["orphanDependents"].as_bool();
        let grace = body["gracePeriodSeconds"]
            .as_i64()
            .or_else(|| request.query_param("gracePeriodSeconds").and_then(|text| text.parse().ok()));
        Ok(DeletionOptions {
            propagation: parse_propagation(policy.as_deref(), orphan)?,
            grace,
            uid: text(&body["preconditions"]["uid"]),
            revision: text(&body["preconditions"]["resourceVersion"]),
            dry_run: request.is_dry_run()
                || body["dryRun"].as_array().is_some_and(|how| how.contains(&json!("All"))),
        })
    }

    /// Checks the caller's UID and resourceVersion preconditions.
    pub(super) fn check_preconditions(&self, kind: &SandboxKind, object: &Value) -> Result<(), StoreRefusal> {
        let pairs = [
            ("UID", &self.uid, meta::uid(object), "deleted and then recreated"),
            ("ResourceVersion", &self.revision, meta::text_field(object, "resourceVersion"), "modified"),
        ];
        for (what, wanted, is, how) in pairs {
            if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != is) {
                let why = format!(
                    "the {what} in the precondition ({wanted}) does not match the {what} in record ({is}). The object might have been {how}"
                );
                return Err(StoreRefusal::conflict(&kind.group, &kind.kind, meta::name(object), &why));
            }
        }
        Ok(())
    }
}

fn parse_propagation(
    policy: Option<&str>,
    orphan: Option<bool>,
) -> Result<Option<DeletionPropagation>, StoreRefusal> {
    let refuse = |cause| Err(StoreRefusal::invalid("meta.k8s.io", "DeleteOptions", "", vec![cause]));
    match (policy, orphan) {
        (Some(policy), Some(_)) => {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            refuse(StatusCause::invalid("propagationPolicy", &json!(policy), why))
        }
        (Some("Background"), _) | (None, Some(false)) => Ok(Some(DeletionPropagation::Background)),
        (Some("Foreground"), _) => Ok(Some(DeletionPropagation::Foreground)),
        (Some("Orphan"), _) | (None, Some(true)) => Ok(Some(DeletionPropagation::Orphan)),
        (None, None) => Ok(None),
        (Some(other), None) => {
            let message = format!(
                "Unsupported value: {other:?}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
            );
            refuse(StatusCause {
                reason: "FieldValueNotSupported",
                message,
                field: "propagationPolicy".into(),
            })
        }
    }
}
