//! Series of kinds that are not seen. A kind may be followed for parents and for the service itself, at the same time.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus::{IntGaugeVec, Result};

use super::factory::{MetricFactory, MetricSeries};

/// For whom a kind is followed, and whether it is stale for them.
#[derive(Default)]
struct StaleFor {
    parents: Option<bool>,
    service: Option<bool>,
}

/// `rollcall_watch_stale`. The loop writes what parents rest on, the policies' task what the service itself rests on.
pub(crate) struct StaleSeries {
    gauge: IntGaugeVec,
    kinds: Mutex<BTreeMap<String, StaleFor>>,
}

impl StaleSeries {
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<StaleSeries> {
        let gauge = make.gauge_vec(
            "watch_stale",
            "1 while a kind can be neither watched nor listed, else 0.",
            &["kind"],
        )?;
        Ok(StaleSeries { gauge, kinds: Mutex::default() })
    }

    /// A kind on which parents rest.
    pub(crate) fn set_planned(&self, kind: &str, is_stale: bool) {
        self.update(kind, |stale| stale.parents = Some(is_stale));
    }

    /// A kind on which the service itself rests.
    pub(crate) fn set_own(&self, kind: &str, is_stale: bool) {
        self.update(kind, |stale| stale.service = Some(is_stale));
    }

    fn update(&self, kind: &str, change: impl FnOnce(&mut StaleFor)) {
        let mut kinds = self.lock_kinds();
        let stale = kinds.entry(kind.to_owned()).or_default();
        change(stale);
        let is_stale = [stale.parents, stale.service].contains(&Some(true));
        self.gauge.with_label_values(&[kind]).set(i64::from(is_stale));
        if stale.parents.is_none() && stale.service.is_none() {
            kinds.remove(kind);
            self.gauge.hide_series(&[kind]);
        }
    }

    fn lock_kinds(&self) -> MutexGuard<'_, BTreeMap<String, StaleFor>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As the plan has it.
impl MetricSeries for StaleSeries {
    fn show_series(&self, labels: &[&str]) {
        for kind in labels {
            self.update(kind, |stale| _ = stale.parents.get_or_insert(false));
        }
    }

    fn hide_series(&self, labels: &[&str]) {
        for kind in labels {
            self.update(kind, |stale| stale.parents = None);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "what fails here is a failed test")]

    use prometheus::Registry;

    use super::*;

    #[test]
    fn a_kind_that_parents_and_the_service_rest_on_is_stale_while_either_cannot_see_it() {
        let stale = StaleSeries::new(&MetricFactory(&Registry::new())).unwrap();
        let value = || stale.gauge.with_label_values(&["ConfigMap"]).get();
        stale.show_series(&["ConfigMap"]);
        stale.set_own("ConfigMap", true);
        stale.set_planned("ConfigMap", false);
        assert_eq!(value(), 1);
        stale.hide_series(&["ConfigMap"]);
        assert_eq!(value(), 1, "the plan has it no more, and the service does");
        stale.set_own("ConfigMap", false);
        assert_eq!(value(), 0);
        stale.set_planned("Pod", true);
        stale.hide_series(&["Pod"]);
        assert!(stale.gauge.remove_label_values(&["Pod"]).is_err(), "nobody has it any more");
    }
}
