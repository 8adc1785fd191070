//! Objects that a policy expects by name and that were never observed.

use aggregator::PolicyId;
use readiness::Time;
use rustc_hash::FxHashMap;

use super::super::parent::AnswerTarget;
use super::super::row::ObjectRow;
use super::super::rows::Rows;
use super::super::uid_key::UidKey;
use super::expecting_parent::ExpectingParent;
use super::memory_state::MemoryState;
use crate::plan::{ChildRule, OutcomeRetention};

/// Returns the rule under which a parent expects an object of this name and remembers its outcome.
pub(super) fn expecting_rule<'m>(
    state: &'m MemoryState,
    expectant: &ExpectingParent,
    name: &str,
) -> Option<&'m ChildRule> {
    let mut rules = state.interests.values().flat_map(|interest| &interest.child);
    rules.find(|rule| {
        let of = |(policy, group, expected): &(PolicyId, u8, Box<str>)| {
            (*policy, *group, &**expected) == (rule.policy, rule.group, name)
        };
        rule.retention != OutcomeRetention::Forget && expectant.names.iter().any(of)
    })
}

/// Returns the parents in a namespace by the expected names without a remembered outcome.
pub(super) fn expecting_parents(state: &MemoryState, namespace: &str) -> FxHashMap<Box<str>, Vec<UidKey>> {
    let mut found = FxHashMap::<Box<str>, Vec<UidKey>>::default();
    for (parent, expectant) in state.expected.iter().filter(|(_, e)| *e.namespace == *namespace) {
        for name in missing_names(state, *parent, expectant) {
            found.entry(name.clone()).or_default().push(*parent);
        }
    }
    found
}

fn missing_names<'m>(
    state: &'m MemoryState,
    parent: UidKey,
    of: &'m ExpectingParent,
) -> impl Iterator<Item = &'m Box<str>> {
    let known = state.parents.get(&parent).map_or(&[][..], |m| &m.outcomes);
    let names = of.names.iter().map(|(_, _, name)| name);
    names.filter(move |name| {
        !known.iter().any(|o| o.slot == **name) && expecting_rule(state, of, name).is_some()
    })
}

/// Marks the namespaces of missing expected objects as blind after a list: such an object may have come and gone.
pub(super) fn mark_missing_blind(state: &mut MemoryState) {
    if !state.interests.keys().all(|kind| state.listed.contains(kind)) {
        return;
    }
    let lacking =
        state.expected.iter().filter(|(parent, of)| missing_names(state, **parent, of).next().is_some());
    let namespaces: Vec<_> = lacking.map(|(_, of)| of.namespace.clone()).collect();
    state.blind_namespaces.extend(namespaces);
}

/// Returns the names that a parent expects, as last read.
pub(super) fn read_expecting_parent(rows: &Rows, uid: &str) -> Option<ExpectingParent> {
    let id = rows.find(uid)?;
    let read = |row: &ObjectRow| {
        let parent = row.parent.as_ref()?;
        let named = |of: &AnswerTarget| {
            let policy = of.policy;
            of.names().iter().map(move |(group, name)| (policy, *group, name.clone())).collect::<Vec<_>>()
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
    rows.read(id, read).flatten()
}
