//! What others make of a parent that Rollcall does not write on: judged by their own rules, not by hearsay.

use readiness::Time;
use rules::Profile;
use serde_json::Value;

/// The words of Argo CD and of kstatus on this object, as if what Rollcall wrote were not there.
pub(super) fn without_rollcall(object: &Value, now: i64) -> String {
    let bare = bare(object);
    let say = |profile: Profile| profile.judge(&bare, None, Time(now)).status;
    let argo = say(Profile::Argocd).unwrap_or("no health, so Healthy");
    let kstatus = say(Profile::Kstatus).unwrap_or("Unknown");
    format!("Argo CD: {argo} · kstatus: {kstatus}")
}

/// The object without what Rollcall wrote.
fn bare(object: &Value) -> Value {
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
        assert_eq!(without_rollcall(&shop, 0), "Argo CD: no health, so Healthy · kstatus: Current");
    }
}
