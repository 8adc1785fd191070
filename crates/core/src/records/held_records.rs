//! Records as they were last read: never half a list.

use std::sync::Arc;

use serde_json::Value;

use crate::StagedList;

/// Most bytes of content that are kept of a record: more than Rollcall itself ever writes. 128 KiB.
const MAX_CONTENT_BYTES: usize = 128 << 10;

/// Record as last read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HeldRecord {
    pub(super) uid: String,
    pub(super) version: String,
    /// Its `spec` as JSON, which takes a fraction of the room of what is parsed from it; `None` beyond the bound.
    content: Option<Box<str>>,
}

impl HeldRecord {
    /// Reads a record's name and content.
    fn read(object: &Value) -> (String, HeldRecord) {
        let word = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let content = Some(object["spec"].to_string()).filter(|content| content.len() <= MAX_CONTENT_BYTES);
        let content = content.map(String::into_boxed_str);
        (word("name"), HeldRecord { uid: word("uid"), version: word("resourceVersion"), content })
    }

    /// Its content; null beyond the bound.
    pub(super) fn spec(&self) -> Value {
        self.content.as_deref().and_then(|content| serde_json::from_str(content).ok()).unwrap_or_default()
    }

    /// Complains if it is beyond the bound.
    pub(super) fn complaint(&self) -> Option<String> {
        let is_kept = self.content.is_some();
        (!is_kept).then(|| format!("more than {} KiB: what it says is passed over", MAX_CONTENT_BYTES >> 10))
    }

    /// True if this is an earlier version of the same record. Since Kubernetes 1.35 resourceVersions of one kind may be
    /// compared as numbers.
    fn is_older(&self, other: &HeldRecord) -> bool {
        let number = |held: &HeldRecord| held.version.parse::<u64>().ok();
        self.uid == other.uid && number(self).zip(number(other)).is_some_and(|(own, others)| own < others)
    }
}

/// Records as last read, by name.
///
/// **Invariant:** each is held once, but for those that a list under way has brought in another version.
#[derive(Debug, Default)]
pub(super) struct HeldRecords(StagedList<String, Arc<HeldRecord>>);

impl HeldRecords {
    /// Begins a list; what another one that broke off has brought counts for nothing.
    pub(super) fn begin_list(&mut self) {
        self.0.begin_list();
    }

    /// Stages a record of the list under way, unless the answer to a write has brought a later version since it began.
    pub(super) fn stage_record(&mut self, object: &Value) {
        let (name, held) = HeldRecord::read(object);
        let known = self.0.items().and_then(|items| items.get(&name)).filter(|known| ***known == held);
        let held = known.cloned().unwrap_or_else(|| Arc::new(held));
        self.0.stage_newer(name, held, |own, other| own.is_older(other));
    }

    /// Completes a list. Names of those that it has, and of those that were known and that it lacks.
    pub(super) fn finish_list(&mut self) -> (Vec<String>, Vec<String>) {
        let gone = self.0.finish_list().into_keys().collect();
        (self.names().cloned().collect(), gone)
    }

    /// Holds a record that the watch or the answer to a write has brought; an answer may arrive after newer events of the
    /// watch. Its name, if it is held now.
    pub(super) fn apply_record(&mut self, object: &Value) -> Option<String> {
        let (name, held) = HeldRecord::read(object);
        self.0.apply_newer(name.clone(), Arc::new(held), |own, other| own.is_older(other)).then_some(name)
    }

    /// Forgets a record that was deleted.
    pub(super) fn remove_record(&mut self, name: &str) {
        self.0.remove_item(&name.to_owned());
    }

    /// The record of this name.
    pub(super) fn get(&self, name: &str) -> Option<&HeldRecord> {
        self.0.items()?.get(name).map(|held| &**held)
    }

    /// Names of all records.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.0.items().into_iter().flat_map(|items| items.keys())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(content: &Value) -> Value {
        json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": "7" }, "spec": content })
    }

    #[test]
    fn a_record_is_held_as_it_reads() {
        let content = json!({ "parent": { "name": "db" }, "outcomes": [{ "reason": "a \"word\" ✓" }] });
        let (_, held) = HeldRecord::read(&record(&content));
        assert_eq!((held.spec(), held.complaint()), (content, None));
    }

    #[test]
    fn of_a_record_beyond_its_bound_nothing_is_held_but_that() {
        let content = json!({ "outcomes": [{ "reason": "x".repeat(MAX_CONTENT_BYTES) }] });
        let (name, held) = HeldRecord::read(&record(&content));
        assert_eq!((&*name, held.spec()), ("a", Value::Null));
        assert_eq!(held.complaint().unwrap(), "more than 128 KiB: what it says is passed over");
    }
}
