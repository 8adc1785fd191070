//! Objects that a policy expects by name and that were never observed.

use aggregator::PolicyId;
use readiness::Time;
use rustc_hash::FxHashMap;

use super::super::{Reflector, slots};
use super::{OutcomeMemory, OutcomeParent, RememberedOutcome, RunTrace};
use crate::plan::{ChildRule, FindChildrenBy, OutcomeRetention};

/// A parent that expects some children by name.
#[derive(Clone, Debug)]
pub(super) struct ExpectingParent {
    namespace: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    created: Time,
    generation: u64,
    names: Vec<(PolicyId, u8, Box<str>)>,
}

impl ExpectingParent {
    /// Returns the first run of an expected object that Events report, if the trace can be one.
    pub(super) fn first_run(
        &self,
        trace: &RunTrace,
        rule: &ChildRule,
    ) -> Option<(OutcomeParent, RememberedOutcome)> {
        let FindChildrenBy::Owner { group, kind } = &rule.find else { return None };
        let second = |at: Time| at.0.div_euclid(1_000);
        let first = trace
            .first_seen
            .filter(|first| trace.seen_from_creation && second(*first) >= second(self.created))?;
        let whose = OutcomeParent {
            group: group.clone(),
            kind: kind.clone(),
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

impl OutcomeMemory {
    /// Returns the rule under which a parent expects an object of this name and remembers its outcome.
    pub(super) fn expecting_rule(&self, expectant: &ExpectingParent, name: &str) -> Option<&ChildRule> {
        let mut rules = self.interests.values().flat_map(|interest| &interest.child);
        rules.find(|rule| {
            let of = |(policy, group, expected): &(PolicyId, u8, Box<str>)| {
                (*policy, *group, &**expected) == (rule.policy, rule.group, name)
            };
            rule.retention != OutcomeRetention::Forget && expectant.names.iter().any(of)
        })
    }

    /// Returns the parents in a namespace by the expected names without a remembered outcome.
    pub(super) fn expecting_parents(&self, namespace: &str) -> FxHashMap<Box<str>, Vec<slots::UidKey>> {
        let mut found = FxHashMap::<Box<str>, Vec<slots::UidKey>>::default();
        for (parent, expectant) in self.expected.iter().filter(|(_, e)| *e.namespace == *namespace) {
            for name in self.missing_names(*parent, expectant) {
                found.entry(name.clone()).or_default().push(*parent);
            }
        }
        found
    }

    fn missing_names<'m>(
        &'m self,
        parent: slots::UidKey,
        of: &'m ExpectingParent,
    ) -> impl Iterator<Item = &'m Box<str>> {
        let known = self.parents.get(&parent).map_or(&[][..], |m| &m.outcomes);
        let names = of.names.iter().map(|(_, _, name)| name);
        names.filter(move |name| {
            !known.iter().any(|o| o.slot == **name) && self.expecting_rule(of, name).is_some()
        })
    }

    /// Marks the namespaces of missing expected objects as blind after a list: such an object may have come and gone.
    pub(super) fn mark_missing_blind(&mut self) {
        if !self.interests.keys().all(|kind| self.listed.contains(kind)) {
            return;
        }
        let lacking =
            self.expected.iter().filter(|(parent, of)| self.missing_names(**parent, of).next().is_some());
        let namespaces: Vec<_> = lacking.map(|(_, of)| of.namespace.clone()).collect();
        self.blind_namespaces.extend(namespaces);
    }
}

impl Reflector {
    /// Returns the names that a parent expects, as last read.
    pub(super) fn read_expecting_parent(&self, uid: &str) -> Option<ExpectingParent> {
        let id = self.find_object(uid)?;
        let read = |row: &super::super::ObjectRow| {
            let parent = row.parent.as_ref()?;
            let named = |of: &super::super::AnswerTarget| {
                let policy = of.policy;
                of.names.iter().map(move |(group, name)| (policy, *group, name.clone())).collect::<Vec<_>>()
            };
            let names: Vec<_> = parent.targets.iter().flat_map(named).collect();
            (!names.is_empty() && !row.namespace.is_empty()).then(|| ExpectingParent {
                namespace: (*row.namespace).into(),
                name: row.name.clone(),
                uid: uid.into(),
                created: Time(i64::from(row.created) * 1_000),
                generation: parent.view.generation,
                names,
            })
        };
        self.read_row(id, read).flatten()
    }
}
