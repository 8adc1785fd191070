//! What is below a workload that is not ready: its pods, and its Events where it lacks pods.

use readiness::PodShortage;
use rollcall_core::pod_causes::WorkloadLookup;
use rollcall_core::{PodDigest, UnreadyWorkload};
use serde_json::Value;
use tokio::time::Instant;
use tracing::debug;
use watcher::reflector::Reflector;
use watcher::wire::ChildObject;
use watcher::{ApiKind, LiveReadError, list_live};

use super::workload_explanations::WorkloadExplanations;
use crate::clock::ServerClock;

/// Maximum number of Events read for one workload. Its controller creates about forty within the hour for which they
/// are kept.
const MAX_WORKLOAD_EVENTS: u32 = 500;

/// The kind of pods.
pub(super) fn pod_kind() -> ApiKind {
    ApiKind {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        plural: "pods".to_owned(),
        namespaced: true,
        has_status: true,
    }
}

/// Looks up why workloads are not ready.
pub(super) struct WorkloadExplainer<'r> {
    pub(super) client: &'r kube::Client,
    pub(super) reflector: &'r Reflector,
    /// The API server's clock, which the timestamps of Events come from.
    pub(super) clock: &'r ServerClock,
    /// What is kept of what explains them.
    pub(super) explanations: &'r WorkloadExplanations,
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
            self.explanations.on_events_read(&below, Instant::now());
            return Ok(None);
        }
        let pods =
            list_live::<ChildObject>(self.client, &pod_kind(), Some(namespace), Some(selector)).await?;
        Ok(self.explain_by_pods(below, &pods))
    }

    /// Explains a workload by its pods. Returns the next object to read if these do not explain it all.
    pub(super) fn explain_by_pods(
        &self,
        below: UnreadyWorkload,
        pods: &[ChildObject],
    ) -> Option<UnreadyWorkload> {
        let digest = PodDigest::of(pods.iter().map(|pod| &pod.meta).filter(|pod| below.has_pod(pod)));
        let (found, lack) = below.explain_by_pods(pods);
        let has_cause = found.iter().any(Option::is_some);
        let Some(lack) = lack else {
            self.reflector.refine(below.owner, &below.interest, found);
            self.explanations.on_pods_read(below, digest, has_cause);
            return None;
        };
        let next = UnreadyWorkload { lookup: WorkloadLookup::Events(lack, found), ..below };
        self.explanations.on_pods_read(next.clone(), digest, has_cause);
        Some(next)
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
