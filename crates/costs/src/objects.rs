//! The objects that are decoded and judged.

use readiness::{Assessment, Level};
use watcher::wire::ChildObject;

/// A pod as the API server sends it in a watch, a third of it managedFields.
pub(crate) const POD: &str = include_str!("../../watcher/benches/pod.json");
/// A custom resource whose verdict needs the whole generic rule.
pub(crate) const CUSTOM: &str = include_str!("../../watcher/benches/custom.json");

/// Decodes an object as the watch does.
pub(crate) fn read_child(text: &str) -> anyhow::Result<ChildObject> {
    Ok(serde_json::from_slice(text.trim().as_bytes())?)
}

pub(crate) fn is_ready(assessment: &Assessment) -> bool {
    assessment.verdict.level == Level::Ready
}
