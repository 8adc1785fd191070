//! What is below a workload that is not ready: its pods, and its Events where it lacks pods.

use readiness::PodShortage;
use rollcall_core::UnreadyWorkload;
use rollcall_core::pod_causes::WorkloadLookup;
use serde_json::Value;
use tracing::debug;
use watcher::reflector::Reflector;
use watcher::wire::ChildObject;
use watcher::{ApiKind, LiveReadError, list_live};

use crate::clock::ServerClock;

/// Maximum number of Events read for one workload. Its controller creates about forty within the hour for which they
/// are kept.
const MAX_WORKLOAD_EVENTS: u32 = 500;

/// Looks up why workloads are not ready.
pub(super) struct WorkloadExplainer<'r> {
    pub(super) client: &'r kube::Client,
    pub(super) reflector: &'r Reflector,
    /// The API server's clock, which the timestamps of Events come from.
    pub(super) clock: &'r ServerClock,
}

impl WorkloadExplainer<'_> {
    /// Reads the pods of a workload that is not ready, or its Events. Returns the next object to read if these do not
    /// explain it all; the error of a read that failed, if it is to be told.
    pub(super) async fn explain(
        &self,
        below: UnreadyWorkload,
    ) -> Result<Option<UnreadyWorkload>, Option<LiveReadError>> {
        let UnreadyWorkload { owner, interest, namespace, uid, selector, lookup: at, .. } = &below;
        let owner = *owner;
        if let WorkloadLookup::Events(lack, cause) = at {
            // If the Events cannot be read now, the causes found before are kept.
            let events = self.list_events(namespace, uid).await.ok_or(None)?;
            let found = below.explain_by_events(
                &events,
                PodShortage { now: self.clock.now(), ..*lack },
                cause.clone(),
            );
            self.reflector.refine(owner, interest, found);
            return Ok(None);
        }
        let pods = ApiKind {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            plural: "pods".to_owned(),
            namespaced: true,
            has_status: true,
        };
        let pods = list_live::<ChildObject>(self.client, &pods, Some(namespace), Some(selector)).await?;
        match below.explain_by_pods(&pods) {
            (found, None) => {
                self.reflector.refine(owner, interest, found);
                Ok(None)
            }
            (found, Some(lack)) => {
                let lookup = WorkloadLookup::Events(lack, found);
                Ok(Some(UnreadyWorkload { lookup, ..below }))
            }
        }
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
