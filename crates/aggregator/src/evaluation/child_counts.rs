//! What the children of one evaluation amount to.

use std::collections::{BTreeMap, BTreeSet};

use readiness::rollup::{ChildWeight, LevelTally};
use readiness::{Steadiness, Time};

use super::{UnreadyEntry, UnreadySet};
use crate::ids::ObjectId;

/// Children with an expected name: group, hash of the name, child.
pub(crate) type NamedChildren = BTreeSet<(u8, u64, ObjectId)>;

/// What the children of one evaluation amount to, kept up with every edge.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChildCounts {
    /// Tallies by group; a group without children has none.
    pub(crate) groups: Box<[(u8, LevelTally)]>,
    /// Every unready child. **Invariant:** contains no ready child.
    pub(crate) unready: UnreadySet,
    /// Children by name; kept only if the policy expects names, or a proof that their objects give.
    pub(crate) named: Option<Box<NamedChildren>>,
    /// Number of edges to this evaluation; one without edges and without a parent is dropped.
    pub(crate) edges: u32,
    /// Number of edges that are not counted because they would close a cycle.
    pub(crate) cyclic_edges: u32,
    /// Time of the last creation, deletion or spec change of a child.
    pub(crate) changed_at: Time,
    /// The same without children that were only scaled beside their operator.
    pub(crate) moved_at: Time,
    /// Time at which a child last appeared.
    pub(crate) appeared_at: Time,
    /// Time at which a critical child last appeared that was not ready.
    pub(crate) unready_appeared_at: Time,
}

/// Change of the children of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildChange {
    /// A child was scaled, and not by its operator as far as is known.
    Scaled,
    /// A child was deleted, or its spec changed.
    Altered,
    /// A child appeared that is ready, or does not matter.
    Appeared,
    /// A critical child appeared that is not ready.
    AppearedUnready,
}

impl ChildCounts {
    pub(crate) fn group_tally(&self, group: u8) -> LevelTally {
        self.find_group_tally(group).copied().unwrap_or_default()
    }

    pub(crate) fn find_group_tally(&self, group: u8) -> Option<&LevelTally> {
        self.groups.iter().find(|(g, _)| *g == group).map(|(_, tally)| tally)
    }

    #[inline]
    fn group_tally_mut(&mut self, group: u8) -> &mut LevelTally {
        let at = self.groups.iter().position(|(g, _)| *g == group).unwrap_or_else(|| self.add_group(group));
        &mut self.groups[at].1
    }

    /// Adds a group without children; returns its place.
    #[cold]
    fn add_group(&mut self, group: u8) -> usize {
        // Almost always one or two, kept as long as the parent exists: no spare capacity for four.
        let more = std::iter::once((group, LevelTally::default()));
        self.groups = self.groups.iter().copied().chain(more).collect();
        self.groups.len() - 1
    }

    /// Adds a child.
    fn add_child(&mut self, trouble: UnreadyEntry) {
        self.group_tally_mut(trouble.group).add_child(trouble.weight);
        if !trouble.weight.is_ready() {
            self.unready.insert(trouble);
        }
    }

    /// Removes a child; the entry has to equal the one that was added.
    fn remove_child(&mut self, trouble: UnreadyEntry) {
        self.group_tally_mut(trouble.group).remove_child(trouble.weight);
        if !trouble.weight.is_ready() {
            self.unready.remove(trouble);
        }
    }

    /// Changes the weight of a child; the entry has to equal the one that was added.
    pub(crate) fn reweigh_child(&mut self, entry: UnreadyEntry, weight: ChildWeight) {
        let tally = self.group_tally_mut(entry.group);
        tally.remove_child(entry.weight);
        tally.add_child(weight);
        if !entry.weight.is_ready() {
            self.unready.remove(entry);
        }
        if !weight.is_ready() {
            self.unready.insert(UnreadyEntry { weight, ..entry });
        }
    }

    /// Returns `true` if the controller of some child, which could be counted on until then, has not observed its spec.
    pub(crate) fn has_unobserved(&self) -> bool {
        let is_some = |tally: &LevelTally| {
            tally.steady_count(Steadiness::Unobserved) > tally.steady_count(Steadiness::Available)
        };
        self.groups.iter().any(|(_, tally)| is_some(tally))
    }

    /// Adds an edge from a child; with its `name` where names are to be kept. One on a cycle is not counted.
    pub(crate) fn add_edge(&mut self, entry: UnreadyEntry, name: Option<u64>, is_cyclic: bool) {
        self.edges += 1;
        if name.is_some() {
            self.named.get_or_insert_default();
        }
        if is_cyclic {
            self.cyclic_edges += 1;
            return;
        }
        self.add_child(entry);
        if let Some(name) = name {
            self.add_name(entry.group, name, entry.child);
        }
    }

    /// Removes an edge; the entry has to equal the one that was added.
    pub(crate) fn remove_edge(&mut self, entry: UnreadyEntry, name: u64, is_cyclic: bool) {
        self.edges -= 1;
        if is_cyclic {
            self.cyclic_edges -= 1;
            return;
        }
        self.remove_child(entry);
        self.remove_name(entry.group, name, entry.child);
    }

    /// Records that an edge now lies on a cycle, or does not any more.
    pub(crate) fn set_cyclic(&mut self, entry: UnreadyEntry, name: u64, is_cyclic: bool) {
        if is_cyclic {
            self.cyclic_edges += 1;
            self.remove_child(entry);
            self.remove_name(entry.group, name, entry.child);
        } else {
            self.cyclic_edges -= 1;
            self.add_child(entry);
            self.add_name(entry.group, name, entry.child);
        }
    }

    /// Adds a child by its name, where names are kept.
    fn add_name(&mut self, group: u8, name: u64, child: ObjectId) {
        if let Some(named) = &mut self.named {
            named.insert((group, name, child));
        }
    }

    fn remove_name(&mut self, group: u8, name: u64, child: ObjectId) {
        if let Some(named) = &mut self.named {
            named.remove(&(group, name, child));
        }
    }

    /// Returns `true` if the group has a child of that name.
    pub(crate) fn has_name(&self, group: u8, name: u64) -> bool {
        let range = (group, name, ObjectId(0))..=(group, name, ObjectId(u32::MAX));
        self.named.as_ref().is_some_and(|named| named.range(range).next().is_some())
    }

    /// Records the last creation, deletion or spec change of a child, and whether a child appeared.
    pub(crate) fn record_change(&mut self, at: Time, change: ChildChange) {
        self.changed_at = self.changed_at.max(at);
        if change != ChildChange::Scaled {
            self.moved_at = self.moved_at.max(at);
        }
        if matches!(change, ChildChange::Appeared | ChildChange::AppearedUnready) {
            self.appeared_at = self.appeared_at.max(at);
        }
        if change == ChildChange::AppearedUnready {
            self.unready_appeared_at = self.unready_appeared_at.max(at);
        }
    }

    /// Returns `true` if the newest version of some child awaits its rule.
    pub(crate) fn awaits_rules(&self) -> bool {
        self.groups.iter().any(|(_, tally)| tally.unjudged_count() > 0)
    }

    /// Returns the tallies by group, without empty ones.
    pub(crate) fn nonempty_tallies(&self) -> BTreeMap<u8, LevelTally> {
        self.groups.iter().copied().filter(|(_, t)| t.total_count() > 0).collect()
    }
}
