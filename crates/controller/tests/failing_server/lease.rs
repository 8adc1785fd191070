//! The Lease by which the service leads, which the failing server never fails at: who has none asks for nothing else.

use std::sync::Mutex;

use http::Method;
use serde_json::{Value, json};

use crate::request::ApiRequest;

/// Collection of the Leases of the namespace that the service is in.
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/home/leases";

/// The only Lease.
#[derive(Default)]
pub(crate) struct ServedLease(Mutex<Option<Value>>);

impl ServedLease {
    pub(crate) fn is_asked(request: &ApiRequest) -> bool {
        request.path.starts_with(LEASES)
    }

    /// Answers as a server should: a code and a body.
    pub(crate) fn answer(&self, request: &ApiRequest) -> (u16, String) {
        let mut held = self.0.lock().unwrap();
        if request.method != Method::GET {
            let before =
                held.as_ref().and_then(|lease| lease["metadata"]["resourceVersion"].as_str()?.parse().ok());
            let mut lease: Value = serde_json::from_slice(&request.body).unwrap();
            lease["metadata"]["resourceVersion"] = json!((before.unwrap_or(0_u64) + 1).to_string());
            *held = Some(lease);
        }
        if let Some(lease) = &*held {
            return (200, lease.to_string());
        }
        let details = json!({ "name": "rollcall", "group": "coordination.k8s.io", "kind": "leases" });
        let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound",
            "message": "not found", "code": 404, "details": details });
        (404, status.to_string())
    }
}
