//! Which policies wrote which types of conditions, which outlives the process.

use std::collections::{BTreeMap, BTreeSet};

use super::policy_plan::WrittenTypes;

/// Condition types by parent kind, of all policies that ever wrote, with the uids of those policies.
#[derive(Clone, Debug, Default)]
pub(crate) struct TypeInventory(BTreeMap<usize, BTreeMap<String, BTreeSet<u64>>>);

impl TypeInventory {
    /// A policy writes these types.
    pub(super) fn add(&mut self, kind: usize, types: impl IntoIterator<Item = String>, uid: Option<u64>) {
        let of_kind = self.0.entry(kind).or_default();
        for of in types {
            of_kind.entry(of).or_default().extend(uid);
        }
    }

    /// Returns the types that are written by nobody any more: neither among `written`, nor what one of the policies that are refused
    /// wrote before.
    pub(super) fn released(&self, written: &WrittenTypes, refused: &BTreeSet<u64>) -> WrittenTypes {
        let mut released = WrittenTypes::new();
        for (kind, types) in &self.0 {
            let is_written = |of: &String| written.get(kind).is_some_and(|written| written.contains(of));
            let stands = |uids: &BTreeSet<u64>| !uids.is_disjoint(refused);
            let left = types.iter().filter(|(of, uids)| !is_written(of) && !stands(uids));
            released.insert(*kind, left.map(|(of, _)| of.clone()).collect());
        }
        released
    }
}
