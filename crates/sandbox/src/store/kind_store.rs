//! The objects of one kind, and the history of their changes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

/// One committed change.
#[derive(Clone, Debug)]
pub(crate) struct StoredChange {
    pub(crate) revision: u64,
    pub(crate) key: String,
    /// The object before the change; `None` if it was created.
    pub(crate) before: Option<Arc<Value>>,
    /// The object after the change; if it was deleted, its last state under the revision of the deletion.
    pub(crate) after: Arc<Value>,
    pub(crate) deleted: bool,
}

/// The objects of one kind by key, with their changes, oldest first.
#[derive(Debug, Default)]
pub(crate) struct KindStore {
    pub(crate) objects: BTreeMap<String, Arc<Value>>,
    log: VecDeque<StoredChange>,
    /// Revision up to which changes are forgotten.
    compacted: u64,
}

impl KindStore {
    /// Returns an empty storage without history up to this revision.
    pub(crate) fn starting_after(revision: u64) -> KindStore {
        KindStore { compacted: revision, ..KindStore::default() }
    }

    /// Records a change and applies it.
    pub(crate) fn commit_change(&mut self, change: StoredChange, keep: usize) {
        if change.deleted {
            self.objects.remove(&change.key);
        } else {
            self.objects.insert(change.key.clone(), change.after.clone());
        }
        self.log.push_back(change);
        while self.log.len() > keep {
            self.forget_oldest();
        }
    }

    /// Renders every stored object again without a new revision: the served form depends on the schema, the stored
    /// state does not.
    pub(crate) fn reshape_objects(&mut self, show: impl Fn(&mut Value)) {
        for object in self.objects.values_mut() {
            let mut shown = (**object).clone();
            show(&mut shown);
            if shown != **object {
                *object = Arc::new(shown);
            }
        }
    }

    /// Returns the changes after this revision, oldest first.
    pub(crate) fn changes_since(&self, revision: u64) -> impl Iterator<Item = &StoredChange> {
        let from = self.log.partition_point(|change| change.revision <= revision);
        self.log.range(from..)
    }

    /// Returns `true` if a change after this revision has been forgotten.
    pub(crate) fn has_forgotten(&self, revision: u64) -> bool {
        revision < self.compacted
    }

    /// Forgets the changes up to this revision.
    pub(crate) fn compact(&mut self, revision: u64) {
        while self.log.front().is_some_and(|change| change.revision <= revision) {
            self.forget_oldest();
        }
        self.compacted = self.compacted.max(revision);
    }

    fn forget_oldest(&mut self) {
        if let Some(change) = self.log.pop_front() {
            self.compacted = change.revision;
        }
    }

    /// Returns the object under this key at a revision.
    pub(crate) fn object_at(&self, revision: u64, key: &str) -> Option<Arc<Value>> {
        match self.changes_since(revision).find(|change| change.key == key) {
            Some(change) => change.before.clone(),
            None => self.objects.get(key).cloned(),
        }
    }

    /// Returns the objects whose key starts with `prefix` as of a revision, in key order.
    pub(crate) fn snapshot(&self, revision: u64, prefix: &str, after: &str) -> BTreeMap<String, Arc<Value>> {
        let wanted = |key: &str| key.starts_with(prefix) && key > after;
        let from = if after > prefix { after } else { prefix };
        let now = self.objects.range(from.to_owned()..).take_while(|(key, _)| key.starts_with(prefix));
        let mut then: BTreeMap<String, Arc<Value>> =
            now.filter(|(key, _)| wanted(key)).map(|(key, object)| (key.clone(), object.clone())).collect();
        let undo: Vec<&StoredChange> =
            self.changes_since(revision).filter(|change| wanted(&change.key)).collect();
        for change in undo.into_iter().rev() {
            match &change.before {
                Some(before) => then.insert(change.key.clone(), before.clone()),
                None => then.remove(&change.key),
            };
        }
        then
    }
}
