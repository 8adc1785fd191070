//! The objects that are decoded and judged.

use readiness::{Assessment, Level};
use watcher::wire::ChildObject;

/// A pod as the API server sends it in a watch, a third of it managedFields.
pub(crate) const POD: &str = include_str!("../../watcher/benches/pod.json");
/// A custom resource whose verdict needs the whole generic rule.
pub(crate) const CUSTOM: &str = r#"{"apiVersion":"example.com/v1","kind":"Database","metadata":{"name":"db","namespace":"shop",
"uid":"0d1f7a52-3c64-4a6e-9a4e-5b6e1c1f0a77","generation":4,"creationTimestamp":"2026-08-14T09:12:33Z"},
"spec":{"replicas":3,"version":"17.2","storage":{"size":"10Gi"}},"status":{"observedGeneration":4,"phase":"Running",
"conditions":[{"type":"Ready","status":"True","reason":"AllReplicasReady","lastTransitionTime":"2026-08-14T09:12:41Z"},
{"type":"BackupConfigured","status":"False","reason":"NotRequested","lastTransitionTime":"2026-08-14T09:12:41Z"},
{"type":"Degraded","status":"False","reason":"AsExpected","lastTransitionTime":"2026-08-14T09:12:41Z"}],
"replicas":3,"readyReplicas":3,"endpoint":"db.shop.svc:5432"}}"#;

/// Decodes an object as the watch does.
pub(crate) fn read_child(text: &str) -> anyhow::Result<ChildObject> {
    Ok(serde_json::from_slice(text.trim().as_bytes())?)
}

pub(crate) fn is_ready(assessment: &Assessment) -> bool {
    assessment.verdict.level == Level::Ready
}
