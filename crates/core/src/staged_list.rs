//! What is listed and watched, by key: never half a list.

use std::collections::BTreeMap;
use std::ops::Deref;

/// Items as a watch tells them. What a list brings is staged, and swapped in when the list is complete: what it lacks is
/// gone then, and a list that breaks off changes nothing.
///
/// **Invariant:** nothing can be read of it that a complete list has not brought, or a watch after one.
#[derive(Debug)]
pub struct StagedList<K, V> {
    complete: Option<BTreeMap<K, V>>,
    staged: Option<BTreeMap<K, V>>,
}

/// Items of a list that is complete: there are none of a list that is not. What asks for it cannot be given half a list.
#[derive(Debug)]
pub struct CompleteList<'l, K, V>(&'l BTreeMap<K, V>);

impl<K, V> Clone for CompleteList<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for CompleteList<'_, K, V> {}

impl<'l, K, V> CompleteList<'l, K, V> {
    /// All items.
    pub fn into_values(self) -> impl Iterator<Item = &'l V> {
        self.0.values()
    }
}

impl<K, V> Deref for CompleteList<'_, K, V> {
    type Target = BTreeMap<K, V>;

    fn deref(&self) -> &BTreeMap<K, V> {
        self.0
    }
}

impl<K, V> Default for StagedList<K, V> {
    fn default() -> Self {
        StagedList { complete: None, staged: None }
    }
}

impl<K: Ord + Clone, V: Clone> StagedList<K, V> {
    /// A list that is complete from the start and is not watched.
    pub fn of_complete(items: impl IntoIterator<Item = (K, V)>) -> Self {
        StagedList { complete: Some(items.into_iter().collect()), staged: None }
    }

    /// A list begins; what another one that broke off has brought counts for nothing.
    pub fn begin_list(&mut self) {
        self.staged = Some(BTreeMap::new());
    }

    /// An item of the list under way.
    pub fn stage_item(&mut self, key: K, value: V) {
        self.staged.get_or_insert_default().insert(key, value);
    }

    /// As [`StagedList::stage_item`], of items that are also written: what the answer to a write has brought since the list began
    /// stays where this `is_older`.
    pub fn stage_newer(&mut self, key: K, value: V, is_older: impl Fn(&V, &V) -> bool) {
        insert_newer(self.staged.get_or_insert_default(), key, value, is_older);
    }

    /// The list is complete. Items that were known and are not in it any more.
    pub fn finish_list(&mut self) -> BTreeMap<K, V> {
        let listed = self.staged.take().unwrap_or_default();
        let mut before = self.complete.take().unwrap_or_default();
        before.retain(|key, _| !listed.contains_key(key));
        self.complete = Some(listed);
        before
    }

    /// The watch has seen an item created or changed; what it was before. Nothing is known of it before the first list
    /// is complete.
    pub fn apply_item(&mut self, key: K, value: V) -> Option<V> {
        if let Some(staged) = &mut self.staged {
            staged.insert(key.clone(), value.clone());
        }
        self.complete.as_mut()?.insert(key, value)
    }

    /// As [`StagedList::apply_item`], of one that may come late, like the answer to a write: what is known, or listed, stays where
    /// this `is_older`. True if it is known now.
    pub fn apply_newer(&mut self, key: K, value: V, is_older: impl Fn(&V, &V) -> bool) -> bool {
        if let Some(staged) = &mut self.staged {
            insert_newer(staged, key.clone(), value.clone(), &is_older);
        }
        self.complete.as_mut().is_some_and(|complete| insert_newer(complete, key, value, &is_older))
    }

    /// The watch has seen an item deleted; what it was.
    pub fn remove_item(&mut self, key: &K) -> Option<V> {
        if let Some(staged) = &mut self.staged {
            staged.remove(key);
        }
        self.complete.as_mut()?.remove(key)
    }

    /// All items; `None` before the first list is complete.
    pub fn items(&self) -> Option<&BTreeMap<K, V>> {
        self.complete.as_ref()
    }

    /// As [`StagedList::items`], as evidence that they are all.
    pub fn complete_list(&self) -> Option<CompleteList<'_, K, V>> {
        self.complete.as_ref().map(CompleteList)
    }
}

/// Inserts an item unless it is older than the one of the same key. True if it was inserted.
fn insert_newer<K: Ord, V>(
    items: &mut BTreeMap<K, V>,
    key: K,
    value: V,
    is_older: impl Fn(&V, &V) -> bool,
) -> bool {
    let stays = items.get(&key).is_some_and(|held| is_older(&value, held));
    if !stays {
        items.insert(key, value);
    }
    !stays
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(items: &[(&'static str, u8)]) -> StagedList<&'static str, u8> {
        let mut list = StagedList::default();
        list.begin_list();
        for (key, value) in items {
            list.stage_item(*key, *value);
        }
        list.finish_list();
        list
    }

    fn items(list: &StagedList<&'static str, u8>) -> Vec<(&'static str, u8)> {
        list.items().into_iter().flatten().map(|(key, value)| (*key, *value)).collect()
    }

    #[test]
    fn nothing_is_known_before_the_first_list_is_complete() {
        let mut list = StagedList::default();
        list.begin_list();
        list.stage_item("a", 1);
        assert!(list.items().is_none() && list.complete_list().is_none());
        list.finish_list();
        assert_eq!(items(&list), [("a", 1)]);
        assert_eq!(list.complete_list().map(|all| all.len()), Some(1));
    }

    #[test]
    fn what_a_complete_list_lacks_is_gone_and_a_half_list_changes_nothing() {
        let mut list = listed(&[("a", 1), ("b", 2)]);
        list.begin_list();
        list.stage_item("b", 3);
        assert_eq!(items(&list), [("a", 1), ("b", 2)], "half a list");
        list.begin_list();
        assert_eq!(items(&list), [("a", 1), ("b", 2)], "it broke off, and another begins");
        list.stage_item("c", 4);
        assert_eq!(list.finish_list(), [("a", 1), ("b", 2)].into());
        assert_eq!(items(&list), [("c", 4)]);
    }

    #[test]
    fn what_the_watch_sees_during_a_list_outlives_it() {
        let mut list = listed(&[("a", 1), ("b", 2)]);
        list.begin_list();
        list.stage_item("a", 1);
        list.stage_item("b", 2);
        assert_eq!(list.apply_item("a", 5), Some(1));
        assert_eq!(list.remove_item(&"b"), Some(2));
        assert_eq!(list.finish_list(), BTreeMap::new());
        assert_eq!(items(&list), [("a", 5)]);
    }

    #[test]
    fn what_comes_late_replaces_nothing_newer_known_or_listed() {
        let is_older = |own: &u8, other: &u8| own < other;
        let mut list = StagedList::default();
        assert!(!list.apply_newer("a", 1, is_older), "nothing is known before the first list is complete");
        list.finish_list();
        assert!(list.apply_newer("a", 3, is_older) && !list.apply_newer("a", 2, is_older));
        list.begin_list();
        list.stage_newer("a", 1, is_older);
        assert!(!list.apply_newer("a", 2, is_older), "the server's history may have gone back");
        assert!(list.apply_newer("b", 8, is_older));
        list.stage_newer("b", 7, is_older);
        assert_eq!(items(&list), [("a", 3), ("b", 8)]);
        list.finish_list();
        assert_eq!(items(&list), [("a", 2), ("b", 8)]);
    }
}
