//! Rules on a status that is not about the current generation.

use crate::Reason;
use crate::branch::Branch;
use crate::facts::Facts;
use crate::readiness_ruling::ReadinessRuling;

/// Rules on a `status` that is about another generation: an older one, or one from before a restore.
pub(crate) fn rule_on_stale_generation(facts: &Facts) -> Option<ReadinessRuling<'_>> {
    let (observed, generation) = (facts.status.observed?, facts.generation?);
    (observed != generation).then(|| rule_on_unobserved_generation(facts))
}

/// Rules on an object whose controller has not reported observing this generation.
pub(crate) fn rule_on_unobserved_generation(facts: &Facts) -> ReadinessRuling<'_> {
    let branch =
        Branch::Generation { at: None, observed: facts.status.observed, generation: facts.generation };
    ReadinessRuling::progressing(Reason::StaleGeneration, branch)
}
