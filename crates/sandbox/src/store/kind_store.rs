//! The objects of one kind, and the history of their changes.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::iter;
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

    /// Returns the objects whose key starts with `prefix` and comes after `after`, as of a revision, in key order.
    pub(crate) fn objects_at<'s>(
        &'s self,
        revision: u64,
        prefix: &'s str,
        after: &'s str,
    ) -> impl Iterator<Item = (&'s str, &'s Arc<Value>)> {
        let wanted = move |key: &str| key.starts_with(prefix) && key > after;
        // The first change of a key since then tells what there was.
        let mut then: BTreeMap<&str, Option<&Arc<Value>>> = BTreeMap::new();
        for change in self.changes_since(revision).filter(|change| wanted(&change.key)) {
            then.entry(&change.key).or_insert(change.before.as_ref());
        }
        let from = if after > prefix { after } else { prefix };
        let now = self.objects.range(from.to_owned()..).take_while(move |(key, _)| key.starts_with(prefix));
        let mut now =
            now.map(|(key, object)| (&**key, object)).filter(move |(key, _)| wanted(key)).peekable();
        let mut then = then.into_iter().peekable();
        iter::from_fn(move || {
            loop {
                let Some((changed, _)) = then.peek() else { return now.next() };
                match now.peek().map(|(key, _)| key.cmp(changed)) {
                    Some(Ordering::Less) => return now.next(),
                    Some(Ordering::Equal) => _ = now.next(),
                    Some(Ordering::Greater) | None => {}
                }
                if let (key, Some(object)) = then.next()? {
                    return Some((key, object));
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What the old revisions hold, remembered whole at each of them.
    #[test]
    fn what_was_is_told_of_every_revision_from_any_key_on() {
        let mut kind_store = KindStore::default();
        let mut remembered = vec![(0, BTreeMap::new())];
        for revision in 1..=200_u64 {
            let key = format!("/{}/{}", ["a", "b"][usize::from(revision % 3 == 0)], revision * 7 % 11);
            let before = kind_store.objects.get(&key).cloned();
            let deleted = before.is_some() && revision % 4 == 0;
            let after = Arc::new(json!({ "revision": revision }));
            kind_store.commit_change(StoredChange { revision, key, before, after, deleted }, 1_000);
            remembered.push((revision, kind_store.objects.clone()));
        }
        for (revision, objects) in &remembered {
            for (prefix, after) in [("/", ""), ("/a/", ""), ("/b/", "/b/3"), ("/a/", "/a/10"), ("/c/", "")] {
                let expected = objects.iter().filter(|(key, _)| key.starts_with(prefix) && &***key > after);
                let expected: Vec<_> = expected.map(|(key, object)| (&**key, object)).collect();
                let found: Vec<_> = kind_store.objects_at(*revision, prefix, after).collect();
                assert_eq!(found, expected, "{revision}: {prefix} after {after}");
            }
        }
    }
}
