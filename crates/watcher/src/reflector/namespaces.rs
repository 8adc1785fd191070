//! Names and labels of namespaces.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use super::row::NamespaceName;
use super::rules_of_parent::{OutrankedPolicy, RulesOfParent};
use crate::plan::{Interest, ParentRule};
use crate::wire::WireMeta;

/// Labels, in the order of the JSON text.
type LabelPairs = Box<[(Box<str>, Box<str>)]>;

/// Names of namespaces, each stored once, and their labels.
#[derive(Default)]
pub(super) struct NamespaceTable {
    labels: RwLock<BTreeMap<NamespaceName, LabelPairs>>,
    interned: DashMap<NamespaceName, (), FxBuildHasher>,
}

impl NamespaceTable {
    /// The shared name of a namespace.
    pub(super) fn intern(&self, name: &str) -> NamespaceName {
        if let Some(known) = self.interned.get(name) {
            return known.key().clone();
        }
        let name: NamespaceName = name.into();
        self.interned.insert(name.clone(), ());
        name
    }

    /// Sets the labels of a namespace; returns `true` if they changed.
    pub(super) fn set_labels(&self, name: &str, labels: Option<&[(Box<str>, Box<str>)]>) -> bool {
        let name = self.intern(name);
        let mut namespaces = self.labels.write().unwrap_or_else(PoisonError::into_inner);
        match labels {
            Some(labels) => namespaces.insert(name, labels.into()).as_deref() != Some(labels),
            None => namespaces.remove(&name).is_some(),
        }
    }

    /// The rules by which an object with this metadata is a parent. Of several that select it for the same condition the first
    /// one rules: that of the oldest policy.
    pub(super) fn parent_rules<'i>(&self, interest: &'i Interest, meta: &WireMeta) -> RulesOfParent<'i> {
        let namespaces = self.labels.read().unwrap_or_else(PoisonError::into_inner);
        let chosen = |rule: &&ParentRule| {
            let named = rule.namespaces.is_empty() || rule.namespaces.contains(&meta.namespace);
            let labelled = rule.namespace_selector.as_ref().is_none_or(|selector| {
                namespaces.get(&*meta.namespace).is_some_and(|labels| selector.matches(labels))
            });
            named && labelled && rule.selector.matches(&meta.labels)
        };
        let mut of_parent = RulesOfParent::default();
        for rule in interest.parent.iter().filter(chosen) {
            match of_parent.rules.iter().find(|ruling| ruling.condition == rule.condition) {
                Some(ruling) => {
                    of_parent.outranked.push(OutrankedPolicy { policy: rule.policy, by: ruling.policy });
                }
                None => of_parent.rules.push(rule),
            }
        }
        of_parent
    }
}
