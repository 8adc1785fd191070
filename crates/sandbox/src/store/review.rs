//! Reviews: answered at once, kept nowhere. The sandbox knows no users: every token is somebody, and everybody may do
//! everything (what may not be done is a fault to be scripted).

use serde_json::{Value, json};

use super::decode;
use super::message::{Request, Response};
use super::refusal::Refusal;
use super::route::Target;

pub(super) fn answer(target: &Target, request: &Request) -> Result<Response, Refusal> {
    if request.method != "POST" || target.name.is_some() {
        return Err(Refusal::not_allowed());
    }
    let mut review = decode::object(&target.kind, request)?;
    review["status"] = match target.kind.kind.as_str() {
        "TokenReview" if review["spec"]["token"].as_str().is_none_or(str::is_empty) => {
            return Err(Refusal::bad_request("token is required for TokenReview in authentication"));
        }
        "TokenReview" => token(&review["spec"]),
        "SelfSubjectReview" => json!({"userInfo": {"username": "sandbox", "groups": ["system:masters"]}}),
        "SelfSubjectRulesReview" => {
            let all = json!(["*"]);
            json!({"resourceRules": [{"verbs": all, "apiGroups": all, "resources": all}], "nonResourceRules": [{"verbs": all, "nonResourceURLs": all}], "incomplete": false})
        }
        "SubjectAccessReview" | "SelfSubjectAccessReview" | "LocalSubjectAccessReview" => {
            json!({"allowed": true})
        }
        other => return Err(Refusal::not_implemented(other)),
    };
    Ok(Response::json(201, &review))
}

fn token(spec: &Value) -> Value {
    let user = json!({"username": spec["token"], "groups": ["system:authenticated"]});
    let mut status = json!({"authenticated": true, "user": user});
    if spec["audiences"].is_array() {
        status["audiences"] = spec["audiences"].clone();
    }
    status
}
