//! Operators: they handle a parent some time after its spec changed, act on its children, and may leave a handled mark.

use serde_json::{Value, json};

use crate::object_model::KOPF_ANNOTATION;
use crate::scenario::OperatorStyle;
use crate::sim::{Sim, SimEvent};

impl Sim {
    /// Schedules an operator's handling of a parent: soon, late, or never.
    pub(crate) fn schedule_operator(&mut self, kind: usize, parent: &Value) {
        let place = Self::object_ref(kind, parent);
        let uid = parent["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let knew = parent["metadata"]["generation"].as_i64().unwrap_or(0);
        let after = match self.dice.below(20) {
            0 => return,
            1..5 => self.dice.between(5_000, 40_000),
            _ => self.dice.between(5, 2_500),
        };
        self.schedule_event(after, SimEvent::Operator(kind, place.namespace, place.name, uid, knew));
    }

    /// Handles a parent: creates missing children, changes existing ones, and then leaves the mark.
    pub(crate) fn run_operator(&mut self, kind: usize, namespace: &str, name: &str, uid: &str, knew: i64) {
        let api = self.scenario.kinds[kind].api.clone();
        let Some(parent) = self.store.get(&api.api_version(), &api.kind, namespace, name) else { return };
        if parent["metadata"]["uid"] != uid || !parent["metadata"]["deletionTimestamp"].is_null() {
            return;
        }
        self.log_event(format_args!("the operator of {} looks at {namespace}/{name}", api.kind));
        for _ in 0..self.dice.between(0, 3) {
            self.create_child_of(kind, &parent);
        }
        if self.dice.chance(40) {
            self.respecify_child();
        }
        let later = self.dice.between(200, 8_000);
        self.schedule_event(later, SimEvent::Heal(uid.to_owned()));
        self.leave_mark(kind, &parent, knew);
    }

    /// Leaves the handled mark for the generation that the operator knew, even if there is a newer one by now.
    fn leave_mark(&mut self, kind: usize, parent: &Value, knew: i64) {
        let place = Self::object_ref(kind, parent);
        match self.scenario.kinds[kind].style {
            OperatorStyle::Silent => {}
            OperatorStyle::Status => self.patch_status(&place, &json!({"observedGeneration": knew})),
            OperatorStyle::Condition => {
                let condition = json!({"type": "Synced", "status": "True", "reason": "Done", "message": "",
                    "observedGeneration": knew, "lastTransitionTime": "2027-01-15T08:00:00Z"});
                self.put_condition(kind, parent, &condition);
            }
            OperatorStyle::Kopf => {
                let handled = json!({"spec": parent["spec"]}).to_string();
                self.patch_object(&place, &json!({"metadata": {"annotations": {KOPF_ANNOTATION: handled}}}));
            }
        }
    }
}
