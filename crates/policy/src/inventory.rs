//! Which policy wrote which conditions, as it is kept outside the process: what a policy leaves that is deleted while
//! nothing runs, or whose entries are not all off its parents when the process ends, is known to the next process.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::compile::is_status_owned_by_others;
use super::plan::Released;
use super::policy_file::is_object_name;
use super::policy_in_use::KindKey;

/// Most bytes that an inventory adds up to. A ConfigMap has room for 1 MiB. 512 KiB.
const MAX_INVENTORY_SIZE: usize = 512 << 10;
/// Maximum size of one policy, in bytes: an author who keeps changing what it writes fills its own part. 8 KiB.
const MAX_POLICY_SIZE: usize = 8 << 10;
/// Longest name of a group, a kind or a condition type. The schema of policies has the same.
const MAX_NAME: usize = 316;

/// A policy that was found, with what its spec in force says that it writes.
#[derive(Clone, Debug)]
pub struct PresentPolicy<'p> {
    /// Its uid.
    pub uid: &'p str,
    /// Its name.
    pub name: &'p str,
    /// Types of conditions by parent kind; `None` where no spec of it was ever accepted.
    pub names: Option<Released>,
    /// It is not in shadow mode: these conditions may be on parents.
    pub writes: bool,
}

/// What is known of the policy that wrote conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum PolicyPresence {
    /// It is not among the policies that were listed, and the server was not asked for it yet.
    #[default]
    Unconfirmed,
    /// The server has it, and it is not for this process.
    Elsewhere,
    /// It is there; its own conditions, where a spec of it was ever accepted, and whether it writes them.
    Present { names: Option<Released>, writes: bool },
    /// It is deleted.
    Gone,
}

/// What one policy wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct WrittenConditions {
    policy: String,
    written: Released,
    presence: PolicyPresence,
}

/// Conditions that policies wrote, or were about to, by the uids of the policies.
///
/// **Invariant:** a type of conditions leaves it only when no entry of it was found on any parent, or when another policy
/// that writes it is in the inventory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConditionInventory {
    items: BTreeMap<String, WrittenConditions>,
    /// Policies for which there was no room.
    left_out: BTreeSet<String>,
}

/// How the conditions of one policy are kept.
#[derive(Deserialize, Serialize)]
struct ItemText {
    policy: String,
    written: Vec<WrittenOnKind>,
}

#[derive(Deserialize, Serialize)]
struct WrittenOnKind {
    group: String,
    kind: String,
    types: BTreeSet<String>,
}

impl ConditionInventory {
    /// Reads an inventory. Keys whose value is none come second: they are left alone.
    pub fn read(data: &BTreeMap<String, String>) -> (ConditionInventory, BTreeSet<String>) {
        let (mut inventory, mut unreadable) = (ConditionInventory::default(), BTreeSet::new());
        for (uid, text) in data {
            match read_item(text) {
                Some(item) => _ = inventory.items.insert(uid.clone(), item),
                None => _ = unreadable.insert(uid.clone()),
            }
        }
        (inventory, unreadable)
    }

    /// As it is kept, by uid.
    pub fn to_data(&self) -> BTreeMap<String, String> {
        self.items.iter().map(|(uid, item)| (uid.clone(), item.text())).collect()
    }

    /// Merges what was read again after another writer had changed it.
    pub fn merge(&mut self, read: ConditionInventory) {
        for (uid, item) in read.items {
            let known = self.items.entry(uid).or_insert_with(|| WrittenConditions {
                policy: item.policy.clone(),
                ..WrittenConditions::default()
            });
            add_types(&mut known.written, &item.written);
        }
    }

