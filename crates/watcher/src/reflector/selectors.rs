//! Small integers for what label rules select by.

use std::hash::Hasher;
use std::sync::Arc;

use aggregator::{PolicyId, SelectorId};
use rustc_hash::{FxHashMap, FxHasher};

/// A link has room for so many.
const MOST: u32 = 1 << 30;

/// Interned selections: policy, group, namespace and the values of the labels. Each is kept for as long as a row speaks of it.
#[derive(Debug, Default)]
pub(super) struct Selectors {
    ids: FxHashMap<Arc<str>, SelectorId>,
    held: FxHashMap<SelectorId, (Arc<str>, u32)>,
    next: u32,
}

impl Selectors {
    /// The number of a selection, which is held once more from now on.
    pub(super) fn id<'a>(
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
        let id = self.unused();
        let key: Arc<str> = key.into();
        self.ids.insert(key.clone(), id);
        self.held.insert(id, (key, 1));
        id
    }

    /// A number that the engine has long forgotten, if it ever knew it.
    fn unused(&mut self) -> SelectorId {
        while self.held.contains_key(&SelectorId(self.next)) {
            self.next = (self.next + 1) % MOST;
        }
        let id = SelectorId(self.next);
        self.next = (self.next + 1) % MOST;
        id
    }

    /// A selection is held once less.
    pub(super) fn release(&mut self, id: SelectorId) {
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

/// A hash of a name, the same for expected names and for those of objects.
pub fn name_hash(name: &str) -> u64 {
    let mut hash = FxHasher::default();
    hash.write(name.as_bytes());
    timer::Seed(0).number(hash.finish())
}
