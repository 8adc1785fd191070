//! Parsing of a parent's status, in particular of Rollcall's own conditions.

use std::borrow::Cow;

use aggregator::ThinList;
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;

use super::entry::{ConditionEntry, FIELD_MANAGER};
use super::own::{self, OwnTypes};
use super::owned_condition::{OwnedCondition, read_entry};
use super::raw_json;

/// `status.conditions`.
#[derive(Clone, Debug)]
pub enum ListShape {
    /// The status is absent or null.
    NoStatus,
    /// The status has no conditions (absent or null).
    NoList,
    /// A list. Its text is kept only while it contains no condition of Rollcall's: it is the precondition of the first
    /// one. Behind a thin pointer, because the shape is kept as long as the parent exists.
    List(Option<Box<Box<RawValue>>>),
    /// A value into which conditions cannot be written.
    Unwritable(UnwritableShape),
}

/// Why conditions cannot be written into a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwritableShape {
    /// The status is not an object.
    Status,
    /// `status.conditions` is not a list.
    Conditions,
}

impl UnwritableShape {
    /// Returns it in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            UnwritableShape::Status => "status is not an object",
            UnwritableShape::Conditions => "status.conditions is not a list",
        }
    }
}

/// To whom `status.observedGeneration` belongs, by `metadata.managedFields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GenerationOwner {
    /// Another manager than Rollcall owns it.
    Foreign,
    /// Rollcall wrote it, and no other client did.
    Rollcall,
    /// No manager owns it: it exists because of the schema's default.
    Default,
    /// It is absent, or nothing is known of it.
    Unknown,
}

/// The part of a parent's status that concerns Rollcall.
#[derive(Clone, Debug)]
pub struct ParentStatus {
    /// Shape of `status.conditions`.
    pub list: ListShape,
    /// Our entries, in the order of the list. Nothing keeps an atomic list from having a type twice.
    pub ours: Box<[OwnedCondition]>,
    /// Condition types of other clients, with their managers if known, and whether their status is True.
    pub foreign: ThinList<(Box<str>, Box<str>, bool)>,
    /// Highest `observedGeneration` among the conditions of other clients.
    pub foreign_generation: Option<i64>,
    /// `status.observedGeneration`.
    pub observed_generation: Option<i64>,
    /// To whom that belongs.
    pub generation_owner: GenerationOwner,
    /// Another manager than Rollcall owns a field of the status.
    pub has_other_writers: bool,
    /// As far as is known the list is no map by `type`: the server lets a type stand in it twice.
    pub allows_duplicate_types: bool,
}

// Every parent has one for as long as it exists.
const _: () = assert!(size_of::<ParentStatus>() <= 80);

impl ParentStatus {
    /// Reads the whole object.
    pub fn read(object: &RawValue, own: &OwnTypes<'_>) -> ParentStatus {
        let status = raw_json::get_member(object, "status").filter(|s| !raw_json::is_null(s));
        let managers = StatusManagers::from_managed_fields(object);
        let (generation, known) =
            (status.and_then(|s| raw_json::get_member(s, "observedGeneration")), managers.any);
        let owners = managers.owners_of("f:observedGeneration");
        let observed_generation = generation.and_then(raw_json::integer_value);
        let is_shared = owners.iter().any(|manager| manager != FIELD_MANAGER);
        let generation_owner = match observed_generation {
            Some(_) if is_shared => GenerationOwner::Foreign,
            _ if !owners.is_empty() => GenerationOwner::Rollcall,
            Some(_) if known => GenerationOwner::Default,
            Some(n) if n > 0 => GenerationOwner::Foreign,
            _ => GenerationOwner::Unknown,
        };
        let mut read = ParentStatus {
            list: ListShape::NoStatus,
            ours: Box::default(),
            foreign: ThinList::default(),
            foreign_generation: None,
            observed_generation,
            generation_owner,
            has_other_writers: managers.status.iter().any(|(manager, _)| manager != FIELD_MANAGER),
            allows_duplicate_types: !managers.know_conditions_by_type(),
        };
        if let Some(status) = status {
            read.read_conditions(status, &managers, own);
        }
        read
    }

