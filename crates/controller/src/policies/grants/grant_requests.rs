//! Requests by which listed ClusterRoles are read, bound, and their bindings deleted.

use std::time::Duration;

use http::Request;
use http::header::CONTENT_TYPE;
use policy::rbac::{
    BindingOwnership, ListedRole, RoleSubject, grant_binding, grant_binding_name, judge_binding,
};
use serde_json::{Value, json};

const RBAC_PATH: &str = "/apis/rbac.authorization.k8s.io/v1";
/// Longest time that a request may take. 10 s.
const GRANT_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Most letters of an error that are kept.
const MAX_ERROR: usize = 300;

/// A request that the API server did not carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FailedRequest {
    /// HTTP status; `None` without an answer.
    pub(super) status: Option<u16>,
    /// When the server asks to be left alone until.
    pub(super) retry_after: Option<Duration>,
    /// The error.
    pub(super) error: String,
}

impl FailedRequest {
    fn of(error: &kube::Error) -> FailedRequest {
        let (status, retry_after) = match error {
            kube::Error::Api(status) => {
                let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
                (Some(status.code), Some(Duration::from_secs(u64::from(seconds))).filter(|_| seconds > 0))
            }
            _ => (None, None),
        };
        FailedRequest { status, retry_after, error: error.to_string().chars().take(MAX_ERROR).collect() }
    }

    /// It in words that are the same each time.
    pub(super) fn cause(&self) -> String {
        self.status.map_or_else(|| "no answer".to_owned(), |status| format!("HTTP {status}"))
    }
}

/// A listed role, or `None` where there is none of that name.
pub(super) async fn read_role(
    client: &kube::Client,
    role: &str,
) -> Result<Option<ListedRole>, FailedRequest> {
    let request = Request::get(format!("{RBAC_PATH}/clusterroles/{role}"));
    let read = unless_absent(send(client, request, Vec::new(), GRANT_REQUEST_TIMEOUT).await)?;
    Ok(read.map(|manifest| ListedRole::from_manifest(role, &manifest)))
}

/// Whose the binding of a listed role is, or `None` where there is none.
pub(super) async fn read_binding(
    client: &kube::Client,
    account: &RoleSubject,
    role: &str,
) -> Result<Option<BindingOwnership>, FailedRequest> {
    let read = unless_absent(
        send(client, Request::get(binding_path(account, role)), Vec::new(), GRANT_REQUEST_TIMEOUT).await,
    )?;
    Ok(read.map(|found| judge_binding(&found, account, role)))
}

/// Binds a role to the account, for these policies, within this time. Returns the uid of the binding.
pub(super) async fn create_binding<'p>(
    client: &kube::Client,
    account: &RoleSubject,
    role: &str,
    policies: impl Iterator<Item = &'p str>,
    within: Duration,
) -> Result<String, FailedRequest> {
    let body = grant_binding(account, role, policies).to_string().into_bytes();
    let request = Request::post(format!("{RBAC_PATH}/clusterrolebindings?fieldManager=rollcall"));
    let created = send(client, request, body, within).await?;
    Ok(created["metadata"]["uid"].as_str().unwrap_or_default().to_owned())
}

/// Deletes the binding of a role, if it is still the one with this uid, within this time.
pub(super) async fn delete_binding(
    client: &kube::Client,
    account: &RoleSubject,
    role: &str,
    uid: &str,
    within: Duration,
) -> Result<(), FailedRequest> {
    let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": uid } });
    let request = Request::delete(binding_path(account, role));
    send(client, request, options.to_string().into_bytes(), within).await.map(drop)
}

fn binding_path(account: &RoleSubject, role: &str) -> String {
    format!("{RBAC_PATH}/clusterrolebindings/{}", grant_binding_name(account, role))
}

fn unless_absent(read: Result<Value, FailedRequest>) -> Result<Option<Value>, FailedRequest> {
    match read {
        Err(failed) if failed.status == Some(404) => Ok(None),
        read => read.map(Some),
    }
}

async fn send(
    client: &kube::Client,
    request: http::request::Builder,
    body: Vec<u8>,
    within: Duration,
) -> Result<Value, FailedRequest> {
    let request = request.header(CONTENT_TYPE, "application/json").body(body);
    let request = request.map_err(|error| FailedRequest::of(&kube::Error::HttpError(error)))?;
    match tokio::time::timeout(within.min(GRANT_REQUEST_TIMEOUT), client.request(request)).await {
        Ok(answer) => answer.map_err(|error| FailedRequest::of(&error)),
        Err(_) => {
            Err(FailedRequest { status: None, retry_after: None, error: "request timed out".to_owned() })
        }
    }
}
