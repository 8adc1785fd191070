//! Which parents policies choose by the labels of namespaces, when these labels change.
//!
//! Whoever labels a namespace costs the parents of others no more than a list now and then: one is due only where a
//! selector answers otherwise than before, and for each kind ever more rarely while that goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aggregator::KindId;
use policy::CompiledPolicy;
use rollcall_core::StagedList;
use tokio::time::{Instant, sleep_until};
use watcher::FollowEvent;
use watcher::wire::ChildObject;

/// Interval between the first two lists of a kind because of labels; each next one is twice as long. 1 s.
const FIRST_RELIST_INTERVAL: Duration = Duration::from_secs(1);
/// Longest interval between two of them; after as long without a change, the next is listed at once. 30 s.
const MAX_RELIST_INTERVAL: Duration = Duration::from_secs(30);

/// Labels of a namespace.
pub(super) type NamespaceLabels = Vec<(Box<str>, Box<str>)>;

/// A namespace that came or went, or whose labels changed; `None` where it is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LabelChange {
    pub(super) name: Box<str>,
    pub(super) before: Option<NamespaceLabels>,
    pub(super) after: Option<NamespaceLabels>,
}

impl LabelChange {
    /// True if this policy chooses parents by labels of namespaces, and not the same ones in this namespace as before.
    fn changes_parents_of(&self, policy: &CompiledPolicy) -> bool {
        policy.namespace_selector.as_ref().is_some_and(|selector| {
            let is_chosen =
                |labels: &Option<NamespaceLabels>| labels.as_ref().is_some_and(|of| selector.matches(of));
            is_chosen(&self.before) != is_chosen(&self.after)
        })
    }
}

/// Applies an event of the namespaces' watch; returns what changed by it.
pub(super) fn apply_namespace_event(
    known: &mut StagedList<Box<str>, NamespaceLabels>,
    event: FollowEvent<ChildObject>,
) -> Vec<LabelChange> {
    let changes = match event {
        FollowEvent::Init => {
            known.begin_list();
            Vec::new()
        }
        FollowEvent::InitApply(ChildObject { meta, .. }) => {
            known.stage_item(meta.name, meta.labels);
            Vec::new()
        }
        FollowEvent::InitDone => {
            let mut before = known.items().cloned().unwrap_or_default();
            known.finish_list();
            let listed = known.items().into_iter().flatten();
            let mut changes: Vec<_> = listed
                .map(|(name, labels)| LabelChange {
                    name: name.clone(),
                    before: before.remove(name),
                    after: Some(labels.clone()),
                })
                .collect();
            let gone = before.into_iter();
            changes.extend(gone.map(|(name, labels)| LabelChange {
                name,
                before: Some(labels),
                after: None,
            }));
            changes
        }
        FollowEvent::Apply(ChildObject { meta, .. }) => {
            let before = known.apply_item(meta.name.clone(), meta.labels.clone());
            vec![LabelChange { name: meta.name, before, after: Some(meta.labels) }]
        }
        FollowEvent::Delete(ChildObject { meta, .. }) => {
            let before = known.remove_item(&meta.name);
            vec![LabelChange { name: meta.name, before, after: None }]
        }
        FollowEvent::Failure(_) | FollowEvent::Alive => Vec::new(),
    };
    changes.into_iter().filter(|change| change.before != change.after).collect()
}

/// Policies that choose other parents by these changes than before.
pub(super) fn policies_choosing_otherwise<'p>(
    policies: impl Iterator<Item = &'p CompiledPolicy>,
    changes: &[LabelChange],
) -> impl Iterator<Item = &'p CompiledPolicy> {
    policies.filter(|policy| changes.iter().any(|change| change.changes_parents_of(policy)))
}

/// Kinds to be listed again because other parents are chosen.
#[derive(Debug, Default)]
pub(super) struct RelistSchedule {
    due: BTreeMap<KindId, Instant>,
    last: BTreeMap<KindId, LastRelist>,
}

/// The last list of a kind because of labels.
#[derive(Clone, Copy, Debug)]
struct LastRelist {
    at: Instant,
    /// To the next one.
    interval: Duration,
}

impl RelistSchedule {
    /// A list of this kind is due: now, or when the interval since the last one has passed.
    pub(super) fn request_relist(&mut self, kind: KindId, now: Instant) {
        let earliest = self.last.get(&kind).map_or(now, |last| now.max(last.at + last.interval));
        self.due.entry(kind).or_insert(earliest);
    }

    /// Takes the kinds that are due.
    pub(super) fn take_due(&mut self, now: Instant) -> BTreeSet<KindId> {
        let due: BTreeSet<_> = self.due.extract_if(.., |_, at| *at <= now).map(|(kind, _)| kind).collect();
        self.last.retain(|_, last| last.at + last.interval + MAX_RELIST_INTERVAL > now);
        for kind in &due {
            let longer = self.last.get(kind).map(|last| (2 * last.interval).min(MAX_RELIST_INTERVAL));
            let interval = longer.unwrap_or(FIRST_RELIST_INTERVAL);
            self.last.insert(*kind, LastRelist { at: now, interval });
        }
        due
    }

    /// Waits until a kind is due.
    pub(super) async fn wait_until_due(&self) {
        match self.due.values().min() {
            Some(at) => sleep_until(*at).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests;
