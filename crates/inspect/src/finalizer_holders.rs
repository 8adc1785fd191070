//! Finalizers that hold an object being deleted, with their likely owners and commands to remove them.

use serde::Serialize;
use serde_json::Value;

use super::field_managers::{field_managers, finalizer_manager};
use super::holder_signs::{HolderNames, HolderSigns};
use super::kubectl::KubectlObject;

/// Warning shown with every such command.
pub const RELEASE_WARNING: &str =
    "only if its owner is gone for good: what the owner was to clean up stays behind";

/// Finalizer and its likely owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LikelyHolder {
    /// Name of the finalizer.
    pub finalizer: String,
    /// Time since which it holds the object: the deletion timestamp.
    pub since: String,
    /// Likely owner, derived from the finalizer's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub likely: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// Condition that the owner waits for.
    pub waits_for: Option<&'static str>,
    /// Field manager, if only one set the finalizer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manager: Option<String>,
    /// Time of that manager's last write to the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_write: Option<String>,
    /// Whether the holder lives, where that was looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signs: Option<HolderSigns>,
    /// Command that removes the finalizer. Never executed by Rollcall.
    pub release: String,
    /// Warning shown with the command.
    pub warning: &'static str,
}

impl LikelyHolder {
    /// Names by which its holder is looked for.
    pub fn names(&self) -> HolderNames<'_> {
        HolderNames {
            finalizer: &self.finalizer,
            manager: self.manager.as_deref(),
            likely: self.likely,
            last_write: self.last_write.as_deref(),
        }
    }
}

/// Finalizers of an object that is being deleted; empty for any other.
pub fn finalizer_holders(value: &Value, object: &KubectlObject<'_>) -> Vec<LikelyHolder> {
    let Some(since) = value["metadata"]["deletionTimestamp"].as_str() else { return Vec::new() };
    let names = value["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let holder = |(at, name): (usize, &str)| {
        let known = readiness::likely_holder(name);
        let manager = finalizer_manager(value, name);
        let writes = field_managers(value).filter(|entry| Some(entry.name) == manager);
        LikelyHolder {
            finalizer: name.to_owned(),
            since: since.to_owned(),
            likely: known.map(|known| known.who),
            waits_for: known.map(|known| known.waits),
            manager: manager.map(str::to_owned),
            last_write: writes.map(|entry| entry.time).filter(|at| !at.is_empty()).max().map(str::to_owned),
            signs: None,
            release: object.release_command(at, name),
            warning: RELEASE_WARNING,
        }
    };
    names.enumerate().map(holder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_holder_is_named_with_its_command_and_nothing_is_said_of_what_lives() {
        let object = KubectlObject { group: "batch", kind: "Job", namespace: "shop", name: "seed" };
        let leaving = json!({ "metadata": {
            "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["argocd.argoproj.io/hook-finalizer", "x.io/y"],
        } });
        let found = finalizer_holders(&leaving, &object);
        assert_eq!((found.len(), found[0].likely, found[1].likely), (2, Some("Argo CD"), None));
        assert!(found[1].release.contains("finalizers/1") && found[1].release.contains("x.io/y"));
        assert!(finalizer_holders(&json!({ "metadata": { "finalizers": ["x.io/y"] } }), &object).is_empty());
    }
}
