//! Names and labels of namespaces.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use arcstr::ArcStr;
use rustc_hash::FxHashSet;
use serde_json::value::RawValue;

use super::row::NamespaceName;
use super::rules_of_parent::{OutrankedPolicy, RulesOfParent, RulingPolicy};
use crate::plan::{ElsewhereRule, Interest, LabelMatcher, ParentRule, ShapeMatcher};
use crate::wire::WireMeta;

/// Labels, in the order of the JSON text.
type LabelPairs = Box<[(Box<str>, Box<str>)]>;

/// Fewer names are not worth a sweep.
const MIN_NAMES_TO_SWEEP: usize = 64;

/// Names of namespaces, each stored once, and their labels.
#[derive(Default)]
pub(super) struct NamespaceTable(RwLock<NamespaceEntries>);

#[derive(Default)]
struct NamespaceEntries {
    labels: BTreeMap<NamespaceName, LabelPairs>,
    /// One shared text for each name that a row refers to, and for some that none does any more.
    names: FxHashSet<NamespaceName>,
    /// Number of names at which those that nothing refers to are dropped.
    sweep_at: usize,
}

impl NamespaceEntries {
    fn insert_name(&mut self, name: NamespaceName) {
        if self.names.len() >= self.sweep_at {
            self.names.retain(|name| ArcStr::strong_count(name).is_none_or(|holders| holders > 1));
            self.sweep_at = (2 * self.names.len()).max(MIN_NAMES_TO_SWEEP);
        }
        self.names.insert(name);
    }
}

impl NamespaceTable {
    fn read(&self) -> RwLockReadGuard<'_, NamespaceEntries> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, NamespaceEntries> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shared name of a namespace.
    pub(super) fn intern(&self, name: &str) -> NamespaceName {
        if let Some(known) = self.read().names.get(name) {
            return known.clone();
        }
        let mut entries = self.write();
        // Another thread may have met it meanwhile.
        if let Some(known) = entries.names.get(name) {
            return known.clone();
        }
        let name: NamespaceName = name.into();
        entries.insert_name(name.clone());
        name
    }

    /// Sets the labels of a namespace; returns `true` if they changed.
    pub(super) fn set_labels(&self, name: &str, labels: Option<&[(Box<str>, Box<str>)]>) -> bool {
        let name = self.intern(name);
        let namespaces = &mut self.write().labels;
        match labels {
            Some(labels) => namespaces.insert(name, labels.into()).as_deref() != Some(labels),
            None => namespaces.remove(&name).is_some(),
        }
    }

    /// The rules by which an object is a parent. Of several that select it for the same condition the first one rules: that of
    /// the oldest policy, also where that is another release's. Where only the metadata is known, it may be a parent of any shape.
    pub(super) fn parent_rules<'i>(
        &self,
        interest: &'i Interest,
        meta: &WireMeta,
        object: Option<&RawValue>,
    ) -> RulesOfParent<'i> {
        let namespaces = &self.read().labels;
        let shape = OnceCell::new();
        let is_of_shape = |matcher: &ShapeMatcher| {
            let read = |object: &RawValue| matcher.read_shape(object.get());
            object.is_none() || matcher.matches(shape.get_or_init(|| object.and_then(read)).as_deref())
        };
        let labels = namespaces.get(&*meta.namespace);
        let is_in = |selector: &LabelMatcher| labels.is_some_and(|labels| selector.matches(labels));
        let may_be_in = |selector: &LabelMatcher| labels.is_none_or(|labels| selector.matches(labels));
        let chosen = |rule: &&ParentRule| {
            let named = rule.is_over(&meta.namespace);
            let labelled = rule.namespace_selector.as_ref().is_none_or(is_in);
            let selected = named && labelled && rule.selector.matches(&meta.labels);
            selected && rule.shape.as_ref().is_none_or(is_of_shape)
        };
        let spoken_for: Vec<_> =
            interest.elsewhere.iter().filter(|rule| rule.may_choose(meta, may_be_in)).collect();
        // Where the labels of its namespace are not known it may be the other release's or not: to give way then could silence
        // policies of this one everywhere.
        let ruling: Vec<_> = spoken_for.iter().copied().filter(|rule| rule.may_choose(meta, is_in)).collect();
        let mut of_parent = RulesOfParent::default();
        for rule in interest.parent.iter().filter(chosen) {
            match find_ruling(&of_parent, &ruling, rule) {
                // It is for what is left.
                Some(RulingPolicy::Own(_))
                    if rule.shape.as_ref().is_some_and(ShapeMatcher::is_for_others) => {}
                Some(by) => of_parent.outranked.push(OutrankedPolicy { policy: rule.policy, by }),
                None => of_parent.rules.push(rule),
            }
        }
        let is_own = |kind: &str| of_parent.rules.iter().any(|rule| !rule.is_shadow && rule.writes(kind));
        of_parent.elsewhere = spoken_for
            .into_iter()
            .flat_map(|rule| &rule.types)
            .map(|kind| &**kind)
            .filter(|kind| !is_own(kind))
            .collect();
        of_parent
    }
}

/// The policy that rules a parent for the condition of this rule, if an older one does: of this release, or else of another one.
fn find_ruling(
    of_parent: &RulesOfParent<'_>,
    elsewhere: &[&ElsewhereRule],
    rule: &ParentRule,
) -> Option<RulingPolicy> {
    let own = of_parent.rules.iter().find(|ruling| ruling.condition == rule.condition);
    let other = || elsewhere.iter().find(|other| other.outranks.contains(&rule.policy));
    own.map(|ruling| RulingPolicy::Own(ruling.policy))
        .or_else(|| other().map(|other| RulingPolicy::Other(other.policy.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_nothing_refers_to_are_dropped_and_others_stay_shared() {
        let table = NamespaceTable::default();
        let held: Vec<_> = (0..100).map(|n| table.intern(&format!("held-{n}"))).collect();
        for n in 0..100_000 {
            table.intern(&format!("preview-{n}"));
        }
        assert!(table.read().names.len() <= 2 * (held.len() + MIN_NAMES_TO_SWEEP));
        assert!(held.iter().all(|name| ArcStr::ptr_eq(name, &table.intern(name))));
    }
}