    /// These are all policies that are there, and those whose deletion is not confirmed yet. Who was there before and is not
    /// among them is deleted. Who writes is added, as far as there is room.
    pub fn note_policies(&mut self, present: &[PresentPolicy<'_>]) {
        for item in self.items.values_mut() {
            if matches!(item.presence, PolicyPresence::Present { .. }) {
                item.presence = PolicyPresence::Gone;
            }
        }
        self.left_out.clear();
        let mut size = self.items.iter().map(|(uid, item)| item.size(uid)).sum();
        for policy in present {
            self.note_policy(policy, &mut size);
        }
        self.drop_what_others_write();
    }

    fn note_policy(&mut self, policy: &PresentPolicy<'_>, size: &mut usize) {
        let presence = PolicyPresence::Present { names: policy.names.clone(), writes: policy.writes };
        let known = self.items.get_mut(policy.uid);
        let before = known.as_ref().map_or(0, |item| item.size(policy.uid));
        let mut item = WrittenConditions { policy: policy.name.to_owned(), ..WrittenConditions::default() };
        if let Some(known) = known {
            known.presence = presence.clone();
            item.written = known.written.clone();
        }
        let Some(names) = policy.names.as_ref().filter(|_| policy.writes) else { return };
        add_types(&mut item.written, names);
        item.presence = presence;
        let after = item.size(policy.uid);
        if after > before && (after > MAX_POLICY_SIZE || *size - before + after > MAX_INVENTORY_SIZE) {
            self.left_out.insert(policy.name.to_owned());
            return;
        }
        *size = *size - before + after;
        self.items.insert(policy.uid.to_owned(), item);
    }

    /// What a policy left that another one writes is not to be removed, and the other one answers for it.
    fn drop_what_others_write(&mut self) {
        let mut claimed = Released::new();
        for item in self.items.values() {
            if let PolicyPresence::Present { names: Some(names), writes: true } = &item.presence {
                // As far as there was room for it.
                for (kind, types) in names {
                    let kept = item.written.get(kind).into_iter().flatten().filter(|of| types.contains(*of));
                    claimed.entry(kind.clone()).or_default().extend(kept.cloned());
                }
            }
        }
        for item in self.items.values_mut() {
            let left = item.left_behind();
            for (kind, types) in &left {
                if let Some(claimed) = claimed.get(kind) {
                    item.remove_types(kind, &types.intersection(claimed).cloned().collect());
                }
            }
        }
        self.items.retain(|_, item| !item.written.is_empty());
    }

    /// A policy that is not among those listed, of which the server has to be asked: its uid and its name.
    pub fn next_unconfirmed(&self) -> Option<(&str, &str)> {
        let unconfirmed = |item: &WrittenConditions| item.presence == PolicyPresence::Unconfirmed;
        let found = self.items.iter().find(|(_, item)| unconfirmed(item));
        found.map(|(uid, item)| (uid.as_str(), item.policy.as_str()))
    }

    /// The server was asked for the policy of this uid. Returns its name if it is `gone`, which it was not known to be.
    pub fn confirm(&mut self, uid: &str, gone: bool) -> Option<&str> {
        let item = self.items.get_mut(uid).filter(|item| item.presence == PolicyPresence::Unconfirmed)?;
        item.presence = if gone { PolicyPresence::Gone } else { PolicyPresence::Elsewhere };
        gone.then_some(&item.policy)
    }

    /// What policies left behind that are gone, or write something else now. What is written by others is among it.
    pub fn left_behind(&self) -> Released {
        let mut left = Released::new();
        for item in self.items.values() {
            add_types(&mut left, &item.left_behind());
        }
        left
    }

    /// Types that policies which are there wrote before they were edited, by the names of the policies.
    pub(super) fn former_types(&self) -> impl Iterator<Item = (&str, BTreeSet<String>)> {
        let present =
            self.items.values().filter(|item| matches!(item.presence, PolicyPresence::Present { .. }));
        present.map(|item| (item.policy.as_str(), item.left_behind().into_values().flatten().collect()))
    }

    /// Records that no parent of this kind has an entry of these types any more that no policy writes. Returns the policies that
    /// are gone and have left nothing more.
    pub fn settle_release(&mut self, kind: &KindKey, types: &BTreeSet<String>) -> Vec<String> {
        let mut done = Vec::new();
        self.items.retain(|_, item| {
            let left = item.left_behind();
            if let Some(left) = left.get(kind) {
                item.remove_types(kind, &left.intersection(types).cloned().collect());
            }
            if item.written.is_empty() && item.presence == PolicyPresence::Gone {
                done.push(item.policy.clone());
            }
            !item.written.is_empty()
        });
        done
    }

    /// Policies that write and for which there was no room.
    pub fn left_out(&self) -> &BTreeSet<String> {
        &self.left_out
    }
}

impl WrittenConditions {
    fn left_behind(&self) -> Released {
        let mut left = self.written.clone();
        match &self.presence {
            PolicyPresence::Gone => {}
            PolicyPresence::Present { names: Some(names), .. } => {
                for (kind, types) in names {
                    if let Some(left) = left.get_mut(kind) {
                        left.retain(|of| !types.contains(of));
                    }
                }
                left.retain(|_, types| !types.is_empty());
            }
            // What a refused policy wrote stands, and so does what is not known yet.
            PolicyPresence::Unconfirmed
            | PolicyPresence::Elsewhere
            | PolicyPresence::Present { names: None, .. } => left.clear(),
        }
        left
    }

    fn remove_types(&mut self, kind: &KindKey, types: &BTreeSet<String>) {
        if let Some(written) = self.written.get_mut(kind) {
            written.retain(|of| !types.contains(of));
        }
        self.written.retain(|_, types| !types.is_empty());
    }

    fn text(&self) -> String {
        let on_kind = |((group, kind), types): (&KindKey, &BTreeSet<String>)| WrittenOnKind {
            group: group.clone(),
            kind: kind.clone(),
            types: types.clone(),
        };
        let text =
            ItemText { policy: self.policy.clone(), written: self.written.iter().map(on_kind).collect() };
        serde_json::to_string(&text).unwrap_or_default()
    }

    fn size(&self, uid: &str) -> usize {
        uid.len() + self.text().len()
    }
}

fn add_types(to: &mut Released, types: &Released) {
    for (kind, types) in types {
        to.entry(kind.clone()).or_default().extend(types.iter().cloned());
    }
}

/// Reads the conditions of one policy; `None` where a part of them is nothing that a policy can have written.
fn read_item(text: &str) -> Option<WrittenConditions> {
    let ItemText { policy, written } = serde_json::from_str(text).ok()?;
    let is_name = |name: &str, marks: &[u8]| {
        let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || marks.contains(byte);
        !name.is_empty() && name.len() <= MAX_NAME && name.as_bytes().iter().all(is_of_name)
    };
    let is_written = |on: &WrittenOnKind| {
        is_name(&on.group, b"-.")
            && !is_status_owned_by_others(&on.group)
            && is_name(&on.kind, b"-")
            && !on.types.is_empty()
            && on.types.iter().all(|of| is_name(of, b"-_./"))
    };
    if !is_object_name(&policy) || written.is_empty() || !written.iter().all(is_written) {
        return None;
    }
    let mut item = WrittenConditions { policy, ..WrittenConditions::default() };
    for WrittenOnKind { group, kind, types } in written {
        item.written.entry((group, kind)).or_default().extend(types);
    }
    Some(item)
}

#[cfg(test)]
mod tests;
