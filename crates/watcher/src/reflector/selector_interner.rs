//! Small integers for label selections.

use std::hash::Hasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aggregator::{MAX_LINK_TARGETS, PolicyId, SelectorId};
use rustc_hash::{FxHashMap, FxHasher};

/// Interned selections: policy, group, namespace and label values. Each is kept as long as a row refers to it.
#[derive(Debug, Default)]
pub(super) struct SelectorInterner {
    ids: FxHashMap<Arc<str>, SelectorId>,
    held: FxHashMap<SelectorId, (Arc<str>, u32)>,
    next: u32,
}

/// The interned selections of all rows.
#[derive(Debug, Default)]
pub(super) struct Selectors(Mutex<SelectorInterner>);

impl Selectors {
    /// Locks the selections.
    pub(super) fn lock(&self) -> MutexGuard<'_, SelectorInterner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SelectorInterner {
    /// Returns the id of a selection and increments its reference count.
    pub(super) fn intern_selection<'a>(
        &mut self,
        policy: PolicyId,
        group: u8,
        namespace: &str,
        values: impl Iterator<Item = &'a str>,
    ) -> SelectorId {
        let mut key = format!("{}\0{group}\0{namespace}", policy.0);
        for value in values {
            key.push('\0');
            key.push_str(value);
        }
        if let Some(id) = self.ids.get(&*key) {
            if let Some((_, times)) = self.held.get_mut(id) {
                *times += 1;
            }
            return *id;
        }
        let id = self.next_unused_id();
        let key: Arc<str> = key.into();
        self.ids.insert(key.clone(), id);
        self.held.insert(id, (key, 1));
        id
    }

    /// Returns an id that is unused, and that the engine has long forgotten if it ever knew it.
    fn next_unused_id(&mut self) -> SelectorId {
        while self.held.contains_key(&SelectorId(self.next)) {
            self.next = (self.next + 1) % MAX_LINK_TARGETS;
        }
        let id = SelectorId(self.next);
        self.next = (self.next + 1) % MAX_LINK_TARGETS;
        id
    }

    /// Decrements the reference count of a selection.
    pub(super) fn release_selection(&mut self, id: SelectorId) {
        let Some((_, times)) = self.held.get_mut(&id) else { return };
        *times -= 1;
        if *times == 0
            && let Some((key, _)) = self.held.remove(&id)
        {
            self.ids.remove(&key);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }
}

/// Hash of a name, the same for expected names and for those of objects.
pub fn name_hash(name: &str) -> u64 {
    let mut hash = FxHasher::default();
    hash.write(name.as_bytes());
    timer::Seed(0).number_for(hash.finish())
}
