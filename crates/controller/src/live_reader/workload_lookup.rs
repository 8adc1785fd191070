//! What is below a workload that is not ready: its pods, and its Events where it lacks pods.

use readiness::PodShortage;
use rollcall_core::UnreadyWorkload;
use rollcall_core::pod_causes::WorkloadLookup;
use serde_json::Value;
use tracing::debug;
use watcher::wire::ChildObject;
use watcher::{ApiKind, list_live};

use super::LiveReader;

/// Maximum number of Events read for one workload. Its controller creates about forty within the hour for which they
/// are kept.
const MAX_WORKLOAD_EVENTS: u32 = 500;

impl LiveReader {
    /// Reads the pods of a workload that is not ready, or its Events. Returns the next object to read if these do not
    /// explain it all; `None` where the read failed.
    pub(super) async fn explain_workload(&self, below: UnreadyWorkload) -> Option<Option<UnreadyWorkload>> {
        let UnreadyWorkload { owner, interest, namespace, uid, selector, lookup: at, .. } = &below;
        let owner = *owner;
        if let WorkloadLookup::Events(lack, cause) = at {
            // If the Events cannot be read now, the causes found before are kept.
            let events = self.list_events(namespace, uid).await?;
            let found = below.explain_by_events(
                &events,
                PodShortage { now: self.clock.now(), ..*lack },
                cause.clone(),
            );
            self.reflector.refine(owner, interest, found);
            return Some(None);
        }
        let pods = ApiKind {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            plural: "pods".to_owned(),
            namespaced: true,
            has_status: true,
        };
        match list_live::<ChildObject>(&self.client, &pods, Some(namespace), Some(selector)).await {
            Ok(pods) => match below.explain_by_pods(&pods) {
                (found, None) => _ = self.reflector.refine(owner, interest, found),
                (found, Some(lack)) => {
                    let lookup = WorkloadLookup::Events(lack, found);
                    return Some(Some(UnreadyWorkload { lookup, ..below }));
                }
            },
            Err(error) => {
                self.report_read_error(&error);
                return None;
            }
        }
        Some(None)
    }

    /// Lists the Events about a workload that lacks pods; empty if Events may not be listed. `None` if the request
    /// failed.
    async fn list_events(&self, namespace: &str, uid: &str) -> Option<Value> {
        let path = format!(
            "/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.uid={uid}&limit={MAX_WORKLOAD_EVENTS}"
        );
        let request = http::Request::get(path).body(Vec::new()).ok()?;
        match self.client.request::<Value>(request).await {
            Err(kube::Error::Api(status)) if status.code == 403 => Some(Value::Null),
            answer => answer
                .inspect_err(|error| debug!(%error, "failed to list Events of a workload that lacks pods"))
                .ok(),
        }
    }
}
