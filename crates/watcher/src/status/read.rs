//! What a parent's status says, in particular what in it is ours.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use serde_json::value::RawValue;

use super::entry::{Entry, MANAGER};
use super::raw;

/// One of our entries where it stands.
#[derive(Clone, Debug)]
pub struct Owned {
    /// Its place in the list.
    pub index: usize,
    /// What it says.
    pub entry: Entry,
    /// Its whole text, for the guard.
    pub text: Box<RawValue>,
}

/// `status.conditions`.
#[derive(Clone, Debug)]
pub enum ListShape {
    /// There is no status at all (absent or null).
    NoStatus,
    /// There is a status without conditions (absent or null).
    NoList,
    /// A list. Its text is kept only while nothing in it is ours: it guards our first entry.
    List(Option<Box<RawValue>>),
    /// Not something that entries can be written into.
    Unwritable(&'static str),
}

/// A parent's status as far as it concerns us.
#[derive(Clone, Debug)]
pub struct ParentStatus {
    /// The list.
    pub list: ListShape,
    /// Our entries.
    pub ours: Vec<Owned>,
    /// Types of entries that are somebody else's, with their managers where known, and whether they say True.
    pub foreign: Vec<(Box<str>, Box<str>, bool)>,
    /// The highest `observedGeneration` among conditions that are somebody else's.
    pub foreign_generation: Option<i64>,
    /// `status.observedGeneration`.
    pub observed_generation: Option<i64>,
    /// That field is the operator's: a manager other than us owns it.
    pub generation_is_foreign: bool,
    /// That field is there because the schema's default put it there, or because we did.
    pub generation_is_ours: bool,
    /// We wrote that field, and nobody else did.
    pub generation_is_held: bool,
}

impl ParentStatus {
    /// Reads the whole object. `takeover` names condition types that are ours even where somebody else owns them.
    pub fn read(object: &RawValue, takeover: &[&str]) -> ParentStatus {
        let status = raw::member(object, "status").filter(|s| !raw::is_null(s));
        let managers = Managers::read(object);
        let (generation, known) = (status.and_then(|s| raw::member(s, "observedGeneration")), managers.any);
        let owners = managers.of("f:observedGeneration");
        let observed_generation = generation.and_then(raw::integer);
        let generation_is_foreign = match (observed_generation, owners.is_empty()) {
            (Some(n), true) => !known && n > 0,
            (Some(_), false) => owners.iter().any(|m| m != MANAGER),
            (None, _) => false,
        };
        let mut read = ParentStatus {
            list: ListShape::NoStatus,
            ours: Vec::new(),
            foreign: Vec::new(),
            foreign_generation: None,
            observed_generation,
            generation_is_foreign,
            generation_is_ours: observed_generation.is_some() && known && !generation_is_foreign,
            generation_is_held: !owners.is_empty() && !generation_is_foreign,
        };
        if let Some(status) = status {
            read.conditions(status, &managers, takeover);
        }
        read
    }

    fn conditions(&mut self, status: &RawValue, managers: &Managers<'_>, takeover: &[&str]) {
        if !status.get().starts_with('{') {
            self.list = ListShape::Unwritable("status is not an object");
            return;
        }
        let Some(list) = raw::member(status, "conditions").filter(|c| !raw::is_null(c)) else {
            self.list = ListShape::NoList;
            return;
        };
        let Some(elements) = raw::elements(list) else {
            self.list = ListShape::Unwritable("status.conditions is not a list");
            return;
        };
        for (index, text) in elements.into_iter().enumerate() {
            self.condition(index, text, managers, takeover);
        }
        self.list = ListShape::List(self.ours.is_empty().then(|| list.to_owned()));
    }

