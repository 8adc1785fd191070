//! Small integers for what label rules select by.

use std::hash::Hasher;

use aggregator::{PolicyId, SelectorId};
use rustc_hash::{FxHashMap, FxHasher};

/// Interned selections: policy, group, namespace and the values of the labels.
#[derive(Debug, Default)]
pub(super) struct Selectors {
    ids: FxHashMap<Box<str>, SelectorId>,
}

impl Selectors {
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
        let next = SelectorId(self.ids.len() as u32);
        *self.ids.entry(key.into()).or_insert(next)
    }
}

/// A hash of a name, the same for expected names and for those of objects.
pub fn name_hash(name: &str) -> u64 {
    let mut hash = FxHasher::default();
    hash.write(name.as_bytes());
    timer::Seed(0).number(hash.finish())
}
