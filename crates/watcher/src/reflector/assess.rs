//! Judging an object at the door, by the native rules or by a policy's own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use readiness::{Assessment, Reason, Time};
use rules::Object;
use serde_json::value::RawValue;

use super::Reflector;
use super::door::unknown;
use crate::parent::with_type;
use crate::plan::{Interest, Lens, UserRule};
use crate::wire::Child;

impl Reflector {
    /// One bad object never takes the others with it.
    pub(super) fn assess(
        &self,
        interest: &Interest,
        child: &Child,
        object: Option<&RawValue>,
        lens: &Lens,
    ) -> Assessment {
        let judged = catch_unwind(AssertUnwindSafe(|| match &lens.rule {
            None if lens.remembers => ended(interest, child, lens)
                .unwrap_or_else(|| readiness::assess(interest.judge, &child.facts, &lens.limits)),
            None => readiness::assess(interest.judge, &child.facts, &lens.limits),
            Some(rule) => readiness::before_rules(interest.judge, &child.facts, &lens.limits)
                .unwrap_or_else(|| self.ask(rule, child, object)),
        }));
        judged.unwrap_or_else(|_| unknown(Reason::RuleCrashed))
    }

    fn ask(&self, rule: &UserRule, child: &Child, object: Option<&RawValue>) -> Assessment {
        let Some(object) = object else { return unknown(Reason::RuleChanged) };
        let (api_version, kind) = &rule.of;
        let text = with_type(object.get(), child, api_version, kind);
        let now = Time(self.now.load(Ordering::Relaxed));
        let (judged, took) = rules::timed(|| rule.rule.judge(Object::Text(&text), now));
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.asked.0.fetch_add(1, Ordering::Relaxed);
        self.asked.1.fetch_add(took, Ordering::Relaxed);
        judged.assessment
    }
}

/// How one has ended that is being deleted: that counts, unless it does not get away.
fn ended(interest: &Interest, child: &Child, lens: &Lens) -> Option<Assessment> {
    child.facts.deleted?;
    let verdict = readiness::outcome(interest.judge, &child.facts)?;
    let deletion = readiness::assess(interest.judge, &child.facts, &lens.limits);
    Some(Assessment { verdict, then: deletion.then })
}
