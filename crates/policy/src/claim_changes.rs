//! What a release says in the status of policies about who has them.

use std::sync::Arc;

use api::policy::{AcceptedPolicy, ReleaseClaim};
use readiness::Time;
use serde_json::{Value, json};
use watcher::status::time;

use super::accept::AcceptedSpec;
use super::found_policy::FoundPolicy;
use super::policy_reason::PolicyReason;
use super::release_claims::ReleaseIdentity;

/// A change of what this release says of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimChange {
    /// It has accepted it. Said before anything is written on parents.
    Accept {
        /// The spec that it was accepted with, if it ever was.
        accepted: Option<Arc<AcceptedPolicy>>,
        /// Releases whose claims end by it: they had the same parents.
        ended: Vec<String>,
    },
    /// It does not select it any more, and nobody else has accepted it: what it says is to be taken back.
    Withdraw {
        /// Others have some of its parents.
        is_shared: bool,
    },
    /// It does not select it any more, and others have it.
    HandOver,
    /// What it said is taken back.
    Forget {
        /// Others have some of its parents.
        is_shared: bool,
    },
}

impl ClaimChange {
    /// What is to be said of a policy that is in use here, where its status does not say it. The first claim since this release
    /// selects it ends those of releases that had the same parents: who has it too says so again.
    pub fn accept(
        found: &FoundPolicy,
        accepted: Option<&AcceptedSpec>,
        release: &ReleaseIdentity,
        is_first: bool,
    ) -> Option<ClaimChange> {
        let claims = &found.status.accepted_by;
        let known = claims.get(&release.name);
        if known == Some(&release.claim()) {
            return None;
        }
        let is_ended =
            |(name, claim): &(&String, &ReleaseClaim)| **name != release.name && release.meets(claim);
        let ended = claims.iter().filter(|_| is_first && known.is_none()).filter(is_ended);
        Some(ClaimChange::Accept {
            accepted: accepted.map(|accepted| accepted.kept.clone()),
            ended: ended.map(|(name, _)| name.clone()).collect(),
        })
    }

    /// The patch of a policy that says it. What takes something away holds for the version of it that was read.
    pub fn patch(&self, found: &FoundPolicy, release: &ReleaseIdentity, now: Time) -> Value {
        let own = |claim: Value| json!({ "acceptedBy": { release.name.as_str(): claim } });
        let mut status = match self {
            ClaimChange::Accept { accepted, ended } => {
                let mut status = own(json!(release.claim()));
                // A merge keeps what it does not name.
                status["acceptedBy"][&release.name]["withdrawn"] = Value::Null;
                for name in ended {
                    status["acceptedBy"][name] = Value::Null;
                }
                if let Some(accepted) = accepted {
                    status["accepted"] = json!(**accepted);
                    status["acceptedGeneration"] = json!(accepted.generation);
                }
                return json!({ "status": status });
            }
            ClaimChange::Withdraw { .. } => own(json!({ "withdrawn": true })),
            ClaimChange::HandOver | ClaimChange::Forget { .. } => own(Value::Null),
        };
        match self {
            ClaimChange::Withdraw { is_shared: false } => {
                status["conditions"] = unselected_conditions(found, now);
                status["observedGeneration"] = json!(found.generation);
                (status["parents"], status["ready"]) = (Value::Null, Value::Null);
                status["missingRights"] = json!([]);
            }
            ClaimChange::Forget { is_shared: false } => {
                (status["accepted"], status["acceptedGeneration"]) = (Value::Null, Value::Null);
            }
            _ => {}
        }
        json!({ "metadata": { "resourceVersion": found.version.to_string() }, "status": status })
    }
}

/// That nothing of the policy is in force.
fn unselected_conditions(found: &FoundPolicy, now: Time) -> Value {
    let condition = |kind: &str| {
        let held = found.status.conditions.iter().find(|said| said.r#type == kind && said.status == "False");
        json!({
            "type": kind,
            "status": "False",
            "reason": PolicyReason::NotSelected.as_str(),
            "message": "no release of Rollcall selects this policy by its labels any more: what it said on parents is taken back",
            "lastTransitionTime": held.map_or_else(|| time::format_seconds(now), |said| said.last_transition_time.clone()),
            "observedGeneration": found.generation,
        })
    };
    json!(["Accepted", "Watching", "Ready"].map(condition))
}
