//! Whose rights the service has.

use http::Request;
use http::header::CONTENT_TYPE;
use policy::rbac::RoleSubject;
use serde_json::{Value, json};

use crate::access_review::REVIEW_TIMEOUT;

/// Asks the API server which service account this service runs as, which every client may ask. The error says why that is
/// not known.
pub(super) async fn own_account(client: &kube::Client) -> Result<RoleSubject, String> {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let request = Request::post(path).header(CONTENT_TYPE, "application/json");
    let request = request.body(review.to_string().into_bytes()).map_err(|error| error.to_string())?;
    let answer = tokio::time::timeout(REVIEW_TIMEOUT, client.request::<Value>(request)).await;
    let answer = answer.map_err(|_| format!("no answer within {REVIEW_TIMEOUT:?}"))?;
    let answer = answer.map_err(|error| error.to_string())?;
    let user = answer["status"]["userInfo"]["username"].as_str().unwrap_or_default();
    let account = user.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
    let (namespace, name) = account.ok_or_else(|| format!("{user:?} is no service account"))?;
    Ok(RoleSubject { name: name.to_owned(), namespace: namespace.to_owned() })
}
