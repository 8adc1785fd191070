//! What the API server holds of a ReadinessPolicy beside its spec: its labels, its age, and what releases say of it.

use serde_json::{Value, json};

/// Name of the release under test, as policies' status has it.
pub(crate) const OWN_RELEASE: &str = "sim/own";
/// Name of the other one.
pub(crate) const OTHER_RELEASE: &str = "sim/other";

/// Which release the labels of a policy are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SelectedBy {
    /// The one under test.
    #[default]
    Ours,
    /// The other one.
    Theirs,
    /// None.
    Nobody,
}

/// Metadata and status of a policy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PolicyObject {
    pub(crate) selected_by: SelectedBy,
    /// Creation time in milliseconds: where two choose a parent for one condition, the older one rules.
    pub(crate) created: i64,
    pub(crate) version: u64,
    pub(crate) status: Value,
}

impl PolicyObject {
    /// Returns a policy that was created then.
    pub(crate) fn new(selected_by: SelectedBy, created: i64) -> PolicyObject {
        PolicyObject { selected_by, created, version: 1, status: json!({}) }
    }

    /// Returns `true` if its status says that this release has it.
    pub(crate) fn is_claimed_by(&self, release: &str) -> bool {
        let claim = &self.status["acceptedBy"][release];
        claim.is_object() && claim["withdrawn"] != true
    }
}

/// Merges a patch into a document, as RFC 7386 has it.
pub(crate) fn merge_patch(into: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in members {
        if value.is_null() {
            into.as_object_mut().map(|object| object.remove(key));
        } else {
            merge_patch(&mut into[key.as_str()], value);
        }
    }
}
