//! The answer of Rollcall in CEL, as Flux and kro evaluate it.

use super::super::condition_answer::{ConditionAnswer, READY_REASON, TERMINAL_REASONS};

/// An object in an expression: nothing for the fields of Flux, which are names of their own, or a name with a dot.
pub(super) struct CelObject(pub(super) String);

impl CelObject {
    /// All answers say True about the current generation, in words of Rollcall's.
    pub(super) fn ready_expression(&self, answers: &[ConditionAnswer]) -> String {
        let ready = answers.iter().map(|answer| {
            let says =
                format!("c.status == \"True\" && has(c.reason) && c.reason == {}", quote(READY_REASON));
            self.some_condition(&list(answer.types()), &says)
        });
        ready.collect::<Vec<_>>().join(" && ")
    }

    /// Some answer about the current generation says what stays until someone acts.
    pub(super) fn failed_expression(&self, answers: &[ConditionAnswer]) -> String {
        let terminal = list(TERMINAL_REASONS.into_iter());
        let failed = answers.iter().flat_map(ConditionAnswer::types).map(|of| {
            if of == "Ready" {
                return self.some_condition("[\"Stalled\"]", "c.status == \"True\"");
            }
            let says = format!("c.status != \"True\" && has(c.reason) && c.reason in {terminal}");
            self.some_condition(&list([of].into_iter()), &says)
        });
        failed.collect::<Vec<_>>().join(" || ")
    }

    fn some_condition(&self, types: &str, says: &str) -> String {
        let CelObject(object) = self;
        format!(
            "{object}status.conditions.exists(c, c.type in {types} && {says} && has(c.observedGeneration) && \
             c.observedGeneration == {object}metadata.generation)"
        )
    }
}

fn list<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", texts.map(quote).collect::<Vec<_>>().join(", "))
}

/// Returns a CEL string literal: types and reasons have no character that would need more.
fn quote(text: &str) -> String {
    format!("{text:?}")
}
