//! Who owns the fields of a status, by `metadata.managedFields`.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::entry::FIELD_MANAGER;
use super::json_members::JsonMembers;
use super::raw_json;

/// Owners of the status fields, by managedFields.
pub(super) struct StatusManagers<'a> {
    /// Fields below `f:status`, by manager.
    status: Vec<(Cow<'a, str>, JsonMembers<'a>)>,
    /// The object has managedFields.
    pub(super) any: bool,
}

impl<'a> StatusManagers<'a> {
    /// Reads them from an object.
    pub(super) fn from_managed_fields(object: &'a RawValue) -> StatusManagers<'a> {
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

    /// Returns the managers that own this field of the status.
    pub(super) fn owners_of(&self, field: &str) -> Vec<String> {
        let owners = self.status.iter().filter(|(_, fields)| fields.get(field).is_some());
        owners.map(|(manager, _)| manager.clone().into_owned()).collect()
    }

    /// Returns the other managers that own the list as a whole.
    pub(super) fn other_list_owners(&self) -> Vec<String> {
        let mut owners = self.owners_of("f:conditions");
        owners.retain(|manager| manager != FIELD_MANAGER);
        owners
    }

    /// Returns `true` if another manager than Rollcall owns a field of the status.
    pub(super) fn has_others(&self) -> bool {
        self.status.iter().any(|(manager, _)| manager != FIELD_MANAGER)
    }

    /// Returns `true` if some manager owns conditions one by one: only those of a list-map have owners.
    pub(super) fn know_conditions_by_type(&self) -> bool {
        let lists = self.status.iter().filter_map(|(_, fields)| fields.get("f:conditions"));
        lists.into_iter().any(|list| raw_json::all_members(list).keys().any(|key| key.starts_with("k:")))
    }

    /// Returns the owners of one entry of a list-map; empty for an atomic list, which belongs to its last writer.
    pub(super) fn condition_owners(&self, kind: &str) -> Vec<String> {
        let key = format!("k:{{\"type\":{}}}", serde_json::Value::from(kind));
        let owns = |fields: &JsonMembers<'_>| {
            fields.get("f:conditions").is_some_and(|c| raw_json::get_member(c, &key).is_some())
        };
        let owners = self.status.iter().filter(|(_, fields)| owns(fields));
        owners.map(|(manager, _)| manager.clone().into_owned()).collect()
    }
}
