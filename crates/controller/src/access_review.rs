//! Asks the API server whether a right is granted.

use std::time::Duration;

use http::Request;
use http::header::CONTENT_TYPE;
use policy::rbac::AccessNeed;
use serde_json::{Value, json};

/// Longest time that a review may take. 10 s.
pub(crate) const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);

/// Whose rights are reviewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewSubject {
    /// The client's own identity. Every client may ask this.
    Own,
    /// A service account: namespace and name. Requires the right to create SubjectAccessReviews.
    ServiceAccount(String, String),
}

impl std::fmt::Display for ReviewSubject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReviewSubject::Own => f.write_str("the identity of this kubeconfig"),
            ReviewSubject::ServiceAccount(namespace, name) => write!(f, "ServiceAccount {namespace}/{name}"),
        }
    }
}

/// Returns `true` if the subject has this right. The error says why the server did not answer.
pub async fn review_access(
    client: &kube::Client,
    subject: &ReviewSubject,
    need: &AccessNeed,
) -> Result<bool, String> {
    let (path, review) = access_review(subject, need);
    let request = Request::post(path).header(CONTENT_TYPE, "application/json");
    let request = request.body(review.to_string().into_bytes()).map_err(|error| error.to_string())?;
    let answer = tokio::time::timeout(REVIEW_TIMEOUT, client.request::<Value>(request)).await;
    match answer.map_err(|_| format!("no answer within {REVIEW_TIMEOUT:?}"))? {
        Ok(answer) => {
            answer["status"]["allowed"].as_bool().ok_or_else(|| "the server did not review it".to_owned())
        }
        Err(kube::Error::Api(status)) if status.code == 403 => {
            Err("you may not review the access of other users".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the path and body of an access review.
fn access_review(subject: &ReviewSubject, need: &AccessNeed) -> (&'static str, Value) {
    let (resource, subresource) = need.resource.split_once('/').unwrap_or((&need.resource, ""));
    let mut attributes = json!({ "group": need.group, "resource": resource, "verb": need.verb });
    if !subresource.is_empty() {
        attributes["subresource"] = json!(subresource);
    }
    if let Some(namespace) = &need.namespace {
        attributes["namespace"] = json!(namespace);
    }
    if let Some(name) = &need.name {
        attributes["name"] = json!(name);
    }
    let mut spec = json!({ "resourceAttributes": attributes });
    let (kind, path) = match subject {
        ReviewSubject::Own => {
            ("SelfSubjectAccessReview", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        }
        ReviewSubject::ServiceAccount(home, name) => {
            spec["user"] = json!(format!("system:serviceaccount:{home}:{name}"));
            spec["groups"] = json!([
                "system:serviceaccounts",
                format!("system:serviceaccounts:{home}"),
                "system:authenticated",
            ]);
            ("SubjectAccessReview", "/apis/authorization.k8s.io/v1/subjectaccessreviews")
        }
    };
    (path, json!({ "apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec }))
}
