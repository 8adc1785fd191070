//! A parent that expects children by name, and the first run of one that was never observed.

use aggregator::PolicyId;
use readiness::Time;

use super::outcome::{OutcomeParent, RememberedOutcome};
use super::run_trace::RunTrace;
use crate::plan::ChildRule;

/// A parent that expects some children by name.
#[derive(Clone, Debug)]
pub(super) struct ExpectingParent {
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
    pub(super) uid: Box<str>,
    pub(super) created: Time,
    pub(super) generation: u64,
    /// The names, by policy and group.
    pub(super) names: Vec<(PolicyId, u8, Box<str>)>,
}

impl ExpectingParent {
    /// Returns the first run of an expected object that Events report, if the trace can be one.
    pub(super) fn first_run(
        &self,
        trace: &RunTrace,
        rule: &ChildRule,
    ) -> Option<(OutcomeParent, RememberedOutcome)> {
        let (group, kind) = rule.find.parent_kind()?;
        let second = |at: Time| at.0.div_euclid(1_000);
        let first = trace
            .first_seen
            .filter(|first| trace.seen_from_creation && second(*first) >= second(self.created))?;
        let whose = OutcomeParent {
            group: group.into(),
            kind: kind.into(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        };
        let outcome = RememberedOutcome {
            kind: trace.kind,
            uid: trace.uid.clone(),
            namespace: trace.namespace.clone(),
            name: trace.name.clone(),
            slot: trace.name.clone(),
            created: Some(first),
            // The generation of the parent at that run is unknown unless there has been only one: 0 means none.
            generation: Some(u64::from(self.generation == 1)),
            deleted: true,
            first_version: trace.version,
            known_from_events: true,
            ..RememberedOutcome::default()
        };
        Some((whose, outcome))
    }
}
