//! Admission of new objects into namespaces, as the plugin `NamespaceLifecycle` has it.

use serde_json::{Value, json};

use super::kind::SandboxKind;
use super::meta;
use super::refusal::StoreRefusal;

/// Refuses to create an object in a namespace that does not exist or is being deleted.
pub(super) fn check_namespace_open(
    kind: &SandboxKind,
    namespace: &str,
    stored: Option<&Value>,
    name: &str,
) -> Result<(), StoreRefusal> {
    let Some(stored) = stored else { return Err(StoreRefusal::not_found("", "namespaces", namespace)) };
    if !meta::is_deleting(stored) {
        return Ok(());
    }
    let group = if kind.group.is_empty() { String::new() } else { format!(".{}", kind.group) };
    let message = format!(
        "{}{group} {name:?} is forbidden: unable to create new content in namespace {namespace} because it is being terminated",
        kind.plural
    );
    let cause = json!({"reason": "NamespaceTerminating", "message": format!("namespace {namespace} is being terminated"), "field": "metadata.namespace"});
    let mut details = json!({"name": name, "kind": kind.plural, "causes": [cause]});
    if !kind.group.is_empty() {
        details["group"] = json!(kind.group);
    }
    Err(StoreRefusal::forbidden(message, details))
}
