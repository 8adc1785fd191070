//! Field ownership, from `metadata.managedFields`.

use serde_json::Value;

/// Fields of an object owned by one field manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldManager<'o> {
    /// Name of the manager.
    pub name: &'o str,
    /// `Apply` or `Update`.
    pub operation: &'o str,
    /// Subresource such as `status`; empty for the main resource.
    pub subresource: &'o str,
    /// Time of its last write.
    pub time: &'o str,
    fields: &'o Value,
}

/// All field managers, in the object's order.
pub fn field_managers(object: &Value) -> impl Iterator<Item = FieldManager<'_>> {
    let all = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    all.filter_map(|entry| {
        let text = |key: &str| entry[key].as_str().unwrap_or_default();
        let name = entry["manager"].as_str()?;
        let (operation, subresource, time) = (text("operation"), text("subresource"), text("time"));
        Some(FieldManager { name, operation, subresource, time, fields: &entry["fieldsV1"] })
    })
}

impl FieldManager<'_> {
    /// True if it owns the field at the end of this path, as in `["f:metadata", "f:finalizers"]`.
    pub fn owns_path(&self, path: &[&str]) -> bool {
        path.iter().try_fold(self.fields, |fields, key| fields.get(*key)).is_some()
    }
}

impl FieldManager<'_> {
    /// True if it owns that field as a whole, rather than entries of it by their keys.
    pub fn owns_leaf(&self, path: &[&str]) -> bool {
        let leaf =
            path.iter().try_fold(self.fields, |fields, key| fields.get(*key)).and_then(Value::as_object);
        leaf.is_some_and(|fields| !fields.keys().any(|key| key.starts_with("k:")))
    }
}

/// Only manager that set this finalizer; `None` if it is ambiguous.
pub fn finalizer_manager<'o>(object: &'o Value, finalizer: &str) -> Option<&'o str> {
    let key = format!("v:{}", Value::from(finalizer));
    let mut names: Vec<_> = field_managers(object)
        .filter(|manager| manager.owns_path(&["f:metadata", "f:finalizers", &key]))
        .map(|manager| manager.name)
        .collect();
    names.dedup();
    match names.as_slice() {
        [one] => Some(one),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_finalizer_has_the_manager_that_alone_owns_it() {
        let field = |manager: &str, name: &str| {
            let key = format!("v:{}", Value::from(name));
            json!({ "manager": manager, "operation": "Update",
                "fieldsV1": { "f:metadata": { "f:finalizers": { ".": {}, key: {} } } } })
        };
        let object = json!({ "metadata": { "managedFields":
            [field("kopf", "a.io/x"), field("helm", "b.io/y"), field("kubectl", "b.io/y")] } });
        assert_eq!(finalizer_manager(&object, "a.io/x"), Some("kopf"));
        assert_eq!(finalizer_manager(&object, "b.io/y"), None, "two of them");
        assert_eq!(finalizer_manager(&object, "c"), None);
        assert_eq!(finalizer_manager(&json!({}), "a.io/x"), None);
    }
}