    /// Another manager than Rollcall owns `status.observedGeneration`.
    pub fn has_foreign_generation(&self) -> bool {
        self.generation_owner == GenerationOwner::Foreign
    }

    /// Rollcall wrote `status.observedGeneration`, and no other client did.
    pub fn holds_generation(&self) -> bool {
        self.generation_owner == GenerationOwner::Rollcall
    }

    /// `status.observedGeneration` exists because of the schema's default or because Rollcall wrote it.
    pub fn has_own_generation(&self) -> bool {
        let is_own = matches!(self.generation_owner, GenerationOwner::Rollcall | GenerationOwner::Default);
        is_own && self.observed_generation.is_some()
    }

    fn read_conditions(&mut self, status: &RawValue, managers: &StatusManagers<'_>, own: &OwnTypes<'_>) {
        if !status.get().starts_with('{') {
            self.list = ListShape::Unwritable(UnwritableShape::Status);
            return;
        }
        let Some(list) = raw_json::get_member(status, "conditions").filter(|c| !raw_json::is_null(c)) else {
            self.list = ListShape::NoList;
            return;
        };
        let Some(elements) = raw_json::list_elements(list) else {
            self.list = ListShape::Unwritable(UnwritableShape::Conditions);
            return;
        };
        let mut read = ReadConditions::default();
        for (index, text) in elements.into_iter().enumerate() {
            read.read_condition(index, text, managers, own);
        }
        (self.ours, self.foreign) = (read.ours.into(), read.foreign.into());
        self.foreign_generation = read.foreign_generation;
        self.list = ListShape::List(self.ours.is_empty().then(|| Box::new(list.to_owned())));
    }

    /// Restores the generations: older condition types have none, so the server drops it. A condition is about the
    /// generation that it was sent for.
    pub(crate) fn restore_generations(&mut self, sent: &[ConditionEntry]) {
        for held in &mut self.ours {
            held.restore_generation(sent);
        }
    }

    /// Returns `true` if some conditions came back without the generation that they were sent with.
    pub(crate) fn has_lost_generations(&self, sent: &[ConditionEntry]) -> bool {
        let dropped = |entry: &ConditionEntry| {
            let held = self.our_entry(&entry.r#type);
            entry.observed_generation.is_some()
                && held.is_some_and(|held| held.observed_generation().is_none())
        };
        sent.iter().any(dropped)
    }

    /// Our entry of this type, the first of them.
    pub fn our_entry(&self, kind: &str) -> Option<&OwnedCondition> {
        self.ours.iter().find(|held| held.kind() == kind)
    }

    /// Returns `true` if there is a condition of this type that another client owns.
    pub fn is_foreign(&self, kind: &str) -> bool {
        self.our_entry(kind).is_none() && self.foreign.iter().any(|(k, ..)| **k == *kind)
    }
}

/// Entries of the list as they are read, one after the other.
#[derive(Default)]
struct ReadConditions {
    ours: Vec<OwnedCondition>,
    foreign: Vec<(Box<str>, Box<str>, bool)>,
    foreign_generation: Option<i64>,
}

impl ReadConditions {
    fn read_condition(
        &mut self,
        index: usize,
        text: &RawValue,
        managers: &StatusManagers<'_>,
        own: &OwnTypes<'_>,
    ) {
        let Some(kind) = raw_json::get_member(text, "type").and_then(raw_json::string_value) else { return };
        let owners = managers.condition_owners(&kind);
        let entry = read_entry(text);
        let is_our_word = entry.as_ref().is_some_and(|(entry, _)| {
            if owners.is_empty() {
                own::is_in_our_words(entry)
            } else {
                entry.parent_reason().is_some() && owners.iter().any(|owner| owner == FIELD_MANAGER)
            }
        });
        let is_ours = (is_our_word && own.writes(&kind))
            || (own.takes(&kind) && self.ours.iter().all(|held| held.kind() != kind));
        match entry {
            Some((entry, is_whole)) if is_ours => {
                self.ours.push(OwnedCondition::new(index, entry, text, is_whole));
            }
            _ => {
                let owners = if owners.is_empty() { managers.other_list_owners() } else { owners };
                let is_true = raw_json::get_member(text, "status")
                    .and_then(raw_json::string_value)
                    .is_some_and(|s| s == "True");
                self.foreign.push((kind.as_ref().into(), owners.join(", ").into(), is_true));
                // Our own word proves nothing, also where no policy that we know of writes it any more.
                let generation = raw_json::get_member(text, "observedGeneration")
                    .and_then(raw_json::integer_value)
                    .filter(|_| !is_our_word);
                self.foreign_generation = self.foreign_generation.max(generation);
            }
        }
    }
}

type ManagedFieldMap<'a> = FxHashMap<Cow<'a, str>, &'a RawValue>;

/// Owners of the status fields, by managedFields.
struct StatusManagers<'a> {
    /// Fields below `f:status`, by manager.
    status: Vec<(Cow<'a, str>, ManagedFieldMap<'a>)>,
    any: bool,
}

