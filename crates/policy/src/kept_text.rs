//! The text of a spec without what goes without saying. A version of the program that does not know a field refuses a spec
//! that names it, even by its default; so it can read each one that makes no use of the field only if that is not named.

use api::ReadinessPolicySpec;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The spec as JSON text that names no field with the value that it has by default; `None` where it cannot be written.
pub(super) fn text_without_defaults(spec: &ReadinessPolicySpec) -> Option<String> {
    // Each child by itself: whether a field can be left out is found by reading what remains.
    let mut kept = without_defaults(&ReadinessPolicySpec { children: Vec::new(), ..spec.clone() })?;
    let children = spec.children.iter().map(without_defaults).collect::<Option<Vec<_>>>()?;
    if !children.is_empty() {
        kept["children"] = Value::Array(children);
    }
    serde_json::to_string(&kept).ok()
}

fn without_defaults<T: Serialize + DeserializeOwned + PartialEq>(part: &T) -> Option<Value> {
    let mut whole = serde_json::to_value(part).ok()?;
    leave_out(&mut whole, "", &|rest| T::deserialize(rest).is_ok_and(|read| read == *part));
    Some(whole)
}

/// Takes out every field at or below this JSON pointer without which the whole still says the same.
fn leave_out(whole: &mut Value, at: &str, says_the_same: &dyn Fn(&Value) -> bool) {
    let below = match whole.pointer(at) {
        Some(Value::Object(fields)) => fields.keys().cloned().collect(),
        Some(Value::Array(items)) => (0..items.len()).map(|place| place.to_string()).collect(),
        _ => Vec::new(),
    };
    for key in below {
        let taken =
            whole.pointer_mut(at).and_then(Value::as_object_mut).and_then(|fields| fields.remove(&key));
        let is_needed = taken.is_none() || !says_the_same(whole);
        if let (Some(value), true) = (taken, is_needed) {
            whole
                .pointer_mut(at)
                .and_then(Value::as_object_mut)
                .map(|fields| fields.insert(key.clone(), value));
        }
        if is_needed {
            // In a pointer these two signs of a key are written otherwise (RFC 6901).
            let key = key.replace('~', "~0").replace('/', "~1");
            leave_out(whole, &format!("{at}/{key}"), says_the_same);
        }
    }
}

#[cfg(test)]
mod tests;
