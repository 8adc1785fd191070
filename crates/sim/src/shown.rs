//! What the service was shown: a second cache, kept as simply as a cache can be kept, of everything that was fed to the
//! product's own. What the product says is judged by it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::thing::Thing;

/// Objects by uid, as they were shown in one life of the process.
#[derive(Default)]
pub(crate) struct Shown {
    /// The newest that was shown.
    pub(crate) held: BTreeMap<String, Rc<Thing>>,
    /// What the loop has taken in.
    pub(crate) taken: BTreeMap<String, Rc<Thing>>,
    changed: BTreeSet<String>,
    /// Known to be gone, up to this version; 0 for good.
    buried: BTreeMap<String, u64>,
}

/// An object as the loop knew it before and knows it now.
pub(crate) type Step = (Option<Rc<Thing>>, Option<Rc<Thing>>);

impl Shown {
    /// It was shown like this; older than what is held means nothing.
    pub(crate) fn apply(&mut self, thing: Thing) {
        let buried = self.buried.get(&thing.uid).is_some_and(|at| *at == 0 || thing.version <= *at);
        let older = self.held.get(&thing.uid).is_some_and(|held| held.version > thing.version);
        if !buried && !older {
            self.changed.insert(thing.uid.clone());
            self.held.insert(thing.uid.clone(), Rc::new(thing));
        }
    }

    /// It was shown to be gone; 0 where nobody knows since which version.
    pub(crate) fn delete(&mut self, uid: &str, version: u64) {
        self.buried.insert(uid.to_owned(), version);
        if self.held.get(uid).is_some_and(|held| version == 0 || held.version <= version) {
            self.drop(uid);
        }
    }

    fn drop(&mut self, uid: &str) {
        self.held.remove(uid);
        self.changed.insert(uid.to_owned());
    }

    /// A list as of `revision` was shown to its end: what it did not have was gone by then. What was shown to be newer
    /// than the list is not for the list to say.
    pub(crate) fn listed(&mut self, kind: usize, revision: u64, uids: &BTreeSet<String>) {
        let gone: Vec<String> = self
            .held
            .values()
            .filter(|t| t.kind == kind && !uids.contains(&t.uid) && t.version <= revision)
            .map(|t| t.uid.clone())
            .collect();
        for uid in gone {
            self.drop(&uid);
        }
    }

    /// The loop takes in what was shown: each object that moved, before and after.
    pub(crate) fn take(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        for uid in std::mem::take(&mut self.changed) {
            let new = self.held.get(&uid).cloned();
            let old = match &new {
                Some(new) => self.taken.insert(uid, new.clone()),
                None => self.taken.remove(&uid),
            };
            steps.push((old, new));
        }
        steps
    }

    /// Everything that the loop knows.
    pub(crate) fn all_taken(&self) -> Vec<Rc<Thing>> {
        self.taken.values().cloned().collect()
    }

    /// Everything that was shown.
    pub(crate) fn all_held(&self) -> Vec<Rc<Thing>> {
        self.held.values().cloned().collect()
    }

    /// Something was shown that the loop has not taken in.
    pub(crate) fn is_behind(&self) -> bool {
        !self.changed.is_empty()
    }
}