impl<'a> StatusManagers<'a> {
    fn from_managed_fields(object: &'a RawValue) -> StatusManagers<'a> {
        let fields = raw_json::get_path(object, &["metadata", "managedFields"])
            .and_then(raw_json::list_elements)
            .unwrap_or_default();
        let any = !fields.is_empty();
        let status = fields
            .into_iter()
            .filter_map(|field| {
                let manager = raw_json::get_member(field, "manager").and_then(raw_json::string_value)?;
                Some((manager, raw_json::all_members(raw_json::get_path(field, &["fieldsV1", "f:status"])?)))
            })
            .collect();
        StatusManagers { status, any }
    }

    fn owners_of(&self, field: &str) -> Vec<String> {
        let owners = self.status.iter().filter(|(_, fields)| fields.contains_key(field));
        owners.map(|(manager, _)| manager.clone().into_owned()).collect()
    }

    /// Returns the other managers that own the list as a whole.
    fn other_list_owners(&self) -> Vec<String> {
        let mut owners = self.owners_of("f:conditions");
        owners.retain(|manager| manager != FIELD_MANAGER);
        owners
    }

    /// Returns `true` if some manager owns conditions one by one: only those of a list-map have owners.
    fn know_conditions_by_type(&self) -> bool {
        let lists = self.status.iter().filter_map(|(_, fields)| fields.get("f:conditions"));
        lists.into_iter().any(|list| raw_json::all_members(list).keys().any(|key| key.starts_with("k:")))
    }

    /// Returns the owners of one entry of a list-map; empty for an atomic list, which belongs to its last writer.
    fn condition_owners(&self, kind: &str) -> Vec<String> {
        let key = format!("k:{{\"type\":{}}}", serde_json::Value::from(kind));
        let owns = |fields: &ManagedFieldMap<'_>| {
            fields.get("f:conditions").is_some_and(|c| raw_json::get_member(c, &key).is_some())
        };
        let owners = self.status.iter().filter(|(_, fields)| owns(fields));
        owners.map(|(manager, _)| manager.clone().into_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(object: &Value) -> ParentStatus {
        let own = OwnTypes::of(["Ready", "Reconciling", "Stalled"]);
        ParentStatus::read(&RawValue::from_string(object.to_string()).unwrap(), &own)
    }

    fn ours(reason: &str) -> Value {
        json!({"type": "Ready", "status": "True", "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    #[test]
    fn an_entry_is_ours_if_its_reason_is() {
        let read = read(
            &json!({"status": {"conditions": [{"type": "Synced", "status": "True"}, ours("AllChildrenReady")]}}),
        );
        assert_eq!(read.our_entry("Ready").map(OwnedCondition::index), Some(1));
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
        assert!(read(&object("rollcall")).our_entry("Ready").is_some());
    }

    /// An atomic list that this manager wrote last.
    fn atomic(manager: &str, conditions: &Value) -> Value {
        let fields = json!([{"manager": manager, "operation": "Update", "subresource": "status",
            "fieldsV1": {"f:status": {"f:conditions": {}}}}]);
        json!({"metadata": {"managedFields": fields}, "status": {"conditions": conditions}})
    }

    fn types(read: &ParentStatus) -> (Vec<&str>, Vec<&str>) {
        let ours = read.ours.iter().map(OwnedCondition::kind);
        (ours.collect(), read.foreign.iter().map(|(kind, ..)| &**kind).collect())
    }

    #[test]
    fn a_type_that_no_policy_writes_is_never_ours_whatever_its_reason_and_whoever_wrote_the_list_last() {
        let theirs = json!({"type": "BackupFailed", "status": "True", "reason": "DeadlineExceeded",
            "message": "2 of 3 not ready: even so", "observedGeneration": 2});
        for manager in ["db-operator", "rollcall"] {
            let object = atomic(manager, &json!([ours("ChildrenFailed"), theirs]));
            assert_eq!(types(&read(&object)), (vec!["Ready"], vec!["BackupFailed"]), "{manager}");
        }
    }

    #[test]
    fn what_an_operator_put_back_as_it_read_it_is_ours_still() {
        let theirs = json!({"type": "Synced", "status": "True", "reason": "Done", "observedGeneration": 3});
        let deleting = json!({"type": "Ready", "status": "False", "reason": "Terminating",
            "message": "being deleted", "observedGeneration": 2});
        for mine in [ours("ChildrenFailed"), deleting] {
            let read = read(&atomic("db-operator", &json!([theirs, mine])));
            assert_eq!(types(&read), (vec!["Ready"], vec!["Synced"]));
            assert_eq!(read.foreign_generation, Some(3));
        }
    }

    #[test]
    fn an_operator_may_use_the_types_of_kstatus_and_our_ordinary_words() {
        let theirs = json!([
            {"type": "Reconciling", "status": "True", "reason": "Terminating", "message": "draining"},
            {"type": "Stalled", "status": "True", "reason": "DeadlineExceeded", "message": "backup too slow"},
        ]);
        for manager in ["db-operator", "rollcall"] {
            let (ours, foreign) = (Vec::new(), vec!["Reconciling", "Stalled"]);
            assert_eq!(types(&read(&atomic(manager, &theirs))), (ours, foreign), "{manager}");
        }
    }

    #[test]
    fn a_second_entry_of_ours_is_ours_too_and_proves_nothing() {
        let entry = |generation: i64| {
            let mut entry = ours("ChildrenFailed");
            entry["observedGeneration"] = json!(generation);
            entry
        };
        let read = read(&atomic("rollcall", &json!([entry(1), entry(2)])));
        assert_eq!(types(&read), (vec!["Ready", "Ready"], vec![]));
        assert_eq!(read.foreign_generation, None);
    }

    #[test]
    fn what_we_said_by_a_type_that_no_policy_writes_any_more_proves_nothing() {
        let mut left = ours("AllChildrenReady");
        (left["type"], left["observedGeneration"]) = (json!("Healthy"), json!(7));
        let read = read(&atomic("rollcall", &json!([left])));
        assert_eq!((types(&read), read.foreign_generation), ((vec![], vec!["Healthy"]), None));
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
        assert_eq!(supplied.generation_owner, GenerationOwner::Default, "nobody wrote it");
        assert!(supplied.has_own_generation());
        let fields = json!([{"manager": "op", "operation": "Update", "fieldsV1": {"f:status": {"f:observedGeneration": {}}}}]);
        let written =
            read(&json!({"metadata": {"managedFields": fields}, "status": {"observedGeneration": 3}}));
        assert_eq!(written.generation_owner, GenerationOwner::Foreign);
        assert!(!written.has_own_generation());
    }
}
