//! What is kept outside the process: the conditions that policies wrote, and the scripts by which they judge.

use std::collections::{BTreeMap, BTreeSet};

use super::inventory::ConditionInventory;
use super::kept_scripts::KeptScripts;

/// What the next process has to know and cannot read elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptState {
    /// Which policy wrote which conditions.
    pub conditions: ConditionInventory,
    /// Scripts by which policies judge.
    pub scripts: KeptScripts,
}

impl KeptState {
    /// Reads it. Keys whose value is none of it come second: they are left alone.
    pub fn read(data: &BTreeMap<String, String>) -> (KeptState, BTreeSet<String>) {
        let (scripts, conditions): (BTreeMap<_, _>, BTreeMap<_, _>) = data
            .iter()
            .map(|(key, text)| (key.clone(), text.clone()))
            .partition(|(key, _)| KeptScripts::is_key(key));
        let (conditions, mut unreadable) = ConditionInventory::read(&conditions);
        let mut read = KeptState { conditions, scripts: KeptScripts::default() };
        unreadable.extend(
            scripts.into_iter().filter(|(key, text)| !read.scripts.read_item(key, text)).map(|(key, _)| key),
        );
        (read, unreadable)
    }

    /// As it is kept, by key.
    pub fn to_data(&self) -> BTreeMap<String, String> {
        let mut data = self.conditions.to_data();
        data.extend(self.scripts.to_data());
        data
    }

    /// Returns `true` if these values are what is to be kept, and nothing else.
    pub fn is_kept_in(&self, data: &BTreeMap<String, String>) -> bool {
        let conditions = self.conditions.to_data();
        let kept = data.iter().filter(|(key, _)| !KeptScripts::is_key(key));
        self.scripts.is_kept_in(data) && kept.eq(&conditions)
    }

    /// Merges what was read again after another writer had changed it.
    pub fn merge(&mut self, read: KeptState) {
        self.conditions.merge(read.conditions);
        self.scripts.merge(read.scripts);
    }
}
