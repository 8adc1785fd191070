//! What can be told of a policy that is refused: on which parents it wrote, and in which condition.

use std::time::Duration;

use api::ReadinessPolicySpec;
use serde_json::{Value, json};

use super::compile::CompiledPolicy;
use super::found_policy::FoundPolicy;

/// A policy that names the same parents and the same condition and nothing else; `None` where it names none.
///
/// **Invariant:** nothing is judged by it. It only says whose entries those on the parents are.
pub(super) fn compile(found: &FoundPolicy) -> Option<CompiledPolicy> {
    let given = match (&found.spec, found.text.as_deref()) {
        (Ok(spec), _) => serde_json::to_value(spec).ok()?,
        (Err(_), text) => serde_json::from_str::<Value>(text?).ok()?["spec"].take(),
    };
    compile_given(&given)
}

/// The same of the spec that was accepted last, as far as the text that the policy's own status keeps of it can be read.
pub(super) fn compile_kept(found: &FoundPolicy) -> Option<CompiledPolicy> {
    compile_given(&serde_json::from_str(found.status.accepted.as_ref()?.spec.as_deref()?).ok()?)
}

/// The same of what was compiled.
pub(super) fn of_compiled(compiled: &CompiledPolicy) -> CompiledPolicy {
    CompiledPolicy { groups: Vec::new(), min: 0, joint: Vec::new(), proof: None, ..compiled.clone() }
}

fn compile_given(given: &Value) -> Option<CompiledPolicy> {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let kind = text(&given["parent"]["kind"])?;
    let condition = text(&given["condition"]["type"]).unwrap_or_else(|| "Ready".to_owned());
    let mut stub = json!({
        "parent": { "group": text(&given["parent"]["group"]).unwrap_or_default(), "kind": kind },
        "condition": { "type": condition },
    });
    for (of, field) in [("parent", "version"), ("condition", "fallback")] {
        if let Some(said) = text(&given[of][field]) {
            stub[of][field] = json!(said);
        }
    }
    if let Some(mode) = text(&given["mode"]).filter(|mode| mode == "shadow") {
        stub["mode"] = json!(mode);
    }
    let mut chosen = stub.clone();
    for selector in ["selector", "namespaceSelector"] {
        if given["parent"][selector].is_object() {
            chosen["parent"][selector] = given["parent"][selector].clone();
        }
    }
    let compile = |stub: Value| {
        let spec: ReadinessPolicySpec = serde_json::from_value(stub).ok()?;
        super::compile::compile(&spec, Duration::ZERO).ok()
    };
    // With selectors that say nothing it may be any parent of the kind.
    let compiled = compile(chosen).or_else(|| compile(stub))?;
    Some(of_compiled(&compiled))
}
