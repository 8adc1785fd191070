//! Merge patches: RFC 7386, and strategic merge as far as it concerns lists with well-known keys.

use serde_json::{Map, Value, json};

use super::kind::SandboxKind;
use super::schema::{SchemaListType, SchemaShape};

/// Merges `patch` into `target`: null removes, maps merge, everything else replaces.
pub(super) fn merge_patch(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Some(map) = target.as_object_mut() else { return };
    for (name, value) in patch {
        if value.is_null() {
            map.remove(name);
        } else {
            merge_patch(map.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

/// Strategic merge for built-in kinds, whose keyed lists merge item by item.
pub(super) fn strategic_merge_patch(kind: &SandboxKind, target: &mut Value, patch: &Value) {
    strategic_value(target, patch, SchemaShape::of_kind(kind));
}

fn strategic_value(target: &mut Value, patch: &Value, shape: SchemaShape<'_>) {
    match patch {
        Value::Object(patch) => strategic_map(target, patch, shape),
        Value::Array(patch) if target.is_array() => strategic_list(target, patch, shape),
        Value::Array(_) => {
            *target = json!([]);
            strategic_value(target, patch, shape);
        }
        _ => *target = patch.clone(),
    }
}

fn strategic_map(target: &mut Value, patch: &Map<String, Value>, shape: SchemaShape<'_>) {
    if !target.is_object() || patch.get("$patch").is_some_and(|how| how == "replace") {
        *target = json!({});
    }
    let Some(map) = target.as_object_mut() else { return };
    for (name, value) in patch {
        if let Some(list) = name.strip_prefix("$deleteFromPrimitiveList/") {
            let gone = value.as_array().cloned().unwrap_or_default();
            if let Some(items) = map.get_mut(list).and_then(Value::as_array_mut) {
                items.retain(|item| !gone.contains(item));
            }
        } else if let (true, Some(kept)) = (name == "$retainKeys", value.as_array()) {
            map.retain(|name, _| kept.iter().any(|kept| kept == name));
        } else if name.starts_with('$') {
            // `$setElementOrder` only orders items that are merged anyway.
        } else if value.is_null() {
            map.remove(name);
        } else {
            strategic_value(map.entry(name.clone()).or_insert(Value::Null), value, shape.field_shape(name));
        }
    }
}

fn strategic_list(target: &mut Value, patch: &[Value], shape: SchemaShape<'_>) {
    let Some(list) = target.as_array_mut() else { return };
    match shape.list_type() {
        SchemaListType::Atomic => *list = patch.to_vec(),
        SchemaListType::Set => {
            let fresh: Vec<Value> = patch.iter().filter(|item| !list.contains(item)).cloned().collect();
            list.extend(fresh);
        }
        SchemaListType::Map(keys) => {
            if patch.iter().any(|item| item["$patch"] == "replace") {
                *list = patch.iter().filter(|item| item["$patch"].is_null()).cloned().collect();
                return;
            }
            for item in patch {
                let same =
                    |other: &Value| keys.iter().all(|key| item[*key].is_null() || other[*key] == item[*key]);
                if item["$patch"] == "delete" {
                    list.retain(|other| !same(other));
                } else if let Some(found) = list.iter_mut().find(|other| same(other)) {
                    strategic_value(found, item, shape.item_shape());
                } else {
                    list.push(item.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_removes_and_lists_are_replaced() {
        let mut object = json!({"a": {"b": 1, "c": 2}, "list": [1, 2]});
        merge_patch(&mut object, &json!({"a": {"b": null, "d": {"e": null, "f": 1}}, "list": [3]}));
        assert_eq!(object, json!({"a": {"c": 2, "d": {"f": 1}}, "list": [3]}));
    }

    #[test]
    fn keyed_lists_merge_item_by_item() {
        let mut target = json!([{"name": "a", "image": "1"}, {"name": "b"}]);
        let patch = json!([{"name": "a", "image": "2"}, {"name": "b", "$patch": "delete"}, {"name": "c"}]);
        strategic_value(&mut target, &patch, SchemaShape::Builtin("containers"));
        assert_eq!(target, json!([{"name": "a", "image": "2"}, {"name": "c"}]));
    }
}
