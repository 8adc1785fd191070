//! Objects that a policy expects by name, of which nothing was ever seen.

use aggregator::PolicyId;
use readiness::Time;
use rustc_hash::FxHashMap;

use super::super::{Reflector, slots};
use super::{Memory, Outcome, Trace, Whose};
use crate::plan::{After, ChildRule, Find};

/// A parent of which some children are expected by name.
#[derive(Clone, Debug)]
pub(super) struct Expectant {
    namespace: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    created: Time,
    generation: u64,
    names: Vec<(PolicyId, u8, Box<str>)>,
}

impl Expectant {
    /// The first run of what it expects that was ever heard of, if it can be one.
    pub(super) fn first(&self, trace: &Trace, rule: &ChildRule) -> Option<(Whose, Outcome)> {
        let Find::Owner { group, kind } = &rule.find else { return None };
        let second = |at: Time| at.0.div_euclid(1_000);
        let first = trace.first.filter(|first| trace.born && second(*first) >= second(self.created))?;
        let whose = Whose {
            group: group.clone(),
            kind: kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        };
        let outcome = Outcome {
            kind: trace.kind,
            uid: trace.uid.clone(),
            namespace: trace.namespace.clone(),
            name: trace.name.clone(),
            slot: trace.name.clone(),
            created: Some(first),
            // Under which of several it ran is not known: none is 0.
            generation: Some(u64::from(self.generation == 1)),
            gone: true,
            first: trace.version,
            heard: true,
            ..Outcome::default()
        };
        Some((whose, outcome))
    }
}

impl Memory {
    /// The rule under which a parent expects something of this name and is to remember it.
    pub(super) fn expects(&self, expectant: &Expectant, name: &str) -> Option<&ChildRule> {
        let mut rules = self.interests.values().flat_map(|interest| &interest.child);
        rules.find(|rule| {
            let of = |(policy, group, expected): &(PolicyId, u8, Box<str>)| {
                (*policy, *group, &**expected) == (rule.policy, rule.group, name)
            };
            rule.after != After::Forget && expectant.names.iter().any(of)
        })
    }

    /// Parents in a namespace by what they expect, and of which they remember nothing.
    pub(super) fn expectants(&self, namespace: &str) -> FxHashMap<Box<str>, Vec<slots::Uid>> {
        let mut found = FxHashMap::<Box<str>, Vec<slots::Uid>>::default();
        for (parent, expectant) in self.expected.iter().filter(|(_, e)| *e.namespace == *namespace) {
            for name in self.lacks(*parent, expectant) {
                found.entry(name.clone()).or_default().push(*parent);
            }
        }
        found
    }

    fn lacks<'m>(&'m self, parent: slots::Uid, of: &'m Expectant) -> impl Iterator<Item = &'m Box<str>> {
        let known = self.parents.get(&parent).map_or(&[][..], |m| &m.outcomes);
        let names = of.names.iter().map(|(_, _, name)| name);
        names.filter(move |name| !known.iter().any(|o| o.slot == **name) && self.expects(of, name).is_some())
    }

    /// After a list: what is expected and is not there may have come and gone.
    pub(super) fn wonder(&mut self) {
        if !self.interests.keys().all(|kind| self.listed.contains(kind)) {
            return;
        }
        let lacking = self.expected.iter().filter(|(parent, of)| self.lacks(**parent, of).next().is_some());
        let namespaces: Vec<_> = lacking.map(|(_, of)| of.namespace.clone()).collect();
        self.blind.extend(namespaces);
    }
}

impl Reflector {
    /// What a parent expects by name, as it was last read.
    pub(super) fn expectant(&self, uid: &str) -> Option<Expectant> {
        let id = self.find(uid)?;
        let read = |row: &super::super::Row| {
            let parent = row.parent.as_ref()?;
            let named = |of: &super::super::AnswerTarget| {
                let policy = of.policy;
                of.names.iter().map(move |(group, name)| (policy, *group, name.clone())).collect::<Vec<_>>()
            };
            let names: Vec<_> = parent.targets.iter().flat_map(named).collect();
            (!names.is_empty() && !row.namespace.is_empty()).then(|| Expectant {
                namespace: (*row.namespace).into(),
                name: row.name.clone(),
                uid: uid.into(),
                created: Time(i64::from(row.created) * 1_000),
                generation: parent.view.generation,
                names,
            })
        };
        self.read(id, read).flatten()
    }
}
