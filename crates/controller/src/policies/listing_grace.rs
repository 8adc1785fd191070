//! A policy that was ready and lists its kinds anew is not told otherwise for a while: so begins every restart, and what
//! stands on its parents stays, too.

use std::collections::BTreeMap;
use std::time::Duration;

use api::ReadinessPolicyStatus;
use policy::PolicyReason;
use readiness::Time;

/// Time for which what was said of a policy stands while its kinds are listed anew. 2 min, as that of its parents.
const LISTED_WITHIN: Duration = Duration::from_mins(2);

/// Since when the kinds of each policy are listed anew.
#[derive(Default)]
pub(super) struct ListingGrace {
    since: BTreeMap<String, Time>,
}

impl ListingGrace {
    /// Until when what was said of this generation stands although `status` says that its kinds are listed; `None` where
    /// `status` is to be told.
    pub(super) fn held_until(
        &mut self,
        name: &str,
        (old, status): (&ReadinessPolicyStatus, &ReadinessPolicyStatus),
        now: Time,
    ) -> Option<Time> {
        if !is_listing(status) {
            self.since.remove(name);
            return None;
        }
        let until = *self.since.entry(name.to_owned()).or_insert(now) + LISTED_WITHIN;
        let stands = old.observed_generation == status.observed_generation && is_ready(old);
        (stands && now < until).then_some(until)
    }

    /// Forgets policies that are gone.
    pub(super) fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.since.retain(|name, _| is_there(name));
    }
}

fn is_listing(status: &ReadinessPolicyStatus) -> bool {
    let listing = PolicyReason::Listing.as_str();
    status.conditions.iter().any(|held| held.r#type == "Ready" && held.reason == listing)
}

fn is_ready(status: &ReadinessPolicyStatus) -> bool {
    status.conditions.iter().any(|held| held.r#type == "Ready" && held.status == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The status of a policy of this generation by its condition `Ready`.
    fn status(generation: i64, (status, reason): (&str, &str)) -> ReadinessPolicyStatus {
        let ready = json!({
            "type": "Ready", "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": generation,
        });
        serde_json::from_value(json!({ "observedGeneration": generation, "conditions": [ready] }))
            .expect("a status")
    }

    #[test]
    fn what_was_said_stands_for_two_minutes_of_listing_and_for_no_other_generation() {
        let ready = status(1, ("True", "Synced"));
        let listing = |generation| status(generation, ("False", "Listing"));
        let held = |grace: &mut ListingGrace, old: &ReadinessPolicyStatus, new, seconds: i64| {
            grace.held_until("db", (old, &new), Time(seconds * 1000)).is_some()
        };
        let grace = &mut ListingGrace::default();
        assert!(held(grace, &ready, listing(1), 10));
        assert!(held(grace, &ready, listing(1), 129));
        assert!(!held(grace, &ready, listing(1), 130), "it does not end");
        assert!(!held(grace, &ready, status(1, ("True", "Synced")), 131));
        assert!(held(grace, &ready, listing(1), 140), "another list");
        let other = &mut ListingGrace::default();
        assert!(!held(other, &ready, listing(2), 10), "nothing was said of this generation");
        assert!(!held(other, &listing(1), listing(1), 11), "it was not ready");
        assert!(!held(other, &ready, status(1, ("False", "NotWatching")), 12), "something else keeps it");
    }
}
