//! The objects of one kind, and what happened to them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

/// One committed change.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) key: String,
    /// What was there before; `None` when it was created.
    pub(crate) before: Option<Arc<Value>>,
    /// What is there now; when it was deleted, its last state under the revision of the deletion.
    pub(crate) after: Arc<Value>,
    pub(crate) deleted: bool,
}

/// The objects of one kind by key, with the changes that led here, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    pub(crate) objects: BTreeMap<String, Arc<Value>>,
    log: VecDeque<Change>,
    /// Changes up to this revision are forgotten.
    compacted: u64,
}

impl Shelf {
    /// An empty one that nothing is known of up to this revision.
    pub(crate) fn since_revision(revision: u64) -> Shelf {
        Shelf { compacted: revision, ..Shelf::default() }
    }

    /// Records a change and applies it.
    pub(crate) fn commit(&mut self, change: Change, keep: usize) {
        if change.deleted {
            self.objects.remove(&change.key);
        } else {
            self.objects.insert(change.key.clone(), change.after.clone());
        }
        self.log.push_back(change);
        while self.log.len() > keep {
            self.forget_one();
        }
    }

    /// Shows every object anew, without a change: what is read depends on a schema, what is kept does not.
    pub(crate) fn show_anew(&mut self, show: impl Fn(&mut Value)) {
        for object in self.objects.values_mut() {
            let mut shown = (**object).clone();
            show(&mut shown);
            if shown != **object {
                *object = Arc::new(shown);
            }
        }
    }

    /// The changes after this revision, oldest first.
    pub(crate) fn since(&self, revision: u64) -> impl Iterator<Item = &Change> {
        let from = self.log.partition_point(|change| change.revision <= revision);
        self.log.range(from..)
    }

    /// Whether a change after this revision is no longer known.
    pub(crate) fn forgot(&self, revision: u64) -> bool {
        revision < self.compacted
    }

    /// Forgets the changes up to this revision.
    pub(crate) fn compact(&mut self, revision: u64) {
        while self.log.front().is_some_and(|change| change.revision <= revision) {
            self.forget_one();
        }
        self.compacted = self.compacted.max(revision);
    }

    fn forget_one(&mut self) {
        if let Some(change) = self.log.pop_front() {
            self.compacted = change.revision;
        }
    }

    /// What was under this key at a revision.
    pub(crate) fn at(&self, revision: u64, key: &str) -> Option<Arc<Value>> {
        match self.since(revision).find(|change| change.key == key) {
            Some(change) => change.before.clone(),
            None => self.objects.get(key).cloned(),
        }
    }

    /// The objects whose key starts with `prefix` as they were at a revision, in key order.
    pub(crate) fn snapshot(&self, revision: u64, prefix: &str, after: &str) -> BTreeMap<String, Arc<Value>> {
        let wanted = |key: &str| key.starts_with(prefix) && key > after;
        let from = if after > prefix { after } else { prefix };
        let now = self.objects.range(from.to_owned()..).take_while(|(key, _)| key.starts_with(prefix));
        let mut then: BTreeMap<String, Arc<Value>> =
            now.filter(|(key, _)| wanted(key)).map(|(key, object)| (key.clone(), object.clone())).collect();
        let undo: Vec<&Change> = self.since(revision).filter(|change| wanted(&change.key)).collect();
        for change in undo.into_iter().rev() {
            match &change.before {
                Some(before) => then.insert(change.key.clone(), before.clone()),
                None => then.remove(&change.key),
            };
        }
        then
    }
}
