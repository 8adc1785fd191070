//! The verdicts of other tools on a parent without Rollcall's conditions, computed by their own rules.

use readiness::Time;
use rules::PeerProfile;
use serde_json::Value;

/// Returns the verdicts of Argo CD and kstatus on this object as if Rollcall had written nothing.
pub(super) fn judge_without_rollcall(object: &Value, now: i64) -> String {
    let bare = strip_conditions(object);
    let say = |profile: PeerProfile| profile.judge_object(&bare, None, Time(now)).status;
    let argo = say(PeerProfile::Argocd).unwrap_or("no health, so Healthy");
    let kstatus = say(PeerProfile::Kstatus).unwrap_or("Unknown");
    format!("Argo CD: {argo} · kstatus: {kstatus}")
}

/// Returns the object without Rollcall's conditions.
fn strip_conditions(object: &Value) -> Value {
    let mut bare = object.clone();
    let ours = |entry: &Value| {
        ["Ready", "Reconciling", "Stalled"].iter().any(|kind| entry["type"].as_str() == Some(kind))
    };
    if let Some(list) = bare.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        list.retain(|entry| !ours(entry));
    }
    bare
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_custom_resource_without_a_word_in_its_status_passes_for_ready() {
        let shop = json!({
            "apiVersion": "example.com/v1", "kind": "Shop",
            "metadata": { "name": "books", "generation": 1 },
            "status": { "conditions": [{ "type": "Ready", "status": "False", "reason": "ChildrenFailed" }] },
        });
        assert_eq!(judge_without_rollcall(&shop, 0), "Argo CD: no health, so Healthy · kstatus: Current");
    }
}
