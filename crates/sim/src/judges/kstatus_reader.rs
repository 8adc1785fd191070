//! A custom resource as kstatus reads it, and with it Flux and Helm.

use serde_json::Value;

use crate::world::{conditions_of, has_true_condition};

/// Returns `true` if kstatus calls a custom resource Current: it is not being deleted, `status.observedGeneration` is not
/// another one than it has, nothing says `Reconciling` or `Stalled`, and `Ready` is True or absent. Whatever generation a
/// condition names itself is not looked at.
pub(super) fn reads_current(object: &Value) -> bool {
    let (meta, status) = (&object["metadata"], &object["status"]);
    let observed = status["observedGeneration"].as_i64();
    let ready = conditions_of(status).iter().find(|condition| condition["type"] == "Ready");
    meta["deletionTimestamp"].is_null()
        && observed.is_none_or(|observed| Some(observed) == meta["generation"].as_i64())
        && !has_true_condition(status, "Reconciling")
        && !has_true_condition(status, "Stalled")
        && ready.is_none_or(|ready| ready["status"] == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::reads_current;

    fn read(observed: Option<i64>, conditions: &[(&str, &str)]) -> bool {
        let conditions: Vec<_> =
            conditions.iter().map(|(kind, status)| json!({"type": kind, "status": status})).collect();
        let mut object = json!({"metadata": {"generation": 2}, "status": {"conditions": conditions}});
        if let Some(observed) = observed {
            object["status"]["observedGeneration"] = json!(observed);
        }
        reads_current(&object)
    }

    #[test]
    fn what_says_nothing_is_current_and_so_is_a_true_of_any_generation() {
        assert!(reads_current(&json!({"metadata": {"generation": 1}})));
        assert!(read(None, &[]) && read(Some(2), &[("Other", "False")]));
        assert!(read(None, &[("Ready", "True")]) && read(Some(2), &[("Ready", "True")]));
    }

    #[test]
    fn what_is_under_way_is_not_current() {
        assert!(!read(Some(1), &[("Ready", "True")]), "its generation is not observed");
        assert!(!read(None, &[("Ready", "Unknown")]) && !read(None, &[("Ready", "False")]));
        assert!(!read(None, &[("Ready", "True"), ("Reconciling", "True")]));
        assert!(!read(None, &[("Stalled", "True")]) && read(None, &[("Stalled", "False")]));
        let deleted = json!({"metadata": {"generation": 1, "deletionTimestamp": "2027-01-15T08:00:00Z"}});
        assert!(!reads_current(&deleted));
    }
}
