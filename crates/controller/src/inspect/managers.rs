//! Who wrote what, by `metadata.managedFields`.

use serde_json::Value;

/// One field manager's share of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager<'o> {
    /// What it calls itself.
    pub name: &'o str,
    /// `Apply` or `Update`.
    pub operation: &'o str,
    /// As in `status`; empty for the object itself.
    pub subresource: &'o str,
    /// When it last wrote.
    pub time: &'o str,
    fields: &'o Value,
}

/// All of them, in the order of the object.
pub fn managers(object: &Value) -> impl Iterator<Item = Manager<'_>> {
    let all = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    all.filter_map(|entry| {
        let text = |key: &str| entry[key].as_str().unwrap_or_default();
        let name = entry["manager"].as_str()?;
        let (operation, subresource, time) = (text("operation"), text("subresource"), text("time"));
        Some(Manager { name, operation, subresource, time, fields: &entry["fieldsV1"] })
    })
}

impl Manager<'_> {
    /// It owns what stands at the end of this path, as in `["f:metadata", "f:finalizers"]`.
    pub fn owns(&self, path: &[&str]) -> bool {
        path.iter().try_fold(self.fields, |fields, key| fields.get(*key)).is_some()
    }
}

impl Manager<'_> {
    /// It owns what stands there as a whole, not entries of it by their keys.
    pub fn owns_leaf(&self, path: &[&str]) -> bool {
        let leaf =
            path.iter().try_fold(self.fields, |fields, key| fields.get(*key)).and_then(Value::as_object);
        leaf.is_some_and(|fields| !fields.keys().any(|key| key.starts_with("k:")))
    }
}

/// The one manager that set this finalizer; `None` where it is not clear.
pub fn of_finalizer<'o>(object: &'o Value, finalizer: &str) -> Option<&'o str> {
    let key = format!("v:{}", Value::from(finalizer));
    let mut names: Vec<_> = managers(object)
        .filter(|manager| manager.owns(&["f:metadata", "f:finalizers", &key]))
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
        assert_eq!(of_finalizer(&object, "a.io/x"), Some("kopf"));
        assert_eq!(of_finalizer(&object, "b.io/y"), None, "two of them");
        assert_eq!(of_finalizer(&object, "c"), None);
        assert_eq!(of_finalizer(&json!({}), "a.io/x"), None);
    }
}
