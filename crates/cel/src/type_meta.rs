//! An object's own `apiVersion` and `kind`.

use std::sync::LazyLock;

use crate::errors::EvalError;
use crate::json_tree::{JsonTree, NeededFields};
use crate::meter::CostMeter;
use crate::object_json::ObjectJson;

/// Returns `apiVersion` and `kind` of an object; empty if they are no strings.
pub fn read_type_meta(object: ObjectJson<'_>) -> Result<(String, String), EvalError> {
    static TYPE: LazyLock<NeededFields> = LazyLock::new(|| {
        let mut needs = NeededFields::default();
        needs.require_field("apiVersion");
        needs.require_field("kind");
        needs
    });
    let fields = TYPE.read_object(object, &CostMeter::default()).map_err(EvalError::from_read_error)?;
    let text = |field: &str| match fields.get(field) {
        Some(JsonTree::Text(text)) => text.to_string(),
        _ => String::new(),
    };
    Ok((text("apiVersion"), text("kind")))
}