    fn condition(&mut self, index: usize, text: &RawValue, managers: &Managers<'_>, takeover: &[&str]) {
        let Some(kind) = raw::member(text, "type").and_then(raw::string) else { return };
        let owners = managers.of_condition(&kind);
        let held = owners.is_empty() || owners.iter().any(|m| m == MANAGER);
        let entry = serde_json::from_str::<Entry>(text.get()).ok();
        let again = self.ours.iter().any(|o| o.entry.r#type == kind);
        let taken = takeover.contains(&&*kind);
        match entry {
            Some(entry) if !again && ((held && entry.reason().is_some()) || taken) => {
                // Almost always one or two, kept for as long as the parent lives: no room for four.
                self.ours.reserve_exact(1);
                self.ours.push(Owned { index, entry, text: text.to_owned() });
            }
            _ => {
                self.foreign.reserve_exact(1);
                let owners = if owners.is_empty() { managers.of_list() } else { owners };
                let is_true = raw::member(text, "status").and_then(raw::string).is_some_and(|s| s == "True");
                self.foreign.push((kind.as_ref().into(), owners.join(", ").into(), is_true));
                let generation = raw::member(text, "observedGeneration").and_then(raw::integer);
                self.foreign_generation = self.foreign_generation.max(generation);
            }
        }
    }

    /// Older types of conditions have no generation, and the server drops it: an entry is about what it was sent for.
    pub(crate) fn recall(&mut self, sent: &[Entry]) {
        for held in self.ours.iter_mut().filter(|held| held.entry.observed_generation.is_none()) {
            let is = |entry: &&Entry| Entry { observed_generation: None, ..(*entry).clone() } == held.entry;
            held.entry.observed_generation = sent.iter().find(is).and_then(|entry| entry.observed_generation);
        }
    }

    /// Some of our entries came back without the generation that they were sent with.
    pub(crate) fn lost_generations(&self, sent: &[Entry]) -> bool {
        let dropped = |entry: &Entry| {
            let held = self.ours(&entry.r#type);
            entry.observed_generation.is_some()
                && held.is_some_and(|held| held.entry.observed_generation.is_none())
        };
        sent.iter().any(dropped)
    }

    /// Our entry of this type.
    pub fn ours(&self, kind: &str) -> Option<&Owned> {
        self.ours.iter().find(|o| o.entry.r#type == kind)
    }

    /// There is an entry of this type, and it is somebody else's.
    pub fn is_foreign(&self, kind: &str) -> bool {
        self.ours(kind).is_none() && self.foreign.iter().any(|(k, ..)| **k == *kind)
    }
}

type Fields<'a> = FxHashMap<Cow<'a, str>, &'a RawValue>;

/// Who owns what in status, by managedFields.
struct Managers<'a> {
    /// By manager: its fields below `f:status`.
    status: Vec<(Cow<'a, str>, Fields<'a>)>,
    any: bool,
}

impl<'a> Managers<'a> {
    fn read(object: &'a RawValue) -> Managers<'a> {
        let fields =
            raw::at(object, &["metadata", "managedFields"]).and_then(raw::elements).unwrap_or_default();
        let any = !fields.is_empty();
        let status = fields
            .into_iter()
            .filter_map(|field| {
                let manager = raw::member(field, "manager").and_then(raw::string)?;
                Some((manager, raw::members(raw::at(field, &["fieldsV1", "f:status"])?)))
            })
            .collect();
        Managers { status, any }
    }

    fn of(&self, field: &str) -> Vec<String> {
        let owners = self.status.iter().filter(|(_, fields)| fields.contains_key(field));
        owners.map(|(manager, _)| manager.clone().into_owned()).collect()
    }

    /// Who else wrote the list as a whole.
    fn of_list(&self) -> Vec<String> {
        let mut owners = self.of("f:conditions");
        owners.retain(|manager| manager != MANAGER);
        owners
    }

    /// The owners of one entry of a list-map; empty for an atomic list, whose owner is whoever wrote last.
    fn of_condition(&self, kind: &str) -> Vec<String> {
        let key = format!("k:{{\"type\":{}}}", serde_json::Value::from(kind));
        let owns =
            |fields: &Fields<'_>| fields.get("f:conditions").is_some_and(|c| raw::member(c, &key).is_some());
        let owners = self.status.iter().filter(|(_, fields)| owns(fields));
        owners.map(|(manager, _)| manager.clone().into_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(object: &Value) -> ParentStatus {
        ParentStatus::read(&RawValue::from_string(object.to_string()).unwrap(), &[])
    }

    fn ours(reason: &str) -> Value {
        json!({"type": "Ready", "status": "True", "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    #[test]
    fn an_entry_is_ours_if_its_reason_is() {
        let read = read(
            &json!({"status": {"conditions": [{"type": "Synced", "status": "True"}, ours("AllChildrenReady")]}}),
        );
        assert_eq!(read.ours("Ready").map(|o| o.index), Some(1));
        assert!(read.is_foreign("Synced") && !read.is_foreign("Ready"));
    }

    #[test]
    fn an_entry_with_a_foreign_reason_is_not_ours() {
        let read = read(&json!({"status": {"conditions": [ours("MinimumReplicasAvailable")]}}));
        assert!(read.is_foreign("Ready"));
        assert!(matches!(read.list, ListShape::List(Some(_))));
    }

    #[test]
    fn an_entry_whose_manager_is_another_is_not_ours_whatever_its_reason() {
        let field = |manager: &str| {
            json!([{"manager": manager, "operation": "Update",
                "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {"f:status": {}}}}}}])
        };
        let object = |manager: &str| json!({"metadata": {"managedFields": field(manager)}, "status": {"conditions": [ours("AllChildrenReady")]}});
        assert!(read(&object("kopf")).is_foreign("Ready"));
        assert!(read(&object("rollcall")).ours("Ready").is_some());
    }

    #[test]
    fn strange_shapes_of_status_are_named_and_not_written() {
        for (status, writable) in [
            (json!(null), true),
            (json!({}), true),
            (json!({"conditions": null}), true),
            (json!({"conditions": []}), true),
            (json!(true), false),
            (json!({"conditions": "none"}), false),
            (json!({"conditions": {"Ready": true}}), false),
        ] {
            let list = read(&json!({"status": status})).list;
            assert_eq!(!matches!(list, ListShape::Unwritable(_)), writable, "{status} {list:?}");
        }
    }

    #[test]
    fn an_observed_generation_that_a_default_supplied_is_nobodys_evidence() {
        let fields = json!([{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {}}}]);
        let supplied =
            read(&json!({"metadata": {"managedFields": fields}, "status": {"observedGeneration": 0}}));
        assert!(!supplied.generation_is_foreign && supplied.generation_is_ours);
        assert!(!supplied.generation_is_held, "nobody wrote it");
        let fields = json!([{"manager": "op", "operation": "Update", "fieldsV1": {"f:status": {"f:observedGeneration": {}}}}]);
        let written =
            read(&json!({"metadata": {"managedFields": fields}, "status": {"observedGeneration": 3}}));
        assert!(written.generation_is_foreign && !written.generation_is_ours);
    }
}
