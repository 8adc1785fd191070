//! What keeps an object that is being deleted: each finalizer, who is likely to hold it, and what would take it off.

use serde::Serialize;
use serde_json::Value;

use super::command::Object;
use super::managers::of_finalizer;

/// What is said beside every such command.
pub const WARNING: &str =
    "only where whoever holds it is gone for good: what it was to clean up stays behind";

/// A finalizer and who is behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// Its name.
    pub finalizer: String,
    /// Since when it holds: since its object is to be deleted.
    pub since: String,
    /// Who is behind it, by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub likely: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// What for that one waits.
    pub waits_for: Option<&'static str>,
    /// The field manager that alone set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manager: Option<String>,
    /// A command that takes it off. Never run here.
    pub release: String,
    /// What is said beside it.
    pub warning: &'static str,
}

/// All of an object that is being deleted; none of one that is not.
pub fn holders(value: &Value, object: &Object<'_>) -> Vec<Holder> {
    let Some(since) = value["metadata"]["deletionTimestamp"].as_str() else { return Vec::new() };
    let names = value["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let holder = |(at, name): (usize, &str)| {
        let known = readiness::holder(name);
        Holder {
            finalizer: name.to_owned(),
            since: since.to_owned(),
            likely: known.map(|known| known.who),
            waits_for: known.map(|known| known.waits),
            manager: of_finalizer(value, name).map(str::to_owned),
            release: object.release(at, name),
            warning: WARNING,
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
        let object = Object { group: "batch", kind: "Job", namespace: "shop", name: "seed" };
        let leaving = json!({ "metadata": {
            "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["argocd.argoproj.io/hook-finalizer", "x.io/y"],
        } });
        let found = holders(&leaving, &object);
        assert_eq!((found.len(), found[0].likely, found[1].likely), (2, Some("Argo CD"), None));
        assert!(found[1].release.contains("finalizers/1") && found[1].release.contains("x.io/y"));
        assert!(holders(&json!({ "metadata": { "finalizers": ["x.io/y"] } }), &object).is_empty());
    }
}
