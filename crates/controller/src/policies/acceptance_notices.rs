//! Events about policies that were accepted or refused: one for each change of what their status says.

use api::ReadinessPolicyStatus;
use api::policy::{PolicyCondition, WriteMode};
use policy::FoundPolicy;

use crate::event_recorder::EventNotice;
use crate::transitions::ObjectRef;

/// The Event about a policy whose status was `old` and is `new`; `None` where it was accepted or refused before for the same
/// cause, and in shadow mode, which needs no right to create Events.
pub(super) fn acceptance_notice(
    policy: &FoundPolicy,
    old: &ReadinessPolicyStatus,
    new: &ReadinessPolicyStatus,
) -> Option<EventNotice> {
    if policy.spec.as_ref().is_ok_and(|spec| spec.mode == WriteMode::Shadow) {
        return None;
    }
    let now = accepted_condition(new)?;
    let is_accepted = now.status == "True";
    let is_told = |before: &PolicyCondition| {
        before.status == now.status && (is_accepted || before.message == now.message)
    };
    if accepted_condition(old).is_some_and(is_told) {
        return None;
    }
    let (reason, note) = match (is_accepted, new.accepted_generation) {
        (true, _) => ("PolicyAccepted", format!("generation {} is in force", policy.generation)),
        (false, Some(_)) => ("PolicyRefused", now.message.clone()),
        (false, None) => ("PolicyRefused", format!("{}; no version of it was accepted before", now.message)),
    };
    let about = ObjectRef {
        group: "rollcall.dev".to_owned(),
        kind: "ReadinessPolicy".to_owned(),
        namespace: String::new(),
        name: policy.name.clone(),
    };
    let (version, uid) = ("v1alpha1".to_owned(), policy.uid.clone());
    Some(EventNotice { about, version, uid, reason, note, warning: !is_accepted })
}

fn accepted_condition(status: &ReadinessPolicyStatus) -> Option<&PolicyCondition> {
    status.conditions.iter().find(|condition| condition.r#type == "Accepted")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn status(accepted: &Value, generation: Option<i64>) -> ReadinessPolicyStatus {
        let conditions: Vec<&Value> = Some(accepted).into_iter().filter(|said| !said.is_null()).collect();
        let status = json!({ "conditions": conditions, "acceptedGeneration": generation });
        serde_json::from_value(status).expect("a status")
    }

    fn said(accepted: &str, message: &str) -> Value {
        json!({ "type": "Accepted", "status": accepted, "reason": "Any", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z" })
    }

    fn told(old: &Value, new: &Value, generation: Option<i64>) -> Option<(&'static str, String, bool)> {
        told_of("write", old, new, generation)
    }

    fn told_of(
        mode: &str,
        old: &Value,
        new: &Value,
        generation: Option<i64>,
    ) -> Option<(&'static str, String, bool)> {
        let object = json!({ "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy",
            "metadata": { "name": "db", "uid": "u", "generation": 2 },
            "spec": { "parent": { "group": "example.com", "kind": "Database" }, "mode": mode } });
        let policy = policy::read_policy(&serde_json::from_value(object).expect("an object"));
        let notice = acceptance_notice(&policy, &status(old, generation), &status(new, generation))?;
        assert_eq!((&*notice.about.name, &*notice.uid), ("db", "u"));
        Some((notice.reason, notice.note, notice.warning))
    }

    #[test]
    fn an_event_tells_of_each_change_of_the_outcome_and_of_no_other() {
        let (accepted, shadow) = (said("True", ""), said("True", "nothing is written"));
        let (odd, worse) = (said("False", "spec.x: odd"), said("False", "spec.x: worse"));
        let refused = |why: &str| Some(("PolicyRefused", why.to_owned(), true));
        let in_force = Some(("PolicyAccepted", "generation 2 is in force".to_owned(), false));
        for (old, new, expected) in [
            (&Value::Null, &accepted, in_force.clone()),
            (&accepted, &accepted, None),
            (&accepted, &shadow, None),
            (&accepted, &odd, refused("spec.x: odd")),
            (&odd, &odd, None),
            (&odd, &worse, refused("spec.x: worse")),
            (&worse, &accepted, in_force),
        ] {
            assert_eq!(told(old, new, Some(1)), expected, "{old} {new}");
        }
        assert_eq!(
            told(&Value::Null, &odd, None),
            refused("spec.x: odd; no version of it was accepted before")
        );
    }
}
