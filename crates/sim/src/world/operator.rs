//! Operators: they look at a parent some time after its spec changed, act on its children, and leave a mark, or none.

use serde_json::{Value, json};

use crate::scenario::Style;
use crate::sim::{Event, Sim};
use crate::thing::KOPF;

impl Sim {
    /// An operator will look at a parent: soon, late, or never.
    pub(crate) fn notice(&mut self, kind: usize, parent: &Value) {
        let place = Self::place(kind, parent);
        let uid = parent["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let knew = parent["metadata"]["generation"].as_i64().unwrap_or(0);
        let after = match self.dice.below(20) {
            0 => return,
            1..5 => self.dice.between(5_000, 40_000),
            _ => self.dice.between(5, 2_500),
        };
        self.at(after, Event::Operator(kind, place.namespace, place.name, uid, knew));
    }

    /// It looks: what is missing is made, what is there is changed, and then the mark.
    pub(crate) fn operate(&mut self, kind: usize, namespace: &str, name: &str, uid: &str, knew: i64) {
        let api = self.scenario.kinds[kind].api.clone();
        let Some(parent) = self.store.get(&api.api_version(), &api.kind, namespace, name) else { return };
        if parent["metadata"]["uid"] != uid || !parent["metadata"]["deletionTimestamp"].is_null() {
            return;
        }
        self.say(format_args!("the operator of {} looks at {namespace}/{name}", api.kind));
        for _ in 0..self.dice.between(0, 3) {
            self.create_child_of(kind, &parent);
        }
        if self.dice.chance(40) {
            self.respecify_child();
        }
        let later = self.dice.between(200, 8_000);
        self.at(later, Event::Heal(uid.to_owned()));
        self.leave_mark(kind, &parent, knew);
    }

    /// What it says is about the generation that it knew, even where there is a newer one by now.
    fn leave_mark(&mut self, kind: usize, parent: &Value, knew: i64) {
        let place = Self::place(kind, parent);
        match self.scenario.kinds[kind].style {
            Style::Silent => {}
            Style::Status => self.status(&place, &json!({"observedGeneration": knew})),
            Style::Condition => {
                let condition = json!({"type": "Synced", "status": "True", "reason": "Done", "message": "",
                    "observedGeneration": knew, "lastTransitionTime": "2027-01-15T08:00:00Z"});
                self.put_condition(kind, parent, &condition);
            }
            Style::Kopf => {
                let handled = json!({"spec": parent["spec"]}).to_string();
                self.patch(&place, &json!({"metadata": {"annotations": {KOPF: handled}}}));
            }
        }
    }
}
