//! Reviews: answered at once, never stored. The sandbox has no users: every token authenticates, and every access is
//! allowed. Refusals are scripted as faults.

use serde_json::{Value, json};

use super::decode;
use super::message::{StoreRequest, StoreResponse};
use super::refusal::StoreRefusal;
use super::route::RequestTarget;

pub(super) fn answer_review(
    target: &RequestTarget,
    request: &StoreRequest,
) -> Result<StoreResponse, StoreRefusal> {
    if request.method != "POST" || target.name.is_some() {
        return Err(StoreRefusal::method_not_allowed());
    }
    let mut review = decode::decode_object(&target.kind, request)?;
    review["status"] = match target.kind.kind.as_str() {
        "TokenReview" if review["spec"]["token"].as_str().is_none_or(str::is_empty) => {
            return Err(StoreRefusal::bad_request("token is required for TokenReview in authentication"));
        }
        "TokenReview" => token_review_status(&review["spec"]),
        "SelfSubjectReview" => json!({"userInfo": {"username": "sandbox", "groups": ["system:masters"]}}),
        "SelfSubjectRulesReview" => {
            let all = json!(["*"]);
            json!({"resourceRules": [{"verbs": all, "apiGroups": all, "resources": all}], "nonResourceRules": [{"verbs": all, "nonResourceURLs": all}], "incomplete": false})
        }
        "SubjectAccessReview" | "SelfSubjectAccessReview" | "LocalSubjectAccessReview" => {
            json!({"allowed": true})
        }
        other => return Err(StoreRefusal::not_implemented(other)),
    };
    Ok(StoreResponse::json(201, &review))
}

fn token_review_status(spec: &Value) -> Value {
    let user = json!({"username": spec["token"], "groups": ["system:authenticated"]});
    let mut status = json!({"authenticated": true, "user": user});
    if spec["audiences"].is_array() {
        status["audiences"] = spec["audiences"].clone();
    }
    status
}
